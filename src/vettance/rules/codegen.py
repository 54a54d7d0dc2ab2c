"""Writes typed expressions as Python source in which three-valued logic has become plain Python.

An expression that may be unknown is written in one of three ways: as a value (None is unknown), as
"definitely true", or as "definitely false". The boolean forms need no third value: `a and b` is definitely
true when both are, definitely false when either is; `not a` swaps the forms; a comparison is definitely false
when both sides are known and it does not hold. Ordinary short-circuits then do the right thing.

The only text that gets into the source is made here: names of locals, and literals written by `repr`.
"""

import re
from collections import Counter
from typing import Any, Final

from vettance.rules.expression import (
    NUMBER_MAX,
    AggregateExpression,
    Apply,
    Arithmetic,
    Cast,
    Compare,
    Conditional,
    Default,
    Expression,
    Fact,
    Items,
    Literal,
    Logic,
    Member,
    Not,
    PresenceTest,
)
from vettance.rules.schema import Type

#: A word that costs this much (in units of about 20 ns) and is used several times waits until it is needed.
LAZY_COST: Final = 20
_DEEP: Final = (
    12  # Brackets in one piece of source before it moves to a line of its own; Python stops at 200.
)
_NEGATED: Final = {"==": "!=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_CLASSES: Final = {
    Type.NUMBER: ("int", "float"),
    Type.TEXT: ("str",),
    Type.BOOL: ("bool",),
    Type.LIST: ("list",),
}
#: What the written source may name besides its own locals and globals.
BUILTINS: Final = {"__builtins__": {}, "int": int, "float": float, "str": str, "bool": bool, "list": list}

_VALUED: Final = (Fact, AggregateExpression, Cast, Apply, Default, Conditional)
_WAITING: Final = object()
#: How locals are called that hold what is computed on the way.
_TEMPORARY: Final = re.compile(r"v[0-9]+")

Key = tuple[str, Type, str]


def same(left: Any, right: Any) -> bool | None:
    """Compare two values of unknown type; unknown unless both are numbers, texts or true/false."""
    kind = _kind(left)
    return None if kind is None or kind != _kind(right) else bool(left == right)


def before(left: Any, right: Any, *, or_same: bool) -> bool | None:
    """Order two values of unknown type; unknown unless both are numbers or both texts."""
    kind = _kind(left)
    if kind is None or kind == "bool" or kind != _kind(right):
        return None
    return bool(left <= right if or_same else left < right)


def _kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else None


class ExpressionWriter:
    """Writes the expressions of one function. What several expressions share is computed once.

    `facts` and `answers` name the locals that hold the fields and the aggregates. Use it in two passes:
    `count` every expression first, then write. Lines that come before everything else collect in `lines`.
    What it computes on the way it keeps in `v1`, `v2` …: a local of such a name would be written over, so
    that is a `ValueError`.
    """

    def __init__(self, facts: dict[str, str], answers: dict[str, str]) -> None:
        given = (*facts.values(), *answers.values())
        if taken := [name for name in given if _TEMPORARY.fullmatch(name)]:
            raise ValueError(f"these names are kept for what is computed on the way: {taken}")
        self.lines: list[str] = []
        self.lazy: list[str] = []
        self.globals: dict[str, Any] = {}
        self._facts = facts
        self._answers = answers
        self._uses: Counter[Key] = Counter()
        self._counting = False
        self._ready: dict[Key, str] = {}
        self._functions: dict[int, str] = {}
        self._sets: dict[str, str] = {}
        self._temporaries = 0

    # --- The two passes ---

    def count(self, expression: Expression) -> None:
        """Note what an expression that will be written with `true` needs."""
        self._counting = True
        self.true(expression)
        self._counting = False

    def count_value(self, expression: Expression) -> None:
        """Note what an expression that will be written with `value` needs."""
        self._counting = True
        self.value(expression)
        self._counting = False

    def prelude(self) -> list[str]:
        """Return the indented lines that must come before everything that was written."""
        if self.lazy:
            self.globals["waiting"] = _WAITING
            return [f"    {' = '.join(self.lazy)} = waiting", *(f"    {line}" for line in self.lines)]
        return [f"    {line}" for line in self.lines]

    def true(self, expression: Expression) -> str:
        """Write a condition that holds when a boolean expression is definitely true."""
        return self._shared(expression, "true")

    def false(self, expression: Expression) -> str:
        """Write a condition that holds when a boolean expression is definitely false."""
        return self._shared(expression, "false")

    def value(self, expression: Expression) -> str:
        """Write the value of an expression; None where it is unknown."""
        return self._shared(expression, "value")

    def _shared(self, expression: Expression, form: str) -> str:
        if isinstance(expression, Literal):
            return self._write(expression, form)
        if isinstance(expression, Fact | AggregateExpression) and form == "value":
            names = self._facts if isinstance(expression, Fact) else self._answers
            return names[expression.text]
        if isinstance(expression, _VALUED) and form != "value":
            return self._of_value(expression, wanted=form == "true")
        key = (expression.text, expression.type, form)
        if self._counting:
            self._uses[key] += 1
            return self._write(expression, form) if self._uses[key] == 1 else "None"
        if key not in self._ready:
            source = self._fresh(key, expression, form)
            if self._uses[key] > 1 or source.isidentifier():
                self._ready[key] = source
            return source
        return self._ready[key]

    def _fresh(self, key: Key, expression: Expression, form: str) -> str:
        """Write what was not written before: on a line of its own when it is shared or deep."""
        if self._uses[key] > 1 and isinstance(expression, Apply) and expression.cost >= LAZY_COST:
            return self._wait(expression)
        source = self._write(expression, form)
        if (self._uses[key] > 1 and not source.isidentifier()) or _depth(source) > _DEEP:
            local = self._local()
            self.lines.append(f"{local} = {source}")
            return local
        return source

    def _wait(self, expression: Apply) -> str:
        """Write a costly word so that its first use computes it; with locals as arguments it stays short."""
        arguments = []
        for argument in expression.arguments:
            source = self.value(argument)
            if not source.isidentifier() and not isinstance(argument, Literal):
                local = self._local()
                self.lines.append(f"{local} = {source}")
                source = local
            arguments.append(source)
        local = self._local()
        self.lazy.append(local)
        source = self._apply_to(expression, arguments)
        return f"({local} if {local} is not waiting else ({local} := {source}))"

    def _local(self) -> str:
        self._temporaries += 1
        return f"v{self._temporaries}"

    def _write(self, expression: Expression, form: str) -> str:
        if form == "value":
            return self._value(expression)
        if form == "true":
            return self._truth(expression)
        return self._falsehood(expression)

    # --- Values ---

    def _known(self, expression: Expression) -> tuple[list[str], str]:
        """Return the conditions under which a value is known, and how to name it after they were tested."""
        source = self.value(expression)
        if expression.sure:
            return [], source
        if source.isidentifier():
            return [f"{source} is not None"], source
        local = self._local()
        return [f"({local} := {source}) is not None"], local

    def _value(self, expression: Expression) -> str:
        match expression:
            case Literal():
                source = repr(expression.value)
            case Items():
                source = repr(list(expression.values))
            case Cast():
                source = self._cast(expression)
            case Arithmetic():
                source = self._arithmetic(expression)
            case Apply():
                source = self._apply(expression)
            case Default():
                source = self._default(expression)
            case Conditional():
                source = self._choice(expression)
            case _:
                source = self.true(expression)
                if not expression.sure:
                    source = f"(True if {source} else False if {self.false(expression)} else None)"
        return source

    def _choice(self, expression: Conditional) -> str:
        test, then, other = (
            self.true(expression.test),
            self.value(expression.then),
            self.value(expression.other),
        )
        if expression.test.sure:
            return f"({then} if {test} else {other})"
        return f"({then} if {test} else {other} if {self.false(expression.test)} else None)"

    def _cast(self, expression: Cast) -> str:
        source = self.value(expression.inner)
        local = source if source.isidentifier() else self._local()
        named = source if source.isidentifier() else f"({local} := {source})"
        first, *others = _CLASSES[expression.type]
        tests = [f"{named}.__class__ is {first}", *(f"{local}.__class__ is {other}" for other in others)]
        return f"({local} if {' or '.join(tests)} else None)"

    def _arithmetic(self, expression: Arithmetic) -> str:
        conditions, left = self._known(expression.left)
        more, right = self._known(expression.right)
        conditions += more
        sign = expression.sign
        if sign in "/%" and not isinstance(expression.right, Literal):
            conditions.append(f"{right} != 0")
        local = self._local()
        # The bound also refuses infinity and what is not a number, which fail every comparison.
        conditions.append(f"{-NUMBER_MAX!r} <= ({local} := {left} {sign} {right}) <= {NUMBER_MAX!r}")
        return f"({local} if {' and '.join(conditions)} else None)"

    def _apply(self, expression: Apply) -> str:
        conditions, call = self._call(expression)
        return f"({call} if {' and '.join(conditions)} else None)" if conditions else call

    def _call(self, expression: Apply) -> tuple[list[str], str]:
        conditions: list[str] = []
        arguments: list[str] = []
        for argument in expression.arguments:
            more, source = self._known(argument)
            conditions += more
            arguments.append(source)
        return conditions, f"{self._function(expression)}({', '.join(arguments)})"

    def _apply_to(self, expression: Apply, arguments: list[str]) -> str:
        conditions = [
            f"{source} is not None"
            for argument, source in zip(expression.arguments, arguments, strict=True)
            if not argument.sure
        ]
        call = f"{self._function(expression)}({', '.join(arguments)})"
        return f"({call} if {' and '.join(conditions)} else None)" if conditions else call

    def _function(self, expression: Apply) -> str:
        return self._global(expression.prepared, expression.word)

    def _global(self, function: Any, name: str) -> str:
        found = self._functions.get(id(function))
        if found is None:
            found = self._functions[id(function)] = f"{name}_{len(self._functions)}"
            self.globals[found] = function
        return found

    def _default(self, expression: Default) -> str:
        source, fallback = self.value(expression.inner), self.value(expression.fallback)
        if not source.isidentifier():
            local = self._local()
            return f"({local} if ({local} := {source}) is not None else {fallback})"
        return f"({source} if {source} is not None else {fallback})"

    # --- Conditions ---

    def _truth(self, expression: Expression) -> str:
        match expression:
            case Literal():
                return repr(expression.value)
            case Not():
                return self.false(expression.inner)
            case Logic():
                parts = [self.true(part) for part in expression.parts]
                return _all(parts) if expression.both else _any(parts)
            case Compare():
                return self._compare(expression, holds=True)
            case Member():
                return self._member(expression, holds=True)
            case PresenceTest():
                return self._presence(expression, present=expression.present)
        raise AssertionError("every other boolean expression is written as a value")

    def _falsehood(self, expression: Expression) -> str:
        match expression:
            case Literal():
                return repr(not expression.value)
            case Not():
                return self.true(expression.inner)
            case Logic():
                parts = [self.false(part) for part in expression.parts]
                return _any(parts) if expression.both else _all(parts)
            case Compare():
                return self._compare(expression, holds=False)
            case Member():
                return self._member(expression, holds=False)
            case PresenceTest():
                return self._presence(expression, present=not expression.present)
        raise AssertionError("every other boolean expression is written as a value")

    def _of_value(self, expression: Expression, *, wanted: bool) -> str:
        """Write the test of something that has a value: a field, an aggregate, what a word gives."""
        key = (expression.text, expression.type, "value")
        if isinstance(expression, Apply) and not self._counting and self._uses[key] == 1:
            conditions, call = self._call(expression)
            return _all([*conditions, f"{call} is {wanted}"])
        return f"{self.value(expression)} is {wanted}"

    def _presence(self, expression: PresenceTest, *, present: bool) -> str:
        return f"{self.value(expression.inner)} is {'not None' if present else 'None'}"

    def _compare(self, expression: Compare, *, holds: bool) -> str:
        if expression.left.type is Type.ANY:
            return self._compare_any(expression, holds=holds)
        sign = expression.sign if holds else _NEGATED[expression.sign]
        if holds and sign == "==" and (expression.left.sure or expression.right.sure):
            # None equals no value, so the comparison itself answers for an unknown side.
            return f"{self.value(expression.left)} == {self.value(expression.right)}"
        conditions, left = self._known(expression.left)
        if holds and sign == "==":
            return _all([*conditions, f"{left} == {self.value(expression.right)}"])
        more, right = self._known(expression.right)
        return _all([*conditions, *more, f"{left} {sign} {right}"])

    def _compare_any(self, expression: Compare, *, holds: bool) -> str:
        left, right = self.value(expression.left), self.value(expression.right)
        if expression.sign in (">", ">="):
            left, right = right, left
        if expression.sign == "==":
            call = f"{self._global(same, 'same')}({left}, {right})"
        else:
            or_same = expression.sign in ("<=", ">=")
            call = f"{self._global(before, 'before')}({left}, {right}, or_same={or_same})"
        return f"{call} is {holds}"

    def _member(self, expression: Member, *, holds: bool) -> str:
        items = self._set(expression.items)
        if holds:
            return f"{self.value(expression.item)} in {items}"
        conditions, item = self._known(expression.item)
        return _all([*conditions, f"{item} not in {items}"])

    def _set(self, items: Items) -> str:
        name = self._sets.get(items.text)
        if name is None:
            name = self._sets[items.text] = f"items_{len(self._sets)}"
            self.globals[name] = frozenset(items.values)
        return name


def _all(parts: list[str]) -> str:
    return f"({' and '.join(parts)})" if len(parts) > 1 else parts[0]


def _any(parts: list[str]) -> str:
    return f"({' or '.join(parts)})" if len(parts) > 1 else parts[0]


def _depth(source: str) -> int:
    """Return an upper bound of how deep brackets nest in a piece of source."""
    depth = deepest = 0
    for char in source:
        if char == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif char == ")":
            depth -= 1
    return deepest
