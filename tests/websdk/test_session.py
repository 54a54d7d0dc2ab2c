"""What batches of one session say together, and for how long."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.tenant_cache import ENTRY_BYTES
from vettance.websdk.session import NUMBERS_MAX, SESSION_MS, SessionBook, merge, overlay
from vettance.wire import OBJECT_BYTES_MAX, OBJECT_KEYS_MAX, decode

SCALARS = st.one_of(st.booleans(), st.integers(0, 10**6), st.floats(0, 1e6), st.text(max_size=20))
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "clickCount", "paste", "list", "texts", "fingerprint", "nested"]),
    st.one_of(SCALARS, st.lists(st.integers(0, 999), max_size=9), st.lists(st.text(max_size=5), max_size=5)),
)


def test_counts_add_up_lists_go_on_flags_stay_and_the_newest_of_the_rest_wins() -> None:
    first = {"clickCount": 2, "mouseMoves": 5, "keystrokeIntervals": [1, 2], "paste": True, "entropy": 0.2}
    second = {"clickCount": 3, "mouseMoves": 1, "keystrokeIntervals": [3], "paste": False, "entropy": 0.9}
    assert merge(first, second) == {
        "clickCount": 5,
        "mouseMoves": 6,
        "keystrokeIntervals": [1, 2, 3],
        "paste": True,
        "entropy": 0.9,
    }


def test_another_fingerprint_in_the_same_session_is_noted_and_stays_noted() -> None:
    session = merge(merge({}, {"fingerprint": "one"}), {"fingerprint": "two"})
    assert session["fingerprintChanged"] is True
    assert merge(session, {"fingerprint": "two"})["fingerprintChanged"] is True
    assert "fingerprintChanged" not in merge({"fingerprint": "one"}, {"fingerprint": "one"})


@settings(deadline=None)
@given(st.lists(OBJECTS, max_size=8))
def test_merging_never_changes_what_it_was_given_and_stays_bounded(batches: list[dict[str, Any]]) -> None:
    session: dict[str, Any] = {}
    for batch in batches:
        before = (repr(session), repr(batch))
        merged = merge(session, batch)
        assert (repr(session), repr(batch)) == before
        session = merged
    assert len(session) <= OBJECT_KEYS_MAX
    assert all(len(value) <= NUMBERS_MAX for value in session.values() if isinstance(value, list))


@settings(deadline=None)
@given(OBJECTS, OBJECTS)
def test_a_flag_that_was_ever_set_stays_set(session: dict[str, Any], own: dict[str, Any]) -> None:
    shown = overlay(session, own)
    for name, value in own.items():
        assert shown[name] == value or session[name] is True


def test_a_session_goes_by_both_names_and_ends_a_day_after_its_last_batch() -> None:
    book = SessionBook()
    book.take("ten", {"sdk", "own"}, {"clickCount": 1}, 0)
    book.take("ten", {"sdk", "own"}, {"clickCount": 1}, SESSION_MS - 1)
    for name in ("sdk", "own"):
        found = book.find("ten", name, SESSION_MS + 5)
        assert found is not None
        assert decode(found) == {"clickCount": 2}
        assert book.find("ten", name, 2 * SESSION_MS) is None
        assert book.find("other", name, 0) is None
    book.forget(2 * SESSION_MS)
    assert len(book) == 0


def test_a_session_that_is_over_begins_anew() -> None:
    book = SessionBook()
    book.take("ten", {"s"}, {"clickCount": 7}, 0)
    book.take("ten", {"s"}, {"clickCount": 1}, SESSION_MS)
    assert decode(book.find("ten", "s", SESSION_MS) or b"") == {"clickCount": 1}


def test_the_sessions_longest_silent_are_forgotten_first() -> None:
    book = SessionBook(memory_bytes_max=2 * (ENTRY_BYTES + len("a") + len('{"x":1}')))
    for moment, name in enumerate(("a", "b", "a", "c")):
        book.take("ten", {name}, {"x": 1}, moment)
    assert [name for name in "abc" if book.find("ten", name, 5)] == ["a", "c"]


def test_a_tenant_that_floods_loses_its_own_sessions_and_nobody_elses() -> None:
    book = SessionBook(memory_bytes_max=1_000_000)
    for number in range(100):
        book.take("quiet", {f"q{number}"}, {"fingerprint": f"{number}"}, number)
    for number in range(2_000):
        book.take("flood", {f"f{number}"}, {"blob": "x" * 20_000}, 1_000 + number)
    assert all(book.find("quiet", f"q{number}", 5_000) for number in range(100))
    assert book.find("flood", "f1999", 5_000)
    assert book.find("flood", "f0", 5_000) is None
    held, largest, evicted = book.usage
    assert held <= 1_000_000
    assert 900_000 < largest < held
    assert evicted == 2_100 - len(book)


def test_a_session_never_outgrows_the_bounds_of_one_object() -> None:
    book = SessionBook()
    for number in range(50):
        book.take("ten", {"s"}, {f"name{number}": "x" * 3000}, number)
    found = book.find("ten", "s", 50)
    assert found is not None
    assert len(found) <= OBJECT_BYTES_MAX
    assert "name0" in decode(found)
