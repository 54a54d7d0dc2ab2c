"""Screening: a subject against an index by a profile, with a decision and the reasons for it.

Nothing here waits and nothing is stored; the caller keeps the `Screening` and shows it.
"""

import enum
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from vettance.watchlists.deciding_fact import MEMBERS, DecidingFact, deciding_fact, not_compared
from vettance.watchlists.entity import BirthDate, Entity
from vettance.watchlists.listing_reason import listing_reason
from vettance.watchlists.match import ALGORITHM, Classification, EntityMatch, Subject, classify, confirms
from vettance.watchlists.match_groups import group_numbers
from vettance.watchlists.sources.source_table import SOURCES


class Profile(enum.StrEnum):
    """How sensitive a screening is: the more conservative, the lower the score that is held."""

    CONSERVATIVE = "CONSERVATIVE"
    BALANCED = "BALANCED"
    LIBERAL = "LIBERAL"


class ScreeningOutcome(enum.StrEnum):
    """What a screening comes to."""

    AUTO_CLEAR = "AUTO_CLEAR"
    REVIEW = "REVIEW"
    CONFIRMED = "CONFIRMED"


#: Scores at and above which a match is reviewed. Calibrated; `docs/screening.md` shows recall and alert
#: rates.
REVIEW_BOUNDS: Mapping[Profile, int] = {
    Profile.CONSERVATIVE: 65,
    Profile.BALANCED: 75,
    Profile.LIBERAL: 85,
}
#: Under `CONSERVATIVE`, matches down to this score are shown too, as `WEAK`.
SHOWN_MIN = 50
#: One screening shows no more matches than this; an alert with more helps nobody.
MATCHES_MAX = 20
#: A name this like a listed one that is below the bound leaves a trace, and so many of them do.
_TRACED_NAME, _TRACES_MAX = 0.95, 10


class ScreenedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match as judged by a profile. `cleared`: remembered as a false positive of this subject.

    `group` is the same, from 1, for entries of several lists about one subject. `not_compared` says for each
    component that did not count why, and `deciding` is the fact that would confirm or clear it most.
    """

    match: EntityMatch
    classification: Classification
    held: bool
    confirmed: bool
    cleared: bool
    group: int = 1
    not_compared: Mapping[str, str] = msgspec.field(default_factory=dict)
    deciding: DecidingFact | None = None


class Screening(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one screening, with everything that is needed to explain and repeat it."""

    decision: ScreeningOutcome
    matches: tuple[ScreenedMatch, ...]
    lists_hit: tuple[str, ...]
    profile: Profile
    review_bound: int
    algorithm: str
    versions: Mapping[str, str]
    #: How many matches there were before only the likeliest `MATCHES_MAX` were kept.
    found: int = 0
    #: Entities of (nearly) the same name that something else kept below the bound.
    traces: tuple[EntityMatch, ...] = ()


class SearchedIndex(Protocol):
    """What a screening needs of an index."""

    versions: Mapping[str, str]

    def search(self, subject: Subject) -> list[EntityMatch]:
        """Return the entities that a subject may be, the likeliest first."""


_NOTHING_CLEARED: Mapping[str, str] = {}


def screen(
    index: SearchedIndex,
    subject: Subject,
    profile: Profile = Profile.BALANCED,
    bounds: Mapping[Profile, int] = REVIEW_BOUNDS,
    cleared: Mapping[str, str] = _NOTHING_CLEARED,
) -> Screening:
    """Screen a subject.

    `bounds` are the review bounds of the profiles, 0 to 100. `cleared` maps the ids of entities that were
    found to be somebody else to their `entity_digest` at that time; it holds until the listed entity changes.
    """
    bound = bounds[profile]
    shown_min = min(SHOWN_MIN, bound) if profile is Profile.CONSERVATIVE else bound
    matches = index.search(subject)
    shown = [found for found in matches if found.score >= shown_min]
    groups = group_numbers([found.entity for found in shown[:MATCHES_MAX]])
    judged = tuple(
        _judge(subject, found, bound, cleared, groups[found.entity.id]) for found in shown[:MATCHES_MAX]
    )
    open_matches = [one for one in judged if one.held and not one.cleared]
    if any(one.confirmed for one in open_matches):
        decision = ScreeningOutcome.CONFIRMED
    else:
        decision = ScreeningOutcome.REVIEW if open_matches else ScreeningOutcome.AUTO_CLEAR
    return Screening(
        decision=decision,
        matches=judged,
        lists_hit=tuple(dict.fromkeys(source_code(one.match.entity) for one in judged if one.held)),
        profile=profile,
        review_bound=bound,
        algorithm=ALGORITHM,
        versions=dict(index.versions),
        found=len(shown),
        traces=tuple(found for found in matches if found.score < bound and _leaves_trace(found))[
            :_TRACES_MAX
        ],
    )


def _judge(
    subject: Subject, found: EntityMatch, bound: int, cleared: Mapping[str, str], group: int
) -> ScreenedMatch:
    held = found.score >= bound
    entity = found.entity
    return ScreenedMatch(
        match=found,
        classification=classify(found, bound),
        held=held,
        confirmed=held and confirms(found),
        cleared=entity.id in cleared and cleared[entity.id] == entity_digest(entity),
        group=group,
        not_compared=not_compared(subject, found),
        deciding=deciding_fact(subject, found),
    )


def _leaves_trace(found: EntityMatch) -> bool:
    names = (found.components[part].value for part in ("name", "alias") if part in found.components)
    return found.contradicted and max(names) >= _TRACED_NAME


def source_code(entity: Entity) -> str:
    """Return the stable code by which the wire names the list of an entity."""
    return SOURCES[entity.source].code if entity.source in SOURCES else entity.source.upper()


def entity_digest(entity: Entity) -> str:
    """Return a digest that changes whenever anything that the list says of an entity changes."""
    return hashlib.sha256(msgspec.msgpack.encode(entity)).hexdigest()[:16]


def match_record(one: ScreenedMatch) -> dict[str, Any]:
    """Shape a match for the wire: the specified members first, then additions for its reviewer."""
    found, entity = one.match, one.match.entity
    return {
        "watchlistEntityId": entity.id,
        "score": found.score,
        "classification": one.classification.value,
        "matchedName": found.matched_name,
        "entityName": entity.name,
        "source": source_code(entity),
        "sanctionReason": listing_reason(entity),
        "matchCity": entity.cities[0] if entity.cities else None,
        "datesOfBirth": list(dict.fromkeys(text for birth in entity.births for text in birth_texts(birth))),
        "scoreBreakdown": {name: part.value for name, part in found.components.items()},
        "explanation": {name: part.detail for name, part in found.components.items()},
        "entityType": entity.type.value,
        "nameQuality": found.listed_name.quality.value,
        "programmes": list(entity.programmes),
        "listName": entity.list_name or None,
        "reference": entity.reference or None,
        "falsePositiveRemembered": one.cleared,
        "group": one.group,
        "contribution": {name: part.points for name, part in found.components.items()},
        "notCompared": dict(one.not_compared),
        "decidingFact": _fact_record(one.deciding, found.score) if one.deciding is not None else None,
    }


def _fact_record(fact: DecidingFact, score: int) -> dict[str, Any]:
    return {
        "component": fact.component,
        "member": fact.member,
        "listed": fact.listed,
        "scoreIfAgrees": fact.if_agrees,
        "scoreIfContradicts": fact.if_contradicts,
        "explanation": f"Send {fact.member}; the list has {fact.listed}. The score of {score} becomes "
        f"{fact.if_agrees} if it agrees, {fact.if_contradicts} if it contradicts.",
    }


def _group_records(matches: Sequence[ScreenedMatch]) -> list[dict[str, Any]]:
    """Shape the groups, the likeliest first: one subject each, with all its entries."""
    groups: dict[int, list[ScreenedMatch]] = {}
    for one in matches:
        groups.setdefault(one.group, []).append(one)
    return [
        {
            "group": number,
            "entityName": members[0].match.entity.name,
            "score": members[0].match.score,
            "sources": list(dict.fromkeys(source_code(one.match.entity) for one in members)),
            "watchlistEntityIds": [one.match.entity.id for one in members],
        }
        for number, members in groups.items()
    ]


def _trace_record(found: EntityMatch) -> dict[str, Any]:
    contradicting = [
        part.detail for part in found.components.values() if part.value < 0.5 and part.points < 0
    ]
    return {
        "watchlistEntityId": found.entity.id,
        "entityName": found.entity.name,
        "matchedName": found.matched_name,
        "source": source_code(found.entity),
        "score": found.score,
        "explanation": " ".join(contradicting),
    }


def _overall_fact(screening: Screening) -> dict[str, Any] | None:
    """Shape the fact that would clear most groups, or None when none would clear any."""
    held = [one for one in screening.matches if one.held and not one.cleared and one.deciding is not None]
    clears: dict[str, set[int]] = {}
    moved: dict[str, int] = {}
    for one in held:
        fact = one.deciding
        assert fact is not None
        groups = clears.setdefault(fact.component, set())
        if fact.if_contradicts < screening.review_bound:
            groups.add(one.group)
        moved[fact.component] = moved.get(fact.component, 0) + fact.if_agrees - fact.if_contradicts
    if not moved:
        return None
    best = max(moved, key=lambda component: (len(clears[component]), moved[component]))
    count, total = len(clears[best]), len({one.group for one in screening.matches if one.held})
    if not count:
        return None
    return {
        "component": best,
        "member": MEMBERS[best],
        "clearsGroups": count,
        "groups": total,
        "explanation": f"Send {MEMBERS[best]}: where it contradicts, it clears {count} of the "
        f"{total} subjects that are held.",
    }


def screening_record(
    screening: Screening, screening_id: str, external_id: str, processing_ms: float
) -> dict[str, Any]:
    """Shape a screening for the wire, as it is answered, stored and answered again for ever.

    A caller that opens or joins a case adds `caseId`, `alertId`, `caseCreated` and `reusedExistingCase`.
    """
    return {
        "id": screening_id,
        "externalId": external_id,
        "decision": screening.decision.value,
        "processingMs": round(processing_ms, 3),
        "listsHit": list(screening.lists_hit),
        "matches": [match_record(one) for one in screening.matches],
        "sensitivityProfile": screening.profile.value,
        "reviewBound": screening.review_bound,
        "algorithm": screening.algorithm,
        "listVersions": dict(screening.versions),
        "matchesFound": screening.found,
        "matchesCut": screening.found > len(screening.matches),
        "groups": _group_records(screening.matches),
        "clearedByFacts": [_trace_record(found) for found in screening.traces],
        "decidingFact": _overall_fact(screening),
    }


def birth_texts(birth: BirthDate) -> list[str]:
    """Write a date of birth as full dates or years only; a range gives its first and last year."""
    if birth.last:
        return [birth.first[:4], birth.last[:4]]
    return [birth.first if len(birth.first) == 10 else birth.first[:4]]
