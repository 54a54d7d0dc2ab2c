"""The United Nations Security Council Consolidated List, in its XML.

Source: United Nations Security Council, https://scsanctions.un.org/resources/xml/en/consolidated.xml (schema
`sc-sanctions.xsd`), published for implementation by member states.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from vettance.reference.countries import country_code
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import BirthDate, Entity, EntityDraft, EntityType, NameQuality, document_kind
from vettance.watchlists.sources.formats import text_at, texts, xml_records

_TYPES = {"INDIVIDUAL": EntityType.INDIVIDUAL, "ENTITY": EntityType.ORGANIZATION}
_QUALITY = {"low": NameQuality.WEAK}


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the individuals and entities of the list."""
    for path in paths:
        for record in xml_records(path, frozenset(_TYPES)):
            draft = _record(source, record)
            if draft.has_name():
                yield draft.freeze()


def _record(source: str, record: Element) -> EntityDraft:
    kind = record.tag
    reference = text_at(record, "REFERENCE_NUMBER")
    draft = EntityDraft(f"{source}:{reference or text_at(record, 'DATAID')}", source, _TYPES[kind])
    parts = ("FIRST_NAME", "SECOND_NAME", "THIRD_NAME", "FOURTH_NAME")
    draft.add_name(" ".join(text_at(record, part) for part in parts), NameQuality.PRIMARY)
    for text in texts(record, "NAME_ORIGINAL_SCRIPT"):
        draft.add_name(text)
    for alias in record.findall(f"{kind}_ALIAS"):
        quality = _QUALITY.get(text_at(alias, "QUALITY").casefold(), NameQuality.STRONG)
        for text in text_at(alias, "ALIAS_NAME").split(";"):
            draft.add_name(text, quality)
        for text in texts(alias, "ALIAS_NAME_ORIGINAL_SCRIPT"):
            draft.add_name(text, quality)
    draft.reference = reference
    draft.add("programmes", text_at(record, "UN_LIST_TYPE"))
    draft.listed_on = text_at(record, "LISTED_ON")[:10]
    draft.gender = text_at(record, "GENDER")[:1].casefold()
    draft.reason = "; ".join(texts(record, "DESIGNATION/VALUE"))
    draft.remarks = text_at(record, "COMMENTS1")
    for text in texts(record, "NATIONALITY/VALUE") + texts(record, "NATIONALITY2"):
        draft.add("countries", country_code(text))
    for birth in record.findall("INDIVIDUAL_DATE_OF_BIRTH"):
        draft.add_birth(_birth(birth))
    for place in record.findall("INDIVIDUAL_PLACE_OF_BIRTH"):
        draft.add("birth_places", _joined(place))
    for document in record.findall("INDIVIDUAL_DOCUMENT"):
        country = country_code(text_at(document, "ISSUING_COUNTRY") or text_at(document, "COUNTRY_OF_ISSUE"))
        draft.add_document(
            document_kind(text_at(document, "TYPE_OF_DOCUMENT")), text_at(document, "NUMBER"), country
        )
    for address in record.findall(f"{kind}_ADDRESS"):
        draft.add("addresses", _joined(address))
        draft.add("cities", text_at(address, "CITY"))
        draft.add("address_countries", country_code(text_at(address, "COUNTRY")))
    return draft


def _birth(birth: Element) -> BirthDate | None:
    first, last = text_at(birth, "FROM_YEAR"), text_at(birth, "TO_YEAR")
    if first and last:
        return read_birth(f"{first}-{last}")
    read = read_birth(text_at(birth, "DATE") or text_at(birth, "YEAR") or first)
    if read is not None and text_at(birth, "TYPE_OF_DATE").casefold().startswith("approx"):
        return BirthDate(read.first, read.last, approximate=True)
    return read


def _joined(place: Element) -> str:
    parts = ("STREET", "CITY", "STATE_PROVINCE", "ZIP_CODE", "COUNTRY")
    return ", ".join(text for part in parts if (text := text_at(place, part)))
