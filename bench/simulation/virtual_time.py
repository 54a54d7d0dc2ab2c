"""An event loop on which time passes only when everybody waits, and then at once."""

import asyncio
import selectors
from typing import Any


class Stuck(Exception):
    """Everybody waits, and nothing will ever happen."""


class _Selector(selectors.BaseSelector):
    """Looks at no file: in a simulation nothing comes from outside."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._keys[fileobj] = key = selectors.SelectorKey(fileobj, number, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Stuck
        self.now_s += max(timeout, 0.0)
        return []

    def get_map(self) -> Any:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose seconds cost nothing. The same program on it always takes the same course."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        """Seconds since the beginning."""
        return self._clock.now_s
