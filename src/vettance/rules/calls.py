"""How calls are read: the words of the language, and the aggregates."""

import ast
from typing import Any, Final, NamedTuple

import msgspec

from vettance.rules.expression import (
    LABELS,
    AggregateExpression,
    Apply,
    Conditional,
    Default,
    Expression,
    Items,
    Literal,
    PresenceTest,
    cast,
    children,
    literal,
)
from vettance.rules.functions import NUMBERS_MAX, WORDS
from vettance.rules.novelty import EVERYTHING, NOVELTY, novelty
from vettance.rules.parse import A_TYPE, Reading, alike, clip
from vettance.rules.schema import Type
from vettance.rules.value_ranges import question_word
from vettance.rules.windows import AGGREGATE_COST, KEY_PARTS_MAX, read_window, window_text
from vettance.rules.word import RuleWord
from vettance.velocity.aggregates import AGGREGATES, AggregateKind

_NOVELTY_COST: Final = 25  # About half a microsecond, in units of 20 ns.

_SYNONYMS: Final = {
    "len": "length(x)",
    "lowercase": "lower(x)",
    "uppercase": "upper(x)",
    "is_missing": "missing(x)",
    "is_null": "missing(x)",
    "exists": "present(x)",
    "coalesce": "default(x, fallback)",
    "mean": "avg(x, by=…, within=…)",
    "average": "avg(x, by=…, within=…)",
    "count_distinct": "distinct(x, by=…, within=…)",
    "unique": "distinct(x, by=…, within=…)",
    "startswith": "starts_with(text, start)",
    "endswith": "ends_with(text, end)",
    "regex": 'matches(text, r"…")',
    "match": 'matches(text, r"…")',
    "re": 'matches(text, r"…")',
    "int": "number(text)",
    "float": "number(text)",
    "haversine": "distance_km(latitude_1, longitude_1, latitude_2, longitude_2)",
}


def call(reading: Reading, node: ast.Call) -> Expression:
    """Read a call."""
    if not isinstance(node.func, ast.Name):
        hint = 'words stand alone: lower(x), contains(x, "…")'
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method in WORDS or method in _SYNONYMS:
            hint = f"write {_SYNONYMS.get(method) or method + '(…)'}"
        reading.refuse(node.func, "only words can be called", hint)
    name = node.func.id
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            reading.refuse(argument, "a star is not part of the rule language")
    if name in AGGREGATES:
        return _aggregate(reading, node, AGGREGATES[name])
    if name == NOVELTY.name:
        return _novelty(reading, node)
    word = WORDS.get(name)
    if word is None:
        known = [*WORDS, *AGGREGATES, NOVELTY.name]
        better = _SYNONYMS.get(name)
        reading.refuse(
            node.func, f"there is no word {clip(name)}", f"write {better}" if better else alike(name, known)
        )
    if node.keywords:
        reading.refuse(node.keywords[0].value, f"{name} takes its arguments without names", _shape(word))
    _require_count(reading, node, word)
    if name in ("missing", "present"):
        return _presence(reading, node, present=name == "present")
    if name == "default":
        return _default(reading, node)
    return _word(reading, node, word)


def _require_count(reading: Reading, node: ast.Call, word: RuleWord) -> None:
    most = NUMBERS_MAX if word.many else len(word.parameters)
    least = 2 if word.many else most - word.optional
    if not least <= len(node.args) <= most:
        number = str(most) if least == most else f"{least} to {most}"
        reading.refuse(
            node, f"{word.name} takes {number} {'value' if number == '1' else 'values'}", _shape(word)
        )


def _presence(reading: Reading, node: ast.Call, *, present: bool) -> Expression:
    inner = reading.expression(node.args[0])
    if inner.sure:
        reading.refuse(node.args[0], "this is always known")
    text = f"{'present' if present else 'missing'}({inner.text})"
    return PresenceTest(
        type=Type.BOOL, text=text, sure=True, present=present, inner=inner, cost=1 + inner.cost
    )


def _default(reading: Reading, node: ast.Call) -> Expression:
    inner, fallback = (reading.expression(argument) for argument in node.args)
    if inner.sure:
        reading.refuse(node.args[0], "this is always known")
    inner, fallback = cast(inner, fallback.type), cast(fallback, inner.type)
    if inner.type is not fallback.type:
        reading.refuse(
            node.args[1],
            f"the fallback of {A_TYPE[inner.type]} must be one too, this is {A_TYPE[fallback.type]}",
        )
    return Default(
        type=inner.type,
        text=f"default({inner.text}, {fallback.text})",
        sure=fallback.sure,
        inner=inner,
        fallback=fallback,
        cost=1 + inner.cost + fallback.cost,
    )


def _word(reading: Reading, node: ast.Call, word: RuleWord) -> Expression:
    values: list[Expression] = []
    literals: list[Any] = []
    for at, argument in enumerate(node.args):
        parameter = word.parameters[min(at, len(word.parameters) - 1)]
        if len(parameter.types) == 1:
            value = reading.want(argument, parameter.types[0], f"{parameter.name} of {word.name}")
        else:
            value = reading.expression(argument)
            if value.type not in (*parameter.types, Type.ANY):
                wanted = " or ".join(A_TYPE[each] for each in parameter.types)
                reading.refuse(
                    argument,
                    f"{parameter.name} of {word.name} must be {wanted}, this is {A_TYPE[value.type]}",
                )
        if not parameter.literal:
            values.append(value)
        elif isinstance(value, Literal):
            literals.append(value.value)
        elif isinstance(value, Items):
            literals.append(value.values)
        else:
            reading.refuse(argument, f"{parameter.name} of {word.name} must be written out", _shape(word))
    try:
        found = apply(word, tuple(values), tuple(literals))
    except ValueError as error:
        reading.refuse(node, str(error))
    question_word(reading, node.args, found)
    return found


def apply(word: RuleWord, values: tuple[Expression, ...], literals: tuple[Any, ...]) -> Expression:
    """Make the use of a word. Raises `ValueError` when the literal arguments make no sense."""
    prepared = word.function if word.prepare is None else word.prepare(*literals)
    shown = [value.text for value in values]
    if word.prepare is not None:
        shown += [_literal_text(value) for value in literals]
    guarded = any(value.type is Type.ANY for value in values)
    total = word.total and not guarded
    return Apply(
        type=word.result,
        text=f"{word.name}({', '.join(shown)})",
        sure=total and all(value.sure for value in values),
        word=word.name,
        arguments=values,
        prepared=prepared,
        total=total,
        cost=word.cost + sum(value.cost for value in values),
    )


class _Question(NamedTuple):
    """What is asked of the past: which events of which key, over which window, and of what value."""

    condition: Expression | None
    value: Expression | None
    keys: tuple[Expression, ...]
    window_ms: int


def _aggregate(reading: Reading, node: ast.Call, word: AggregateKind) -> Expression:
    return _kept(reading, _remembered(word, _question(reading, node, word)))


def _question(reading: Reading, node: ast.Call, word: AggregateKind) -> _Question:
    if reading.inside:
        reading.refuse(node, f"{word.name} cannot stand inside {reading.inside}")
    if word.fraud is not None and not reading.schema.labelled:
        reading.refuse(node, f"{word.name} counts labels, and these events have none")
    reading.inside = word.name
    named = _keywords(reading, node, word)
    first = _first(reading, node, word)
    keys = _keys(reading, named["by"]) if "by" in named else None
    if keys is None:
        reading.refuse(node, f"{word.name} needs by=", f'write {word.name}(…, by=ip, within="24h")')
    window_ms = _window(reading, node, named.get("within"), word)
    condition = first if word.takes == "condition" else None
    if "where" in named:
        condition = reading.want(named["where"], Type.BOOL, "where=")
    value = None if word.takes == "condition" else first
    reading.inside = None
    return _Question(condition, value, keys, window_ms)


def _kept(reading: Reading, found: AggregateExpression) -> AggregateExpression:
    return reading.aggregates.setdefault(found.text, found)


def _novelty(reading: Reading, node: ast.Call) -> Expression:
    """Read `novelty` as a word over aggregates: the past of the key, and how common the value is."""
    asked = _question(reading, node, NOVELTY)
    assert asked.value is not None
    counted = asked._replace(value=None)
    answers: tuple[Expression, ...] = tuple(
        _kept(reading, _remembered(AGGREGATES[kind], question))
        for kind, question in (
            ("seen", asked),
            ("distinct", asked),
            ("count", counted),
            ("count", counted._replace(keys=(_where_asked(asked.value, asked.condition),))),
            ("count", counted._replace(keys=(_where_asked(EVERYTHING, asked.condition),))),
        )
    )
    text = NOVELTY.name + answers[0].text.removeprefix("seen")
    written = next((one.value for one in node.keywords if one.arg == "expected"), None)
    if written is not None:
        expected = reading.want(written, Type.NUMBER, "expected=")
        answers, text = (*answers, expected), f"{text[:-1]}, expected={expected.text})"
    return Apply(
        type=Type.NUMBER,
        text=text,
        word=NOVELTY.name,
        arguments=answers,
        prepared=novelty,
        total=True,
        cost=_NOVELTY_COST + sum(answer.cost for answer in answers[5:]),
    )


def _where_asked(key: Expression, condition: Expression | None) -> Expression:
    """Return a key that events beyond a condition do not have, so that they cost nothing."""
    if condition is None:
        return key
    nothing = literal("")
    return Conditional(
        type=Type.TEXT if key.type is Type.TEXT else Type.ANY,
        text=f"{key.text} if {condition.text} else {nothing.text}",
        test=condition,
        then=key,
        other=nothing,
        cost=1 + condition.cost + key.cost,
    )


def _keywords(reading: Reading, node: ast.Call, word: AggregateKind) -> dict[str, ast.expr]:
    allowed = ("by", "within") if word.takes in ("condition", "labels") else ("by", "within", "where")
    if word is NOVELTY:
        allowed = (*allowed, "expected")
    named: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        if keyword.arg == "where" and word.takes == "condition":
            reading.refuse(keyword.value, f"the condition of {word.name} stands first, without where=")
        if keyword.arg is None or keyword.arg not in allowed:
            reading.refuse(
                keyword.value,
                f"{word.name} takes only " + ", ".join(f"{each}=" for each in allowed),
            )
        if keyword.arg in named:
            reading.refuse(keyword.value, f"{keyword.arg}= stands twice")
        named[keyword.arg] = keyword.value
    return named


def _first(reading: Reading, node: ast.Call, word: AggregateKind) -> Expression | None:
    if len(node.args) > 1:
        reading.refuse(node.args[1], f"{word.name} takes one {word.takes} before by=")
    if word.takes == "condition":
        return reading.want(node.args[0], Type.BOOL, f"the condition of {word.name}") if node.args else None
    if word.takes == "labels":
        if node.args:
            reading.refuse(node.args[0], f"{word.name} takes only by= and within=")
        return LABELS[word.fraud is True]
    if not node.args:
        reading.refuse(node, f"{word.name} needs a value", f"write {word.name}(metadata.amount, by=…, …)")
    if word.takes == "number":
        value = reading.want(node.args[0], Type.NUMBER, f"the value of {word.name}")
    else:
        value = reading.expression(node.args[0])
        if value.type is Type.LIST:
            reading.refuse(node.args[0], f"the value of {word.name} must be a text or a number")
    if isinstance(value, Literal):
        reading.refuse(node.args[0], f"the value of {word.name} is the same for every event")
    return value


def _keys(reading: Reading, node: ast.expr) -> tuple[Expression, ...]:
    nodes = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    if not 1 <= len(nodes) <= KEY_PARTS_MAX:
        reading.refuse(node, f"by= takes 1 to {KEY_PARTS_MAX} parts")
    keys = []
    for part in nodes:
        key = reading.expression(part)
        if key.type is Type.LIST or isinstance(key, Literal):
            reading.refuse(part, "by= takes names from the event", "write by=ip or by=(ip, country)")
        keys.append(key)
    return tuple(keys)


def _window(reading: Reading, node: ast.Call, written: ast.expr | None, word: AggregateKind) -> int:
    if written is None:
        if word.window_ms is None:
            reading.refuse(node, f"{word.name} needs within=", 'write within="10m", "24h" or "30d"')
        return word.window_ms
    text = written.value if isinstance(written, ast.Constant) else None
    window_ms = read_window(text) if isinstance(text, str) else None
    if window_ms is None:
        reading.refuse(written, "this is no window", 'from "1s" to "90d", such as "10m", "24h" or "30d"')
    return window_ms


def _remembered(word: AggregateKind, asked: _Question) -> AggregateExpression:
    keys, value, condition = asked.keys, asked.value, asked.condition
    by = keys[0].text if len(keys) == 1 else "(" + ", ".join(key.text for key in keys) + ")"
    parts = [f"by={by}", f'within="{window_text(asked.window_ms)}"']
    if value is not None and word.fraud is None:
        parts.insert(0, value.text)
        if condition is not None:
            parts.append(f"where={condition.text}")
    elif condition is not None:
        parts.insert(0, condition.text)
    found = AggregateExpression(
        type=Type(word.result),
        text=f"{word.name}({', '.join(parts)})",
        kind=word.name,
        condition=condition,
        value=value,
        keys=keys,
        window_ms=asked.window_ms,
    )
    inner = sum(part.cost for part in children(found))
    return msgspec.structs.replace(found, upkeep=AGGREGATE_COST + inner)


def _literal_text(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(literal(item).text for item in value) + "]"
    return literal(value).text


def _shape(word: RuleWord) -> str:
    names = [parameter.name for parameter in word.parameters]
    return f"write {word.name}({', '.join(names)}{', …' if word.many else ''})"
