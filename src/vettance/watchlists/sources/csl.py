"""The US Consolidated Screening List: thirteen lists of three departments in one CSV.

Source: U.S. Department of Commerce, International Trade Administration,
https://data.trade.gov/downloadable_consolidated_screening_list/v1/consolidated.csv. Public domain.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

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
from vettance.watchlists.sources.formats import csv_records
from vettance.watchlists.sources.ofac_advanced import TYPES

_NOT_DOCUMENTS = (
    "gender",
    "organization",
    "additional sanctions",
    "secondary",
    "date",
    "website",
    "email",
    "phone",
    "transactions",
    "executive order",
    "target type",
)


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the rows of the list; the list inside it that a row comes from is its `list_name`."""
    for path in paths:
        for row in csv_records(path, ("_id", "source", "name")):
            draft = _row(source, row)
            if draft.has_name():
                yield draft.freeze()


def _natural(text: str, kind: EntityType) -> str:
    surname, comma, given = text.partition(", ")
    return f"{given} {surname}" if comma and kind is EntityType.INDIVIDUAL else text


def _row(source: str, row: dict[str, str]) -> EntityDraft:
    kind = TYPES.get(row.get("type", "").casefold(), EntityType.UNKNOWN)
    draft = EntityDraft(f"{source}:{row['_id']}", source, kind)
    draft.list_name = row["source"].partition(" - ")[0]
    draft.add_name(_natural(row["name"], kind), NameQuality.PRIMARY)
    for text in row.get("alt_names", "").split(";"):
        draft.add_name(_natural(text.strip(), kind))
    for text in row.get("dates_of_birth", "").split(";"):
        draft.add_birth(read_birth(text))
    draft.add("birth_places", *row.get("places_of_birth", "").split(";"))
    for part in (row.get("nationalities", "") + ";" + row.get("citizenships", "")).split(";"):
        draft.add("countries", country_code(part.strip()))
    draft.add("countries", country_code(row.get("vessel_flag", "")))
    for address in row.get("addresses", "").split(";"):
        draft.add("addresses", address)
        parts = [part.strip() for part in address.split(",")]
        draft.add("address_countries", country_code(parts[-1]))
    draft.add("programmes", *row.get("programs", "").split(";"))
    draft.reason = row.get("title", "") or row.get("license_policy", "")
    draft.remarks = row.get("remarks", "") or row.get("federal_register_notice", "")
    draft.listed_on = row.get("start_date", "")
    if row.get("call_sign"):
        draft.add_document(DocumentKind.CALL_SIGN, row["call_sign"])
    if kind is EntityType.AIRCRAFT:
        draft.add_document(DocumentKind.TAIL, row["name"])
    for item in row.get("ids", "").split(";"):
        _identifier(draft, item.strip())
    return draft


def _identifier(draft: EntityDraft, item: str) -> None:
    """Read `RU, 2022-06-23, 718489066, Passport`: country and dates may be missing, the label is last."""
    parts = [part.strip() for part in item.split(",")]
    label = parts[-1]
    if label == "Gender":
        draft.gender = parts[0][:1].casefold()
        return
    if len(parts) < 2 or label.casefold().startswith(_NOT_DOCUMENTS):
        return
    country = country_code(parts[0]) if len(parts[0]) == 2 else ""
    values = [part for part in parts[1 if country else 0 : -1] if not re.fullmatch(r"\d{4}-\d\d-\d\d", part)]
    for value in values:
        if any(digit.isdigit() for digit in value):
            imo = re.fullmatch(r"(?:IMO )?(\d{7})", value) if "vessel" in label.casefold() else None
            draft.add_document(
                DocumentKind.IMO if imo else document_kind(label), imo[1] if imo else value, country
            )
