"""A tenant's own list, and the sample that comes with Vettance, as CSV in UTF-8 with a header.

Columns, of which only `name` is required; several values are separated by `;`: `id` (up to 255 characters),
`name`, `type` (INDIVIDUAL, ORGANIZATION, VESSEL, AIRCRAFT), `aliases`, `weak_aliases`, `birth_dates` (ISO
8601, also cut short, or `1957-1960`), `birth_place`, `countries`, `documents` (`passport:A123456:IR`),
`gender`, `cities`, `programmes`, `reason`, `remarks`, `listed_on`, `reference`, `source`.
"""

import difflib
import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from vettance.reference.countries import country_code
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import Entity, EntityDraft, EntityType, NameQuality, document_kind
from vettance.watchlists.sources.formats import SourceFault, csv_records, hold_utf8

_COLUMNS: Final = (
    *(
        "id",
        "name",
        "type",
        "aliases",
        "weak_aliases",
        "birth_dates",
        "birth_place",
        "countries",
        "documents",
    ),
    *("gender", "cities", "programmes", "reason", "remarks", "listed_on", "reference", "source"),
)
#: Ids of entities are in a key of the store, which PostgreSQL bounds; no publisher comes near.
ID_CHARS_MAX: Final = 255


def read(source: str, paths: Sequence[Path]) -> Iterator[Entity]:
    """Yield the entities of the files; a row without an id gets one made of its name and first birth date."""
    for path in paths:
        hold_utf8(path)
        for number, row in enumerate(csv_records(path, ("name",)), 2):
            if not row["name"]:
                raise SourceFault(f"{path.name}, row {number}, has no name")
            yield _row(source, row, path, number)


def doubts_of(paths: Sequence[Path]) -> Iterator[str]:
    """Say which columns are not read, and of each text that names no country in which row it is.

    The entity is listed without either.
    """
    for path in paths:
        for number, row in enumerate(csv_records(path, ("name",)), 2):
            if number == 2:
                yield from (_unread(path, name) for name in row if name not in _COLUMNS)
            told = [*_values(row, "countries"), *(_document(text)[2] for text in _values(row, "documents"))]
            for text in told:
                if text and not country_code(text):
                    place = f"{path.name}, row {number}"
                    yield f"{place}: {text[:60]!r} is no country; the entity is listed without it"


def _unread(path: Path, name: str) -> str:
    close = difflib.get_close_matches(name[:64], _COLUMNS, 1, 0.5)
    hint = f"is {close[0]} meant?" if close else f"there are {', '.join(_COLUMNS)}"
    return f"{path.name}: the column {name[:60]!r} is not read ({hint})"


def _values(row: dict[str, str], column: str) -> list[str]:
    return [text.strip() for text in row.get(column, "").split(";") if text.strip()]


def _document(text: str) -> tuple[str, str, str]:
    """Return the kind, the value and the country of `passport:A123456:IR`."""
    kind, _, rest = text.partition(":")
    value, _, country = rest.rpartition(":") if ":" in rest else (rest, "", "")
    return kind, value or text, country.strip()


def _row(source: str, row: dict[str, str], path: Path, number: int) -> Entity:
    values = functools.partial(_values, row)
    label = row.get("type", "").strip().upper() or "UNKNOWN"
    if label not in list(EntityType):
        raise SourceFault(f"{path.name}, row {number}: type is not one of {', '.join(EntityType)}")
    if len(row.get("id", "")) > ID_CHARS_MAX:
        raise SourceFault(f"{path.name}, row {number}: the id is longer than {ID_CHARS_MAX} characters")
    key = (
        row.get("id")
        or hashlib.sha256(f"{row['name'].casefold()}|{row.get('birth_dates', '')}".encode()).hexdigest()[:12]
    )
    draft = EntityDraft(f"{source}:{key}", source, EntityType(label))
    draft.add_name(row["name"], NameQuality.PRIMARY)
    for text in values("aliases"):
        draft.add_name(text)
    for text in values("weak_aliases"):
        draft.add_name(text, NameQuality.WEAK)
    for text in values("birth_dates"):
        birth = read_birth(text)
        if birth is None:
            raise SourceFault(f"{path.name}, row {number}: a birth date cannot be read")
        draft.add_birth(birth)
    draft.add("birth_places", *values("birth_place"))
    draft.add("countries", *(country_code(text) for text in values("countries")))
    draft.add("cities", *values("cities"))
    draft.add("programmes", *values("programmes"))
    for text in values("documents"):
        kind, value, country = _document(text)
        draft.add_document(document_kind(kind), value, country_code(country))
    draft.gender = row.get("gender", "")[:1].casefold()
    draft.reason = row.get("reason", "")
    draft.remarks = row.get("remarks", "")
    draft.listed_on = row.get("listed_on", "")
    draft.reference = row.get("reference", "")
    draft.list_name = row.get("source", "")
    if not draft.has_name():
        raise SourceFault(f"{path.name}, row {number}: the name has no letters")
    return draft.freeze()
