"""Compiles checked rules to Python functions: one that extracts, one that observes, one that decides.

The source of these functions is made by `writer.py` and this file from checked expressions only; nothing of
a rule's text gets into it but literals, written by `repr`. Rules are read once and run millions of times, so
what can be decided here is not decided again at run time.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.rules.codegen import BUILTINS, ExpressionWriter
from vettance.rules.expression import LABELS, Expression, facts_in
from vettance.rules.key_text import composite_key, digest_key, scalar, single_key
from vettance.rules.language import CheckedText
from vettance.rules.plan_builder import AGGREGATES_MAX, FEATURED_MAX, Memory, read_memory
from vettance.rules.schema import Schema, Type
from vettance.rules.unknowns import Failure, PartialFacts, PartialObservation, message_of
from vettance.velocity.port import Observation, Plan, Value

Facts = tuple[Any, ...]
Answers = tuple[Value, ...]
Fired = tuple[list[int], list[tuple[int, str]]]

_KEY_CHARS_MAX: Final = 256


class LabelSeries(NamedTuple):
    """The series of a plan that keep labels of legitimate events and of fraud, and where their values are."""

    masks: tuple[int, int]
    values: frozenset[int]


class CompiledRules(msgspec.Struct, frozen=True):
    """A rule set ready to run. Indexes of rules are positions in the sequence that was compiled.

    `facts(event)` extracts every field that any rule reads, in the order of `fact_names`. `observe(facts)`
    says what the event means to the state engine. `run(facts, answers)` gives the rules that fire, in order,
    and those that failed with a message; answers are in the order of the plan's aggregates. `seen(event)`
    is `observe(facts(event))` for replays, which want no other facts than those that the memory asks for.

    None of them raises: what cannot be computed is unknown, and `unknown.failures_of` names it.
    """

    plan: Plan
    fact_names: tuple[str, ...]
    rule_ids: tuple[str, ...]
    facts: Callable[[Any], Facts]
    observe: Callable[[Facts], Observation]
    seen: Callable[[Any], Observation]
    run: Callable[[Facts, Answers], Fired]
    doubtful: tuple[str, ...]  # the rules with a comparison that no event fulfils
    cost: int  # in units of about 20 ns; what rules share is counted once for aggregates only
    source: str  # the Python that was made, for people
    labels: LabelSeries

    def label(self, event: Any, weight: float, *, fraud: bool) -> Observation | None:
        """Return what a label of an event means to the state engine; None where no aggregate counts it.

        It adds its weight to the labels of each key of the event: 1, or -1 to take one back.
        """
        mask = self.labels.masks[fraud]
        if not mask:
            return None
        keys, _, values = self.seen(event)
        places = self.labels.values
        return Observation(
            keys, mask, tuple(weight if place in places else each for place, each in enumerate(values))
        )


def compile_rules(
    rules: Sequence[tuple[str, CheckedText]], schema: Schema, features: Sequence[CheckedText] = ()
) -> CompiledRules:
    """Compile rules, each an id and its checked text, against the schema they were checked with.

    What `features` read is asked for as well, behind everything that the rules read.
    """
    texts = [*(checked for _, checked in rules), *features]
    fact_names = tuple(dict.fromkeys(name for checked in texts for name in checked.names))
    memory = read_memory(texts, FEATURED_MAX if features else AGGREGATES_MAX)
    facts_source, facts = _compile_facts(fact_names, schema)
    observe_source, observe = _compile_observe(fact_names, memory)
    numbered = [(index, checked.expression) for index, (_, checked) in enumerate(rules)]
    run_source, run = _compile_run(fact_names, memory.plan, numbered)
    return CompiledRules(
        plan=memory.plan,
        fact_names=fact_names,
        rule_ids=tuple(rule_id for rule_id, _ in rules),
        facts=facts,
        observe=observe,
        seen=_compile_seen(fact_names, memory, schema),
        run=run,
        doubtful=tuple(
            rule_id for rule_id, checked in rules if any(not doubt.warning for doubt in checked.doubts)
        ),
        cost=sum(checked.expression.cost for _, checked in rules) + memory.upkeep,
        source="\n\n".join((facts_source, observe_source, run_source)),
        labels=LabelSeries(
            memory.labels, frozenset(place for place, value in enumerate(memory.values) if value in LABELS)
        ),
    )


def define(name: str, source: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Make a function of source that this module wrote. It sees the given names and no builtins."""
    scope = {**BUILTINS, **names}
    exec(compile(source, f"<rules: {name}>", "exec"), scope)  # noqa: S102  The source is ours; see above.
    function: Callable[..., Any] = scope[name]
    return function


def _unpack(prefix: str, count: int, source: str) -> list[str]:
    if count == 0:
        return []
    return [f"    {', '.join(f'{prefix}{index}' for index in range(count))}, = {source}"]


# --- facts ---


def _member(holder: Any, path: tuple[str, ...]) -> Any:
    """Follow a path into nested objects; None where it leads nowhere."""
    for part in path:
        if not isinstance(holder, dict):
            return None
        holder = holder.get(part)
    return holder


def _compile_facts(names: Sequence[str], schema: Schema) -> tuple[str, Callable[[Any], Facts]]:
    source, scope = _write_facts(names, schema)
    scope["isolate"] = _isolate_facts(names, schema)
    scope["Exception"] = Exception
    source = _guard(source, "event")
    return source, define("facts", source, scope)


def _write_facts(names: Sequence[str], schema: Schema) -> tuple[str, dict[str, Any]]:
    scope: dict[str, Any] = {"member": _member}
    holders: dict[str, str] = {}
    lines: list[str] = []
    parts: list[str] = []
    for index, name in enumerate(names):
        field = schema.fields.get(name)
        if field is not None:
            if field.attribute is not None:
                parts.append(f"event.{field.attribute}")
            else:
                scope[f"read_{index}"] = field.read
                parts.append(f"read_{index}(event)")
            continue
        found = schema.namespace_of(name)
        if found is None:
            raise ValueError(f"the schema has no name {name}")
        namespace, path = found
        if namespace.name not in holders:
            holder = holders[namespace.name] = f"n{len(holders)}"
            scope[f"read_{holder}"] = namespace.read
            source = f"event.{namespace.attribute}" if namespace.attribute else f"read_{holder}(event)"
            lines.append(f"    {holder} = {source}")
        holder = holders[namespace.name]
        parts.append(f"{holder}.get({path[0]!r})" if len(path) == 1 else f"member({holder}, {path!r})")
    body = "".join(f"        {part},\n" for part in parts)
    return "\n".join(["def facts(event):", *lines, f"    return (\n{body}    )"]), scope


def _guard(source: str, arguments: str) -> str:
    """Have a written function hand over to `isolate` when anything in it raises; that costs nothing else."""
    head, *body = source.split("\n")
    guarded = [head, "    try:", *(f"    {line}" for line in body)]
    return "\n".join([*guarded, "    except Exception:", f"        return isolate({arguments})"])


def _isolate_facts(names: Sequence[str], schema: Schema) -> Callable[[Any], Facts]:
    """Return a slow `facts` that keeps a field that raises from taking the others with it."""
    alone: list[tuple[str, Callable[[Any], Facts]]] = []

    def isolate(event: Any) -> Facts:
        if not alone:
            alone.extend((name, define("facts", *_write_facts([name], schema))) for name in names)
        failures: list[Failure] = []
        facts = PartialFacts(_each(alone, event, failures, lambda read: read[0]))
        facts.failures = tuple(failures)
        return facts

    return isolate


def _each(
    alone: Sequence[tuple[str, Callable[[Any], Any]]],
    given: Any,
    failures: list[Failure],
    take: Callable[[Any], Any],
) -> list[Any]:
    """Compute parts one by one; what raises is None, and added to `failures`."""
    values: list[Any] = []
    for name, compute in alone:
        try:
            values.append(take(compute(given)))
        except Exception as error:  # noqa: BLE001  A decision never fails because of one part of it.
            values.append(None)
            failures.append((name, message_of(error)))
    return values


# --- observe ---


def _compile_observe(fact_names: Sequence[str], memory: Memory) -> tuple[str, Callable[[Facts], Observation]]:
    source, scope = _write_observe(fact_names, memory)
    scope["isolate"] = _isolate_observe(fact_names, memory)
    scope["Exception"] = Exception
    source = _guard(source, "facts")
    return source, define("observe", source, scope)


def _compile_seen(fact_names: Sequence[str], memory: Memory, schema: Schema) -> Callable[[Any], Observation]:
    """Compile both steps for the facts that the memory asks for; when first called, as most rules are not."""
    asked = {name for key in memory.keys for part in key for name in facts_in(part)}
    for expression in (
        *memory.values,
        *(condition for condition, _ in memory.masks if condition is not None),
    ):
        asked.update(facts_in(expression))
    names = [name for name in fact_names if name in asked]

    @functools.cache
    def steps() -> tuple[Callable[[Any], Facts], Callable[[Facts], Observation]]:
        return _compile_facts(names, schema)[1], _compile_observe(names, memory)[1]

    def seen(event: Any) -> Observation:
        facts, observe = steps()
        return observe(facts(event))

    return seen


def _isolate_observe(fact_names: Sequence[str], memory: Memory) -> Callable[[Facts], Observation]:
    """Return a slow `observe` that computes each key, condition and value by itself."""
    alone: list[list[tuple[str, Callable[[Facts], Observation]]]] = []
    nothing = memory._replace(keys=(), masks=(), values=())

    def observe_part(part: Memory) -> Callable[[Facts], Observation]:
        return define("observe", *_write_observe(fact_names, part))

    def isolate(facts: Facts) -> Observation:
        if not alone:
            names = zip(memory.plan.keys, memory.keys, strict=True)
            alone.append([(name, observe_part(nothing._replace(keys=(key,)))) for name, key in names])
            alone.append(
                [
                    ("" if mask[0] is None else mask[0].text, observe_part(nothing._replace(masks=(mask,))))
                    for mask in memory.masks
                ]
            )
            alone.append(
                [(value.text, observe_part(nothing._replace(values=(value,)))) for value in memory.values]
            )
        failures: list[Failure] = []
        keys = _each(alone[0], facts, failures, lambda seen: seen.keys[0])
        masks = _each(alone[1], facts, failures, lambda seen: seen.mask)
        values = _each(alone[2], facts, failures, lambda seen: seen.values[0])
        seen = PartialObservation(tuple(keys), sum(filter(None, masks)), tuple(values))
        seen.failures = tuple(failures)
        return seen

    return isolate


def _write_observe(fact_names: Sequence[str], memory: Memory) -> tuple[str, dict[str, Any]]:
    writer = ExpressionWriter({name: f"f{index}" for index, name in enumerate(fact_names)}, {})
    for condition, _ in memory.masks:
        if condition is not None:
            writer.count(condition)
    for expression in (*(part for key in memory.keys for part in key), *memory.values):
        writer.count_value(expression)
    keys = [_key_source(writer, key) for key in memory.keys]
    values = [_value_source(writer, value) for value in memory.values]
    body = [f"    mask = {sum(bits for condition, bits in memory.masks if condition is None)}"]
    for condition, bits in memory.masks:
        if condition is not None:
            body += [f"    if {writer.true(condition)}:", f"        mask |= {bits}"]
    lines = [
        "def observe(facts):",
        *_unpack("f", len(fact_names), "facts"),
        *writer.prelude(),
        *body,
        f"    return new(Observation, ({_tuple(keys)}, mask, {_tuple(values)}))",
    ]
    source = "\n".join(lines)
    scope = {
        **writer.globals,
        "new": tuple.__new__,
        "Observation": Observation,
        "len": len,
        "single_key": single_key,
        "composite_key": composite_key,
        "digest_key": digest_key,
        "scalar": scalar,
    }
    return source, scope


def _tuple(parts: Sequence[str]) -> str:
    return f"({''.join(f'{part}, ' for part in parts)})"


def _key_source(writer: ExpressionWriter, key: tuple[Expression, ...]) -> str:
    parts = [writer.value(part) for part in key]
    if len(parts) > 1:
        return f"composite_key({_tuple(parts)})"
    if key[0].type is Type.TEXT and parts[0].isidentifier():
        text = parts[0]
        return f"(None if not {text} else {text} if len({text}) <= {_KEY_CHARS_MAX} else digest_key({text}))"
    return f"single_key({parts[0]}, {key[0].type is Type.TEXT})"


def _value_source(writer: ExpressionWriter, value: Expression) -> str:
    source = writer.value(value)
    return f"scalar({source})" if value.type is Type.ANY else source


# --- run ---


def _compile_run(
    fact_names: Sequence[str], plan: Plan, rules: Sequence[tuple[int, Expression]]
) -> tuple[str, Callable[[Facts, Answers], Fired]]:
    source, names = _write_run(fact_names, plan, rules)
    names["isolate"] = _isolate_run(fact_names, plan, rules)
    names["Exception"] = Exception
    source = _guard(source, "facts, answers")
    return source, define("run", source, names)


def _write_run(
    fact_names: Sequence[str],
    plan: Plan,
    rules: Sequence[tuple[int, Expression]],
) -> tuple[str, dict[str, Any]]:
    writer = ExpressionWriter(
        {name: f"f{index}" for index, name in enumerate(fact_names)},
        {name: f"a{index}" for index, name in enumerate(plan.aggregate_names)},
    )
    for _, expression in rules:
        writer.count(expression)
    tests: list[str] = []
    for index, expression in rules:
        tests += [f"    if {writer.true(expression)}:", f"        fired.append({index})"]
    body = [
        *_unpack("f", len(fact_names), "facts"),
        *_unpack("a", len(plan.aggregates), "answers"),
        "    fired = []",
        *writer.prelude(),
        *tests,
        "    return fired, []",
    ]
    return "\n".join(["def run(facts, answers):", *body]), writer.globals


def _isolate_run(
    fact_names: Sequence[str], plan: Plan, rules: Sequence[tuple[int, Expression]]
) -> Callable[[Facts, Answers], Fired]:
    """Return a slow `run` that keeps a rule that raises from taking the others with it.

    No expression of the language should be able to raise; a field or a word with a bug can. Each rule is
    compiled alone when the first failure happens, and kept for the next one.
    """
    alone: list[tuple[int, Callable[[Facts, Answers], Fired]]] = []

    def isolate(facts: Facts, answers: Answers) -> Fired:
        if not alone:
            for index, expression in rules:
                source, names = _write_run(fact_names, plan, [(index, expression)])
                alone.append((index, define("run", source, names)))
        fired: list[int] = []
        failures: list[tuple[int, str]] = []
        for index, run in alone:
            try:
                fired += run(facts, answers)[0]
            except Exception as error:  # noqa: BLE001  A decision never fails because of one rule.
                failures.append((index, message_of(error)))
        return fired, failures

    return isolate
