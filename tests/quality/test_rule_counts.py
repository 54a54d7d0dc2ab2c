"""What is counted behind the log is what a recount of the log gives, whatever was decided and labelled."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.decisions.decision import DecisionRecordData, Outcome
from vettance.decisions.rule_course import rule_course_of
from vettance.quality.count_decisions import run_of
from vettance.quality.rule_counts import (
    DAY_S,
    HOUR_S,
    WIDTHS_S,
    CountKey,
    Counts,
    add_up,
    labelled,
    measures_of,
)
from vettance.quality.rule_quality import by_rule, quality_of
from vettance.quality.wilson import share_of
from vettance.rules.ruleset import Rule


def rule(name: str, mode: Any = "active") -> Rule:
    return Rule(id=name, name=name, when="true", score=10, reason="R", explanation="E", mode=mode)


RULES = (rule("a"), rule("b"), rule("c"), rule("quiet", "shadow"))
_fired = st.lists(st.integers(0, 3), unique=True, max_size=4).map(sorted)
_decided = st.tuples(
    _fired,
    st.sampled_from(list(Outcome)),
    st.integers(0, 400_000_000),
    st.sampled_from([None, True, False]),
    st.one_of(st.none(), st.floats(0, 1e6), st.text("xyz", max_size=3)),
)


def record(fired: list[int], outcome: Outcome) -> DecisionRecordData:
    return DecisionRecordData(
        ruleset_version=1,
        outcome=outcome,
        score=0,
        level="low",
        facts=(),
        answers=(),
        inexact=0,
        fired=fired,
        failed=[],
        lists=[],
        request_id="",
        processing_ms=0.0,
    )


@given(st.lists(_decided, max_size=30))
def test_counts_are_those_of_a_naive_recount(decided: list[Any]) -> None:
    counts: Counts = {}
    for fired, outcome, at_ms, fraud, amount in decided:
        sent = {"metadata": {"amount": amount, "currency": "eur"}}
        measures = measures_of(RULES, run_of(record(fired, outcome), sent))
        add_up(counts, measures, at_ms)
        if fraud is not None:
            add_up(counts, labelled(measures, 1, fraud=not fraud), at_ms)
            add_up(counts, labelled(measures, -1, fraud=not fraud), at_ms)
            add_up(counts, labelled(measures, 1, fraud=fraud), at_ms)
    for width_s in WIDTHS_S:
        rows = [(one.rule, one.measure, amount) for one, amount in counts.items() if one.width_s == width_s]
        summed: Counter[tuple[str, str]] = Counter()
        for name, measure, amount in rows:
            summed[name, measure] += amount  # type: ignore[assignment]
        found = quality_of(RULES, by_rule((*key, amount) for key, amount in summed.items()), {}, {}, {})
        assert found.decisions == len(decided)
        for place, one in enumerate(found.rules):
            mine = [each for each in decided if place in each[0]]
            truths = [each[3] for each in mine]
            acting = one.mode == "active"
            assert (one.hits, one.shadow_hits) == ((len(mine), 0) if acting else (0, len(mine)))
            known = one.labelled if acting else one.shadow_labelled
            assert (known.fraud, known.legit) == (truths.count(True), truths.count(False))
            alone = [each for each in mine if acting and {*each[0]} <= {place, 3}]
            assert one.alone == len(alone)
            if acting:
                held = [each for each in mine if each[1] is not Outcome.ALLOW]
                assert one.held == len(held)
                amounts = [each[4] for each in held if isinstance(each[4], float)]
                assert one.amounts.get("EUR", 0) == pytest.approx(sum(amounts), abs=0.01)


_recorded = st.builds(
    DecisionRecordData,
    ruleset_version=st.integers(1, 3),
    outcome=st.sampled_from(list(Outcome)),
    score=st.integers(0, 100),
    level=st.just("low"),
    facts=st.lists(st.one_of(st.none(), st.text(max_size=3), st.floats(allow_nan=False)), max_size=3).map(
        tuple
    ),
    answers=st.just((None, 1.5)),
    inexact=st.integers(0, 2**70),
    fired=_fired,
    failed=st.lists(st.tuples(st.integers(0, 3), st.text(max_size=3)), max_size=2),
    lists=st.just([("ent_1", "BLOCK", "IP")]),
    request_id=st.text(max_size=3),
    processing_ms=st.floats(0, 10),
    withheld=st.lists(st.tuples(st.integers(0, 3), st.just("snoozed")), max_size=2),
    held_out=st.booleans(),
)


@given(_recorded)
def test_the_course_of_a_record_is_what_the_whole_record_says(record: DecisionRecordData) -> None:
    assert rule_course_of(msgspec.json.encode(record)) == (
        record.ruleset_version,
        record.outcome,
        tuple(record.fired),
        tuple(place for place, _ in record.failed),
        tuple(place for place, _ in record.withheld),
        record.held_out,
    )


def test_a_record_that_ends_early_has_no_course() -> None:
    stored = msgspec.json.encode(record([1], Outcome.ALLOW))
    assert rule_course_of(stored) is not None
    assert all(rule_course_of(stored[:end]) is None for end in range(len(stored)))


def test_intervals_are_those_of_wilson() -> None:
    # Newcombe 1998, table I: 81 of 263, and 0 of 20.
    share = share_of(81, 263)
    assert share is not None
    assert (round(share.low, 4), round(share.high, 4)) == (0.2553, 0.3662)
    none = share_of(0, 20)
    assert none is not None
    assert (none.low, round(none.high, 4)) == (0.0, 0.1611)
    assert share_of(0, 0) is None


def test_keys_of_counts_name_hours_and_days() -> None:
    counts: Counts = {}
    add_up(counts, {("a", "hits"): 1}, 90_061_000)
    starts = {HOUR_S: 90_000, DAY_S: 86_400}
    assert counts == {CountKey(width_s, start_s, "a", "hits"): 1 for width_s, start_s in starts.items()}


def test_events_that_are_alike_are_added_at_once() -> None:
    one_by_one: Counts = {}
    for _ in range(3):
        add_up(one_by_one, {("a", "hits"): 1, ("a", "amount:EUR"): 2.5}, 90_061_000)
    at_once: Counts = {}
    add_up(at_once, {("a", "hits"): 1, ("a", "amount:EUR"): 2.5}, 90_061_000, 3)
    assert at_once == one_by_one
