"""The memory of AML: a snapshot is of one moment, answers as the original would, and refuses damage."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.aml.aml_event import AmlEvent, read_taken_aml_event
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.features import aml_schema
from vettance.aml.used_ids import UsedIds
from vettance.generate.aml_stream import Watch, aml_events
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.memory.snapshot_format import SnapshotRefused
from vettance.velocity.port import VelocityAnswer
from vettance.wire.payload import read_timestamp

COMPILED = compile_ruleset(load_pack("aml"), aml_schema())
PLAN = COMPILED.plan


def events() -> Iterator[AmlEvent]:
    for _, body in aml_events(Watch(customers=25, days=40, seed=3, cases=1)):
        at_ms = read_timestamp(body["sourceReportedAt"])
        assert at_ms is not None
        yield read_taken_aml_event(body, at_ms)


def observe(memory: AmlMemory, number: int, event: AmlEvent) -> tuple[AmlEvent, VelocityAnswer]:
    followed = memory.follow("t", event)
    seen = COMPILED.observe(COMPILED.facts(followed))
    return followed, memory.observe("t", f"evt-{number}", event.occurred_at_ms, seen)


def fresh() -> AmlMemory:
    memory = AmlMemory(MemoryVelocity())
    memory.install("t", PLAN)
    memory.known["t"] = UsedIds()
    return memory


NAMED = {"counterpartyId": "holder", "counterpartyAccount": "account-1"}
ONLY_ITS_ACCOUNT = {"counterpartyAccount": "account-1"}


def receiver_of(memory: AmlMemory, number: int, other: dict[str, str]) -> str | None:
    """Pay somebody, and return under which key they are known."""
    body = {
        "eventName": "transfer",
        "externalEventId": f"named-{number}",
        "customer": {"externalId": f"payer-{number}"},
        "metadata": {"amount": 50, "direction": "out", **other},
    }
    return memory.follow("t", read_taken_aml_event(body, 1_790_000_000_000 + number)).trail.receiver


def act(memory: AmlMemory, **metadata: str) -> None:
    body = {
        "eventName": "card.payment",
        "externalEventId": "of-the-holder",
        "customer": {"externalId": "holder"},
        "metadata": {"amount": 5, "direction": "out", **metadata},
    }
    memory.follow("t", read_taken_aml_event(body, 1_790_000_000_000))


def test_an_account_that_a_payer_named_with_a_customer_is_the_customers() -> None:
    memory = fresh()
    act(memory)
    assert receiver_of(memory, 1, ONLY_ITS_ACCOUNT) == "a:account-1"
    assert receiver_of(memory, 2, NAMED) == "p:holder"
    assert receiver_of(memory, 3, ONLY_ITS_ACCOUNT) == "p:holder"


def test_a_second_account_named_with_the_first_is_the_customers() -> None:
    memory = fresh()
    act(memory, accountId="account-0")
    both = {"counterpartyId": "account-0", "counterpartyAccount": "account-1"}
    assert receiver_of(memory, 1, both) == "p:holder"
    assert receiver_of(memory, 2, ONLY_ITS_ACCOUNT) == "p:holder"


def test_an_account_is_of_the_customer_who_acts_on_it_whatever_payers_called_its_holder() -> None:
    memory = fresh()
    assert receiver_of(memory, 1, {**NAMED, "counterpartyId": "H. Older"}) == "p:H. Older"
    act(memory, accountId="account-1")
    assert receiver_of(memory, 2, ONLY_ITS_ACCOUNT) == "p:holder"
    assert receiver_of(memory, 3, {**NAMED, "counterpartyId": "H. Older"}) == "p:holder"


def test_a_snapshot_answers_as_the_original_whatever_happens_while_it_is_read() -> None:
    original, stream = fresh(), list(events())
    half = len(stream) // 2
    for number, event in enumerate(stream[:half]):
        original.known["t"].add(event.external_id)
        observe(original, number, event)
    snapshot = original.dump("t")
    answers = [observe(original, number, event) for number, event in enumerate(stream[half:], half)]
    pieces = b"".join(snapshot)

    copy = AmlMemory(MemoryVelocity())
    copy.load("t", PLAN, [pieces[:100], pieces[100:5000], pieces[5000:]])
    assert all(copy.known["t"].may_hold(event.external_id) for event in stream[:half])
    assert [observe(copy, number, event) for number, event in enumerate(stream[half:], half)] == answers
    assert any(followed.trail.cycle or followed.trail.chain > 2 for followed, _ in answers)


def test_a_damaged_or_cut_snapshot_is_refused_and_changes_nothing() -> None:
    memory = fresh()
    for number, event in zip(range(200), events(), strict=False):
        observe(memory, number, event)
    pieces = b"".join(memory.dump("t"))
    other = fresh()
    marked = other.known["t"]
    for place in (0, 30, len(pieces) // 3, len(pieces) - 10):
        damaged = bytearray(pieces)
        damaged[place] ^= 0x41
        with pytest.raises(SnapshotRefused):
            other.load("t", PLAN, [bytes(damaged)])
    for size in (0, 3, 500, len(pieces) - 1):
        with pytest.raises(SnapshotRefused):
            other.load("t", PLAN, [pieces[:size]])
    with pytest.raises(SnapshotRefused):
        other.load("t", PLAN._replace(keys=("else",)), [pieces])
    assert other.known["t"] is marked
    first = next(events())
    assert observe(other, 0, first) == observe(fresh(), 0, first)


@given(st.lists(st.text(max_size=20), max_size=60), st.lists(st.text(max_size=20), max_size=60))
def test_a_used_id_is_never_taken_for_a_new_one(used: list[str], others: list[str]) -> None:
    known = UsedIds()
    for name in used:
        known.add(name)
    copy = UsedIds.load(known.dump())
    for name in used:
        assert known.may_hold(name)
        assert copy.may_hold(name)
    assert [copy.may_hold(name) for name in others] == [known.may_hold(name) for name in others]


def test_a_new_id_seldom_costs_a_query() -> None:
    known = UsedIds()
    for number in range(150_000):  # beyond the room of the first layer
        known.add(f"tx-{number}")
    assert all(known.may_hold(f"tx-{number}") for number in range(0, 150_000, 7))
    mistaken = sum(known.may_hold(f"other-{number}") for number in range(10_000))
    assert mistaken < 300


def test_an_event_far_in_the_past_does_not_say_for_how_long_a_tenant_was_watched() -> None:
    memory = fresh()
    now_ms = 1_790_000_000_000

    def watched(customer: str, at_s: float) -> float:
        body = {
            "eventName": "transfer",
            "externalEventId": customer,
            "customer": {"externalId": customer},
            "metadata": {"amount": 50, "direction": "out"},
            "timestamp": at_s,
        }
        followed = memory.follow("t", read_taken_aml_event(body, now_ms))
        assert followed.trail.watched_days is not None
        return followed.trail.watched_days

    watched("first", now_ms / 1000 - 86_400)
    watched("stray", now_ms / 1_000_000)
    assert watched("next", now_ms / 1000) == pytest.approx(400)
