"""Rules and rule sets as values: what an author writes, after the document has been read."""

import functools
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from vettance.errors import Unprocessable

Outcome = Literal["ALLOW", "REVIEW", "BLOCK"]
Mode = Literal["active", "shadow", "off"]
JSON = dict[str, Any]

_SHOWN_CHARS_MAX: Final = 200  # Of a value that a test shows; a longer one is not read anyway.


#: What a label of an earlier event says: whether it was fraud, or nothing (None).
LABELS: Final[dict[str, bool | None]] = {
    "FRAUD": True,
    "CHARGEBACK": True,
    "TRUE_POSITIVE": True,
    "LEGIT": False,
    "FALSE_POSITIVE": False,
    "REFUND": None,
}


class EarlierEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events that happen before the tested one: `repeat` of them, `every_ms` apart, from `at_ms` on.

    `at_ms` is negative: milliseconds before the tested event. `{i}` in any text of `event` is replaced by the
    number of the repetition, from 0. `label` is given to each of them as soon as it happened.
    """

    event: JSON
    at_ms: int = -60_000
    repeat: int = 1
    every_ms: int = 0
    label: str | None = None


class RuleTest(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule promises about one event.

    `now_ms` (Unix milliseconds) sets its time, `probability` what the tenant's model says of it; without one
    there is no model.
    """

    name: str
    event: JSON
    fires: bool
    given: tuple[EarlierEvents, ...] = ()
    now_ms: int | None = None
    probability: float | None = None


#: The lists that a rule may add to, and what it may put there.
LISTS: Final = ("block", "allow")
LISTED_TYPES: Final = ("IP", "DEVICE", "EMAIL")
_UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}


class ListEffect(msgspec.Struct, frozen=True, kw_only=True, rename={"lasts": "for"}):
    """What a rule puts on a list when it acts: the event's value of a type, for so long from its receipt."""

    list: str
    type: str
    lasts: str

    @property
    def lasts_ms(self) -> int:
        """How long an entry counts, in milliseconds."""
        return int(self.lasts[:-1]) * _UNITS_MS[self.lasts[-1]]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. `score` is 0 to 100; `outcome` decides whatever the score; a shadow rule is recorded only.

    It acts for `rollout` per cent of customers, from `active_from` (inclusive) until `active_until`;
    `adds` is what it then puts on a list.
    """

    id: str
    name: str
    when: str
    score: int
    reason: str
    explanation: str
    outcome: Outcome | None = None
    action: str | None = None
    mode: Mode = "active"
    family: str = ""
    rollout: int = 100
    active_from: str | None = None
    active_until: str | None = None
    adds: ListEffect | None = None
    tests: tuple[RuleTest, ...] = ()


#: The members of a rule in a document, by their fields where they have another name.
RULE_MEMBERS: Final = {"active_from": "from", "active_until": "until"}


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """The least score of each risk level; below `medium` it is low."""

    medium: int = 30
    high: int = 60
    critical: int = 85


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The least score that is reviewed, and the least that is blocked."""

    review: int = 60
    block: int = 85


class Explore(msgspec.Struct, frozen=True, kw_only=True):
    """A hold-out: of customers that the score stops, so many per cent are let through up to an amount."""

    percent: float
    below: float


class RuleSet(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that decides for a tenant. `actions` describes the recommended actions by their codes."""

    name: str
    levels: Levels = Levels()
    thresholds: Thresholds = Thresholds()
    actions: dict[str, str] = {}
    rules: tuple[Rule, ...] = ()
    explore: Explore | None = None

    @functools.cached_property
    def running(self) -> tuple[Rule, ...]:
        """The rules that are evaluated, active and shadow, in order; a compiled set counts these."""
        return tuple(rule for rule in self.rules if rule.mode != "off")


class Fault(NamedTuple):
    """One thing that is wrong with a rule set: where (a rule, or a member of the document) and what.

    `line` and `column` are of the document, from 1; `excerpt` shows the place. A `warning` refuses nothing.
    `saw` has the names and aggregates of a rule with the values that they had in a test. `test` names the
    test that failed; it is empty for one that is missing, and None for faults of anything else.
    """

    where: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    warning: bool = False
    excerpt: tuple[str, ...] = ()
    saw: tuple[tuple[str, Any], ...] = ()
    test: str | None = None

    def __str__(self) -> str:
        place = ""
        if self.line is not None:
            column = f", column {self.column}" if self.column is not None else ""
            place = f"line {self.line}{column}: "
        lines = [f"{place}{'warning: ' if self.warning else ''}{self.where}: {self.message}", *self.excerpt]
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        if self.saw:
            lines.append("    it saw:")
            lines += [f"      {shown_value(name, value)}" for name, value in self.saw]
        return "\n".join(lines)


def shown_value(name: str, value: Any) -> str:
    """Write what a rule saw under a name, as one line."""
    if value is None:
        return f"{name} is missing"
    shown = json.dumps(value, ensure_ascii=False)
    return f"{name} = {shown if len(shown) <= _SHOWN_CHARS_MAX else shown[:_SHOWN_CHARS_MAX] + '…'}"


def missed_out(missed: Iterable[Fault]) -> list[dict[str, Any]]:
    """Write tests that are not passed, as callers read them; one without a name is lacking."""
    return [
        {
            "ruleId": fault.where.removeprefix("rule "),
            "test": fault.test or None,
            "message": fault.message,
        }
        for fault in missed
    ]


class RuleSetRefused(Unprocessable):
    """422: a rule set that cannot be saved. `faults` holds everything that is wrong with it, and warnings."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        details: dict[str, str] = {}
        for fault in faults:
            if fault.warning:
                continue
            known = details.get(fault.where)
            details[fault.where] = fault.message if known is None else f"{known}\n{fault.message}"
        super().__init__("The rule set is refused; see details.", details)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)
