"""What is counted in a log afterwards is what a rule would have seen at each event."""

import math
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from vettance.backtests.backtest_job import END_MS
from vettance.decisions.active_rulesets import active_rules, consider
from vettance.decisions.features import fraud_schema
from vettance.deployment.connect import connect_velocity
from vettance.events.event import Event, read_event
from vettance.ids import IdSource
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.suggestions import counted_log
from vettance.suggestions.counted_log import COUNTS, CountedLog, KeyColumns, LoggedCount
from vettance.wire.payload import encode

TENANT = "ten_1"
START_MS = 1_767_225_600_000
NAMES = (("user.login", "AUTHENTICATION"), ("payment.attempt", "TRANSACTION"), ("page", "OTHER"))


def bodies(seed: int, count: int) -> list[tuple[int, dict[str, Any]]]:
    """Make events of a few customers, devices and addresses; some lack one, some happen at one moment."""
    rng, moment, found = Random(seed), START_MS, []
    for _ in range(count):
        moment += rng.choice([0, 1, 20_000, 599_999, 600_000, 600_001, 3_600_000, 40_000_000])
        name, category = rng.choice(NAMES)
        body: dict[str, Any] = {"eventName": name, "eventCategory": category}
        customer = {}
        if rng.random() < 0.8:
            customer["externalId"] = f"c{rng.randrange(4)}"
        if rng.random() < 0.7:
            customer["email"] = f"m{rng.randrange(4)}@mail.example"
        body["customer"] = customer
        if rng.random() < 0.8:
            body["device"] = {"fingerprint": f"d{rng.randrange(3)}"}
        if rng.random() < 0.8:
            body["ipAddress"] = f"192.0.2.{rng.randrange(3)}"
        found.append((moment, body))
    return found


def events_of(seed: int, count: int) -> list[Event]:
    return [read_event(body, encode(body), moment) for moment, body in bodies(seed, count)]


def counted(events: list[Event]) -> CountedLog:
    columns = KeyColumns(END_MS)
    rows = [
        (
            *(place, event.occurred_at_ms, event.name, event.category.value),
            *(event.customer_key, event.device_key, event.ip),
        )
        for place, event in enumerate(events, 1)
    ]
    for start in range(0, len(rows), 70):
        columns.take(rows[start : start + 70])
    return columns.finish()


def seen_live(events: list[Event], counts: tuple[LoggedCount, ...]) -> dict[str, list[float]]:
    """Return what rules would have seen, by the memory that decides."""
    pack = load_pack("fraud")
    some = msgspec.structs.replace(
        pack,
        rules=tuple(
            msgspec.structs.replace(rule, when=f"{one.text} >= 0", mode="active")
            for rule, one in zip(pack.rules, counts, strict=False)
        ),
    )
    assert len(some.rules) == len(counts), "one rule for each count"
    active = active_rules(1, "", some, compile_ruleset(some, fraud_schema()))
    memory, ids = connect_velocity(), IdSource()
    memory.install(TENANT, active.asked.plan)
    found: dict[str, list[float]] = {name: [] for name in active.asked.plan.aggregate_names}
    for event in events:
        seen = consider(memory, active, TENANT, ids.make("evt", event.occurred_at_ms), event)
        for name, value in zip(found, seen.answer.values, strict=True):
            found[name].append(math.nan if value is None else float(value))
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kinds", [(None,), ("login", "payment")], ids=["any kind", "of kinds"])
def test_counts_of_the_log_are_those_that_a_rule_would_have_seen(
    seed: int, kinds: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted_log, "_AT_ONCE", 50)
    counts = tuple(one for one in COUNTS if (one.kind.value if one.kind else None) in kinds)
    events = events_of(seed, 300)
    live = seen_live(events, counts)
    places = np.array(sorted(Random(seed).sample(range(1, 301), 200)), dtype=np.int64)
    found = {one.text: values for one, values in counted(events).values(counts, places)}
    assert found.keys() == live.keys()
    for text, values in found.items():
        np.testing.assert_array_equal(values, np.array(live[text], np.float32)[places - 1], err_msg=text)


def test_the_kinds_that_frauds_are_of_are_counted_by_themselves() -> None:
    events = events_of(5, 100)
    logins = [place for place, event in enumerate(events, 1) if event.name == "user.login"]
    found = counted(events).counts_for(np.array(logins, dtype=np.int64))
    assert {one.kind.value if one.kind else None for one in found} == {None, "login"}


def test_of_a_log_that_is_too_long_the_newest_events_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_log, "EVENTS_MAX", 100)
    events = events_of(6, 300)
    one = LoggedCount(("customer.key",), "1d")
    ((_, values),) = counted(events).values([one], np.array([300], dtype=np.int64))
    ((_, whole),) = counted(events[-110:]).values([one], np.array([110], dtype=np.int64))
    np.testing.assert_array_equal(values, whole)


def test_a_stray_moment_and_a_damaged_row_leave_the_rest_alone() -> None:
    columns = KeyColumns(END_MS)
    rows = [(place, START_MS + place, "user.login", "AUTHENTICATION", "c", "d", "i") for place in range(1, 9)]
    columns.take(
        [*rows, (9, 253_402_300_799_000, "", "NO SUCH CATEGORY", "c", None, None), (10, 0, *rows[0][2:])]
    )
    found = dict(columns.finish().values(COUNTS, np.arange(1, 11)))
    assert found[LoggedCount(("customer.key",), "1d")].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 0]


def test_what_is_not_known_of_an_event_is_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_log, "EVENTS_MAX", 100)
    rows = [(place, START_MS + place, "user.login", "OTHER", "c", None, None) for place in range(1, 301)]
    columns = KeyColumns(START_MS + 299)
    for start in range(0, 300, 10):
        columns.take(rows[start : start + 10])
    ((_, values),) = columns.finish().values([LoggedCount(("customer.key",), "1d")], np.array([1, 298, 299]))
    np.testing.assert_array_equal(values, np.array([np.nan, values[1], np.nan]))
    assert values[1] >= 97


def test_a_log_without_events_has_nothing_to_count() -> None:
    found = [values.tolist() for _, values in counted([]).values(COUNTS, np.zeros(0, dtype=np.int64))]
    assert found == [[]] * len(COUNTS)
    assert all(np.isnan(values).all() for _, values in counted([]).values(COUNTS, np.array([5])))
