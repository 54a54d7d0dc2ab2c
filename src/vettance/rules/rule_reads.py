"""What a rule's condition is made of, the names of the values that it reads, and what it gives for others."""

import functools
import threading
from typing import Final

from vettance.rules.compiled_value import CompiledValue, compile_value
from vettance.rules.expression import Expression, values_in
from vettance.rules.fault import RuleFault
from vettance.rules.language import check
from vettance.rules.schema import Schema, Type

_TEXTS_MAX: Final = 4_096


class ConditionReader:
    """Reads conditions, and keeps what it read last: most tenants share a few rule sets.

    Threads may share one.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.read = functools.lru_cache(maxsize=_TEXTS_MAX)(self._read)
        self.names = functools.lru_cache(maxsize=_TEXTS_MAX)(self._names)
        self._values: dict[tuple[str, Type], CompiledValue] = {}
        self._turn = threading.Lock()

    def _read(self, text: str) -> Expression | None:
        """Return the checked expression of a condition; None for one that no longer reads."""
        try:
            return check(text, self._schema).expression
        except RuleFault:
            return None

    def _names(self, text: str) -> tuple[str, ...]:
        """Return the names that a condition reads, in order; none for one that no longer reads."""
        expression = self.read(text)
        if expression is None:
            return ()
        return tuple(dict.fromkeys(value.text for value in values_in(expression)))

    def value(self, expression: Expression) -> CompiledValue:
        """Return an expression ready to compute by itself."""
        # Its text is its identity, and is hashed once; the expression would be hashed node by node each time.
        key = expression.text, expression.type
        with self._turn:
            found = self._values.pop(key, None) or compile_value(expression)
            self._values[key] = found
            if len(self._values) > _TEXTS_MAX:
                del self._values[next(iter(self._values))]
        return found
