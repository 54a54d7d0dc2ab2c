"""The United Kingdom's lists: OFSI's consolidated list of targets and the UK Sanctions List.

Sources: HM Treasury, Office of Financial Sanctions Implementation, `ConList.csv` (first line the date,
second the header, one line for each name and date of birth), and Foreign, Commonwealth & Development Office,
the UK Sanctions List as CSV and XML (https://www.gov.uk/government/publications/the-uk-sanctions-list). Open
Government Licence v3.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from vettance.reference.countries import country_code, country_codes
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import (
    DocumentKind,
    Entity,
    EntityDraft,
    EntityType,
    NameQuality,
    document_kind,
)
from vettance.watchlists.sources.formats import (
    SourceFault,
    csv_records,
    csv_rows,
    open_bytes,
    text_at,
    xml_records,
)

_TYPES = {
    "individual": EntityType.INDIVIDUAL,
    "entity": EntityType.ORGANIZATION,
    "ship": EntityType.VESSEL,
}


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the entities of either list, distinguished by their columns."""
    for path in paths:
        with open_bytes(path) as file:
            head = file.read(64).lstrip(b"\xef\xbb\xbf \r\n\t")
        if head.startswith(b"<"):
            yield from _read_uksl_xml(source, path)
            continue
        header: set[str] = set()
        for number, row in enumerate(csv_rows(path)):
            header |= {cell.strip().casefold() for cell in row}
            if number == 2:
                break
        if "group id" in header:
            yield from _read_ofsi(source, path)
        elif "unique id" in header:
            yield from _read_uksl(source, path)
        else:
            raise SourceFault(f"{path.name} is neither OFSI's list nor the UK Sanctions List")


def _before_header(key: str) -> "_Skip":
    return _Skip(key)


class _Skip:
    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, row: list[str]) -> bool:
        return self._key not in {cell.strip().casefold() for cell in row}


def _read_ofsi(source: str, path: Path) -> Iterator[Entity]:
    drafts: dict[str, EntityDraft] = {}
    for row in csv_records(path, ("name 6", "group type", "group id"), ",", _before_header("group id")):
        key = row["group id"].removesuffix(".0")
        if not key:
            continue
        draft = drafts.get(key)
        if draft is None:
            kind = _TYPES.get(row["group type"].casefold(), EntityType.UNKNOWN)
            draft = drafts[key] = EntityDraft(f"{source}:{key}", source, kind)
        _ofsi_row(draft, row)
    yield from (draft.freeze() for draft in drafts.values() if draft.has_name())


def _ofsi_row(draft: EntityDraft, row: dict[str, str]) -> None:
    name = " ".join(row.get(f"name {number}", "") for number in (1, 2, 3, 4, 5, 6))
    alias = row.get("alias type", "").casefold()
    weak = "low" in row.get("alias quality", "").casefold()
    primary = NameQuality.PRIMARY if alias.startswith("prim") else NameQuality.STRONG
    draft.add_name(name, NameQuality.WEAK if weak else primary)
    draft.add_name(row.get("name non-latin script", ""))
    for text in re.split(r"\(?\d\)", row.get("dob", "")):
        draft.add_birth(read_birth(text.replace("00/00/", "")))
    draft.add(
        "birth_places",
        ", ".join(part for part in (row.get("town of birth", ""), row.get("country of birth", "")) if part),
    )
    draft.add("countries", *country_codes(row.get("nationality", "")))
    city = row.get("address 6", "")
    parts = [row.get(f"address {number}", "") for number in (1, 2, 3, 4, 5, 6)]
    draft.add("addresses", ", ".join(part for part in (*parts, row.get("country", "")) if part))
    draft.add("cities", city)
    draft.add("address_countries", country_code(row.get("country", "")))
    _numbers(draft, DocumentKind.PASSPORT, row.get("passport details", "") or row.get("passport number", ""))
    _numbers(
        draft,
        DocumentKind.NATIONAL_ID,
        row.get("ni number", "") or row.get("national identification number", ""),
    )
    draft.add("programmes", row.get("regime", ""))
    draft.remarks = draft.remarks or row.get("other information", "")
    draft.reason = draft.reason or row.get("uk statement of reasons", "") or row.get("position", "")
    listed = read_birth(row.get("listed on", ""))
    draft.listed_on = draft.listed_on or (listed.first if listed else "")
    if reference := re.search(
        r"UN ref:?\.?\s*(?:no\.? ?)?([A-Z]{2,3}[ie]?\.[A-Z0-9.]*\d)", draft.remarks, re.I
    ):
        draft.reference = draft.reference or reference[1]
    if imo := re.search(r"\bIMO(?: number)?:?\s*(\d{7})\b", draft.remarks, re.IGNORECASE):
        draft.add_document(DocumentKind.IMO, imo[1])


_NUMBER = re.compile(r"(?<![\w/])(?=[\w/\-]*\d)[A-Z0-9][A-Z0-9/\-]{4,}(?![\w/])", re.IGNORECASE)
_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{4}|\d{4}-\d{2}-\d{2}")


def _numbers(draft: EntityDraft, kind: DocumentKind, text: str) -> None:
    """Pick the numbers out of a sentence such as `Tunisia number G557170 issued on 16 Nov 1989.`"""
    country = re.search(r"\(([A-Z][a-z]+(?: [A-Z][a-z]+)*)\b", text)
    for number in _NUMBER.findall(_DATE.sub(" ", text)):
        draft.add_document(kind, number, country_code(country[1]) if country else "")


def _read_uksl(source: str, path: Path) -> Iterator[Entity]:
    drafts: dict[str, EntityDraft] = {}
    for row in csv_records(path, ("unique id", "name 6"), ",", _before_header("unique id")):
        key = row["unique id"]
        if not key:
            continue
        draft = drafts.get(key)
        if draft is None:
            label = row.get("designation type", "") or row.get("individual, entity, ship", "")
            draft = EntityDraft(f"{source}:{key}", source, _TYPES.get(label.casefold(), EntityType.UNKNOWN))
            drafts[key] = draft
        _uksl_row(draft, row)
    yield from (draft.freeze() for draft in drafts.values() if draft.has_name())


def _uksl_row(draft: EntityDraft, row: dict[str, str]) -> None:
    name = " ".join(row.get(f"name {number}", "") for number in (1, 2, 3, 4, 5, 6))
    weak = "low" in row.get("alias strength", "").casefold()
    primary = row.get("name type", "").casefold().startswith("primary name")
    draft.add_name(name, NameQuality.WEAK if weak else NameQuality.PRIMARY if primary else NameQuality.STRONG)
    draft.add_name(row.get("name non-latin script", ""))
    for text in re.split(r"\||;", row.get("d.o.b", "") or row.get("dob", "")):
        draft.add_birth(read_birth(re.sub(r"^(?:dd/mm/|[a-z]{2}/)+", "", text.strip(), flags=re.IGNORECASE)))
    draft.add(
        "birth_places",
        ", ".join(part for part in (row.get("town of birth", ""), row.get("country of birth", "")) if part),
    )
    for part in re.split(r"\||;", row.get("nationality(/ies)", "") or row.get("nationality", "")):
        draft.add("countries", *country_codes(part))
    draft.add("countries", country_code(row.get("current believed flag of ship", "")))
    _numbers(draft, DocumentKind.PASSPORT, row.get("passport number", ""))
    _numbers(draft, DocumentKind.NATIONAL_ID, row.get("national identifier number", ""))
    if imo := re.search(r"\d{7}", row.get("imo number", "")):
        draft.add_document(DocumentKind.IMO, imo[0])
    if registration := row.get("business registration number (s)", ""):
        draft.add_document(document_kind("business registration"), registration)
    parts = [row.get(f"address line {number}", "") for number in (1, 2, 3, 4, 5, 6)]
    country = row.get("address country", "")
    draft.add("addresses", ", ".join(part for part in (*parts, country) if part))
    draft.add("cities", next((part for part in reversed(parts) if part), ""))
    draft.add("address_countries", country_code(country))
    draft.gender = draft.gender or row.get("gender", "")[:1].casefold()
    draft.add("programmes", row.get("regime name", ""))
    draft.reason = draft.reason or row.get("uk statement of reasons", "")
    draft.remarks = draft.remarks or row.get("other information", "")
    draft.reference = draft.reference or row.get("un reference number", "")
    listed = read_birth(row.get("date designated", ""))
    draft.listed_on = draft.listed_on or (listed.first if listed else "")


def _read_uksl_xml(source: str, path: Path) -> Iterator[Entity]:
    for record in xml_records(path, frozenset({"Designation"})):
        kind = _TYPES.get(text_at(record, "IndividualEntityShip").casefold(), EntityType.UNKNOWN)
        draft = EntityDraft(f"{source}:{text_at(record, 'UniqueID')}", source, kind)
        for name in record.findall("Names/Name"):
            text = " ".join(text_at(name, f"Name{number}") for number in (1, 2, 3, 4, 5, 6))
            weak = "low" in text_at(name, "AliasStrength").casefold()
            primary = " ".join(text_at(name, "NameType").casefold().split()) == "primary name"
            quality = NameQuality.PRIMARY if primary else NameQuality.STRONG
            draft.add_name(text, NameQuality.WEAK if weak else quality)
        for text in _inside(record, "NameNonLatinScript"):
            draft.add_name(text)
        for text in _inside(record, "DOB"):
            draft.add_birth(read_birth(_UNKNOWN_PARTS.sub("", text)))
        for place in record.iter("Location"):
            parts = (text_at(place, "TownOfBirth"), text_at(place, "CountryOfBirth"))
            draft.add("birth_places", ", ".join(part for part in parts if part))
        for text in (*_inside(record, "Nationality"), *_inside(record, "CurrentBelievedFlag")):
            draft.add("countries", *country_codes(text))
        _uksl_xml_facts(draft, record)
        if draft.has_name():
            yield draft.freeze()


#: Days and months that are not known are written out as letters.
_UNKNOWN_PARTS = re.compile(r"^(?:dd/mm/|[a-z]{2}/)+", re.IGNORECASE)


def _inside(record: Element, tag: str) -> list[str]:
    return [text for found in record.iter(tag) if (text := (found.text or "").strip())]


def _uksl_xml_facts(draft: EntityDraft, record: Element) -> None:
    for text in _inside(record, "PassportNumber"):
        _numbers(draft, DocumentKind.PASSPORT, text)
    for text in _inside(record, "NationalIdentifierNumber"):
        _numbers(draft, DocumentKind.NATIONAL_ID, text)
    for text in _inside(record, "IMONumber"):
        if imo := re.search(r"\d{7}", text):
            draft.add_document(DocumentKind.IMO, imo[0])
    for text in _inside(record, "BusinessRegistrationNumber"):
        draft.add_document(DocumentKind.REGISTRATION, text)
    for address in record.findall("Addresses/Address"):
        lines = [text_at(address, f"AddressLine{number}") for number in (1, 2, 3, 4, 5, 6)]
        country = text_at(address, "AddressCountry")
        draft.add("addresses", ", ".join(part for part in (*lines, country) if part))
        draft.add("cities", next((part for part in reversed(lines) if part), ""))
        draft.add("address_countries", country_code(country))
    draft.gender = next(iter(_inside(record, "Gender")), "")[:1].casefold()
    draft.add("programmes", text_at(record, "RegimeName"))
    draft.reason = text_at(record, "UKStatementofReasons") or "; ".join(_inside(record, "Position"))
    draft.remarks = text_at(record, "OtherInformation")
    draft.reference = text_at(record, "UNReferenceNumber")
    listed = read_birth(text_at(record, "DateDesignated"))
    draft.listed_on = listed.first if listed else ""
