"""The feature set: named expressions of the rule language whose values a model is made of."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import yaml

from vettance.errors import Invalid
from vettance.rules.compiled_features import CompiledFeatures, compile_features
from vettance.rules.fault import RuleFault
from vettance.rules.language import CheckedText, check, check_number
from vettance.rules.ruleset import RuleSet
from vettance.rules.schema import Schema

FEATURES_MAX: Final = 400
_DIGITS: Final = 16  # Of the digest; each record names it.
_AND: Final = "+"  # Between the digests of a set and of the features of the model in service.
#: What features are about, and the reason code that each family gives.
FAMILIES: Final[Mapping[str, str]] = {
    "amount": "MODEL_AMOUNT",
    "history": "MODEL_HISTORY",
    "novelty": "MODEL_NOVELTY",
    "velocity": "MODEL_VELOCITY",
    "device": "MODEL_DEVICE",
    "time": "MODEL_TIME",
    "behaviour": "MODEL_BEHAVIOUR",
}
#: Names that only a model gives; a feature that read them would read itself.
MODEL_NAMES: Final = "model."


class Feature(NamedTuple):
    """One feature: its expression, what it is about, and what people read of it."""

    name: str
    value: str
    family: str
    text: str


class FeatureSet(NamedTuple):
    """The features of a tenant. `digest` names the content."""

    features: tuple[Feature, ...]
    digest: str

    def places_of(self, wanted: "FeatureSet") -> tuple[int, ...] | None:
        """Return the places here of the features of another set; None where one is not here."""
        places = {(one.name, one.value): place for place, one in reversed([*enumerate(self.features)])}
        found = [places.get((one.name, one.value)) for one in wanted.features]
        return None if None in found else tuple(place for place in found if place is not None)

    def with_those_of(self, model: "FeatureSet") -> "FeatureSet":
        """Return what is computed while a model serves: this set, and behind it what only the model has.

        The digest names both, this set first, so that training knows the decisions that have this set.
        """
        if self.places_of(model) is not None:
            return self
        known = {(one.name, one.value) for one in self.features}
        lacking = [one for one in model.features if (one.name, one.value) not in known]
        return FeatureSet((*self.features, *lacking), f"{self.digest}{_AND}{model.digest}")


def set_in_force(recorded: str) -> str:
    """Return the digest of the set that was in force, of what a decision's record names."""
    return recorded.partition(_AND)[0]


def serving_model_of(recorded: str) -> str:
    """Return the digest of the features of the model in service; empty where the set had all of them."""
    return recorded.partition(_AND)[2]


def read_feature_set(document: str) -> FeatureSet:
    """Read a YAML document of features: `name: expression`, or `name: {value, family, text}`.

    Raises `Invalid` naming every member that is wrong; expressions are checked when they are compiled.
    """
    try:
        found = yaml.safe_load(document)
    except yaml.YAMLError as error:
        raise Invalid("The feature set is no YAML.", {"features": str(error).splitlines()[0]}) from None
    if not isinstance(found, dict) or not 0 < len(found) <= FEATURES_MAX:
        raise Invalid(f"A feature set is an object of 1 to {FEATURES_MAX} named expressions.", {})
    faults: dict[str, str] = {}
    features = [_read_feature(str(name), said, faults) for name, said in found.items()]
    if faults:
        raise Invalid("The feature set is not well-formed; see details.", faults)
    return FeatureSet(tuple(features), features_digest(document))


def features_digest(document: str) -> str:
    """Name the content of a document of features."""
    return hashlib.sha256(document.encode()).hexdigest()[:_DIGITS]


def has_features(document: str, wanted: str) -> bool:
    """Tell whether one document of features has all those of another; not where one cannot be read."""
    try:
        return document == wanted or (
            read_feature_set(document).places_of(read_feature_set(wanted)) is not None
        )
    except Invalid:
        return False


def _read_feature(name: str, said: Any, faults: dict[str, str]) -> Feature:
    parts = said if isinstance(said, dict) else {"value": said}
    value, family = str(parts.get("value", "")), parts.get("family", "behaviour")
    if not value:
        faults[name] = "has no value; write an expression of the rule language"
    elif family not in FAMILIES:
        faults[name] = f"its family is one of {', '.join(FAMILIES)}"
    return Feature(name, value, str(family), str(parts.get("text", name)))


def write_feature_set(features: Sequence[Feature]) -> str:
    """Write features as a document."""
    found = {one.name: {"value": one.value, "family": one.family, "text": one.text} for one in features}
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=1_000)


def set_of(features: Sequence[Feature]) -> FeatureSet:
    """Return features as the set that their document is."""
    return FeatureSet(tuple(features), features_digest(write_feature_set(features)))


def check_features(features: FeatureSet, schema: Schema) -> list[tuple[str, CheckedText]]:
    """Check every expression. Raises `Invalid` naming those that are wrong."""
    checked: list[tuple[str, CheckedText]] = []
    faults: dict[str, str] = {}
    for one in features.features:
        try:
            found = check_number(one.value, schema)
        except RuleFault as fault:
            faults[one.name] = str(fault)
            continue
        if any(name.startswith(MODEL_NAMES) for name in found.names):
            faults[one.name] = "a feature does not read what the model says"
        checked.append((one.name, found))
    if faults:
        raise Invalid("The feature set does not pass; see details.", faults)
    return checked


def compile_with_rules(ruleset: RuleSet, features: FeatureSet, schema: Schema) -> CompiledFeatures:
    """Compile features together with the rules that run. Raises `Invalid`, or `TooManyAggregates`."""
    rules = [(rule.id, check(rule.when, schema)) for rule in ruleset.running]
    return compile_features(rules, check_features(features, schema), schema)
