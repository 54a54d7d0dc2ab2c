"""The compiled rules against a naive interpreter of three-valued logic."""

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.rules.kleene import naive
from vettance.rules.compiler import compile_rules
from vettance.rules.language import RuleFault, check
from vettance.rules.schema import Field, Namespace, Schema, Type

NAMES = {
    Type.NUMBER: ("n1", "n2", 'count(by=t1, within="1h")', 'avg(n1, by=t1, within="1d")'),
    Type.TEXT: ("t1", "t2"),
    Type.BOOL: ("b1", "b2", 'seen(t2, by=t1, within="1h")'),
    Type.LIST: ("l1",),
    Type.ANY: ("m.a", "m.b", "m.c"),
}
FACTS = ("n1", "n2", "t1", "t2", "b1", "b2", "l1", "m.a", "m.b", "m.c")
SCHEMA = Schema(
    [
        Field(name, type_, lambda event: event, "A field.")
        for type_, names in NAMES.items()
        for name in names
        if name.isalnum() and type_ is not Type.ANY
    ],
    [Namespace("m", lambda event: event, "Anything.")],
)

numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.5, -2.5, 1e200, -1e200, 1e300, 5e-324, 2**63, 1.7e308]),
)
texts = st.sampled_from(["", "a", "b", "ab", "5", "A", '")])'])
lists = st.lists(st.one_of(numbers, texts, st.booleans()), max_size=3)
anything = st.one_of(st.none(), numbers, texts, st.booleans(), lists, st.just({"x": 1}))


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


environments = st.fixed_dictionaries(
    {
        **dict.fromkeys(("n1", "n2", "avg"), maybe(numbers)),
        "count": maybe(st.integers(0, 5)),
        **dict.fromkeys(("t1", "t2"), maybe(texts)),
        **dict.fromkeys(("b1", "b2", "seen"), maybe(st.booleans())),
        "l1": maybe(lists),
        **dict.fromkeys(("m.a", "m.b", "m.c"), anything),
    }
)

number_literals = st.sampled_from(["0", "1", "2", "-1", "0.5", "1e15"])
text_literals = st.sampled_from(['"a"', '"b"', '""', "'5'", '"\\")])"'])
signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
equalities = st.sampled_from(["==", "!="])


def joined(*parts: Any) -> st.SearchStrategy[str]:
    """Make text of strategies and fixed pieces."""
    return st.tuples(*(part if isinstance(part, st.SearchStrategy) else st.just(part) for part in parts)).map(
        "".join
    )


def name_of(type_: Type) -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES[type_])


def number_expressions(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return st.one_of(name_of(Type.NUMBER), name_of(Type.ANY), number_literals)
    n, t, b = number_expressions(depth - 1), text_expressions(depth - 1), bool_expressions(depth - 1)
    known = st.one_of(name_of(Type.NUMBER), joined("abs(", n, ")"))
    return st.one_of(
        n,
        joined("(", n, st.sampled_from([" + ", " - ", " * "]), n, ")"),
        joined("(", n, st.sampled_from([" / ", " % "]), known, ")"),
        joined("-", name_of(Type.NUMBER)),
        joined("(", known, " if ", b, " else ", known, ")"),
        joined("default(", st.one_of(name_of(Type.NUMBER), name_of(Type.ANY)), ", ", number_literals, ")"),
        joined("length(", t, ")"),
        joined("length(", st.one_of(name_of(Type.LIST), name_of(Type.ANY)), ")"),
        joined("max_of(", n, ", ", n, ", ", n, ")"),
        joined("number(", st.one_of(t, name_of(Type.ANY)), ")"),
        joined("floor(", n, ")"),
    )


def text_expressions(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return st.one_of(name_of(Type.TEXT), name_of(Type.ANY), text_literals)
    t, b = text_expressions(depth - 1), bool_expressions(depth - 1)
    return st.one_of(
        t,
        joined("upper(", t, ")"),
        joined("default(", st.one_of(name_of(Type.TEXT), name_of(Type.ANY)), ", ", text_literals, ")"),
        joined("(", name_of(Type.TEXT), " if ", b, " else ", name_of(Type.TEXT), ")"),
    )


def bool_expressions(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return st.one_of(name_of(Type.BOOL), st.sampled_from(["true", "False"]), name_of(Type.ANY))
    b, n, t = bool_expressions(depth - 1), number_expressions(depth - 1), text_expressions(depth - 1)
    anything_known = st.one_of(
        name_of(Type.NUMBER), name_of(Type.TEXT), name_of(Type.ANY), name_of(Type.BOOL)
    )
    return st.one_of(
        b,
        joined("(not ", b, ")"),
        joined("(", b, st.sampled_from([" and ", " or "]), b, ")"),
        joined("(", b, " and ", b, " or ", b, ")"),
        joined("(", n, " ", signs, " ", n, ")"),
        joined("(", n, " ", signs, " ", n, " ", signs, " ", n, ")"),
        joined("(", t, " ", signs, " ", t, ")"),
        joined("(", name_of(Type.ANY), " ", signs, " ", name_of(Type.ANY), ")"),
        joined("(", b, " ", equalities, " ", b, ")"),
        joined("(", name_of(Type.BOOL), " if ", b, " else ", name_of(Type.BOOL), ")"),
        joined("(", n, st.sampled_from([" in ", " not in "]), "[1, 2, -1])"),
        joined("(", t, st.sampled_from([" in ", " not in "]), '["a", "b"])'),
        joined("(", st.one_of(name_of(Type.NUMBER), name_of(Type.TEXT)), " in ", name_of(Type.LIST), ")"),
        joined("(", name_of(Type.TEXT), " not in ", name_of(Type.ANY), ")"),
        joined("contains(", t, ", ", t, ")"),
        joined("starts_with(", t, ", ", t, ")"),
        joined(st.sampled_from(["missing(", "present("]), anything_known, ")"),
        joined("missing((", name_of(Type.NUMBER), " > ", name_of(Type.NUMBER), "))"),
        joined("default(", st.one_of(name_of(Type.BOOL), name_of(Type.ANY)), ", true)"),
    )


def truth(text: str, environment: dict[str, Any]) -> Any:
    facts = {**environment, "true": True}
    value = naive(text, facts)
    return value if isinstance(value, bool) else None


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(bool_expressions(3), min_size=1, max_size=4), st.lists(environments, min_size=1, max_size=4))
def test_a_rule_fires_exactly_when_a_naive_reading_says_definitely_true(
    texts: list[str], events: list[dict[str, Any]]
) -> None:
    rules = [text for each in texts for text in (each, f"not ({each})", f"{each} or ({texts[0]})")]
    try:
        checked = [(f"r{index}", check(text, SCHEMA)) for index, text in enumerate(rules)]
    except RuleFault as fault:
        # Two literals may come together whose product no rule may write; nothing else can go wrong here.
        assume(fault.message != "this number is too large")
        raise
    compiled = compile_rules(checked, SCHEMA)
    for event in events:
        facts = tuple(event[name] for name in compiled.fact_names)
        answers = tuple(event[name.partition("(")[0]] for name in compiled.plan.aggregate_names)
        fired, failures = compiled.run(facts, answers)
        assert failures == []
        assert fired == [index for index, text in enumerate(rules) if truth(text, event) is True]


VALUES = (None, True, False, 0, 1, 1.5, "a", "b", [1], {"x": 1})
PAIRS = {
    "n": ("n1", "n2", (None, 0, 1, 1.5)),
    "t": ("t1", "t2", (None, "a", "b")),
    "m": ("m.a", "m.b", VALUES),
}


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_every_comparison_of_every_two_values_is_that_of_the_naive_reading(names: str, sign: str) -> None:
    left, right, values = PAIRS[names]
    literal = {"n": "1", "t": '"a"', "m": "1"}[names]
    texts = [f"{left} {sign} {right}", f"{left} {sign} {literal}", f"{literal} {sign} {left}"]
    texts += [f"not ({text})" for text in texts]
    compiled = compile_rules([(text, check(text, SCHEMA)) for text in texts], SCHEMA)
    assert compiled.fact_names == (left, right)
    for one in values:
        for other in values:
            fired, failures = compiled.run((one, other), ())
            expected = [at for at, text in enumerate(texts) if truth(text, {left: one, right: other}) is True]
            assert (fired, failures) == (expected, [])
