"""The compiled rule set: what it extracts, what it asks of the state engine, what it shares, how it fails."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.words import SCHEMA, compile_texts
from vettance.rules.compiler import compile_rules
from vettance.rules.key_text import composite_key, single_key
from vettance.rules.language import check
from vettance.rules.plan_builder import AGGREGATES_MAX, TooManyAggregates
from vettance.rules.schema import Field, Namespace, Schema, Type
from vettance.rules.unknowns import failures_of
from vettance.velocity.aggregates import AGGREGATES
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Aggregate, Observation, Series

MINUTE = 60_000


def test_every_field_is_extracted_once_in_the_order_of_its_name() -> None:
    compiled = compile_texts('ip == "a" and country == "b"', 'ip == "c" and metadata.deep.x == country')
    assert compiled.fact_names == ("ip", "country", "metadata.deep.x")
    event = {"ip": "1", "country": "2", "metadata": {"deep": {"x": 3}}}
    assert compiled.facts(event) == ("1", "2", 3)
    assert compiled.facts({}) == (None, None, None)


def test_fields_and_namespaces_with_an_attribute_are_read_from_it() -> None:
    class Thing:
        ip = "1.2.3.4"
        metadata = {"x": 5}  # noqa: RUF012

    def never(event: Any) -> Any:
        raise AssertionError("an attribute is read directly")

    schema = Schema([Field("ip", Type.TEXT, never, "", "ip")], [Namespace("m", never, "", "metadata")])
    compiled = compile_rules([("r", check("m.x == 5 and ip == '1.2.3.4'", schema))], schema)
    assert compiled.run(compiled.facts(Thing()), ()) == ([0], [])


def test_a_rule_set_without_rules_runs() -> None:
    compiled = compile_rules([], SCHEMA)
    facts = compiled.facts({})
    assert facts == ()
    assert compiled.observe(facts) == Observation((), 0, ())
    assert compiled.run(facts, ()) == ([], [])


def test_equal_aggregates_are_one_and_windows_share_a_series() -> None:
    compiled = compile_texts(
        'count(event_name == "x", by=ip, within="60m") > 5',
        'count(event_name=="x",by=ip,within="1h") > 50',
        'count(event_name == "x", by=ip, within="1d") > 5',
        'last_seen(event_name == "x", by=ip) < 5',
        'count(event_name == "y", by=ip, within="1d") > 5',
        'sum(metadata.amount, by=ip, within="1d") > max(metadata.amount, by=ip, within="7d")',
    )
    assert compiled.plan.keys == ("ip",)
    assert compiled.plan.series == (
        Series(0, None, "moments"),
        Series(0, None, "moments"),
        Series(0, 0, "numbers"),
    )
    assert compiled.plan.aggregates == (
        Aggregate("count", 0, 60 * MINUTE),
        Aggregate("count", 0, 24 * 60 * MINUTE),
        Aggregate("last_seen", 0, 90 * 24 * 60 * MINUTE),
        Aggregate("count", 1, 24 * 60 * MINUTE),
        Aggregate("sum", 2, 24 * 60 * MINUTE),
        Aggregate("max", 2, 7 * 24 * 60 * MINUTE),
    )
    assert compiled.plan.aggregate_names[0] == 'count(event_name == "x", by=ip, within="1h")'
    assert compiled.plan.series_names == (
        'moments(by=ip, where=event_name == "x")',
        'moments(by=ip, where=event_name == "y")',
        "numbers(metadata.amount, by=ip)",
    )


def test_an_observation_holds_keys_mask_and_values() -> None:
    compiled = compile_texts(
        'count(event_name == "x", by=ip, within="1h") > 5',
        'distinct(device.fingerprint, by=(ip, country), within="1h", where=metadata.amount > 5) > 5',
        'sum(metadata.price, by=country, within="1h") > 5',
    )
    event = {"event_name": "x", "ip": "1", "country": "GB", "device.fingerprint": "d"}
    event = {**event, "metadata.amount": 6, "metadata": {"price": 2.5}}
    assert compiled.observe(compiled.facts(event)) == Observation(("1", "1\x1fGB", "GB"), 0b111, ("d", 2.5))
    event = {"event_name": "y", "ip": "1", "metadata.amount": 5, "metadata": {"price": "2.5"}}
    assert compiled.observe(compiled.facts(event)) == Observation(("1", None, None), 0b100, (None, None))


def test_every_kind_of_aggregate_answers_from_the_state_engine() -> None:
    texts = [
        'count(by=ip, within="1h") == 2',
        'sum(metadata.amount, by=ip, within="1h") == 12',
        'avg(metadata.amount, by=ip, within="1h") == 6',
        'min(metadata.amount, by=ip, within="1h") == 4',
        'max(metadata.amount, by=ip, within="1h") == 8',
        'distinct(country, by=ip, within="1h") == 2',
        'seen(country, by=ip, within="1h")',
        "first_seen(by=ip) == 120",
        "last_seen(by=ip) == 60",
        "last(metadata.amount, by=ip) == 8",
    ]
    of_events = {name for name, row in AGGREGATES.items() if row.fraud is None}
    assert {text.partition("(")[0] for text in texts} == of_events
    compiled = compile_texts(*texts)
    velocity = MemoryVelocity()
    velocity.install("t", compiled.plan)
    for order, (country, amount) in enumerate([("GB", 4), ("FR", 8)]):
        facts = compiled.facts({"ip": "1", "country": country, "metadata.amount": amount})
        assert compiled.run(
            facts, velocity.observe("t", str(order), order * MINUTE, compiled.observe(facts)).values
        )
    facts = compiled.facts({"ip": "1", "country": "GB", "metadata.amount": 1})
    answer = velocity.observe("t", "last", 2 * MINUTE, compiled.observe(facts))
    assert compiled.run(facts, answer.values) == (list(range(len(texts))), [])


def test_an_aggregate_of_a_missing_key_is_unknown() -> None:
    compiled = compile_texts('count(by=ip, within="1h") == 0', 'not (count(by=ip, within="1h") == 0)')
    velocity = MemoryVelocity()
    velocity.install("t", compiled.plan)
    for event, fired in (({}, []), ({"ip": ""}, []), ({"ip": "1"}, [0])):
        facts = compiled.facts(event)
        answer = velocity.observe("t", str(event), 0, compiled.observe(facts))
        assert compiled.run(facts, answer.values)[0] == fired


def test_more_aggregates_than_one_event_may_cost_are_refused() -> None:
    texts = [f'count(by=ip, within="{seconds}s") > 5' for seconds in range(1, AGGREGATES_MAX + 2)]
    compile_texts(*texts[:-1])
    with pytest.raises(TooManyAggregates):
        compile_texts(*texts)


# --- Keys ---

scalars = st.one_of(
    st.none(),
    st.text(alphabet=st.sampled_from("ab\x1e\x1f0n"), max_size=4),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -2.0]),
    st.booleans(),
)


def identity(value: Any) -> Any:
    return (type(value) is bool, type(value) is str, value)


@given(st.lists(scalars, min_size=2, max_size=3), st.lists(scalars, min_size=2, max_size=3))
def test_composite_keys_are_equal_exactly_when_their_parts_are(one: list[Any], other: list[Any]) -> None:
    left, right = composite_key(tuple(one)), composite_key(tuple(other))
    if left is None or right is None:
        assert any(part is None or part == "" for part in (one if left is None else other))
    else:
        assert (left == right) is ([identity(part) for part in one] == [identity(part) for part in other])


@given(scalars, scalars)
def test_single_keys_are_equal_exactly_when_their_values_are(one: Any, other: Any) -> None:
    left, right = single_key(one, False), single_key(other, False)  # noqa: FBT003
    if left is not None and right is not None:
        assert (left == right) is (identity(one) == identity(other))


def test_lists_objects_and_empty_texts_are_no_keys() -> None:
    compiled = compile_texts('count(by=metadata.x, within="1h") > 5')
    for value in ([1], {"a": 1}, "", None):
        assert compiled.observe(compiled.facts({"metadata": {"x": value}})).keys == (None,)
    for value in ("a", 5, 5.5, True, "5"):
        assert compiled.observe(compiled.facts({"metadata": {"x": value}})).keys != (None,)


def test_long_texts_become_short_keys_that_stay_apart() -> None:
    compiled = compile_texts('count(by=ip, within="1h") > count(by=(ip, country), within="1h")')
    seen = set()
    for end in ("a", "b"):
        event = {"ip": "x" * 300 + end, "country": "GB"}
        keys = compiled.observe(compiled.facts(event)).keys
        assert all(isinstance(key, str) and len(key) < 64 for key in keys)
        seen.update(keys)
    assert len(seen) == 4


# --- Sharing ---


def test_a_costly_word_shared_by_rules_runs_once_and_only_when_needed() -> None:
    pattern = 'matches(user_agent, r"bot")'
    compiled = compile_texts(
        f'country == "GB" and {pattern}',
        f'country == "GB" and not {pattern}',
        f'country == "FR" and {pattern}',
    )
    assert compiled.source.count("matches_0(") == 3
    assert compiled.source.count("is not waiting") == 3
    calls = []

    class Agent(str):
        __slots__ = ()

        def encode(self, *arguments: str) -> bytes:  # type: ignore[override]
            calls.append(1)
            return super().encode(*arguments)

    for country, fired, expected in (("GB", [0], 1), ("FR", [2], 1), ("DE", [], 0)):
        calls.clear()
        facts = compiled.facts({"country": country, "user_agent": Agent("a bot")})
        assert compiled.run(facts, ()) == (fired, [])
        assert len(calls) == expected


def test_a_comparison_shared_by_rules_is_made_once() -> None:
    compiled = compile_texts(*(f'country == "GB" and metadata.amount > {number}' for number in range(9)))
    assert compiled.source.count("== 'GB'") == 1


# --- Failure ---


def failing_schema() -> Schema:
    return Schema(
        [
            Field("good", Type.NUMBER, lambda event: event["good"], ""),
            Field("bad", Type.TEXT, lambda event: event["bad"], ""),
        ]
    )


def test_a_rule_that_raises_is_recorded_and_the_others_still_run() -> None:
    schema = failing_schema()
    texts = ["good > 1", 'lower(bad) == "a"', "good > 2", 'upper(bad) == "A"', "good > 100"]
    compiled = compile_rules([(str(i), check(text, schema)) for i, text in enumerate(texts)], schema)
    # The field breaks its promise to be a text.
    facts = compiled.facts({"good": 5, "bad": 5})
    for _ in range(2):
        fired, failures = compiled.run(facts, ())
        assert fired == [0, 2]
        assert [index for index, _ in failures] == [1, 3]
        assert all("AttributeError" in message for _, message in failures)
    assert compiled.run(compiled.facts({"good": 5, "bad": "a"}), ()) == ([0, 1, 2, 3], [])


def raising(event: Any) -> Any:
    raise OverflowError("too large")


def test_a_field_that_raises_is_unknown_and_named_and_the_others_are_read() -> None:
    schema = Schema(
        [
            Field("good", Type.NUMBER, lambda event: event["good"], ""),
            Field("bad", Type.NUMBER, raising, ""),
        ],
        [Namespace("own", lambda event: event["own"], "")],
    )
    texts = ["good > 1", "bad > 1", "missing(bad)", "own.x == 1", 'count(by=bad, within="1h") >= 0']
    compiled = compile_rules([(text, check(text, schema)) for text in texts], schema)
    for own, message in (({"x": 1}, None), (None, "AttributeError")):
        facts = compiled.facts({"good": 5, "own": own})
        seen = compiled.observe(facts)
        assert facts == (5, None, None if message else 1)
        assert seen.keys == (None,)
        assert compiled.seen({"good": 5, "own": own}) == seen
        failures = dict(failures_of(facts, seen))
        assert failures.pop("bad") == "OverflowError: too large"
        assert [text.partition(":")[0] for text in failures.values()] == ([message] if message else [])
        expected = ["good > 1", "missing(bad)"] + ([] if message else ["own.x == 1"])
        fired, failed = compiled.run(facts, (None,))
        assert not failed
        assert [texts[index] for index in fired] == expected


def test_a_replay_reads_only_what_the_memory_asks_for() -> None:
    read: list[str] = []

    def reader(name: str) -> Any:
        return lambda event: read.append(name) or event.get(name)

    schema = Schema([Field(name, Type.NUMBER, reader(name), "") for name in ("who", "worth", "when", "dear")])
    texts = ["dear > 1", 'sum(worth, by=who, within="1h", where=when > 3 or missing(when)) > dear']
    compiled = compile_rules([(text, check(text, schema)) for text in texts], schema)
    for event in ({"who": 1, "worth": 2, "when": 4, "dear": 3}, {"who": 1, "when": 1}, {}):
        expected = compiled.observe(compiled.facts(event))
        read.clear()
        assert compiled.seen(event) == expected
        assert sorted(read) == ["when", "who", "worth"]


def test_a_part_of_an_observation_that_raises_leaves_the_others() -> None:
    schema = failing_schema()
    texts = [
        'count(by=lower(bad), within="1h") >= 0',
        'count(by=good, within="1h") >= 0',
        'count(starts_with(bad, "a"), by=good, within="1h") >= 0',
        'distinct(upper(bad), by=good, within="1h") >= 0',
        'sum(good, by=good, within="1h") >= 0',
    ]
    compiled = compile_rules([(text, check(text, schema)) for text in texts], schema)
    whole = compiled.observe(compiled.facts({"good": 5, "bad": "a"}))
    facts = compiled.facts({"good": 5, "bad": 5})
    part = compiled.observe(facts)
    assert failures_of(facts, whole) == []
    assert {name for name, _ in failures_of(facts, part)} == {
        "lower(bad)",
        'starts_with(bad, "a")',
        "upper(bad)",
    }
    assert part.keys == (None, whole.keys[1])
    assert part.mask == whole.mask & ~(1 << 2)
    assert part.values == (None, 5)
    assert compiled.seen({"good": 5, "bad": "a"}) == whole
    assert compiled.seen({"good": 5, "bad": 5}) == part
    memory = MemoryVelocity()
    memory.install("t", compiled.plan)
    for number in range(2):
        answer = memory.observe("t", str(number), MINUTE * number, part)
    assert answer.values == (None, 1, 0, 0, 5.0)


def test_compiled_code_sees_no_builtins() -> None:
    compiled = compile_texts("lower(ip) == 'a'")
    for function in (compiled.facts, compiled.observe, compiled.run):
        assert function.__globals__["__builtins__"] == {}  # type: ignore[attr-defined]


@given(st.text(max_size=40))
def test_no_literal_text_gets_out_of_its_quotes(text: str) -> None:
    kept = "".join(char for char in text if char.isprintable() and char.isascii())
    literal = kept.replace("\\", "\\\\").replace('"', '\\"')
    compiled = compile_texts(f'ip == "{literal}"', f'ip in ["{literal}", "x"] and contains(ip, "{literal}")')
    assert compiled.run(compiled.facts({"ip": kept}), ()) == ([0, 1], [])
