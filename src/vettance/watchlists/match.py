"""Matching: one subject against one listed entity, as a table of comparisons read from top to bottom.

The algorithm in a sentence: the best similarity of names, moved towards 1 by what agrees and down by what
contradicts, each as far as its row of `COMPARISONS` says; an equal identifier decides.
"""

import enum
from collections.abc import Callable, Mapping, Sequence

import msgspec

from vettance.watchlists.compare import (
    ComparisonResult,
    compare_births,
    compare_countries,
    compare_documents,
    compare_types,
)
from vettance.watchlists.east_asian_meanings import other_characters
from vettance.watchlists.entity import BirthDate, Document, Entity, EntityType, ListedName, NameQuality
from vettance.watchlists.match_explanation import describe_names
from vettance.watchlists.name_alignment import Alignment, Rarity, align, no_rarity
from vettance.watchlists.name_analysis import GRAMMARS, Grammar, Name, compact, parse_name
from vettance.watchlists.name_readings import name_readings, towards
from vettance.watchlists.stated_names import otherwise

#: Changes whenever a score can change, and is stored with every screening.
ALGORITHM = "vettance-match-17"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a tenant asks about. Countries are ISO 3166-1 alpha-2."""

    name: str
    type: EntityType | None = None
    birth: BirthDate | None = None
    countries: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()


class Classification(enum.StrEnum):
    """How much speaks for a match."""

    EXACT = "EXACT"
    STRONG = "STRONG"
    MODERATE = "MODERATE"
    WEAK = "WEAK"


class Component(msgspec.Struct, frozen=True):
    """One compared property: its value 0 to 1, a sentence about it, and the points it gave or took."""

    value: float
    detail: str
    points: float = 0.0


class EntityMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A subject compared with an entity. `score` is 0 to 100; `components` are keyed as on the wire."""

    entity: Entity
    score: int
    matched_name: str
    listed_name: ListedName
    components: dict[str, Component]
    name_equal: bool
    identifier_equal: bool
    contradicted: bool


class Comparison(msgspec.Struct, frozen=True):
    """One row of the table.

    `gain` is how far full agreement moves the score towards 1, `loss` what full contradiction takes away.
    """

    component: str
    compare: Callable[[Subject, Entity], ComparisonResult | None]
    gain: float
    loss: float


def _compare_documents(subject: Subject, entity: Entity) -> ComparisonResult | None:
    documents = subject.documents
    if (
        GRAMMARS.get(subject.type or EntityType.UNKNOWN) is Grammar.CRAFT
        and entity.type is EntityType.AIRCRAFT
    ):
        # An aircraft's name is its registration mark, and that is an identifier.
        documents = (
            *documents,
            *(doc for doc in entity.documents if compact(doc.value) == compact(subject.name)),
        )
    return compare_documents(documents, entity)


#: What is compared besides the name. An equal identifier lifts the score to at least `IDENTIFIER_SCORE`.
#: Calibrated on labelled cases; `vettance watchlist evaluate` measures the effect of a change.
COMPARISONS = (
    Comparison("idDocument", _compare_documents, gain=0.6, loss=0.36),
    Comparison("dob", lambda subject, entity: compare_births(subject.birth, entity), gain=0.4, loss=0.32),
    Comparison(
        "nationality",
        lambda subject, entity: compare_countries(subject.countries, entity),
        gain=0.12,
        loss=0.1,
    ),
    Comparison("entityType", lambda subject, entity: compare_types(subject.type, entity), gain=0.0, loss=0.3),
)
IDENTIFIER_SCORE = 0.96
#: Scores below this are never shown, whatever the profile.
DESCRIBED_MIN = 0.495
#: A weak alias alone stays below the review bound of the default profile.
WEAK_ALIAS_MAX = 0.74
#: The most that two names in Han score whose sounds agree and whose characters do not.
OTHER_CHARACTERS_MAX = 0.74
#: What agrees at least this much supports a match on a weak alias.
_SUPPORT = 0.8
#: A name given by the tenant as an alias counts a little less than the legal name.
QUERY_ALIAS = 0.98


def grammars_of(entity_type: EntityType) -> tuple[Grammar, ...]:
    """Return by whose rules the names of an entity are read; of an unknown one, by those of both."""
    grammar = GRAMMARS.get(entity_type)
    return (Grammar.PERSON, Grammar.ORGANIZATION) if grammar is None else (grammar,)


class NameMatch(msgspec.Struct, frozen=True):
    """A pair of a subject's and an entity's names, aligned."""

    score: float
    asked: Name
    listed: Name
    listed_name: ListedName
    alignment: Alignment

    @property
    def standing(self) -> float:
        """The score as far as the name may count by itself: a weak alias counts below its score."""
        weak = self.listed_name.quality is NameQuality.WEAK
        return min(self.score, WEAK_ALIAS_MAX) if weak else self.score


def best_name(asked: str, entity: Entity, rarity: Rarity = no_rarity) -> NameMatch | None:
    """Return the listed name that fits best; of equal ones, the one that the publisher vouches for most."""
    best: NameMatch | None = None
    for grammar in grammars_of(entity.type):
        queries = [parse_name(text, grammar) for text in otherwise(asked)]
        queries += name_readings(asked, grammar)
        for listed in entity.names:
            for name in (parse_name(listed.text, grammar), *name_readings(listed.text, grammar)):
                for query in queries:
                    one, other = towards(query, name), towards(name, query)
                    alignment = align_names(one, other, entity.type, rarity)
                    score = limited_score(alignment, asked, listed.text)
                    found = NameMatch(score, one, other, listed, alignment)
                    if best is None or found.standing > best.standing:
                        best = found
    return best


def limited_score(alignment: Alignment, asked: str, listed: str) -> float:
    """Return the score of two names, less where their texts have other characters of Han."""
    return min(alignment.score, OTHER_CHARACTERS_MAX) if other_characters(asked, listed) else alignment.score


def align_names(asked: Name, listed: Name, entity_type: EntityType, rarity: Rarity = no_rarity) -> Alignment:
    """Align two names; registration marks of aircraft are equal or they are not."""
    if entity_type is EntityType.AIRCRAFT:
        same = compact(asked.text) == compact(listed.text)
        return Alignment(1.0 if same else 0.0, (), (), ())
    return align(asked, listed, rarity)


def match(subject: Subject, entity: Entity, rarity: Rarity = no_rarity) -> EntityMatch | None:
    """Compare a subject with an entity; None when neither a name nor an identifier speaks for it."""
    named = best_name(subject.name, entity, rarity)
    aliased = [found for alias in subject.aliases if (found := best_name(alias, entity, rarity)) is not None]
    return match_names(subject, entity, named, aliased)


def match_names(
    subject: Subject, entity: Entity, named: NameMatch | None, aliased: Sequence[NameMatch]
) -> EntityMatch | None:
    """Score a subject against an entity whose names were compared already."""
    alias = max(aliased, key=lambda found: found.score) if aliased else None
    best = named
    if alias is not None and (named is None or alias.score * QUERY_ALIAS > named.score):
        best = alias
    if best is None:
        return None
    findings = {
        row.component: finding for row in COMPARISONS if (finding := row.compare(subject, entity)) is not None
    }
    values = {component: finding.value for component, finding in findings.items()}
    carrier = "name" if best is named else "alias"
    weak = best.listed_name.quality is NameQuality.WEAK
    score, points = weigh(best.score, values, carrier, weak=weak)
    if score <= 0.0:
        return None
    # Most of what is compared is nobody: only what may be shown is described word by word.
    whole = score >= DESCRIBED_MIN
    components = {
        component: Component(
            round(found.score, 4), _describe(found, whole), round(100 * points.get(component, 0.0), 1)
        )
        for component, found in (("name", named), ("alias", alias))
        if found is not None
    } | {
        component: Component(round(finding.value, 4), finding.detail, round(100 * points[component], 1))
        for component, finding in findings.items()
    }
    return EntityMatch(
        entity=entity,
        score=round(100 * score),
        matched_name=best.listed_name.text,
        listed_name=best.listed_name,
        components=components,
        name_equal=best.score >= 0.999,
        identifier_equal=values.get("idDocument") == 1.0,
        contradicted=any(value < 0.5 for value in values.values()),
    )


def weigh(
    name: float, values: Mapping[str, float], carrier: str = "name", *, weak: bool = False
) -> tuple[float, dict[str, float]]:
    """Return the score, 0 to 1, of a similarity of names and the values of what else was compared.

    With it comes what each component added to it or took from it; `carrier` is the component of the name.
    """
    score = name * (QUERY_ALIAS if carrier == "alias" else 1.0)
    points = {carrier: score}
    for row in COMPARISONS:
        if (value := values.get(row.component)) is None:
            continue
        lean = 2 * (value - 0.5)
        points[row.component] = row.gain * lean * (1 - score) * name if lean > 0 else row.loss * lean
        score += points[row.component]
    limited = score
    if values.get("idDocument") == 1.0:
        limited = max(score, IDENTIFIER_SCORE)
        points["idDocument"] += limited - score
    elif weak and values.get("dob", 0.0) < _SUPPORT:
        limited = min(score, WEAK_ALIAS_MAX)
        points[carrier] += limited - score
    return max(0.0, min(1.0, limited)), points


def _describe(found: NameMatch, whole: bool) -> str:
    return describe_names(found.asked, found.listed, found.listed_name, found.alignment if whole else None)


def likeliest_first(one: EntityMatch) -> tuple[int, float, int, str]:
    """Order matches of one score by how much agrees besides the name, then by how much can be compared."""
    agreeing = sum(part.value for name, part in one.components.items() if name not in ("name", "alias"))
    entity = one.entity
    known = bool(entity.births) + bool(entity.countries) + bool(entity.documents)
    return -one.score, -agreeing, -known, entity.id


def classify(found: EntityMatch, review_bound: int) -> Classification:
    """Name how much speaks for a match; `review_bound` is the profile's, 0 to 100."""
    values = {component: part.value for component, part in found.components.items()}
    name = max(values.get("name", 0.0), values.get("alias", 0.0))
    if (found.identifier_equal or found.name_equal) and not found.contradicted:
        return Classification.EXACT
    if found.score < review_bound:
        return Classification.WEAK
    others = [values[part] for part in ("dob", "nationality", "idDocument") if part in values]
    agreeing = values.get("dob", 0.0) >= 0.7 or values.get("nationality", 0.0) >= 0.7
    if name >= 0.9 and agreeing and not found.contradicted:
        return Classification.STRONG
    if name >= 0.95 and not others:
        return Classification.STRONG
    return Classification.MODERATE


def confirms(found: EntityMatch) -> bool:
    """Tell whether a match needs no second look: never by the name alone, never against a contradiction."""
    if found.contradicted:
        return False
    name = max(found.components[part].value for part in ("name", "alias") if part in found.components)
    birth = found.components.get("dob")
    return found.identifier_equal or (name >= 0.95 and birth is not None and birth.value == 1.0)
