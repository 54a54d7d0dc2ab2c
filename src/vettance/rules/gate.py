"""The gate: a rule set is checked, compiled and tried before it is saved, and everything wrong is named."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from vettance.rules.compiler import CompiledRules, compile_rules
from vettance.rules.document import DOCUMENT_BYTES_MAX, DocumentFault, Node, position_in, read_document
from vettance.rules.document_layout import FAULTS_MAX, DocumentLayout, SourceMarks, read_layout, read_ruleset
from vettance.rules.extension import Pack, extend
from vettance.rules.fault import RuleFault, pointed
from vettance.rules.language import CheckedText, check
from vettance.rules.plan_builder import TooManyAggregates
from vettance.rules.rule import Fault, Rule, RuleSet, RuleSetRefused
from vettance.rules.schema import Schema
from vettance.rules.trial import FailedTest, Parse, PretendedModel, events_of, try_rule
from vettance.velocity.port import Velocity

COST_MAX: Final = 150_000  # Of a rule set, in units of about 20 ns: 3 ms for each event, aggregates included.
TRIAL_EVENTS_MAX: Final = 50_000  # Of all tests of a rule set: some seconds of work when it is saved.


class Context(NamedTuple):
    """What a kind of rule set is checked with: its names, how tests are run, and the pack to build on.

    `parse(body, now_ms)` makes an event of the body of a test; it may raise a `Refusal`. `make_velocity`
    makes an empty state engine. `pretend_model` gives, by their names, the values that rules see of a model
    that says a probability; without it there are no models for events of this kind. `answers` is whether
    these rules answer an event, so that a hold-out can let it through.
    """

    schema: Schema
    parse: Parse
    make_velocity: Callable[[], Velocity]
    pack: Pack | None = None
    pretend_model: PretendedModel | None = None
    answers: bool = True


class TestResult(NamedTuple):
    """How a test of a running rule ended: `miss` is None when it passed."""

    rule: str
    test: str
    miss: FailedTest | None


class GateResult(NamedTuple):
    """What the gate found. `compiled` has the running rules, or is None when they cannot run together.

    `faults` holds errors and warnings in the order of the document. `extends` is the pack that the document
    builds on, with its version. `results` has the tests that were run.
    """

    ruleset: RuleSet
    compiled: CompiledRules | None
    faults: tuple[Fault, ...]
    extends: str | None = None
    results: tuple[TestResult, ...] = ()

    @property
    def errors(self) -> tuple[Fault, ...]:
        """Those faults for which the rule set is refused."""
        return tuple(fault for fault in self.faults if not fault.warning)

    @property
    def broken(self) -> tuple[Fault, ...]:
        """Those errors for which the rules cannot even be tried: all but those of their tests."""
        return tuple(fault for fault in self.errors if fault.test is None)

    @property
    def missed(self) -> tuple[Fault, ...]:
        """The errors of tests, which keep rules from being saved and not from being tried."""
        return tuple(fault for fault in self.errors if fault.test is not None)

    def passed(self) -> CompiledRules:
        """Return the running rules, compiled. Raises `RuleSetRefused` naming every fault."""
        if self.errors or self.compiled is None:
            raise RuleSetRefused(self.faults)
        return self.compiled


def examine(document: str, context: Context) -> GateResult:
    """Check, compile and try a document: its shape, the texts of its rules, their tests, their cost.

    An active rule needs a test in which it fires and one in which it does not.
    """
    try:
        root = read_document(document)
    except DocumentFault as fault:
        return GateResult(RuleSet(name=""), None, (Fault("document", fault.message, fault.line),))
    extension = extend(root, context.pack)
    layout = read_layout(extension.root)
    layout.faults[:0] = extension.faults
    found = _examine(layout, document, context)
    return found._replace(extends=extension.extends)


def admit(
    ruleset: RuleSet, schema: Schema, parse_event: Parse, make_velocity: Callable[[], Velocity]
) -> CompiledRules:
    """Pass a rule set that no document says through the gate. Raises `RuleSetRefused` naming every fault."""
    bare = Node(None, 0)
    marks = tuple(SourceMarks(bare, None, (), sound=True) for _ in ruleset.rules)
    layout = DocumentLayout(ruleset, [], marks)
    return _examine(layout, "", Context(schema, parse_event, make_velocity)).passed()


def read_extended(document: str, pack: Pack | None) -> RuleSet:
    """Read a document and the pack it builds on as one rule set. Raises `RuleSetRefused`."""
    try:
        extension = extend(read_document(document), pack)
    except DocumentFault as fault:
        raise RuleSetRefused([Fault("document", fault.message, fault.line)]) from None
    layout = read_layout(extension.root)
    if faults := [*extension.faults, *layout.faults]:
        raise RuleSetRefused(first_faults(faults))
    return layout.ruleset


def compile_ruleset(ruleset: RuleSet, schema: Schema) -> CompiledRules:
    """Compile the running rules of a rule set that passed the gate before.

    Its tests are not run again, and what later became doubtful is left as it was: it must go on deciding.
    """
    checked: dict[str, CheckedText] = {}
    faults: list[Fault] = []
    for rule in ruleset.rules:
        try:
            checked[rule.id] = check(rule.when, schema)
        except RuleFault as fault:
            faults.append(_placed(fault, rule, None, ""))
    if faults:
        raise RuleSetRefused(faults)
    running = [(rule.id, checked[rule.id]) for rule in ruleset.running]
    compiled = _compile(running, schema, faults)
    if compiled is None:
        raise RuleSetRefused(faults)
    return compiled


def compile_document(document: str, schema: Schema) -> tuple[RuleSet, CompiledRules]:
    """Read and compile a document that passed the gate before. Raises `RuleSetRefused`."""
    ruleset = read_ruleset(document)
    return ruleset, compile_ruleset(ruleset, schema)


def _examine(layout: DocumentLayout, document: str, context: Context) -> GateResult:
    faults = layout.faults
    good: list[tuple[Rule, CheckedText, SourceMarks]] = []
    for rule, marks in zip(layout.ruleset.rules, layout.marks, strict=True):
        checked = _check(rule, marks, document, context.schema, faults) if rule.when else None
        if marks.sound:
            faults += _missing_tests(rule, marks)
        # Where the text makes no sense, its tests would only say so again.
        sensible = checked is not None and all(doubt.warning for doubt in checked.doubts)
        if checked is not None and sensible and marks.sound and rule.mode != "off":
            good.append((rule, checked, marks))
    compiled = _compile([(rule.id, checked) for rule, checked, _ in good], context.schema, faults)
    results: list[TestResult] = []
    events = sum(events_of(test) for rule, _, _ in good for test in rule.tests)
    if events > TRIAL_EVENTS_MAX:
        faults.append(Fault("tests", f"they run {events} events, {TRIAL_EVENTS_MAX} are allowed"))
    elif compiled is not None:
        results = _try(good, compiled, context, faults)
    if layout.ruleset.explore is not None and not context.answers:
        message = "there is nothing to hold out: these rules raise alerts, and answer no event"
        faults.append(Fault("explore", message, warning=True))
    faults.sort(key=lambda fault: (fault.line or 0, fault.column or 0))
    return GateResult(layout.ruleset, compiled, tuple(first_faults(faults)), results=tuple(results))


def _check(
    rule: Rule, marks: SourceMarks, document: str, schema: Schema, faults: list[Fault]
) -> CheckedText | None:
    try:
        checked = check(rule.when, schema)
    except RuleFault as fault:
        faults += [_placed(one, rule, marks.when, document) for one in (fault, *fault.also)]
        return None
    faults += [_placed(doubt, rule, marks.when, document) for doubt in checked.doubts]
    return checked


def _placed(fault: RuleFault, rule: Rule, when: Node | None, document: str) -> Fault:
    """Return a fault of a rule's text as one of the document."""
    where = f"rule {rule.id}" if rule.id else "a rule without an id"
    return place_fault(fault, where, when, document)


def place_fault(fault: RuleFault, where: str, node: Node | None, document: str) -> Fault:
    """Return a fault of an expression as one of the document; a text from elsewhere is shown itself."""
    if node is None or node.span is None:
        excerpt = pointed(fault.text, fault.line, fault.column, fault.width)
        line, column = (node.line, node.column) if node is not None else (None, None)
    else:
        lines = fault.text.split("\n")
        at = sum(len(one) + 1 for one in lines[: fault.line - 1]) + fault.column - 1
        line, column = position_in(document, node, at)
        excerpt = pointed(document, line, column, fault.width)
    return Fault(where, fault.message, line, column, fault.hint, fault.warning, tuple(excerpt))


def _missing_tests(rule: Rule, marks: SourceMarks) -> list[Fault]:
    if rule.mode == "off":
        return []
    results = {test.fires for test in rule.tests}
    lacking = [
        said for fires, said in ((True, "it fires"), (False, "it does not fire")) if fires not in results
    ]
    line, column = (marks.place.line, marks.place.column) if marks.place.line else (None, None)
    where = f"rule {rule.id}"
    if rule.mode == "active":
        messages = [f"an active rule needs a test in which {said}" for said in lacking]
        return [Fault(where, message, line, column, test="") for message in messages]
    if not lacking:
        return []
    message = f"this shadow rule has no test in which {', and none in which '.join(lacking)}"
    return [Fault(where, message, line, column, warning=True, test="")]


def _compile(
    rules: Sequence[tuple[str, CheckedText]], schema: Schema, faults: list[Fault]
) -> CompiledRules | None:
    try:
        compiled = compile_rules(rules, schema)
    except TooManyAggregates as error:
        faults.append(Fault("rules", str(error)))
        return None
    if compiled.cost > COST_MAX:
        message = f"together they cost {compiled.cost} for each event, {COST_MAX} are allowed"
        faults.append(Fault("rules", message))
        return None
    return compiled


def _try(
    good: list[tuple[Rule, CheckedText, SourceMarks]],
    compiled: CompiledRules,
    context: Context,
    faults: list[Fault],
) -> list[TestResult]:
    velocity = context.make_velocity()
    results: list[TestResult] = []
    for index, (rule, checked, marks) in enumerate(good):
        for number, test in enumerate(rule.tests):
            miss = try_rule(compiled, index, checked, test, context.parse, velocity, context.pretend_model)
            results.append(TestResult(rule.id, test.name, miss))
            if miss is None:
                continue
            place = marks.tests[number] if number < len(marks.tests) else None
            line, column = (place.line, place.column) if place is not None else (None, None)
            message = f"test {test.name!r}: {miss.message}"
            faults.append(Fault(f"rule {rule.id}", message, line, column, saw=miss.saw, test=test.name))
    return results


def first_faults(faults: list[Fault]) -> list[Fault]:
    """Return as many faults as anybody reads; of more, what is broken, then tests, then warnings."""
    if len(faults) <= FAULTS_MAX:
        return faults
    ranked = sorted(faults, key=lambda fault: (fault.warning, fault.test is not None))
    kept, rest = ranked[:FAULTS_MAX], ranked[FAULTS_MAX:]
    kept.sort(key=lambda fault: (fault.line or 0, fault.column or 0))
    # As bad as the worst of those that it stands for, which comes first.
    said = "there is 1 more fault" if len(rest) == 1 else f"there are {len(rest)} more faults"
    more = Fault("document", f"{said}, not shown here", warning=rest[0].warning)
    return [*kept, more if rest[0].test is None else more._replace(test="")]


__all__ = [
    "COST_MAX",
    "DOCUMENT_BYTES_MAX",
    "TRIAL_EVENTS_MAX",
    "Context",
    "GateResult",
    "TestResult",
    "admit",
    "compile_document",
    "compile_ruleset",
    "examine",
    "first_faults",
    "place_fault",
    "read_extended",
]
