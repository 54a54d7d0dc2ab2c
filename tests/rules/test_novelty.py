"""`novelty`: a likelihood ratio of counts, the same on both engines, live and in a replay."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.words import SCHEMA, compile_texts
from tests.velocity.engines import ENGINES, make_velocity, observe_all
from vettance.rules.compiler import CompiledRules
from vettance.rules.language import RuleFault, check, check_number
from vettance.rules.novelty import novelty

COUNTS = st.integers(0, 10_000)
MINUTE = 60_000
LOGIN = 'where=event_name == "login"'
TEXT = f'novelty(country, by=customer.external_id, within="30d", {LOGIN})'


@given(st.booleans(), COUNTS, COUNTS, COUNTS, COUNTS)
def test_any_counts_give_a_number(
    seen: bool,
    different: int,
    own: int,
    shared: int,
    everything: int,
) -> None:
    assert math.isfinite(novelty(seen, different, own, shared, everything))


@given(COUNTS, COUNTS)
def test_without_a_past_nothing_is_new(shared: int, everything: int) -> None:
    assert novelty(False, 0, 0, shared, everything) == 0  # noqa: FBT003


@given(st.integers(1, 30), st.integers(0, 500), COUNTS, COUNTS)
def test_a_known_value_is_always_less_new_than_an_unknown_one(
    different: int, more: int, shared: int, everything: int
) -> None:
    own = different + more
    for expected in (None, 0.0, 0.2, 1.0):
        known, unknown = (
            novelty(seen, different, own, shared, everything, expected) for seen in (True, False)
        )
        assert known < unknown


def test_a_new_value_weighs_more_the_rarer_it_is_among_all() -> None:
    values = [novelty(False, 2, 40, shared, 10_000) for shared in (0, 10, 100, 1000, 9000)]  # noqa: FBT003
    assert all(rare > common for rare, common in pairwise(values))


def test_a_new_value_weighs_less_for_a_key_that_often_has_new_ones() -> None:
    values = [novelty(False, different, 40, 5, 10_000) for different in (1, 2, 5, 20, 40)]  # noqa: FBT003
    assert all(steady > restless for steady, restless in pairwise(values))


def test_a_known_value_says_more_the_rarer_it_is_among_all() -> None:
    assert novelty(True, 1, 40, 45, 10_000) < novelty(True, 1, 40, 8_000, 10_000) < 0  # noqa: FBT003


def test_a_tenant_of_one_customer_is_read_as_if_every_value_were_rare() -> None:
    assert novelty(True, 1, 20, 20, 20) < -4  # noqa: FBT003
    assert novelty(False, 1, 20, 0, 20) > 2  # noqa: FBT003


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.floats(-10, 10))
def test_any_counts_and_any_share_of_new_values_give_a_number(
    different: int, own: int, shared: int, everything: int, expected: float
) -> None:
    for seen in (True, False):
        assert math.isfinite(novelty(seen, different, own, shared, everything, expected))


def test_a_new_value_weighs_less_where_new_ones_are_to_be_expected() -> None:
    values = [novelty(False, 2, 40, 0, 10_000, share) for share in (0.03, 0.1, 0.2, 0.5)]  # noqa: FBT003
    assert all(seldom > often for seldom, often in pairwise(values))
    assert novelty(False, 2, 40, 0, 10_000, 0.9) == values[-1]  # noqa: FBT003


def test_values_that_came_back_do_not_make_a_restless_key() -> None:
    one, three, eight = (novelty(False, different, 12, 0, 10_000, 0.05) for different in (1, 3, 8))  # noqa: FBT003
    assert three > one - 0.5
    assert eight < three - 1.5
    # Of a traveller, each login of whom came from another network, another one says little.
    assert novelty(False, 12, 12, 0, 10_000, 0.05) < novelty(False, 3, 12, 0, 10_000, 0.05) - 2  # noqa: FBT003


def event(who: str, country: str | None, name: str = "login") -> dict[str, Any]:
    return {"event_name": name, "customer.external_id": who, "country": country}


PAST = [
    *(event("anna", "FR") for _ in range(6)),
    *(event(f"c{number}", "FR" if number % 2 else "BR") for number in range(40)),
    event("anna", "KP", "payment"),
    event("anna", None),
]
EXPECTED = [
    (event("anna", "FR"), novelty(True, 1, 7, 26, 47)),  # noqa: FBT003
    (event("anna", "BR"), novelty(False, 1, 7, 20, 47)),  # noqa: FBT003
    (event("anna", "KP"), novelty(False, 1, 7, 0, 47)),  # noqa: FBT003
    (event("anna", None), None),
    (event("anna", "BR", "payment"), None),
    (event("new", "BR"), 0.0),
]


def compiled_for(low: float, high: float) -> CompiledRules:
    return compile_texts(f"{low} <= {TEXT} and {TEXT} <= {high}", f"missing({TEXT})")


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_expected_may_be_counted(engine: str) -> None:
    by = 'by=("all" if event_name == "login" else ""), within="30d"'
    text = f"{TEXT[:-1]}, expected=distinct(country, {by}) / count({by}))"
    near = novelty(False, 1, 7, 20, 47, 2 / 47)  # noqa: FBT003
    compiled = compile_texts(f"{near - 1e-9} <= {text} and {text} <= {near + 1e-9}", f"missing({text})")
    velocity = make_velocity(engine)
    velocity.install("t", compiled.plan)
    events = [*PAST, event("anna", "BR")]
    seen = [(str(number), number * MINUTE, compiled.seen(past)) for number, past in enumerate(events)]
    answer = observe_all(velocity, "t", seen)[-1]
    assert compiled.run(compiled.facts(events[-1]), answer.values) == ([0], [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("asked", range(len(EXPECTED)))
def test_both_engines_answer_by_the_counts_of_the_past(engine: str, asked: int) -> None:
    last, expected = EXPECTED[asked]
    near = 0.0 if expected is None else expected
    compiled = compiled_for(near - 1e-9, near + 1e-9)
    velocity = make_velocity(engine)
    velocity.install("t", compiled.plan)
    moments = [(number * MINUTE, past) for number, past in enumerate([*PAST, last])]
    seen = [(str(at_ms), at_ms, compiled.seen(past)) for at_ms, past in moments]
    answer = observe_all(velocity, "t", seen)[-1]
    facts = compiled.facts(last)
    assert compiled.observe(facts) == seen[-1][2], "a replay sees what was seen live"
    assert compiled.run(facts, answer.values) == ([1 if expected is None else 0], [])


def test_events_that_are_not_asked_about_touch_no_key_of_all() -> None:
    compiled = compile_texts(f"{TEXT} > 1")
    payment, login = (
        compiled.observe(compiled.facts(event("anna", "FR", name))) for name in ("payment", "login")
    )
    assert payment.keys == ("anna", None, None)
    assert login.keys == ("anna", "FR", "everything")


def test_ratios_are_added_and_share_what_they_count() -> None:
    other = TEXT.replace("country", "user_agent")
    checked = check_number(f"{TEXT} + {other} / 2", SCHEMA)
    assert len(checked.aggregates) == 8  # Of ten: the events of the key and of all are the same.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('novelty(country, within="1d") > 1', "novelty needs by="),
        ("novelty(country, by=ip) > 1", "novelty needs within="),
        ('novelty(by=ip, within="1d") > 1', "novelty needs a value"),
        ('count(novelty(country, by=ip, within="1d") > 1, by=ip, within="1d") > 1', "cannot stand inside"),
        ('novelty(country, by=ip, within="1d", expected="often") > 1', "expected= must be a number"),
        ('seen(country, by=ip, within="1d", expected=0.1)', "seen takes only by=, within=, where="),
        ('novelti(country, by=ip, within="1d") > 1', "did you mean novelty"),
    ],
)
def test_a_fault_names_the_word(text: str, said: str) -> None:
    with pytest.raises(RuleFault) as caught:
        check(text, SCHEMA)
    assert said in str(caught.value)
