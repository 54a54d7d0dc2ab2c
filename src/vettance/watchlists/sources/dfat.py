"""Australia's Consolidated List, in its XLSX.

Source: Australian Government, Department of Foreign Affairs and Trade, `regulation8_consolidated.xlsx`
(https://www.dfat.gov.au/international-relations/security/sanctions/consolidated-list). CC BY 4.0.
"""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from vettance.reference.countries import country_code, country_codes
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import DocumentKind, Entity, EntityDraft, EntityType, NameQuality
from vettance.watchlists.sources.formats import SourceFault, csv_records, sheet_rows

_TYPES = {
    "individual": EntityType.INDIVIDUAL,
    "entity": EntityType.ORGANIZATION,
    "vessel": EntityType.VESSEL,
}
#: `7435b` is the third name of entity 7435.
_REFERENCE = re.compile(r"\s*(\d+)")
_PASSPORT = re.compile(r"Passport (?:no|number)[^:]*:\s*(.{0,120})", re.IGNORECASE)
_NATIONAL = re.compile(r"National identification (?:no|number)[^:]*:\s*(.{0,120})", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w/])(?=[A-Z0-9\-]*\d)[A-Z0-9][A-Z0-9\-]{4,}(?![\w/])")
_UNITED_NATIONS = re.compile(r"\b([A-Z]{2,3}[ie]\.\d{3})\b")


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the entities of the list; each has one row for each of its names."""
    for path in paths:
        drafts: dict[str, EntityDraft] = {}
        for row in _records(path):
            match = _REFERENCE.match(row["reference"])
            if match is None:
                continue
            draft = drafts.get(match[1])
            if draft is None:
                kind = _TYPES.get(row.get("type", "").casefold(), EntityType.UNKNOWN)
                draft = drafts[match[1]] = EntityDraft(f"{source}:{match[1]}", source, kind)
            _row(draft, row)
        yield from (draft.freeze() for draft in drafts.values() if draft.has_name())


def _written_out(text: str) -> str:
    """Turn a day number of the spreadsheet (days since 1899-12-30, ISO/IEC 29500-1, 18.17.4) into a date."""
    if text.isdigit() and len(text) == 5:
        return (dt.date(1899, 12, 30) + dt.timedelta(days=int(text))).isoformat()
    return text


def _records(path: Path) -> Iterator[dict[str, str]]:
    required = ("reference", "name of individual or entity", "name type")
    if path.suffix.casefold() == ".csv":
        yield from csv_records(path, required)
        return
    header: list[str] | None = None
    for cells in sheet_rows(path):
        if header is None:
            header = [cell.strip().casefold() for cell in cells]
            if missing := [name for name in required if name not in header]:
                raise SourceFault(f"{path.name} has no column {', '.join(missing)}")
        else:
            yield dict(zip(header, cells, strict=False)) | {"reference": cells[0] if cells else ""}


def _row(draft: EntityDraft, row: dict[str, str]) -> None:
    primary = row["name type"].casefold().startswith("primary")
    weak = row.get("alias strength", "").casefold() == "weak"
    draft.add_name(
        row["name of individual or entity"],
        NameQuality.PRIMARY if primary else NameQuality.WEAK if weak else NameQuality.STRONG,
    )
    for text in re.split(r",|;|\b[a-h]\)", row.get("date of birth", "")):
        draft.add_birth(read_birth(_written_out(text.strip())))
    draft.add("birth_places", row.get("place of birth", ""))
    for part in re.split(r",|;", row.get("citizenship", "")):
        draft.add("countries", *country_codes(part))
    address = row.get("address", "")
    draft.add("addresses", address)
    draft.add("address_countries", country_code(address.rpartition(",")[2].strip(" .")))
    draft.add("programmes", row.get("committees", ""))
    if imo := re.search(r"\d{7}", row.get("imo number", "")):
        draft.add_document(DocumentKind.IMO, imo[0])
    remarks = row.get("additional information", "")
    draft.remarks = draft.remarks or remarks
    draft.reason = draft.reason or row.get("listing information", "")
    if not draft.reference and (reference := _UNITED_NATIONS.search(remarks)):
        draft.reference = reference[1]
    for kind, pattern in ((DocumentKind.PASSPORT, _PASSPORT), (DocumentKind.NATIONAL_ID, _NATIONAL)):
        if sentence := pattern.search(remarks):
            for number in _NUMBER.findall(sentence[1]):
                draft.add_document(kind, number)
