"""The layout of a rule set document: which members there are, and what each may hold."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.rules.document import DocumentFault, Node, plain, read_document
from vettance.rules.list_effect import read_list_effect
from vettance.rules.rule import (
    JSON,
    LABELS,
    RULE_MEMBERS,
    EarlierEvents,
    Explore,
    Fault,
    Levels,
    ListEffect,
    Rule,
    RuleSet,
    RuleSetRefused,
    RuleTest,
    Thresholds,
)
from vettance.wire.payload import read_timestamp

RULES_MAX: Final = 1_000
TESTS_MAX: Final = 20  # Of one rule.
GIVEN_MAX: Final = 50  # Of one test.
REPEAT_MAX: Final = 1_000
ACTIONS_MAX: Final = 200
FAULTS_MAX: Final = 100  # Reported at once; more would not be read.
SCORE_MAX: Final = 100
EXPLORE_PERCENT_MAX: Final = 100
EXPLORE_BELOW_MAX: Final = 1_000_000_000_000
BACK_MS_MAX: Final = 400 * DAY_MS  # As far back as an event may lie.

_ID = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?", re.ASCII)
_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_SPAN = re.compile(r"(-?)(0|[1-9][0-9]{0,8})(ms|s|m|h|d)", re.ASCII)
_UNITS_MS: Final = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": 1_000, "ms": 1}
_LIKE_ID: Final = "must be small letters, digits, dots and dashes, at most 64"
_LIKE_CODE: Final = "must be capital letters, digits and underscores, at most 64"
_RULE_NAMES: Final = tuple(RULE_MEMBERS.get(name, name) for name in Rule.__struct_fields__)
_GIVEN_CONTROLS: Final = ("at", "repeat", "every", "label")


class SourceMarks(NamedTuple):
    """Where a rule and its parts are in the document, and whether its shape is sound."""

    place: Node
    when: Node | None
    tests: tuple[Node, ...]
    sound: bool


class DocumentLayout(NamedTuple):
    """A document as a rule set, every fault of its shape, and the marks of its rules in their order.

    What is wrong is replaced by something harmless in the rule set.
    """

    ruleset: RuleSet
    faults: list[Fault]
    marks: tuple[SourceMarks, ...]


def read_ruleset(yaml_text: str) -> RuleSet:
    """Read a rule set document. Raises `RuleSetRefused` with every fault and its line.

    The texts of the rules are not yet checked; that is the business of the gate.
    """
    try:
        layout = read_layout(read_document(yaml_text))
    except DocumentFault as fault:
        raise RuleSetRefused([Fault("document", fault.message, fault.line)]) from None
    if layout.faults:
        raise RuleSetRefused(layout.faults[:FAULTS_MAX])
    return layout.ruleset


def read_layout(root: Node) -> DocumentLayout:
    """Read the values of a document as a rule set, whatever is wrong with them."""
    reading = _Layout()
    ruleset = reading.ruleset(root)
    return DocumentLayout(ruleset, reading.faults, tuple(reading.marks))


class _Layout:
    """Reads values out of places. Faults collect; a value that is wrong is replaced by a harmless one."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.marks: list[SourceMarks] = []

    def note(self, place: Node, where: str, message: str) -> None:
        self.faults.append(Fault(where, message, place.line, place.column))

    # --- Members of any kind ---

    def members(self, place: Node, where: str, known: tuple[str, ...]) -> dict[str, Node]:
        if not isinstance(place.value, dict):
            self.note(place, where, "must be a mapping of names to values")
            return {}
        for name, member in place.value.items():
            if name not in known:
                close = difflib.get_close_matches(name[:64], known, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                self.note(member, where, f"there is no member {name[:60]} here{hint}")
        return place.value

    def items(self, members: Mapping[str, Node], name: str, where: str, items_max: int) -> list[Node]:
        place = members.get(name)
        if place is None or place.value is None:
            return []
        if not isinstance(place.value, list):
            self.note(place, f"{where}{name}", "must be a list")
            return []
        if len(place.value) > items_max:
            self.note(place, f"{where}{name}", f"must not hold more than {items_max} items")
            return []
        return place.value

    def required(self, holder: Node, members: Mapping[str, Node], name: str, where: str) -> Node | None:
        place = members.get(name)
        if place is None or place.value is None or place.value == "":
            # What is no mapping at all was noted as that.
            if isinstance(holder.value, dict):
                self.note(place or holder, f"{where}{name}", "is required")
            return None
        return place

    def text(
        self,
        place: Node | None,
        where: str,
        chars_max: int,
        like: tuple[re.Pattern[str], str] | None = None,
    ) -> str:
        if place is None or place.value is None:
            return ""
        value = place.value
        if not isinstance(value, str):
            self.note(place, where, "must be a text; put it in quotes")
        elif len(value) > chars_max:
            self.note(place, where, f"must not be longer than {chars_max} characters")
        elif any(char < " " and char not in "\n\t" for char in value) or not _storable(value):
            self.note(place, where, "must not hold control characters")
        elif like is not None and not like[0].fullmatch(value):
            self.note(place, where, like[1])
        else:
            return value
        return ""

    def integer(self, place: Node | None, where: str, least: int, most: int, absent: int) -> int:
        if place is None or place.value is None:
            return absent
        if type(place.value) is not int or not least <= place.value <= most:
            self.note(place, where, f"must be a whole number from {least} to {most}")
            return absent
        return place.value

    def word(self, place: Node | None, where: str, known: tuple[str, ...], absent: Any) -> Any:
        if place is None or place.value is None:
            return absent
        if place.value not in known or not isinstance(place.value, str):
            self.note(place, where, "must be one of " + ", ".join(known))
            return absent
        return place.value

    def span_ms(self, place: Node | None, where: str, absent: int, *, back: bool) -> int:
        """Read a time span as milliseconds: one into the past with a minus sign, or one forward without."""
        if place is None or place.value is None:
            return absent
        match = _SPAN.fullmatch(place.value) if isinstance(place.value, str) else None
        span_ms = int(match[2]) * _UNITS_MS[match[3]] if match is not None else -1
        if match is None or (match[1] == "-") is not back or span_ms > BACK_MS_MAX:
            like = '"-5m", at most 400 days' if back else '"10s", at most 400 days'
            self.note(place, where, f"must be a time like {like}")
            return absent
        return -span_ms if back else span_ms

    # --- The parts of a rule set ---

    def ruleset(self, root: Node) -> RuleSet:
        members = self.members(
            root, "document", ("name", "levels", "thresholds", "actions", "rules", "explore")
        )
        actions = self.actions(members.get("actions"))
        rules: list[Rule] = []
        lines: dict[str, int] = {}
        for index, place in enumerate(self.items(members, "rules", "", RULES_MAX)):
            known = len(self.faults)
            rule = self.rule(place, f"rules[{index}]", actions)
            if rule.id in lines:
                self.note(place, f"rule {rule.id}", f"the id stands twice, first in line {lines[rule.id]}")
            elif rule.id:
                lines[rule.id] = place.line
            rules.append(rule)
            self.mark(place, sound=len(self.faults) == known)
        return RuleSet(
            name=self.text(self.required(root, members, "name", ""), "name", 120),
            levels=self.levels(members.get("levels")),
            thresholds=self.thresholds(members.get("thresholds")),
            actions=actions,
            rules=tuple(rules),
            explore=self.explore(members.get("explore")),
        )

    def mark(self, place: Node, *, sound: bool) -> None:
        """Remember where the parts of a rule are."""
        members = place.value if isinstance(place.value, dict) else {}
        tests = members["tests"].value if "tests" in members else None
        self.marks.append(
            SourceMarks(place, members.get("when"), tuple(tests) if isinstance(tests, list) else (), sound)
        )

    def levels(self, place: Node | None) -> Levels:
        if place is None:
            return Levels()
        names = ("medium", "high", "critical")
        members = self.members(place, "levels", names)
        medium, high, critical = (
            self.integer(members.get(name), f"levels.{name}", 1, SCORE_MAX, absent)
            for name, absent in zip(names, (30, 60, 85), strict=True)
        )
        if not medium < high < critical:
            self.note(place, "levels", "medium must be below high, and high below critical")
        return Levels(medium=medium, high=high, critical=critical)

    def thresholds(self, place: Node | None) -> Thresholds:
        if place is None:
            return Thresholds()
        members = self.members(place, "thresholds", ("review", "block"))
        review = self.integer(members.get("review"), "thresholds.review", 1, SCORE_MAX, 60)
        block = self.integer(members.get("block"), "thresholds.block", 1, SCORE_MAX, 85)
        if review > block:
            self.note(place, "thresholds", "review must not be above block")
        return Thresholds(review=review, block=block)

    def explore(self, place: Node | None) -> Explore | None:
        if place is None or place.value is None:
            return None
        members = self.members(place, "explore", ("percent", "below"))
        bounds = {"percent": EXPLORE_PERCENT_MAX, "below": EXPLORE_BELOW_MAX}
        read: dict[str, float] = {}
        for name, most in bounds.items():
            member = self.required(place, members, name, "explore.")
            if member is None:
                continue
            value = member.value
            if type(value) not in (int, float) or not 0 < value <= most:
                self.note(member, f"explore.{name}", f"must be a number above 0, up to {most:,}")
            else:
                read[name] = float(value)
        return Explore(**read) if len(read) == len(bounds) else None

    def day(self, members: Mapping[str, Node], name: str, where: str) -> str | None:
        place = members.get(name)
        if place is None or place.value is None:
            return None
        if isinstance(place.value, str) and read_timestamp(place.value) is not None:
            return place.value
        self.note(
            place, f"{where}: {name}", "must be a date like 2026-01-31, or a time like 2026-01-31T03:00:00Z"
        )
        return None

    def actions(self, place: Node | None) -> dict[str, str]:
        if place is None or place.value is None:
            return {}
        if not isinstance(place.value, dict) or len(place.value) > ACTIONS_MAX:
            self.note(place, "actions", f"must be a mapping of at most {ACTIONS_MAX} codes to descriptions")
            return {}
        actions: dict[str, str] = {}
        for code, member in place.value.items():
            if not _CODE.fullmatch(code):
                self.note(member, f"actions.{code[:64]}", f"the code {_LIKE_CODE}")
            elif member.value is None or member.value == "":
                self.note(member, f"actions.{code}", "needs a description")
            else:
                actions[code] = self.text(member, f"actions.{code}", 500)
        return actions

    def rule(self, place: Node, where: str, actions: Mapping[str, str]) -> Rule:
        named = place.value.get("id") if isinstance(place.value, dict) else None
        known = named is not None and isinstance(named.value, str) and _ID.fullmatch(named.value)
        members = self.members(
            place, f"rule {named.value}" if named is not None and known else where, _RULE_NAMES
        )
        rule_id = self.text(
            self.required(place, members, "id", f"{where}."), f"{where}.id", 64, (_ID, _LIKE_ID)
        )
        if rule_id:
            where = f"rule {rule_id}"

        def text(name: str, chars_max: int, like: tuple[re.Pattern[str], str] | None = None) -> str:
            needed = self.required(place, members, name, f"{where}: ")
            return self.text(needed, f"{where}: {name}", chars_max, like)

        action = self.text(members.get("action"), f"{where}: action", 64, (_CODE, _LIKE_CODE)) or None
        if action is not None and action not in actions:
            self.note(members["action"], f"{where}: action", "is not described under actions")
        self.required(place, members, "score", f"{where}: ")
        active_from, active_until = (self.day(members, name, where) for name in ("from", "until"))
        if active_from is not None and active_until is not None:
            begin, end = read_timestamp(active_from) or 0, read_timestamp(active_until) or 0
            if begin >= end:
                self.note(members["until"], f"{where}: until", "must be later than from")
        tests = self.items(members, "tests", f"{where}: ", TESTS_MAX)
        return Rule(
            id=rule_id,
            name=text("name", 120),
            when=text("when", 4_000),
            score=self.integer(members.get("score"), f"{where}: score", 0, SCORE_MAX, 0),
            reason=text("reason", 64, (_CODE, _LIKE_CODE)),
            explanation=text("explanation", 1_000),
            outcome=self.word(
                members.get("outcome"), f"{where}: outcome", ("ALLOW", "REVIEW", "BLOCK"), None
            ),
            action=action,
            mode=self.word(members.get("mode"), f"{where}: mode", ("active", "shadow", "off"), "active"),
            family=self.text(members.get("family"), f"{where}: family", 64),
            rollout=self.integer(members.get("rollout"), f"{where}: rollout", 1, 100, 100),
            active_from=active_from,
            active_until=active_until,
            adds=self.adds(members.get("adds"), f"{where}: adds"),
            tests=tuple(self.test(test, f"{where}: tests[{index}]") for index, test in enumerate(tests)),
        )

    def adds(self, place: Node | None, where: str) -> ListEffect | None:
        effect, faults = read_list_effect(place, where)
        self.faults += faults
        return effect

    def test(self, place: Node, where: str) -> RuleTest:
        members = self.members(place, where, ("name", "given", "event", "fires", "now", "model"))
        fires = self.required(place, members, "fires", f"{where}.")
        if fires is not None and type(fires.value) is not bool:
            self.note(fires, f"{where}.fires", "must be true or false")
        event = self.required(place, members, "event", f"{where}.")
        given = self.items(members, "given", f"{where}.", GIVEN_MAX)
        return RuleTest(
            name=self.text(self.required(place, members, "name", f"{where}."), f"{where}.name", 200),
            event=self.event(event, f"{where}.event") if event is not None else {},
            fires=fires is not None and fires.value is True,
            given=tuple(self.given(item, f"{where}.given[{index}]") for index, item in enumerate(given)),
            now_ms=self.moment(members.get("now"), f"{where}.now"),
            probability=self.probability(members.get("model"), f"{where}.model"),
        )

    def event(self, place: Node, where: str) -> JSON:
        value = plain(place)
        if not isinstance(value, dict):
            self.note(place, where, "must be a mapping of names to values")
            return {}
        return value

    def given(self, place: Node, where: str) -> EarlierEvents:
        event = self.event(place, where)
        members: dict[str, Node] = place.value if isinstance(place.value, dict) else {}
        given = EarlierEvents(
            event={name: value for name, value in event.items() if name not in _GIVEN_CONTROLS},
            at_ms=self.span_ms(members.get("at"), f"{where}.at", -60_000, back=True),
            repeat=self.integer(members.get("repeat"), f"{where}.repeat", 1, REPEAT_MAX, 1),
            every_ms=self.span_ms(members.get("every"), f"{where}.every", 0, back=False),
            label=self.word(members.get("label"), f"{where}.label", tuple(LABELS), None),
        )
        if given.at_ms + (given.repeat - 1) * given.every_ms > 0:
            self.note(place, where, "the repetitions reach beyond the tested event")
        return given

    def probability(self, place: Node | None, where: str) -> float | None:
        if place is None or place.value is None:
            return None
        members = self.members(place, where, ("probability",))
        member = self.required(place, members, "probability", f"{where}.")
        if member is None:
            return None
        if type(member.value) in (int, float) and 0 < member.value < 1:
            return float(member.value)
        self.note(member, f"{where}.probability", "must be a number above 0 and below 1")
        return None

    def moment(self, place: Node | None, where: str) -> int | None:
        if place is None or place.value is None:
            return None
        moment_ms = read_timestamp(place.value) if isinstance(place.value, str) else None
        if moment_ms is None or moment_ms < BACK_MS_MAX:
            self.note(place, where, "must be a time like 2026-01-31T03:00:00Z")
        return moment_ms


def _storable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
