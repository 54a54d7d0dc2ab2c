"""A start that takes long says what it is doing."""

import asyncio

from structlog.testing import capture_logs

from vettance.ops.start_progress import StartProgress, reporting


async def test_a_long_start_tells_its_step_and_how_far_it_is() -> None:
    progress = StartProgress()
    with capture_logs() as lines:
        async with reporting(progress, every_s=0.02):
            progress.begin("opening the store")
            await asyncio.sleep(0.05)
            progress.begin("reading events")
            progress.count(7)
            await asyncio.sleep(0.05)
        count = len(lines)
        await asyncio.sleep(0.05)
    steps = [(line["step"], line["events"]) for line in lines]
    assert ("opening the store", 0) in steps
    assert steps[-1] == ("reading events", 7)
    assert len(lines) == count


async def test_a_short_start_says_nothing() -> None:
    with capture_logs() as lines:
        async with reporting(StartProgress()):
            pass
    assert lines == []
