"""How a word enters the rule language: what it takes, gives and costs, and the function that does it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from vettance.rules.domain import ANYTHING, Domain
from vettance.rules.schema import Type


class WordParameter(NamedTuple):
    """One parameter of a word. A literal one must be written out in the rule, so that it is checked once."""

    name: str
    types: tuple[Type, ...]
    literal: bool = False


class RuleWord(NamedTuple):
    """One word: what it takes and gives, what it costs, and the function that does it.

    `function` takes the arguments that are not literal. With `prepare`, the function is made for each use
    from the literal arguments; `prepare` raises ValueError with a sentence for the author. `many` repeats the
    last parameter; `optional` of the last parameters may be left out. `total` promises a value whenever the
    arguments are known and well-typed. `cost` is in units of about 20 ns. `domain` is what it can give, or
    makes that of the domains of its arguments.
    """

    name: str
    parameters: tuple[WordParameter, ...]
    result: Type
    function: Callable[..., Any]
    doc: str
    cost: int = 2
    total: bool = True
    prepare: Callable[..., Callable[..., Any]] | None = None
    many: bool = False
    optional: int = 0
    domain: Domain | Callable[..., Domain] = ANYTHING


Function = Callable[..., Any]


def entering(
    table: dict[str, RuleWord],
) -> Callable[..., Callable[[Function], Function]]:
    """Return a decorator that enters a function into a table under its own name."""

    def word(
        parameters: dict[str, Type | tuple[Type, ...]],
        result: Type,
        literal: tuple[str, ...] = (),
        **options: Any,
    ) -> Callable[[Function], Function]:
        rows = tuple(
            WordParameter(name, types if isinstance(types, tuple) else (types,), name in literal)
            for name, types in parameters.items()
        )

        def enter(function: Function) -> Function:
            # A word that would hide a built-in function of Python is defined with an underscore before it.
            name = function.__name__.lstrip("_")
            table[name] = RuleWord(name, rows, result, function, function.__doc__ or "", **options)
            return function

        return enter

    return word
