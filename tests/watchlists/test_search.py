"""Processes that search for another answer what it would find, in time or never, and are replaced."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.watchlists.listed import entity
from vettance.watchlists import search
from vettance.watchlists.index import Index
from vettance.watchlists.index_build import META_FILE, build_index
from vettance.watchlists.match import Subject
from vettance.watchlists.search import IndexGone, Searchers
from vettance.watchlists.search_processes import SearchFault
from vettance.watchlists.tenant_index import Reach

PATIENCE_S = 100.0
ROSALIND = Subject(name="Rosalynd Achterberg")
LEAST = 50


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - nothing tells when processes come and go
            await asyncio.sleep(0.01)


@pytest.fixture
async def searchers(reach: Reach) -> AsyncIterator[Searchers]:
    one = Searchers(1, LEAST)
    assert not one.ensure(reach.folders[0])
    await until(one.ensure)
    yield one
    await one.close()
    assert one.pids == ()


@pytest.fixture
def reach(tmp_path: Path) -> Reach:
    """The index of everybody and one of a tenant's own."""
    build_index(
        tmp_path / "all", [entity("Rosalind Achterberg", 1), entity("Otto Brakspear", 2)], {"sample": "1"}
    )
    build_index(tmp_path / "own", [entity("Rosalind Achterbergh", 3)], {"csv": "1"})
    base = Index(tmp_path / "all")
    return Reach([base, Index(tmp_path / "own", base)])


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """An index that nobody ever finishes opening."""
    folder = tmp_path / "endless"
    folder.mkdir()
    os.mkfifo(folder / META_FILE)
    return folder


async def test_a_process_finds_what_this_one_would_find(searchers: Searchers, reach: Reach) -> None:
    expected = [match for match in reach.search(ROSALIND) if match.score >= LEAST]
    assert {match.entity.id for match in expected} == {"csv:1", "csv:3"}
    found = await asyncio.gather(*(searchers.search(reach.folders, ROSALIND, PATIENCE_S) for _ in range(20)))
    assert found == [expected] * 20
    assert await searchers.search(reach.folders[:1], Subject(name="Wilhelmina Oakes"), PATIENCE_S) == []


async def test_an_index_that_is_gone_is_told_apart(
    searchers: Searchers, reach: Reach, tmp_path: Path
) -> None:
    with pytest.raises(IndexGone):
        await searchers.search([tmp_path / "removed"], ROSALIND, PATIENCE_S)
    assert await searchers.search(reach.folders, ROSALIND, PATIENCE_S)


async def test_past_its_deadline_a_search_is_given_up_by_whoever_makes_it(
    searchers: Searchers, reach: Reach, endless: Path
) -> None:
    pids = searchers.pids
    with pytest.raises(TimeoutError):
        await searchers.search([endless], ROSALIND, 0.2)
    assert await searchers.search(reach.folders, ROSALIND, PATIENCE_S)
    assert searchers.pids == pids


async def test_requests_of_a_process_that_is_killed_are_answered_by_the_next(
    searchers: Searchers, reach: Reach
) -> None:
    (pid,) = searchers.pids
    os.kill(pid, signal.SIGSTOP)
    asked = [asyncio.create_task(searchers.search(reach.folders, ROSALIND, PATIENCE_S)) for _ in range(5)]
    await asyncio.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    assert all(await asyncio.gather(*asked))
    assert searchers.pids != (pid,)


async def test_a_request_outlives_that_all_processes_are_killed_at_once(reach: Reach) -> None:
    several = Searchers(3, LEAST)
    several.ensure(reach.folders[0])
    await until(lambda: len(several.pids) == 3)
    for pid in several.pids:
        os.kill(pid, signal.SIGKILL)
    # Nobody has noticed yet, so it is handed from one dead process to the next.
    assert await several.search(reach.folders, ROSALIND, PATIENCE_S)
    await several.close()


async def test_a_request_is_refused_when_more_processes_end_under_it_than_there_are(
    searchers: Searchers, endless: Path
) -> None:
    asked = asyncio.create_task(searchers.search([endless], ROSALIND, PATIENCE_S))
    for _ in range(2):
        await until(lambda: bool(searchers.pids))
        (pid,) = searchers.pids
        os.kill(pid, signal.SIGKILL)
        await until(lambda pid=pid: searchers.pids != (pid,))  # type: ignore[misc]
    with pytest.raises(SearchFault):
        await asked


async def test_a_process_that_does_not_live_is_ended_and_replaced(
    searchers: Searchers, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "STUCK_S", 0.1)
    (pid,) = searchers.pids
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        await searchers.search(reach.folders, ROSALIND, 0.1)
    assert await searchers.search(reach.folders, ROSALIND, PATIENCE_S)
    assert searchers.pids != (pid,)


async def test_without_processes_nobody_can_be_asked() -> None:
    none = Searchers(0, LEAST)
    assert not none.ensure()
    await none.close()


@pytest.mark.parametrize("after_s", [0, 0.02, 0.1, 0.3, 1.0])
async def test_closing_ends_a_process_that_is_still_starting(reach: Reach, after_s: float) -> None:
    one = Searchers(1, LEAST)
    one.ensure(reach.folders[0])
    await asyncio.sleep(after_s)
    async with asyncio.timeout(PATIENCE_S):
        await one.close()
    assert one.pids == ()
