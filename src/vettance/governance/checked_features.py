"""A document of features after its check: what is wrong with it, and the set that it makes."""

from typing import Final

import msgspec

from vettance.decisions.features import fraud_schema
from vettance.models.feature_set import (
    MODEL_NAMES,
    Feature,
    FeatureSet,
    read_feature_set,
    write_feature_set,
)
from vettance.models.own_features import OwnFeatures, read_own
from vettance.rules.compiled_features import compile_features
from vettance.rules.fault import RuleFault
from vettance.rules.gate import first_faults, place_fault
from vettance.rules.language import CheckedText, check, check_number
from vettance.rules.plan_builder import TooManyAggregates
from vettance.rules.rule import Fault
from vettance.rules.ruleset import read_ruleset
from vettance.rules.schema import Schema

NOTHING_FOUND: Final = Fault(
    "document",
    "no event has come in yet, so nothing comes along",
    hint="save the features again once there are events",
    warning=True,
)


class FeatureCall(msgspec.Struct, frozen=True, tag="features"):
    """A document of features to check, with those that come along and the rules in force.

    `serving` are the features of the model in service, which are computed until another one serves.
    """

    document: str
    found: tuple[Feature, ...]
    rules: str
    serving: str | None = None


class CheckedFeatures(msgspec.Struct, frozen=True):
    """What the check found. `features` is the whole set as it is stored; empty where something is wrong."""

    faults: list[Fault]
    features: str

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong but what is only doubtful."""
        return all(fault.warning for fault in self.faults)


def check_feature_document(call: FeatureCall) -> CheckedFeatures:
    """Check each expression as those of rules are checked, and all of them together with the rules."""
    own = read_own(call.found, call.document)
    schema = fraud_schema()
    faults = list(own.faults)
    checked = [(one.name, _check(one, own, schema, call.document, faults)) for one in own.features]
    good = [(name, one) for name, one in checked if one is not None]
    if not any(not fault.warning for fault in faults):
        faults += _compile(call, FeatureSet(own.features, ""), good, schema)
    if not call.found:
        faults.append(NOTHING_FOUND)
    faults.sort(key=lambda fault: (fault.line or 0, fault.column or 0))
    is_good = all(fault.warning for fault in faults)
    return CheckedFeatures(first_faults(faults), write_feature_set(own.features) if is_good else "")


def _check(
    one: Feature, own: OwnFeatures, schema: Schema, document: str, faults: list[Fault]
) -> CheckedText | None:
    node = own.places.get(one.name)
    try:
        found = check_number(one.value, schema)
    except RuleFault as fault:
        faults += [place_fault(each, one.name, node, document) for each in (fault, *fault.also)]
        return None
    faults += [place_fault(doubt, one.name, node, document) for doubt in found.doubts]
    if any(name.startswith(MODEL_NAMES) for name in found.names):
        line, column = (node.line, node.column) if node is not None else (None, None)
        faults.append(Fault(one.name, "a feature does not read what the model says", line, column))
    return found


def _compile(
    call: FeatureCall, features: FeatureSet, good: list[tuple[str, CheckedText]], schema: Schema
) -> list[Fault]:
    """Compile the features together with the rules, and with what the model in service needs."""
    rules = [(rule.id, check(rule.when, schema)) for rule in read_ruleset(call.rules).running]
    try:
        compile_features(rules, good, schema)
    except TooManyAggregates as many:
        return [Fault("document", f"rules and features together ask for too much: {many}")]
    if not call.serving:
        return []
    whole = features.with_those_of(read_feature_set(call.serving)).features
    lacking = [(one.name, check_number(one.value, schema)) for one in whole[len(features.features) :]]
    try:
        if lacking:
            compile_features(rules, [*good, *lacking], schema)
    except TooManyAggregates as many:
        hint = "leave in what the model in service was made from, or turn it off first"
        said = f"with the features of the model in service they ask for too much: {many}"
        return [Fault("document", said, hint=hint)]
    return []
