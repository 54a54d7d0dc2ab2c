"""Snapshots: what is loaded answers bit for bit as what was dumped, and nothing damaged is loaded."""

import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.velocity.plans import EVERYTHING, HOUR, MINUTE, make_plan
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.memory.snapshot_format import SnapshotRefused
from vettance.velocity.port import Aggregate, Observation, Series

# Long runs of random events say as much as shrunken ones, and shrinking them takes minutes.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
NOW = 1_790_000_000_000


def observe_some(draw, velocities, count, start, *, pace_ms=3000, keys=30):
    """Let every engine observe the same events, and hold their answers equal to the last bit."""
    for step in range(start, start + count):
        late_ms = draw.choice([0, 0, 0, draw.randrange(2 * HOUR)])
        seen = Observation(
            (f"k{int(keys * draw.random() ** 4)}", draw.choice(["hot", 1, None])),
            draw.randrange(128),
            (
                draw.choice([None, draw.uniform(-10, 900), 3]),
                draw.choice([f"v{draw.randrange(40)}", True, 7]),
            ),
        )
        at_ms = NOW + step * pace_ms - late_ms
        answers = {repr(velocity.observe("A", f"e{step}", at_ms, seen)) for velocity in velocities}
        assert len(answers) == 1


@given(seed=st.integers(0, 2**32), before=st.sampled_from([0, 1, 50, 900]), cut=st.integers(1, 5000))
@settings(max_examples=10, deadline=None, phases=UNSHRUNK)
def test_a_loaded_memory_answers_bit_for_bit_as_the_original(seed, before, cut):
    draw = random.Random(seed)
    original, loaded = MemoryVelocity(), MemoryVelocity()
    original.install("A", EVERYTHING)
    observe_some(draw, [original], before, 0)
    snapshot = b"".join(original.dump("A"))
    loaded.load("A", EVERYTHING, (snapshot[at : at + cut] for at in range(0, len(snapshot), cut)))
    assert loaded.size("A") == original.size("A")
    # Among these are ids that were observed before the snapshot: they are still known.
    observe_some(draw, [original, loaded], 300, max(0, before - 20))
    assert b"".join(loaded.dump("A")) == b"".join(original.dump("A"))


def test_a_snapshot_is_of_the_moment_it_was_asked_for():
    original, loaded = MemoryVelocity(), MemoryVelocity()
    original.install("A", EVERYTHING)
    observe_some(random.Random(1), [original], 600, 0, keys=3)
    expected = b"".join(original.dump("A"))
    chunks = original.dump("A")
    observe_some(random.Random(2), [original], 200, 600, keys=3)
    assert b"".join(chunks) == expected
    loaded.load("A", EVERYTHING, [expected])
    assert loaded.size("A") != original.size("A")


def small_snapshot():
    velocity = MemoryVelocity()
    plan = make_plan((Series(0, 0, "numbers"),), (Aggregate("sum", 0, MINUTE),))
    velocity.install("A", plan)
    for step in range(400):
        velocity.observe("A", f"e{step}", NOW + step, Observation((f"k{step % 2 * step}",), 1, (step,)))
    return plan, b"".join(velocity.dump("A"))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_snapshot_with_any_byte_changed_is_refused(data):
    plan, snapshot = small_snapshot()
    place = data.draw(st.integers(0, len(snapshot) - 1))
    damaged = bytearray(snapshot)
    damaged[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SnapshotRefused):
        MemoryVelocity().load("A", plan, [bytes(damaged)])


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_snapshot_that_is_cut_short_is_refused(data):
    plan, snapshot = small_snapshot()
    with pytest.raises(SnapshotRefused):
        MemoryVelocity().load("A", plan, [snapshot[: data.draw(st.integers(0, len(snapshot) - 1))]])


def test_a_refused_snapshot_leaves_the_memory_as_it_is():
    plan, snapshot = small_snapshot()
    other = plan._replace(aggregates=(Aggregate("sum", 0, HOUR),))
    velocity = MemoryVelocity()
    velocity.install("A", other)
    seen = Observation(("k",), 1, (5,))
    velocity.observe("A", "e1", NOW, seen)
    with pytest.raises(SnapshotRefused, match="another plan"):
        velocity.load("A", other, [snapshot])
    with pytest.raises(SnapshotRefused, match="damaged"):
        velocity.load("A", plan, [snapshot, snapshot])
    assert velocity.observe("A", "e2", NOW, seen).values == (5.0,)
