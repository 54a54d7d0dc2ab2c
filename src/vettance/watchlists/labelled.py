"""Labelled cases: pairs of a subject and an entity with the expected outcome, to measure matching by.

A case is one JSON object a line: `{query: {name, entityType, dob?, country?, ids?, aliases?}, candidate:
{name, entityType, id?, aliases?, dob?, country?, ids?} | null, expected: "match" | "no_match", tag}`. A case
without a candidate says that the query must match nobody on the lists.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from vettance.reference.countries import country_code, country_codes
from vettance.watchlists.birth_dates import read_birth
from vettance.watchlists.entity import (
    Document,
    DocumentKind,
    Entity,
    EntityDraft,
    EntityType,
    NameQuality,
    document_kind,
)
from vettance.watchlists.match import EntityMatch, Subject, match
from vettance.watchlists.name_alignment import Rarity, no_rarity
from vettance.watchlists.sources.formats import SourceFault
from vettance.watchlists.subject_screening import SearchedIndex
from vettance.wire.utf8_text import first_line_not_utf8, not_utf8, skip_mark


class LabelledCase(msgspec.Struct, frozen=True):
    """One labelled case. Members that are not named here are ignored."""

    query: dict[str, Any]
    expected: str
    candidate: dict[str, Any] | None = None
    tag: str = ""


class CaseCounts(msgspec.Struct):
    """How many cases came out how."""

    true_positives: int = 0
    false_positives: int = 0
    true_negatives: int = 0
    false_negatives: int = 0

    def count(self, *, expected: bool, hit: bool) -> None:
        """Count one case."""
        if expected:
            self.true_positives += hit
            self.false_negatives += not hit
        else:
            self.false_positives += hit
            self.true_negatives += not hit

    @property
    def cases(self) -> int:
        """How many were counted."""
        return self.true_positives + self.false_positives + self.true_negatives + self.false_negatives

    @property
    def precision(self) -> float | None:
        """The part of the hits that was right, None without a hit."""
        return _part(self.true_positives, self.false_positives)

    @property
    def recall(self) -> float | None:
        """The part of the expected matches that was found, None where none was expected."""
        return _part(self.true_positives, self.false_negatives)

    @property
    def false_positive_rate(self) -> float | None:
        """The part of the expected non-matches that was hit, None where there was none."""
        return _part(self.false_positives, self.true_negatives)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall."""
        return _part(2 * self.true_positives, self.false_positives + self.false_negatives)


def _part(some: int, others: int) -> float | None:
    return some / (some + others) if some + others else None


class WrongCase(msgspec.Struct, frozen=True):
    """A case that came out wrong."""

    tag: str
    expected: str
    query: str
    found: str
    score: int


def read_cases(paths: Iterable[Path]) -> Iterator[LabelledCase]:
    """Yield the cases of the files, JSON lines in UTF-8; raises `SourceFault` for a line that is none."""
    decoder = msgspec.json.Decoder(LabelledCase)
    for path in paths:
        try:
            with path.open("rb") as file:
                if (bad := first_line_not_utf8(file)) is not None:
                    raise SourceFault(not_utf8(path.name, bad))
                for number, line in enumerate(skip_mark(file), 1):
                    if line.strip():
                        try:
                            yield decoder.decode(line)
                        except msgspec.DecodeError as error:
                            raise SourceFault(f"{path.name}, line {number}, is no case: {error}") from None
        except OSError as error:
            raise SourceFault(f"{path} cannot be read: {error.strerror}") from None


def subject_of(query: dict[str, Any]) -> Subject:
    """Make the subject of a case."""
    label = query.get("entityType")
    return Subject(
        name=str(query["name"]),
        type=EntityType(label) if label else None,
        birth=read_birth(str(query["dob"])) if query.get("dob") else None,
        countries=tuple(country_codes(str(query["country"]))) if query.get("country") else (),
        aliases=tuple(query.get("aliases") or ()),
        documents=tuple(_document(item) for item in query.get("ids") or ()),
    )


def entity_of(candidate: dict[str, Any]) -> Entity:
    """Make the listed entity of a case."""
    kind = EntityType(candidate.get("entityType") or "UNKNOWN")
    draft = EntityDraft(str(candidate.get("id") or "case"), "case", kind)
    draft.add_name(str(candidate["name"]), NameQuality.PRIMARY)
    for alias in candidate.get("aliases") or ():
        draft.add_name(str(alias))
    for text in candidate.get("dob") or ():
        draft.add_birth(read_birth(str(text)))
    for text in candidate.get("country") or ():
        draft.add("countries", *country_codes(str(text)))
    if kind is EntityType.AIRCRAFT:
        draft.add_document(DocumentKind.TAIL, str(candidate["name"]))
    for item in candidate.get("ids") or ():
        document = _document(item)
        draft.add_document(document.kind, document.value, document.country)
    return draft.freeze()


def _document(item: dict[str, Any]) -> Document:
    return Document(
        document_kind(str(item.get("type") or "")),
        str(item["value"]),
        country_code(str(item.get("country") or "")),
    )


def judge_pair(case: LabelledCase, rarity: Rarity = no_rarity) -> EntityMatch | None:
    """Compare the two sides of a case with each other."""
    assert case.candidate is not None
    return match(subject_of(case.query), entity_of(case.candidate), rarity)


def judge_search(case: LabelledCase, index: SearchedIndex) -> EntityMatch | None:
    """Search the lists for the query of a case; return the match with its candidate, or the best."""
    matches = index.search(subject_of(case.query))
    if case.candidate is None:
        return matches[0] if matches else None
    wanted = case.candidate.get("id")
    return next((one for one in matches if one.entity.id == wanted), None)
