"""Peers: what is rare among customers of one kind and income, within bounds of each tenant."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vettance.aml.aml_event import AmlEvent, read_taken_aml_event
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.features import aml_schema
from vettance.aml.peers import (
    GROUPS_MAX,
    MEMBERS_MIN,
    SAMPLES_MAX,
    SAMPLES_MIN,
    STEPS_MAX,
    PeerGroup,
    Peers,
    grown,
)
from vettance.aml.used_ids import UsedIds
from vettance.clock import DAY_MS
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity

NOW = 1_790_000_000_000
PLAN = compile_ruleset(load_pack("aml"), aml_schema()).plan


def group_of(turnovers: list[float]) -> PeerGroup:
    group = PeerGroup([0] * STEPS_MAX, members=MEMBERS_MIN)
    for turnover in turnovers:
        group.add(turnover)
    return group


def incoming(customer: str, amount: float, at_ms: int, **metadata: Any) -> AmlEvent:
    told = {"amount": amount, "direction": "in", "counterpartyId": "job", "segment": "person", **metadata}
    body = {
        "eventName": "transfer",
        "externalEventId": f"{customer}-{at_ms}",
        "customer": {"externalId": customer},
        "sourceReportedAt": at_ms / 1000,
        "metadata": told,
    }
    return read_taken_aml_event(body, NOW + 2 * DAY_MS)


def a_memory() -> AmlMemory:
    memory = AmlMemory(MemoryVelocity())
    memory.install("t", PLAN)
    return memory


def test_a_turnover_is_held_against_those_of_its_peers() -> None:
    group = group_of([100.0] * (SAMPLES_MIN - 1))
    assert group.share_above(5.0) is None
    group.add(100_000.0)
    assert group.share_above(50.0) == 1.0
    assert group.share_above(5_000.0) == 1 / SAMPLES_MIN
    assert group.share_above(10**7) == 0.0
    group.members = MEMBERS_MIN - 1
    assert group.share_above(50.0) is None


@given(st.lists(st.floats(0, 1e308), min_size=1, max_size=40))
def test_any_amount_has_a_step_and_a_turnover_within_bounds(amounts: list[float]) -> None:
    turnover = 0.0
    group = group_of([])
    for amount in amounts:
        turnover = grown(turnover, 1_000, amount)
        group.add(turnover)
    assert group.samples == sum(group.steps) == len(amounts)


def test_old_turnovers_fade_out_of_a_customer_and_of_its_group() -> None:
    assert grown(1_000.0, 300 * DAY_MS, 0.0) < 0.1
    assert grown(1_000.0, -DAY_MS, 5.0) == 1_005.0
    group = group_of([10.0] * (SAMPLES_MAX - 1))
    group.add(10.0)
    assert group.samples == SAMPLES_MAX // 2


def test_groups_are_bounded() -> None:
    peers = Peers()
    for number in range(GROUPS_MAX):
        assert peers.group("person", f"C{number}", 1_000.0) is not None
    assert peers.group("person", "C0", 1_010.0) is peers.groups["person:C0:20"]
    assert peers.group("person", "BEYOND", 1_000.0) is None
    assert len(peers.groups) == GROUPS_MAX


def test_a_customer_counts_once_a_day_and_a_snapshot_keeps_its_group() -> None:
    memory = a_memory()
    for minute in range(60):
        memory.follow("t", incoming("busy", 10.0, NOW + minute * 60_000))
    for number in range(SAMPLES_MIN):
        memory.follow("t", incoming(f"c{number}", 100.0, NOW + DAY_MS // 2))
    (group,) = memory._books["t"].peers.groups.values()
    assert (group.samples, group.members) == (SAMPLES_MIN + 1, SAMPLES_MIN + 1)
    late = incoming("rich", 50_000.0, NOW + DAY_MS)
    other = a_memory()
    memory.known["t"] = UsedIds()
    held = list(memory.dump("t"))
    assert memory.follow("t", late).trail.peers_above == 0.0
    other.load("t", PLAN, held)
    assert other.follow("t", late).trail.peers_above == 0.0
    assert other.follow("t", incoming("poor", 1.0, NOW + DAY_MS)).trail.peers_above == 1.0
    # Another kind of customer has no peers yet.
    assert other.follow("t", incoming("firm", 1.0, NOW, segment="business")).trail.peers_above is None
