"""One reading of a rule text: its syntax tree, held to its bounds, and faults that point into the text."""

import ast
import contextlib
import difflib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from vettance.rules.domain import Doubt
from vettance.rules.expression import AggregateExpression, Expression, Literal, cast
from vettance.rules.fault import RuleFault
from vettance.rules.scanner import NESTING_MAX, Token, fault_at, scan
from vettance.rules.schema import Schema, Type

NODES_MAX: Final = 500  # A rule beyond this is no longer read by anyone; split it.
_NAMED: Final = ("by", "within", "where")
ITEMS_MAX: Final = 500  # Longer lists belong into the block and allow lists.

A_TYPE: Final = {
    Type.NUMBER: "a number",
    Type.TEXT: "a text",
    Type.BOOL: "true/false",
    Type.LIST: "a list",
    Type.ANY: "a value of any type",
}


Reader = Callable[["Reading", Any], Expression]

# CPython 3.11 counts the depth of a syntax tree once for all threads (python/cpython#106905): trees that are
# made at the same time can spoil each other's count.
_PARSING: Final = threading.Lock()
_TRIES_MAX: Final = 5


def parse_expression(text: str) -> ast.expr:
    """Return the syntax tree of an expression, whatever threads of others parse meanwhile."""
    for _ in range(_TRIES_MAX - 1):
        with _PARSING, contextlib.suppress(SystemError):
            return ast.parse(text, mode="eval").body
    with _PARSING:
        return ast.parse(text, mode="eval").body


class Reading:
    """Walks the syntax tree of one text. `readers` has one reader for each kind of node that exists."""

    def __init__(self, text: str, schema: Schema, readers: Mapping[type[ast.AST], Reader]) -> None:
        self.text = text
        self.schema = schema
        self.inside: str | None = None  # the aggregate whose brackets are being read
        self.aggregates: dict[str, AggregateExpression] = {}
        self.names: dict[str, None] = {}
        self.faults: list[RuleFault] = []  # those of parts that were left out
        self.doubts: list[RuleFault] = []  # comparisons that no event fulfils, or every event
        self._readers = readers
        self._lines: list[bytes] = []

    def parse(self) -> ast.expr:
        """Return the syntax tree, small and shallow enough to walk by recursion. Raises `RuleFault`."""
        tokens = scan(self.text)
        if not tokens:
            raise RuleFault("there is no rule here", self.text, 1, 1, hint="write a condition")
        # In brackets, a rule may run over several lines. The scanner has made sure that they stay balanced.
        try:
            tree = parse_expression(f"({self.text}\n)")
        except SyntaxError as error:
            raise self._syntax_fault(error, tokens) from None
        except (RecursionError, MemoryError, ValueError, OverflowError):
            raise RuleFault("this rule is nested too deeply", self.text, 1, 1) from None
        self._lines = [line.encode() for line in self.text.split("\n")]
        self._measure(tree)
        return tree

    def _syntax_fault(self, error: SyntaxError, tokens: list[Token]) -> RuleFault:
        for before, token in itertools.pairwise(tokens):
            if token.text == "=" and before.text not in _NAMED:
                after = self.text[token.start + 1 : token.start + 2]
                if after and after in "<>":
                    message = f"={after} is not part of the rule language"
                    return fault_at(self.text, token.start, 2, message, f"write {after}=")
                hint = "to compare two values write =="
                return fault_at(self.text, token.start, 1, "a rule cannot assign", hint)
        if (between := self._missing_between(tokens)) is not None:
            return between
        lines = self.text.split("\n")
        line, column = error.lineno or 1, error.offset or 1
        if line == 1:
            column -= 1
        if line > len(lines):
            line, column = len(lines), len(lines[-1]) + 1
        if tokens[-1].text in ("and", "or", "not", "in", *"+-*/%=<>", "==", "!=", "<=", ">=", "if", "else"):
            return fault_at(
                self.text, tokens[-1].start, len(tokens[-1].text), "something is missing after this"
            )
        column = max(1, min(column, len(lines[line - 1]) + 1))
        late = "positional argument follows" in error.msg
        better = "what has no name stands before by=, within= and where=" if late else None
        return RuleFault("this cannot be read here", self.text, line, column, hint=better)

    def _missing_between(self, tokens: list[Token]) -> RuleFault | None:
        """Find two values with nothing between them: a word of another language, or a comma left out."""
        for at, (before, token) in enumerate(itertools.pairwise(tokens), 1):
            if not (_ends_value(before) and _begins_value(token)):
                continue
            for word in (before, token):
                better = _WORDS_ELSEWHERE.get(word.text.lower()) if word.kind == "word" else None
                if better is not None:
                    message = f"{word.text} is not part of the rule language"
                    return fault_at(self.text, word.start, len(word.text), message, f"write {better}")
            named = token.text in _NAMED and tokens[at + 1 : at + 2] and tokens[at + 1].text == "="
            hint = "is a comma missing?" if named else None
            message = "something is missing before this"
            return fault_at(self.text, token.start, len(token.text), message, hint)
        return None

    def _measure(self, tree: ast.expr) -> None:
        nodes = 0
        waiting = [(tree, 1)]
        while waiting:
            node, depth = waiting.pop()
            nodes += 1
            if depth > NESTING_MAX:
                self.refuse(node, f"this is nested deeper than {NESTING_MAX} levels", "split the rule")
            if nodes > NODES_MAX:
                self.refuse(tree, f"this rule has more than {NODES_MAX} parts", "split it into several")
            waiting.extend((child, depth + 1) for child in _parts(node))

    def span(self, node: ast.expr) -> tuple[int, int, int]:
        """Return (line, column, width) of a node in characters; Python counts bytes, and our bracket."""

        def column(line: int, byte: int) -> int:
            byte -= line == 1
            return len(self._lines[line - 1][:byte].decode("utf-8", "replace"))

        line = min(node.lineno, len(self._lines))
        start = column(line, node.col_offset)
        if node.end_lineno == line and node.end_col_offset is not None:
            return line, start + 1, column(line, node.end_col_offset) - start
        return line, start + 1, len(self._lines[line - 1].decode()) - start

    def fault(self, node: ast.expr, message: str, hint: str | None = None) -> RuleFault:
        """Make a fault that points at a node."""
        line, column, width = self.span(node)
        return RuleFault(message, self.text, line, column, width, hint)

    def refuse(self, node: ast.expr, message: str, hint: str | None = None) -> NoReturn:
        """Raise a fault that points at a node."""
        raise self.fault(node, message, hint)

    def doubt(self, node: ast.expr, doubt: Doubt) -> None:
        """Note a comparison that makes no sense; the rule can be run all the same."""
        fault = self.fault(node, doubt.message, doubt.hint)
        fault.warning = not doubt.certain
        self.doubts.append(fault)

    def want(self, node: ast.expr, wanted: Type, what: str) -> Expression:
        """Check a node that must give a type; ANY is guarded."""
        found = cast(self.expression(node), wanted)
        if found.type is not wanted:
            hint = None
            if wanted is Type.BOOL:
                hint = 'compare it with something: … > 5, … == "…", or present(…)'
            elif wanted is Type.NUMBER and isinstance(found, Literal) and found.type is Type.TEXT:
                hint = "numbers stand without quotes"
            elif wanted is Type.NUMBER and found.type is Type.TEXT:
                hint = (
                    f"number({found.text}) reads the number a text writes" if len(found.text) < 60 else None
                )
            self.refuse(node, f"{what} must be {A_TYPE[wanted]}, this is {A_TYPE[found.type]}", hint)
        return found

    def expression(self, node: ast.expr) -> Expression:
        """Read a node of any kind."""
        reader = self._readers.get(type(node))
        if reader is None:
            self.refuse(
                node,
                f"{_CALLED.get(type(node), 'this')} is not part of the rule language",
                _HINTS.get(type(node)),
            )
        return reader(self, node)


#: What people write who come from SQL or another rule engine.
_WORDS_ELSEWHERE: Final = {
    "and": "and",
    "or": "or",
    "not": "not",
    "in": "in",
    "like": "contains(text, part)",
    "ilike": "contains(lower(text), part)",
    "contains": "contains(text, part)",
    "matches": 'matches(text, r"…")',
    "startswith": "starts_with(text, start)",
    "starts_with": "starts_with(text, start)",
    "between": "1 <= x <= 5",
    "equals": "==",
    "eq": "==",
}
_KEYWORDS: Final = ("and", "or", "not", "in", "if", "else")


def _ends_value(token: Token) -> bool:
    return token.text in (")", "]") or (token.kind != "operator" and token.text not in _KEYWORDS)


def _begins_value(token: Token) -> bool:
    return token.kind != "operator" and token.text not in _KEYWORDS


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what counts as a part: a dotted name is one, and so is a list, however many literals it holds."""
    while isinstance(node, ast.Attribute):
        node = node.value
        if not isinstance(node, ast.Attribute | ast.Name):
            yield node
            return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword):
            yield child.value
        elif isinstance(child, ast.expr) and not (
            isinstance(node, ast.List) and isinstance(child, ast.Constant)
        ):
            yield child


_CALLED: Final[dict[type[ast.AST], str]] = {
    ast.Subscript: "an index in square brackets",
    ast.Tuple: "a list without brackets",
    ast.Starred: "a star",
    ast.Dict: "a table",
    ast.Set: "a set",
}
_HINTS: Final[dict[type[ast.AST], str]] = {
    ast.Subscript: "write a dotted name: metadata.amount",
    ast.Tuple: "write [1, 2, 3]",
}


def clip(name: str) -> str:
    """Shorten what a message quotes."""
    return name if len(name) <= 60 else name[:60] + "…"


def alike(name: str, known: list[str]) -> str | None:
    """Return a hint that names the nearest of the known words, when one is near."""
    for word in known:
        if word.endswith("." + name):
            return f"did you mean {word}?"
    group, dot, last = name[:64].rpartition(".")
    below = [word.removeprefix(group + ".") for word in known if dot and word.startswith(group + ".")]
    if below:
        # The group is right, and alike in every name: only the parts below it differ.
        near = [word for word in below if word.startswith(last) or word.endswith("_" + last)]
        near = near or difflib.get_close_matches(last, below, 1, 0.6)
        if not near:
            return f"below {group} there are {', '.join(below[:8])}{', …' if len(below) > 8 else ''}"
        return f"did you mean {group}.{near[0]}?"
    close = difflib.get_close_matches(name[:64], known, 1, 0.6)
    return f"did you mean {close[0]}?" if close else None
