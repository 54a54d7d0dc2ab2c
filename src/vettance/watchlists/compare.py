"""Comparisons of everything but names: dates of birth, countries, identifiers, kinds of entity.

Each returns a `ComparisonResult`: a value from 0 (contradicts) over 0.5 (says nothing) to 1 (agrees), and a
sentence
for people; or None when one side does not say, which is no evidence.
"""

from collections.abc import Sequence
from typing import NamedTuple

from vettance.reference.countries import NAMES
from vettance.watchlists.entity import BirthDate, Document, DocumentKind, Entity, EntityType
from vettance.watchlists.name_analysis import compact


class ComparisonResult(NamedTuple):
    """What one comparison found: `value` 0 to 1, and why, in a sentence."""

    value: float
    detail: str


def compare_births(query: BirthDate | None, entity: Entity) -> ComparisonResult | None:
    """Compare a date of birth with the listed one that fits best; an entity may carry several."""
    if query is None or not entity.births:
        return None
    return max((_births(query, listed) for listed in entity.births), key=lambda finding: finding.value)


def _births(query: BirthDate, listed: BirthDate) -> ComparisonResult:  # noqa: PLR0911
    first, last = listed.years()
    year, query_last = query.years()
    shown = f"{listed.first}–{listed.last}" if listed.last else listed.first
    if len(query.first) == len(listed.first) == 10 and not listed.last:
        return _full_dates(query.first, listed.first, approximate=listed.approximate)
    slack = 2 if listed.approximate or query.approximate else 0
    gap = max(first - query_last, year - last, 0)
    if gap <= 0:
        if (
            first == last
            and len(query.first) >= 7 <= len(listed.first)
            and query.first[:7] != listed.first[:7]
        ):
            return ComparisonResult(
                0.55, f"Born {query.first}; listed {shown}: the same year, another month."
            )
        return ComparisonResult(0.8, f"Born {query.first}; listed {shown}: the year agrees.")
    if gap <= slack:
        return ComparisonResult(0.65, f"Born {query.first}; listed about {shown}.")
    if gap == 1:
        return ComparisonResult(0.5, f"Born {query.first}; listed {shown}: a year apart.")
    if gap <= 3:
        return ComparisonResult(0.25, f"Born {query.first}; listed {shown}: {gap} years apart.")
    return ComparisonResult(0.0, f"Born {query.first}; listed {shown}: {gap} years apart.")


def _full_dates(query: str, listed: str, *, approximate: bool) -> ComparisonResult:  # noqa: PLR0911
    year_only = _is_year_only(query) or _is_year_only(listed)
    if query == listed and not year_only:
        return ComparisonResult(1.0, f"Born {query}: the same date.")
    if year_only and query[:4] == listed[:4]:
        return ComparisonResult(
            0.75,
            f"Born {query}; listed {listed}: the same year; 1 January is written where only that is known.",
        )
    swapped = f"{listed[:4]}-{listed[8:]}-{listed[5:7]}"
    if query == swapped:
        return ComparisonResult(0.95, f"Born {query}; listed {listed}: day and month are swapped.")
    differing = sum(one != other for one, other in zip(query, listed, strict=True))
    gap = abs(int(query[:4]) - int(listed[:4]))
    if differing == 1 and gap < 10:
        return ComparisonResult(0.85, f"Born {query}; listed {listed}: one digit differs.")
    parts = sum(query[a:b] == listed[a:b] for a, b in ((0, 4), (5, 7), (8, 10)))
    if parts == 2 and gap < 10 and not year_only:
        return ComparisonResult(0.7, f"Born {query}; listed {listed}: two of day, month and year agree.")
    if gap == 0:
        # Publishers write the first of July, too, for a year of which nothing more is known.
        unsure = listed.endswith("-07-01") or approximate
        return ComparisonResult(0.75 if unsure else 0.55, f"Born {query}; listed {listed}: the same year.")
    if gap == 1:
        return ComparisonResult(0.4, f"Born {query}; listed {listed}: a year apart.")
    if gap <= 3:
        return ComparisonResult(0.2, f"Born {query}; listed {listed}: {gap} years apart.")
    return ComparisonResult(0.0, f"Born {query}; listed {listed}: {gap} years apart.")


def _is_year_only(date: str) -> bool:
    """Tell whether a full date stands for its year: forms and registers write 1 January for it."""
    return date.endswith("-01-01")


def compare_countries(query: Sequence[str], entity: Entity) -> ComparisonResult | None:
    """Compare nationalities. A country of residence can speak for a match, never against it."""
    if not query:
        return None
    asked = ", ".join(NAMES.get(code, code) for code in query)
    if set(query) & set(entity.countries):
        return ComparisonResult(1.0, f"Nationality {asked}: listed as the same.")
    if set(query) & set(entity.address_countries):
        return ComparisonResult(0.75, f"Nationality {asked}: listed with an address there.")
    if not entity.countries:
        return None
    listed = ", ".join(NAMES.get(code, code) for code in entity.countries[:4])
    return ComparisonResult(0.3, f"Nationality {asked}; listed as {listed}.")


#: Identifiers of which a subject has one at a time: another value is another subject.
_UNIQUE = frozenset({DocumentKind.IMO, DocumentKind.LEI, DocumentKind.TAIL, DocumentKind.SERIAL})
_LENGTH_MIN, _UNIQUE_LENGTH_MIN = 5, 3


def is_unique(kind: DocumentKind) -> bool:
    """Tell whether another identifier of this kind is another subject."""
    return kind in _UNIQUE


def compare_documents(query: Sequence[Document], entity: Entity) -> ComparisonResult | None:
    """Compare identifiers by letters and digits. Kinds must not contradict, nor the issuing countries."""
    if not query or not entity.documents:
        return None
    contradiction: ComparisonResult | None = None
    for asked in query:
        value = identifier_key(asked)
        for listed in entity.documents:
            if identifier_key(listed) == value and _same_kind(asked, listed) and _says_enough(listed, value):
                return ComparisonResult(1.0, f"The {_KIND_NAMES[listed.kind]} {listed.value} is the same.")
        if asked.kind in _UNIQUE and contradiction is None:
            others = [one for one in entity.documents if one.kind is asked.kind]
            if others:
                contradiction = ComparisonResult(
                    0.0, f"The {_KIND_NAMES[asked.kind]} is {others[0].value} on the list: another one."
                )
    return contradiction


def _says_enough(document: Document, value: str) -> bool:
    return len(value) >= (_UNIQUE_LENGTH_MIN if document.kind in _UNIQUE else _LENGTH_MIN)


def identifier_key(document: Document) -> str:
    """Return what an identifier is compared by."""
    value = compact(document.value)
    if document.kind is DocumentKind.IMO:
        value = value.removeprefix("IMO")
    return value


def _same_kind(one: Document, other: Document) -> bool:
    if one.country and other.country and one.country != other.country:
        return False
    if one.kind is other.kind or DocumentKind.OTHER in (one.kind, other.kind):
        return True
    # Publishers differ in whether a personal or company number is a tax, national or registration number.
    loose = {DocumentKind.NATIONAL_ID, DocumentKind.TAX, DocumentKind.REGISTRATION}
    return one.kind in loose and other.kind in loose


_KIND_NAMES = {
    DocumentKind.PASSPORT: "passport",
    DocumentKind.NATIONAL_ID: "national number",
    DocumentKind.TAX: "tax number",
    DocumentKind.REGISTRATION: "registration number",
    DocumentKind.LEI: "LEI",
    DocumentKind.BIC: "BIC",
    DocumentKind.IMO: "IMO number",
    DocumentKind.MMSI: "MMSI",
    DocumentKind.CALL_SIGN: "call sign",
    DocumentKind.TAIL: "registration mark",
    DocumentKind.SERIAL: "serial number",
    DocumentKind.WALLET: "wallet",
    DocumentKind.OTHER: "identifier",
}


def compare_types(query: EntityType | None, entity: Entity) -> ComparisonResult | None:
    """Compare kinds of entity; a list or a request that does not say is compared with everything."""
    if query is None or EntityType.UNKNOWN in (query, entity.type):
        return None
    if query is entity.type:
        return ComparisonResult(1.0, f"Both are {_TYPE_NAMES[query]}.")
    return ComparisonResult(0.0, f"Asked for {_TYPE_NAMES[query]}; the list has {_TYPE_NAMES[entity.type]}.")


_TYPE_NAMES = {
    EntityType.INDIVIDUAL: "individuals",
    EntityType.ORGANIZATION: "organisations",
    EntityType.VESSEL: "vessels",
    EntityType.AIRCRAFT: "aircraft",
}
