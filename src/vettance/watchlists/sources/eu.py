"""The European Union's consolidated list of persons, groups and entities subject to financial sanctions.

Source: European Commission, Financial Sanctions Files, https://webgate.ec.europa.eu/fsd/fsf: the XML (schema
1.1, `sanctionEntity`), the CSV (`FULL` export, semicolons), and reduced JSON (`data: [{id, name, type,
details}]`) as third parties pass it on. Reuse with attribution.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import msgspec

from vettance.reference.countries import country_code
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import Entity, EntityDraft, EntityType, NameQuality, document_kind
from vettance.watchlists.sources.formats import SourceFault, csv_records, read_text, text_at, xml_records

_TYPES = {
    "p": EntityType.INDIVIDUAL,
    "person": EntityType.INDIVIDUAL,
    "individual": EntityType.INDIVIDUAL,
    "e": EntityType.ORGANIZATION,
    "enterprise": EntityType.ORGANIZATION,
    "entity": EntityType.ORGANIZATION,
}


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the entities of the list from XML, CSV or JSON, distinguished by how the file begins."""
    for path in paths:
        head = read_text(path)[:400].lstrip()
        if head.startswith("<"):
            yield from _read_xml(source, path)
        elif head.startswith(("{", "[")):
            yield from _read_json(source, path)
        else:
            yield from _read_csv(source, path)


def _read_xml(source: str, path: Path) -> Iterator[Entity]:
    for record in xml_records(path, frozenset({"sanctionEntity"})):
        subject = record.find("subjectType")
        code = (subject.get("code") or subject.get("classificationCode") or "") if subject is not None else ""
        kind = _TYPES.get(code.casefold(), EntityType.UNKNOWN)
        draft = EntityDraft(f"{source}:EU-{record.get('logicalId', '')}", source, kind)
        draft.reference = record.get("unitedNationId") or record.get("euReferenceNumber") or ""
        draft.listed_on = (record.get("designationDate") or "")[:10]
        draft.remarks = text_at(record, "remark")
        for regulation in record.findall("regulation"):
            draft.add("programmes", regulation.get("programme", ""))
            draft.listed_on = draft.listed_on or (regulation.get("publicationDate") or "")[:10]
        _xml_names(draft, record)
        _xml_facts(draft, record)
        if draft.has_name():
            yield draft.freeze()


def _xml_names(draft: EntityDraft, record: Element) -> None:
    for number, alias in enumerate(record.findall("nameAlias")):
        parts = (alias.get("firstName"), alias.get("middleName"), alias.get("lastName"))
        text = alias.get("wholeName") or " ".join(part for part in parts if part)
        strong = (alias.get("strong") or "true").casefold() == "true"
        quality = NameQuality.STRONG if strong else NameQuality.WEAK
        draft.add_name(text, NameQuality.PRIMARY if number == 0 and strong else quality)
        draft.gender = draft.gender or (alias.get("gender") or "")[:1].casefold()
        draft.reason = draft.reason or (alias.get("function") or "")


def _xml_facts(draft: EntityDraft, record: Element) -> None:
    for birth in record.findall("birthdate"):
        first, last = birth.get("yearRangeFrom"), birth.get("yearRangeTo")
        text = f"{first}-{last}" if first and last else birth.get("birthdate") or birth.get("year") or ""
        circa = "circa " if (birth.get("circa") or "").casefold() == "true" else ""
        draft.add_birth(read_birth(circa + text))
        draft.add("birth_places", _joined(birth))
    for citizenship in record.findall("citizenship"):
        draft.add("countries", _country(citizenship))
    for address in record.findall("address"):
        draft.add("addresses", _joined(address))
        draft.add("cities", address.get("city") or "")
        draft.add("address_countries", _country(address))
    for document in record.findall("identification"):
        label = document.get("identificationTypeDescription") or document.get("identificationTypeCode") or ""
        value = document.get("number") or document.get("latinNumber") or ""
        draft.add_document(document_kind(label), value, _country(document))


def _country(element: Element) -> str:
    return country_code(element.get("countryIso2Code") or "") or country_code(
        element.get("countryDescription") or ""
    )


def _joined(element: Element) -> str:
    keys = ("street", "place", "city", "region", "zipCode", "countryDescription")
    return ", ".join(text for key in keys if (text := element.get(key)) and text != "UNKNOWN")


def _read_csv(source: str, path: Path) -> Iterator[Entity]:
    """Read the CSV: every line is one alias, address, birth date or document of the entity it names."""
    drafts: dict[str, EntityDraft] = {}
    for row in csv_records(path, ("entity_logicalid", "namealias_wholename")):
        key = row["entity_logicalid"]
        draft = drafts.get(key)
        if draft is None:
            code = row.get("entity_subjecttype", "") or row.get("entity_subjecttype_classificationcode", "")
            draft = EntityDraft(f"{source}:EU-{key}", source, _TYPES.get(code.casefold(), EntityType.UNKNOWN))
            draft.reference = row.get("entity_unitednationid") or row.get("entity_eureferencenumber", "")
            draft.remarks = row.get("entity_remark", "")
            draft.listed_on = row.get("entity_designationdate", "")
            drafts[key] = draft
        draft.add("programmes", row.get("entity_regulation_programme", ""))
        draft.add_name(
            row["namealias_wholename"], NameQuality.STRONG if draft.has_name() else NameQuality.PRIMARY
        )
        draft.gender = draft.gender or row.get("namealias_gender", "")[:1].casefold()
        draft.reason = draft.reason or row.get("namealias_function", "")
        draft.add_birth(read_birth(row.get("birthdate_birthdate", "") or row.get("birthdate_year", "")))
        draft.add("birth_places", row.get("birthdate_place", "") or row.get("birthdate_city", ""))
        draft.add("countries", country_code(row.get("citizenship_countryiso2code", "")))
        draft.add("cities", row.get("address_city", ""))
        draft.add("address_countries", country_code(row.get("address_countryiso2code", "")))
        draft.add_document(
            document_kind(
                row.get("identification_typedescription", "") or row.get("identification_typecode", "")
            ),
            row.get("identification_number", ""),
            country_code(row.get("identification_countryiso2code", "")),
        )
    yield from (draft.freeze() for draft in drafts.values() if draft.has_name())


def _read_json(source: str, path: Path) -> Iterator[Entity]:
    try:
        document = msgspec.json.decode(read_text(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceFault(f"{path.name} is not JSON: {error}") from None
    rows = document.get("data") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise SourceFault(f"{path.name} holds no `data` array")
    for row in rows:
        if isinstance(row, dict) and row.get("id") and row.get("name"):
            yield _json_entity(source, row)


def _json_entity(source: str, row: dict[str, Any]) -> Entity:
    found = row.get("details")
    details: dict[str, Any] = found if isinstance(found, dict) else {}
    kind = _TYPES.get(str(row.get("type", "")).casefold(), EntityType.UNKNOWN)
    draft = EntityDraft(f"{source}:{row['id']}", source, kind)
    draft.add_name(str(row["name"]), NameQuality.PRIMARY)
    for alias in details.get("aliases") or []:
        draft.add_name(str(alias))
    draft.add_birth(read_birth(str(details.get("birthDate") or "")))
    draft.add("programmes", *(str(text) for text in row.get("programs") or []))
    for text in (row.get("country"), *(details.get("nationalities") or [])):
        draft.add("countries", country_code(str(text or "")))
    return draft.freeze()
