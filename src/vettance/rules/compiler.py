"""Compiles checked rules to Python functions: one that extracts, one that observes, one that decides.

The source of these functions is made by `writer.py` and this file from checked expressions only; nothing of
a rule's text gets into it but literals, written by `repr`. Rules are read once and run millions of times, so
what can be decided here is not decided again at run time.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from vettance.rules.expression import Expression
from vettance.rules.keys import composite_key, digest_key, scalar, single_key
from vettance.rules.language import Checked
from vettance.rules.remember import Memory, read_memory
from vettance.rules.schema import Schema, Type
from vettance.rules.writer import BUILTINS, Writer
from vettance.state.port import Observation, Plan, Value

Facts = tuple[Any, ...]
Answers = tuple[Value, ...]
Fired = tuple[list[int], list[tuple[int, str]]]

_FAILURE_CHARS_MAX: Final = 200  # Kept with every decision; enough to recognise the bug.
_KEY_CHARS_MAX: Final = 256


class Compiled(msgspec.Struct, frozen=True):
    """A rule set ready to run. Indexes of rules are positions in the sequence that was compiled.

    `facts(event)` extracts every field that any rule reads, in the order of `fact_names`. `observe(facts)`
    says what the event means to the state engine. `run(facts, answers)` gives the rules that fire, in order,
    and those that failed with a message; answers stand in the order of the plan's aggregates.
    """

    plan: Plan
    fact_names: tuple[str, ...]
    rule_ids: tuple[str, ...]
    facts: Callable[[Any], Facts]
    observe: Callable[[Facts], Observation]
    run: Callable[[Facts, Answers], Fired]
    cost: int  # in units of about 20 ns; what rules share is counted once for aggregates only
    source: str  # the Python that was made, for people


def compile_rules(rules: Sequence[tuple[str, Checked]], schema: Schema) -> Compiled:
    """Compile rules, each an id and its checked text, against the schema they were checked with."""
    fact_names = tuple(dict.fromkeys(name for _, checked in rules for name in checked.names))
    memory = read_memory([checked for _, checked in rules])
    facts_source, facts = _compile_facts(fact_names, schema)
    observe_source, observe = _compile_observe(fact_names, memory)
    numbered = [(index, checked.expression) for index, (_, checked) in enumerate(rules)]
    run_source, run = _compile_run(fact_names, memory.plan, numbered)
    return Compiled(
        plan=memory.plan,
        fact_names=fact_names,
        rule_ids=tuple(rule_id for rule_id, _ in rules),
        facts=facts,
        observe=observe,
        run=run,
        cost=sum(checked.expression.cost for _, checked in rules) + memory.upkeep,
        source="\n\n".join((facts_source, observe_source, run_source)),
    )


def _define(name: str, source: str, names: dict[str, Any]) -> Callable[..., Any]:
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
    source = "\n".join(["def facts(event):", *lines, f"    return (\n{body}    )"])
    return source, _define("facts", source, scope)


# --- observe ---


def _compile_observe(fact_names: Sequence[str], memory: Memory) -> tuple[str, Callable[[Facts], Observation]]:
    writer = Writer({name: f"f{index}" for index, name in enumerate(fact_names)}, {})
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
    return source, _define("observe", source, scope)


def _tuple(parts: Sequence[str]) -> str:
    return f"({''.join(f'{part}, ' for part in parts)})"


def _key_source(writer: Writer, key: tuple[Expression, ...]) -> str:
    parts = [writer.value(part) for part in key]
    if len(parts) > 1:
        return f"composite_key({_tuple(parts)})"
    if key[0].type is Type.TEXT and parts[0].isidentifier():
        text = parts[0]
        return f"(None if not {text} else {text} if len({text}) <= {_KEY_CHARS_MAX} else digest_key({text}))"
    return f"single_key({parts[0]}, {key[0].type is Type.TEXT})"


def _value_source(writer: Writer, value: Expression) -> str:
    source = writer.value(value)
    return f"scalar({source})" if value.type is Type.ANY else source


# --- run ---


def _compile_run(
    fact_names: Sequence[str], plan: Plan, rules: Sequence[tuple[int, Expression]]
) -> tuple[str, Callable[[Facts, Answers], Fired]]:
    source, names = _write_run(fact_names, plan, rules)
    names["isolate"] = _isolation(fact_names, plan, rules)
    names["Exception"] = Exception
    return source, _define("run", source, names)


def _write_run(
    fact_names: Sequence[str],
    plan: Plan,
    rules: Sequence[tuple[int, Expression]],
    *,
    guarded: bool = True,
) -> tuple[str, dict[str, Any]]:
    writer = Writer(
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
    if guarded:
        body = ["    try:", *(f"    {line}" for line in body)]
        body += ["    except Exception:", "        return isolate(facts, answers)"]
    return "\n".join(["def run(facts, answers):", *body]), writer.globals


def _isolation(
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
                source, names = _write_run(fact_names, plan, [(index, expression)], guarded=False)
                alone.append((index, _define("run", source, names)))
        fired: list[int] = []
        failures: list[tuple[int, str]] = []
        for index, run in alone:
            try:
                fired += run(facts, answers)[0]
            except Exception as error:  # noqa: BLE001  A decision never fails because of one rule.
                failures.append((index, f"{type(error).__name__}: {error}"[:_FAILURE_CHARS_MAX]))
        return fired, failures

    return isolate
