"""kill -9 in the middle of load: what was acknowledged is there, and nothing is half there."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench import BENCH
from tests.db.rows import decided
from vettance.db.migrate import migrate
from vettance.db.sqlite import SqliteStore


def _run(*arguments: str, told: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, BENCH, "crash", *arguments],
        input=told,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("writer", "rounds"), [("process", 6), ("thread", 3)])
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(writer: str, rounds: int) -> None:
    code, told = _run("--rounds", str(rounds), "--writer", writer)
    assert code == 0, told
    assert ", 0 lost" in told


async def test_the_crash_check_finds_what_is_missing(path: Path) -> None:
    migrate(path)
    kept, lost, half = (f"evt_{letter * 32}" for letter in "abc")
    async with await SqliteStore.open(path, writer="thread") as store:
        await store.write(*decided(kept))
    data = str(path.parent)
    assert _run("--check", data, told=kept) == (0, "sound, nothing lost\n")
    assert _run("--check", data, told=f"{kept}\n{lost}") == (1, "1 acknowledged events are lost\n")
    async with await SqliteStore.open(path, writer="thread") as store:
        await store.write(decided(half)[0])
    code, told = _run("--check", data, told=kept)
    assert code == 1
    assert told == "1 events without exactly one decision\n1 events without exactly one message\n"
