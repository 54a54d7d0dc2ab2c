"""Feedback on one event, given to several processes: the newest label counts, and none is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.redis_link.redis_server import SECRET, PrivateRedis
from tests.velocity.redis_processes import TENANT, Process, document, processes, until
from vettance.decisions.evaluated_event import EvaluatedEvent
from vettance.decisions.take_label import LabelTaker
from vettance.feedback import sql as feedback_sql
from vettance.feedback.label import Feedback, FeedbackTarget, Label
from vettance.feedback.label_change import truth_of
from vettance.ids import IdSource
from vettance.redis_link.redis_claims import SharedClaims
from vettance.rules.sql import DECIDING

LABELLING = document('frauds(by=ip, within="1h")', 'legits(by=ip, within="1h")')


class Desk:
    """What takes feedback in one process."""

    def __init__(self, process: Process) -> None:
        self.ids = IdSource()
        self.take = LabelTaker(process.store, process.evaluator, SharedClaims(process.line, SECRET)).take

    def say(self, evaluated: EvaluatedEvent, label: Label, now_ms: int | None = None) -> Feedback:
        """Make feedback, as a request does before it waits for others."""
        return Feedback(
            id=self.ids.make("fbk", now_ms),
            tenant=TENANT,
            target=evaluated.id,
            type=FeedbackTarget.EVENT,
            label=label,
            notes=None,
            external_case_id=None,
            created_at_ms=1,
            updated_at_ms=1,
        )


@pytest.fixture
async def two(tmp_path: Path, server: PrivateRedis) -> AsyncIterator[tuple[Process, Process]]:
    async with processes(tmp_path, server.url) as (one, other):
        await one.store.write(DECIDING.insert(TENANT, 2, LABELLING, "", 1))
        for process in (one, other):
            await process.memory.reload(TENANT)
            await until(lambda at=process: at.memory.rules[TENANT].version == 2)  # type: ignore[misc]
        yield one, other


async def counted(process: Process) -> list[Any]:
    """How many events of the address were fraud, and how many legitimate."""
    return await process.answers(await process.decide())


async def test_all_feedback_that_comes_at_once_is_taken_and_the_newest_counts(
    two: tuple[Process, Process],
) -> None:
    desks = [Desk(process) for process in two]
    frauds = 0
    for turn in range(10):
        happened = await two[0].decide()
        labels = [(Label.FRAUD, Label.LEGIT, Label.TRUE_POSITIVE)[(turn + place) % 3] for place in range(6)]
        said = [desks[place % 2].say(happened, label) for place, label in enumerate(labels)]
        await asyncio.gather(*[desks[place % 2].take(one, ()) for place, one in enumerate(said)])
        kept = await two[1].store.read(feedback_sql.select_feedback(TENANT, (happened.id,)))
        assert len(kept) == 6
        frauds += truth_of(Label(row[4]) for row in kept) is True
        assert await counted(two[1]) == [frauds, turn + 1 - frauds]


async def test_what_was_said_earlier_and_is_kept_later_does_not_win(two: tuple[Process, Process]) -> None:
    one, other = two
    happened = await one.decide()
    earlier = Desk(one).say(happened, Label.LEGIT, 1_800_000_000_000)
    await Desk(other).take(Desk(other).say(happened, Label.FRAUD, 1_800_000_000_001), ())
    await Desk(one).take(earlier, ())
    assert await counted(one) == await counted(other) == [1, 0]
