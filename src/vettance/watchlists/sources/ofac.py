"""OFAC's SDN and Consolidated (non-SDN) lists: the CSV sets and the XML.

Source: U.S. Department of the Treasury, Office of Foreign Assets Control, Sanctions List Service
(https://sanctionslistservice.ofac.treas.gov): `SDN.CSV`, `ALT.CSV`, `ADD.CSV`, `SDN_COMMENTS.CSV`, their
`CONS_` counterparts as described in "DAT_SPEC", `SDN.XML`/`CONSOLIDATED.XML` (schema `sdnList`), and the
advanced XML (`ofac_advanced.py`). A work of the United States government, in the public domain.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from vettance.reference.countries import country_code
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import (
    DocumentKind,
    Entity,
    EntityDraft,
    EntityType,
    NameQuality,
    document_kind,
)
from vettance.watchlists.sources import ofac_advanced
from vettance.watchlists.sources.formats import SourceFault, csv_rows, open_bytes, text_at, texts, xml_records
from vettance.watchlists.sources.ofac_advanced import TYPES

#: The files of a set are recognized by their number of columns, so that their names and order do not matter.
_HEAD_BYTES = 4096
_PRIMARY_COLUMNS, _ADDRESS_COLUMNS, _ALIAS_COLUMNS, _COMMENT_COLUMNS = 12, 6, 5, 2


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the entities of one set of files: the XML alone, or the CSV files in any order."""
    xml = [path for path in paths if _is_xml(path)]
    if xml:
        for path in xml:
            # The advanced format begins with what its numbers stand for, within the first kilobytes.
            is_advanced = "<ReferenceValueSets" in _head(path)
            yield from ofac_advanced.read(source, path) if is_advanced else _read_xml(source, path)
    else:
        yield from _read_csv(source, paths)


def _is_xml(path: Path) -> bool:
    return path.suffix.casefold() == ".xml" or _head(path).lstrip().startswith("<")


def _head(path: Path) -> str:
    with open_bytes(path) as file:
        return file.read(_HEAD_BYTES).decode("utf-8", "replace").lstrip("\ufeff")


def _field(text: str) -> str:
    text = text.strip()
    return "" if text in ("-0-", "-0- ") else text


def _read_csv(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    tables: dict[int, list[list[str]]] = {}
    for path in paths:
        # The files end with the end-of-file character of CP/M (0x1A), which is a row of one cell.
        rows = [[_field(cell) for cell in row] for row in csv_rows(path) if len(row) > 1]
        width = max((len(row) for row in rows), default=0)
        if width not in (_PRIMARY_COLUMNS, _ADDRESS_COLUMNS, _ALIAS_COLUMNS, _COMMENT_COLUMNS):
            raise SourceFault(f"{path.name} is none of the files of an OFAC set ({width} columns)")
        tables.setdefault(width, []).extend(row for row in rows if len(row) == width)
    if _PRIMARY_COLUMNS not in tables:
        raise SourceFault("the set lacks its primary file (sdn.csv or cons_prim.csv)")
    more = {row[0]: row[1] for row in tables.get(_COMMENT_COLUMNS, [])}
    drafts: dict[str, EntityDraft] = {}
    for row in tables[_PRIMARY_COLUMNS]:
        drafts[row[0]] = _primary(source, row, row[11] + more.get(row[0], ""))
    for row in tables.get(_ALIAS_COLUMNS, []):
        # Aliases and addresses of entities younger than the primary file belong to nobody here.
        if (draft := drafts.get(row[0])) is not None:
            draft.add_name(_natural(row[3], draft.type))
    for row in tables.get(_ADDRESS_COLUMNS, []):
        if (draft := drafts.get(row[0])) is not None:
            _address(draft, row[2], row[3], row[4])
    yield from (draft.freeze() for draft in drafts.values() if draft.has_name())


def _primary(source: str, row: list[str], remarks: str) -> EntityDraft:
    draft = EntityDraft(f"{source}:{row[0]}", source, TYPES.get(row[2].casefold(), EntityType.ORGANIZATION))
    draft.add_name(_natural(row[1], draft.type), NameQuality.PRIMARY)
    draft.add("programmes", *re.split(r"\]\s*\[|;", row[3].strip("[]")))
    draft.remarks = remarks
    draft.reason = row[4]
    if row[5]:
        draft.add_document(DocumentKind.CALL_SIGN, row[5])
    draft.add("countries", country_code(row[9]))
    _tail(draft, row[1])
    _remarks(draft, remarks)
    return draft


def _natural(text: str, entity_type: EntityType) -> str:
    """Turn OFAC's `SURNAME, Given` round; the comma of an organisation belongs to its name."""
    surname, comma, given = text.partition(", ")
    return f"{given} {surname}" if comma and entity_type is EntityType.INDIVIDUAL else text


def _tail(draft: EntityDraft, name: str) -> None:
    # An aircraft's name on this list is its registration mark.
    if draft.type is EntityType.AIRCRAFT:
        draft.add_document(DocumentKind.TAIL, name)


def _address(draft: EntityDraft, street: str, city: str, country: str) -> None:
    draft.add("addresses", ", ".join(part for part in (street, city, country) if part))
    draft.add("cities", city)
    draft.add("address_countries", country_code(country))


_ALIAS = re.compile(r"(?:alt\. )?([afn])\.k\.a\.? ['\"‘“](.+?)['\"’”]?$", re.IGNORECASE)
_COUNTRY = re.compile(r"\(([^()]*)\)$")
_VALIDITY = re.compile(r" (?:issued|expires|exp\.|valid) .*$")
_NOT_IDENTIFIERS = (
    "dob",
    "pob",
    "gender",
    "linked to",
    "additional sanctions",
    "secondary sanctions",
    "transactions prohibited",
    "executive order",
    "organization",
    "target type",
    "aircraft model",
    "aircraft operator",
    "aircraft manufacture date",
    "phone",
    "for more information",
    "listing date",
    "effective date",
    "vessel type",
    "vessel year",
    "website",
    "email",
    "all offices",
    "ifca",
    "cmic",
    "aircraft mode",
    "nationality",
    "citizen",
    "digital currency",
    "peesa",
    "purpose",
    "member of",
    "title",
    "other vessel",
)
_LABELS = re.compile(
    r"passport|no\.|number|#|\bid\b|imo|mmsi|swift|tail|serial|msn|tax|lei|licen[cs]e|r\.f\.c|c\.u\.r\.p|code|"
    r"d\.n\.i|registration|v\.a\.t|nit|ruc|rif|c\.r\.|d-u-n-s|matricula|cedula|uscc|cbls",
    re.IGNORECASE,
)


def _remarks(draft: EntityDraft, remarks: str) -> None:
    """Read the facts in OFAC's remarks: `DOB 12 Mar 1957; nationality Iraq; Passport A1 (Iraq).`"""
    for item in remarks.split(";"):
        fact = item.strip().rstrip(".").strip()
        if fact.startswith("(") and fact.endswith(")"):
            fact = fact[1:-1]
        bare = fact.removeprefix("alt. ")
        head, _, rest = bare.partition(" ")
        if head == "DOB":
            draft.add_birth(read_birth(rest))
        elif head == "POB":
            draft.add("birth_places", rest)
        elif head in ("nationality", "citizen"):
            draft.add("countries", country_code(rest))
        elif head == "Gender":
            draft.gender = rest[:1].casefold()
        elif alias := _ALIAS.match(bare):
            # Aliases in the remarks are what OFAC calls weak: nicknames and acronyms it does not vouch for.
            draft.add_name(alias[2], NameQuality.WEAK)
        elif head == "Flag" or bare.startswith("Vessel Flag"):
            draft.add("countries", country_code(rest.removeprefix("Flag ")))
        elif bare.startswith("Digital Currency Address"):
            draft.add_document(DocumentKind.WALLET, bare.rsplit(" ", 1)[-1])
        else:
            _identifier(draft, bare)


def _identifier(draft: EntityDraft, text: str) -> None:
    if text.casefold().startswith(_NOT_IDENTIFIERS):
        return
    if imo := re.search(r"\bIMO (\d{7})\b", text):
        draft.add_document(DocumentKind.IMO, imo[1])
        return
    if text.startswith("Aircraft Tail Number"):
        draft.add_document(DocumentKind.TAIL, text.removeprefix("Aircraft Tail Number"))
        return
    if not _LABELS.search(text):
        return
    text = _VALIDITY.sub("", text).strip()
    country = _COUNTRY.search(text)
    words = (text[: country.start()] if country else text).split()
    # The label ends where the first word with a digit begins: `National ID No. 0012 (Iran)`.
    first = next(
        (index for index, word in enumerate(words) if index and any(c.isdigit() for c in word)), None
    )
    if first is not None:
        label, value = " ".join(words[:first]), " ".join(words[first:])
        draft.add_document(document_kind(label), value, country_code(country[1]) if country else "")


def _read_xml(source: str, path: Path) -> Iterator[Entity]:
    for entry in xml_records(path, frozenset({"sdnEntry"})):
        draft = _entry(source, entry)
        if draft.has_name():
            yield draft.freeze()


def _entry(source: str, entry: Element) -> EntityDraft:
    kind = TYPES.get(text_at(entry, "sdnType").casefold(), EntityType.ORGANIZATION)
    draft = EntityDraft(f"{source}:{text_at(entry, 'uid')}", source, kind)
    name = f"{text_at(entry, 'firstName')} {text_at(entry, 'lastName')}".strip()
    draft.add_name(name, NameQuality.PRIMARY)
    _tail(draft, name)
    for aka in entry.findall("akaList/aka"):
        weak = text_at(aka, "category").casefold() == "weak"
        text = f"{text_at(aka, 'firstName')} {text_at(aka, 'lastName')}".strip()
        draft.add_name(text, NameQuality.WEAK if weak else NameQuality.STRONG)
    draft.add("programmes", *texts(entry, "programList/program"))
    draft.remarks = text_at(entry, "remarks")
    draft.reason = text_at(entry, "title")
    for text in texts(entry, "dateOfBirthList/dateOfBirthItem/dateOfBirth"):
        draft.add_birth(read_birth(text))
    draft.add("birth_places", *texts(entry, "placeOfBirthList/placeOfBirthItem/placeOfBirth"))
    for text in texts(entry, "nationalityList/nationality/country") + texts(
        entry, "citizenshipList/citizenship/country"
    ):
        draft.add("countries", country_code(text))
    for identifier in entry.findall("idList/id"):
        label, value = text_at(identifier, "idType"), text_at(identifier, "idNumber")
        if label == "Gender":
            draft.gender = value[:1].casefold()
        elif value and not label.casefold().startswith(_NOT_IDENTIFIERS):
            country = country_code(text_at(identifier, "idCountry"))
            draft.add_document(document_kind(label), value.removeprefix("IMO "), country)
    for address in entry.findall("addressList/address"):
        street = ", ".join(
            texts(address, "address1") + texts(address, "address2") + texts(address, "address3")
        )
        _address(draft, street, text_at(address, "city"), text_at(address, "country"))
    draft.add("countries", country_code(text_at(entry, "vesselInfo/vesselFlag")))
    if call_sign := text_at(entry, "vesselInfo/callSign"):
        draft.add_document(DocumentKind.CALL_SIGN, call_sign)
    _remarks(draft, draft.remarks)
    return draft
