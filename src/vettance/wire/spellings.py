"""Members with a known meaning, found in free-form objects under any of their spellings."""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from vettance.wire.spelt_numbers import read_number

_SNAKE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: How deep a name is looked for in objects: `counterparty.account.id`.
_DEPTH_MAX: Final = 2
#: What is in a wrapper counts after every spelling outside.
_WRAPPED: Final = 10_000
#: Numbers within an amount that are no part of it: its currency (ISO 4217), and how many decimals it has.
_NO_PARTS: Final = frozenset(
    {
        *("currency", "currency_code", "currency_number", "ccy"),
        *("fraction_digits", "decimals", "decimal_places", "exponent", "precision", "scale"),
    }
)


def both_cases(words: str) -> tuple[str, ...]:
    """Return each of the words as it is and in snake_case, in this order, without doubles."""
    spelt = [form for word in words.split() for form in (word, _SNAKE.sub("_", word).lower())]
    return tuple(dict.fromkeys(spelt))


class Spellings:
    """Reads members by their documented names; of several spellings of one, the first of the table counts.

    What is in an object, or behind a dot, is read as if both names were one: `{"counterparty": {"id": 7}}` as
    `counterparty_id`. An object that is one of `wrappers` adds nothing to a name: with `payment` among them,
    `{"payment": {"card": {"hash": "k"}}}` is read as `card_hash`. Case and hyphens do not count: `CardHash`.
    """

    def __init__(
        self,
        table: Mapping[str, Iterable[str]],
        objects: Container[str] = (),
        wrappers: Iterable[str] = (),
        parts: Container[str] = (),
    ) -> None:
        """`table` has the spellings of each name; of `objects` a whole object is a value, too.

        What an object calls by one of `parts` counts where that is its only number: of
        `{"euros": 12, "cents": 50}` the cents are no amount.
        """
        self._table = {text: (name, rank) for name, texts in table.items() for rank, text in enumerate(texts)}
        self._objects = objects
        self._wrappers = frozenset(wrappers)
        self._parts = parts

    def read(self, *holders: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members that are there; of one spelling in several holders, that of the first counts."""
        found: dict[str, Any] = {}
        ranks: dict[str, int] = {}
        table = self._table
        for holder in holders:
            for spelling, value in holder.items():
                if value is None:
                    continue
                known = table.get(spelling)
                if known is None and (spelling[:1].isupper() or "-" in spelling):
                    known = table.get(_snake(spelling))
                if type(value) is dict or (known is None and "." in spelling):
                    self._read_joined(_snake(spelling), value, _DEPTH_MAX, found, ranks)
                if known is not None:
                    self._note(known, value, found, ranks)
        return found

    def _note(self, known: tuple[str, int], value: Any, found: dict[str, Any], ranks: dict[str, int]) -> None:
        """Take note of the value of a known spelling, unless one that counts before it was there."""
        name, rank = known
        if (name not in ranks or rank < ranks[name]) and (type(value) is not dict or name in self._objects):
            found[name], ranks[name] = value, rank

    def _read_joined(
        self,
        name: str,
        value: Any,
        depth: int,
        found: dict[str, Any],
        ranks: dict[str, int],
        after: int = 0,
    ) -> None:
        """Read what has a name of several parts, in an object for each of them or behind dots."""
        if value is not None and (known := self._table.get(name)) is not None:
            self._note((known[0], known[1] + after), value, found, ranks)
        if type(value) is dict and depth:
            for inner, one in value.items():
                spelt = _snake(inner)
                if spelt not in self._parts or _is_only_number(inner, value):
                    self._read_joined(f"{name}_{spelt}", one, depth - 1, found, ranks, after)
                if name in self._wrappers:
                    self._read_joined(spelt, one, depth - 1, found, ranks, _WRAPPED)


def _is_only_number(name: str, holder: Mapping[str, Any]) -> bool:
    """Tell whether no other member of an object is a number that may be a part of the same amount."""
    return all(
        other == name or read_number(value) is None or _snake(other) in _NO_PARTS
        for other, value in holder.items()
    )


def _snake(name: str) -> str:
    return _SNAKE.sub("_", name).replace(".", "_").replace("-", "_").lower()
