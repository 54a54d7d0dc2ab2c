"""Compares what the receivers of a simulated day saw with what the store says."""

from collections import defaultdict
from itertools import pairwise

from bench.simulation.simulated_worker import POLICY
from bench.simulation.simulated_world import Sent, World
from vettance.db.engine import Row


def check(world: World) -> None:
    """Hold what the receivers saw against what the store says."""
    day, found = world.day, world.found
    sent: dict[str, list[tuple[int, Sent]]] = defaultdict(list)
    for place, one in enumerate(world.sent):
        sent[one.delivery].append((place, one))
    unrecorded = 0
    for seq, identity, state, ever, lease in world.rows(
        "SELECT seq, id, state, attempts_ever, lease FROM delivery ORDER BY seq"
    ):
        rows = world.rows(
            "SELECT number, status, error, started_at_ms, duration_ms FROM attempt "
            "WHERE delivery = ? ORDER BY number",
            seq,
        )
        posts = sent.pop(identity, [])
        if state == "pending":
            found.append(f"{identity} was never settled")
            continue
        if lease is not None:
            found.append(f"{identity} is settled and still leased")
        if [row[0] for row in rows] != list(range(1, ever + 1)):
            found.append(f"{identity}: attempts {[row[0] for row in rows]} where there were {ever}")
        if state == "delivered" and identity not in world.taken:
            found.append(f"{identity} is said to be delivered and nobody took it")
        if state == "delivered" and (not rows or rows[-1][1] != 200):
            found.append(f"{identity} is delivered and its last attempt is not")
        if state == "exhausted" and (ever < 6 or any(row[2] is None for row in rows[-6:])):
            found.append(f"{identity} was given up too early")
        if ever > 6 * (1 + world.replayed[identity]):
            found.append(f"{identity} has {ever} attempts in the books")
        if len({one.body for _, one in posts}) > 1:
            found.append(f"{identity} was sent with different bytes")
        unrecorded += len(posts) - ever
        if ever > len(posts):
            found.append(f"{identity}: {ever} attempts are recorded, {len(posts)} were made")
        look_at_overlaps(world, identity, posts)
        if day.calm:
            look_at_pace(world, identity, rows)
    if sent:
        found.append(f"{len(sent)} deliveries were sent that the store does not know")
    if day.calm and unrecorded:
        found.append(f"{unrecorded} attempts were made twice on a calm day")


def look_at_overlaps(world: World, identity: str, posts: list[tuple[int, Sent]]) -> None:
    """Nothing is sent twice at the same time by workers that live, and nothing after its success is stored.

    Only a lease that ran out excuses it, for which a clock has to jump or a store to be slow or away.
    """
    day = world.day
    if day.jumps or day.slow_store or day.outages or day.lying_store:
        return
    for (place, one), (_, two) in pairwise(posts):
        ended_s = world.ended.get(place, (None, 0))[0]
        if ended_s is None:
            ended_s = one.worker.died_s if one.worker.died_s is not None else float("inf")
        if two.started_s < ended_s:
            world.found.append(f"{identity} was sent by two at the same time")
    done_s = world.delivered_at_s.get(identity)
    if (
        done_s is not None
        and not world.replayed[identity]
        and any(one.started_s > done_s for _, one in posts)
    ):
        world.found.append(f"{identity} was sent again after its success was stored")


def look_at_pace(world: World, identity: str, rows: list[Row]) -> None:
    """Retries come when promised; never earlier, and later only because the receiver's lane was full."""
    if world.replayed[identity]:
        return
    for before, after in pairwise(rows):
        gap = after[3] - before[3] - before[4]
        promised = POLICY.delays_ms[before[0] - 1]
        if gap < promised - 1:  # Durations are rounded to whole milliseconds.
            world.found.append(f"{identity}: retry {gap} ms after the failure, promised {promised}")
