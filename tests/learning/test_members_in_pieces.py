"""What a tenant's events can be counted by is found in pieces, with others in between."""

import asyncio

import pytest

from vettance.fairness import time_slice
from vettance.learning.change_features import count_members
from vettance.models.discovery import discover
from vettance.wire.payload import decode, encode

BODIES = [
    encode({"customer": {"externalId": f"c{n % 40}"}, "metadata": {"amount": n, "terminalId": f"t{n % 20}"}})
    for n in range(300)
]


async def test_the_loop_is_left_to_others_between_two_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slice, "SLICE_S", -1.0)
    looking = asyncio.create_task(count_members(BODIES))
    turns = 0
    while not looking.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= len(BODIES)
    assert looking.result().members() == discover(map(decode, BODIES))


async def test_events_that_cannot_be_read_are_left_out() -> None:
    counts = await count_members([b"{", *BODIES, b"\xff", b"[]"])
    assert counts.members() == discover(map(decode, BODIES))
    assert not len(await count_members([b"{"]))
