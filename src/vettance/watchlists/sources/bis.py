"""The US Denied Persons List: who may not take part in exports.

Source: U.S. Department of Commerce, Bureau of Industry and Security, `dpl.txt` (tab separated),
https://www.bis.gov/dpl. Public domain.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from vettance.reference.countries import country_code
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import Entity, EntityDraft, EntityType, NameQuality
from vettance.watchlists.sources.formats import csv_records


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield one entity for each name and order; the list has no ids, so they are made of both."""
    drafts: dict[str, EntityDraft] = {}
    for path in paths:
        for row in csv_records(path, ("name", "country", "effective_date")):
            name = row["name"].strip()
            key = f"{name.casefold()}|{row['effective_date']}"
            digest = hashlib.sha256(key.encode()).hexdigest()[:12]
            draft = drafts.get(digest)
            if draft is None:
                # The list does not say whether a name is a person's or a company's.
                draft = drafts[digest] = EntityDraft(f"{source}:{digest}", source, EntityType.UNKNOWN)
            draft.add_name(name, NameQuality.PRIMARY)
            keys = ("street_address", "city", "state", "country")
            draft.add("addresses", ", ".join(text for part in keys if (text := row.get(part, ""))))
            draft.add("cities", row.get("city", ""))
            draft.add("address_countries", country_code(row["country"]))
            draft.reason = draft.reason or row.get("fr_citation", "")
            draft.remarks = draft.remarks or row.get("action", "")
            listed = read_birth(_day_second(row["effective_date"]))
            draft.listed_on = draft.listed_on or (listed.first if listed else "")
    yield from (draft.freeze() for draft in drafts.values() if draft.has_name())


def _day_second(text: str) -> str:
    """Turn `month/day/year` into ISO 8601."""
    parts = text.split("/")
    return f"{parts[2]}-{parts[0]:0>2}-{parts[1]:0>2}" if len(parts) == 3 else text
