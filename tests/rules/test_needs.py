"""Which values a condition cannot do without, against a naive reading of it with those values unknown."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.rules.test_three_valued import FACTS, SCHEMA, bool_expressions, environments, truth
from vettance.rules.language import RuleFault, check
from vettance.rules.needs import needs

AGGREGATED = {"count": {"t1"}, "avg": {"t1", "n1"}, "seen": {"t1", "t2"}}


def needed(text: str, *unsaid: str) -> set[str]:
    return set(needs(check(text, SCHEMA).expression, set(unsaid)))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1 > 2", {"n1"}),
        ("b2 and n1 > 2", {"n1"}),
        ("b2 or n1 > 2", set()),
        ("n1 > 2 or t1 == 'a' or m.a == 1", {"n1", "t1", "m.a"}),
        ("not (n1 > 2)", {"n1"}),
        ("not (b2 or n1 > 2)", {"n1"}),
        ("not (b2 and n1 > 2)", set()),
        ("default(n1, 5) > 2", set()),
        ("default(b1, false) and b2", {"b1"}),
        ("default(b1, true) and b2", set()),
        ("missing(n1)", set()),
        ("present(n1)", {"n1"}),
        ("not missing(n1)", {"n1"}),
        ("n2 + n1 > 2", {"n1"}),
        ("(n1 if b2 else n2) > 2", set()),
        ("(n2 if b1 else n2) > 2", {"b1"}),
        ("n1 in [1, 2]", {"n1"}),
        ("length(m.a) > 2", {"m.a"}),
        ('count(by=t1, within="1h") == 0', {"t1"}),
        ('count(n1 > 2, by=t2, within="1h") == 0', set()),
        ('sum(n1, by=t2, within="1h") < 5', set()),
        ('max(n1, by=t2, within="1h") < 5', {"n1"}),
        ('max(n2, by=t2, within="1h", where=n1 > 2) < 5', {"n1"}),
        ('not seen(t1, by=t2, within="1h")', {"t1"}),
        ("n2 > 2", set()),
    ],
)
def test_a_condition_needs_what_it_cannot_be_true_without(text: str, names: set[str]) -> None:
    assert needed(text, "n1", "t1", "b1", "m.a") == names


def test_nothing_is_needed_where_everything_is_said() -> None:
    assert needed("n1 > 2 and false") == set()


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    bool_expressions(3),
    st.sets(st.sampled_from(FACTS), min_size=1),
    st.lists(environments, min_size=6, max_size=6),
)
def test_no_event_fulfils_a_condition_that_needs_what_nobody_says(
    text: str, unsaid: set[str], events: list[dict[str, Any]]
) -> None:
    try:
        expression = check(text, SCHEMA).expression
    except RuleFault:
        reject()
    names = needs(expression, unsaid)
    assert names <= unsaid
    if names:
        # So are aggregates by a key, of a number or about a text that nobody says.
        silent = dict.fromkeys(unsaid | {word for word, names in AGGREGATED.items() if names & unsaid})
        for event in events:
            assert truth(text, {**event, **silent}) is not True
