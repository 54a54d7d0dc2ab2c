"""What batches of one session say together, and for how long."""

import sys
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.clock import HOUR_MS
from vettance.events.browser_session import (
    BATCH_MS,
    NUMBERS_MAX,
    WAITING_MAX,
    SessionIndex,
    WaitingBatches,
    counts_since,
    merge,
    overlay,
)
from vettance.fairness.tenant_cache import ENTRY_BYTES
from vettance.wire.payload import OBJECT_BYTES_MAX, OBJECT_KEYS_MAX, decode, encode

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(0, 10**6), st.floats(-1e300, 1e300), st.text(max_size=20)
)
ITEMS = st.one_of(st.integers(-9, 999), st.floats(0, 1e9))
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "clickCount", "paste", "list", "texts", "fingerprint", "nested", 'na"me, {ü}']),
    st.one_of(
        SCALARS,
        st.lists(ITEMS, max_size=9),
        st.lists(st.text(max_size=5), max_size=20),
        st.lists(st.one_of(SCALARS, st.lists(ITEMS, max_size=2)), max_size=3),
        st.dictionaries(st.text(max_size=5), SCALARS, max_size=3),
    ),
)
LONG = st.sampled_from([{"list": [1.5] * 600}, {"a": "x" * 20_000}, {"nested": {"b": ["y" * 15_000]}}])


def merged(*batches: dict[str, Any]) -> dict[str, Any]:
    return decode(merge(b"{}", batches))


def defined(session: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    """What merging means, written for reading: over values, all of the session anew for each batch."""
    after = dict(session)
    for name, new in batch.items():
        if new is None or (name not in after and len(after) >= OBJECT_KEYS_MAX):
            continue
        after[name] = defined_value(name, after[name], new) if name in after else new
    before = session.get("fingerprint")
    if type(before) is str and before != after["fingerprint"]:
        after["fingerprintChanged"] = True
    return after if len(encode(after)) <= OBJECT_BYTES_MAX else session


def defined_value(name: str, old: Any, new: Any) -> Any:
    numbers = (int, float)
    if type(old) is bool and type(new) is bool:
        return old or new
    if type(old) in numbers and type(new) in numbers and name.endswith("Count"):
        return min(max(old + new, -sys.float_info.max), sys.float_info.max)
    if type(old) is list and type(new) is list:
        if all(type(item) in numbers for item in (*old, *new)):
            return [*old, *new][-NUMBERS_MAX:]
        if all(type(item) is str for item in (*old, *new)):
            return list(dict.fromkeys((*old, *new)))[-32:]
    return new


@settings(deadline=None)
@given(st.lists(st.one_of(OBJECTS, LONG), max_size=9), st.integers(0, 9))
def test_merging_is_what_it_is_defined_as_wherever_it_was_interrupted(
    batches: list[dict[str, Any]], cut: int
) -> None:
    expected: dict[str, Any] = {}
    for batch in batches:
        expected = defined(expected, batch)
    assert merge(b"{}", batches) == encode(expected)
    assert merge(merge(b"{}", batches[:cut]), batches[cut:]) == encode(expected)


def test_counts_add_up_lists_go_on_flags_stay_and_the_newest_of_the_rest_wins() -> None:
    first = {"clickCount": 2, "mouseMoves": 5, "keystrokeIntervals": [1, 2], "paste": True, "entropy": 0.2}
    second = {"clickCount": 3, "mouseMoves": 1, "keystrokeIntervals": [3], "paste": False, "entropy": 0.9}
    assert merged(first, second) == {
        "clickCount": 5,
        "mouseMoves": 6,
        "keystrokeIntervals": [1, 2, 3],
        "paste": True,
        "entropy": 0.9,
    }


def test_another_fingerprint_in_the_same_session_is_noted_and_stays_noted() -> None:
    assert merged({"fingerprint": "one"}, {"fingerprint": "two"})["fingerprintChanged"] is True
    assert merged({"fingerprint": "one"}, {"fingerprint": "two"}, {"fingerprint": "two"})[
        "fingerprintChanged"
    ]
    assert "fingerprintChanged" not in merged({"fingerprint": "one"}, {"fingerprint": "one"})


def test_a_session_takes_no_more_names_than_one_object() -> None:
    session = merged(*({f"name{number}": number} for number in range(OBJECT_KEYS_MAX + 9)))
    assert list(session.values()) == list(range(OBJECT_KEYS_MAX))


@settings(deadline=None)
@given(OBJECTS, OBJECTS)
def test_a_flag_that_was_ever_set_stays_set(session: dict[str, Any], own: dict[str, Any]) -> None:
    shown = overlay(session, own)
    for name, value in own.items():
        assert shown[name] == value or session[name] is True


def settle(
    book: SessionIndex, tenant: str, name: str, batches: dict[int, dict[str, Any]], now_ms: int
) -> None:
    """Merge what waits, as it is read from the store by its places."""
    while waiting := book.waiting(tenant, name, now_ms, 2):
        found = merge(waiting.signals, (batches[seq] for seq in waiting.seqs))
        book.settle(tenant, name, waiting, found)


def found(
    book: SessionIndex, name: str, batches: dict[int, dict[str, Any]], now_ms: int
) -> dict[str, Any] | None:
    settle(book, "ten", name, batches, now_ms)
    signals = book.find("ten", name, now_ms)
    return None if signals is None else decode(signals)


def test_a_session_goes_by_both_names_and_each_batch_counts_for_a_day_by_whole_hours() -> None:
    book = SessionIndex()
    batches = {1: {"clickCount": 1}, 2: {"clickCount": 2}}
    book.note("ten", {"sdk", "own"}, 1, 0)
    book.note("ten", {"sdk", "own"}, 2, 2 * HOUR_MS)
    for name in ("sdk", "own"):
        assert found(book, name, batches, BATCH_MS - HOUR_MS - 1) == {"clickCount": 3}
        assert found(book, name, batches, BATCH_MS) == {"clickCount": 2}
        assert found(book, name, batches, BATCH_MS + 2 * HOUR_MS) is None
        assert book.find("other", name, 0) is None
    book.forget(BATCH_MS + 2 * HOUR_MS)
    assert len(book) == 0
    assert counts_since(BATCH_MS) >= 0  # What counts is still stored: it is deleted after a day.


def test_batches_merged_by_another_meanwhile_are_not_merged_twice() -> None:
    book = SessionIndex()
    batches = {seq: {"clickCount": 1} for seq in range(5)}
    for seq in range(3):
        book.note("ten", ["s"], seq, 0)
    late = book.waiting("ten", "s", 0, 2)
    assert isinstance(late, WaitingBatches)
    assert found(book, "s", batches, 0) == {"clickCount": 3}
    book.settle("ten", "s", late, b'{"clickCount":2}')
    assert found(book, "s", batches, 0) == {"clickCount": 3}


def test_sessions_with_many_waiting_batches_are_named_once() -> None:
    book = SessionIndex()
    for seq in range(WAITING_MAX):
        assert book.crowded() == []
        book.note("ten", ["s"], seq, 0)
    assert book.crowded() == [("ten", "s")]
    assert book.crowded() == []


def test_the_sessions_longest_silent_are_forgotten_first() -> None:
    probe = SessionIndex()
    probe.note("ten", "a", 1, 0)
    book = SessionIndex(memory_bytes_max=2 * probe.usage.held_bytes + 16)
    for seq, name in enumerate(("a", "b", "a", "c")):
        book.note("ten", name, seq, seq)
    assert probe.usage.held_bytes > ENTRY_BYTES
    assert [name for name in "abc" if book.find("ten", name, 5)] == ["a", "c"]


def test_a_tenant_that_floods_loses_its_own_sessions_and_nobody_elses() -> None:
    book = SessionIndex(memory_bytes_max=1_000_000)
    for number in range(100):
        book.note("quiet", {f"q{number}"}, number, number)
    for number in range(2_000):
        book.note("flood", {f"f{number}"}, number, 1_000 + number)
        settle(book, "flood", f"f{number}", {number: {"blob": "x" * 20_000}}, 5_000)
    assert all(book.find("quiet", f"q{number}", 5_000) for number in range(100))
    assert book.find("flood", "f1999", 5_000)
    assert book.find("flood", "f0", 5_000) is None
    held, largest, evicted = book.usage
    assert held <= 1_000_000
    assert 900_000 < largest < held
    assert evicted == 2_100 - len(book)


def test_a_session_never_outgrows_the_bounds_of_one_object() -> None:
    session = merge(b"{}", ({f"name{number}": "x" * 3000} for number in range(50)))
    assert len(session) <= OBJECT_BYTES_MAX
    assert "name0" in decode(session)
