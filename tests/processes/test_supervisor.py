"""A supervisor keeps a real process running: killed, crashing at once, unable to start, or slow to stop."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from vettance.processes.supervisor import Backoff, Supervisor, ended, spawn

QUICK = Backoff(pause_s_min=0.02, pause_s_max=0.1, steady_s=30.0)
PATIENCE_S = 30.0

Start = Callable[[], Awaitable[subprocess.Popen[bytes]]]

#: Waits for ever.
SLEEPS = "import time; time.sleep(600)"
#: Ends at once.
CRASHES = "raise SystemExit(3)"
#: Says that it is deaf to SIGTERM, and waits for ever.
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf'); time.sleep(600)"


class Child:
    """Starts a Python program, and remembers when."""

    def __init__(self, program: str, stdout: int = subprocess.DEVNULL) -> None:
        self._program = program
        self._stdout = stdout
        self.started_s: list[float] = []

    async def start(self) -> subprocess.Popen[bytes]:
        self.started_s.append(time.monotonic())
        return await asyncio.to_thread(
            subprocess.Popen, [sys.executable, "-u", "-c", self._program], stdout=self._stdout
        )

    @property
    def pauses_s(self) -> list[float]:
        return [later - sooner for sooner, later in zip(self.started_s, self.started_s[1:], strict=False)]


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - processes come and go
            await asyncio.sleep(0.01)


def logged(capsys: pytest.CaptureFixture[str], event: str) -> list[str]:
    return [line for line in "".join(capsys.readouterr()).splitlines() if event in line]


async def test_a_killed_process_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    child, codes, restarts = Child(SLEEPS), [], []

    async def on_end(code: int) -> bool:
        codes.append(code)
        return True

    supervisor = Supervisor(
        "sleeper",
        child.start,
        QUICK,
        stop_s_max=5.0,
        on_end=on_end,
        restarted=lambda: restarts.append(1),
        details=lambda: {"number": 7},
    )
    supervisor.ensure()
    supervisor.ensure()
    for _ in range(2):
        await until(lambda: supervisor.lives)
        before = supervisor.pid
        os.kill(before, signal.SIGKILL)
        await until(lambda before=before: supervisor.lives and supervisor.pid != before)
    assert codes == [-signal.SIGKILL] * 2
    assert len(restarts) == 2
    (first, _) = logged(capsys, "sleeper_ended")
    assert "number=7" in first
    assert "code=-9" in first
    await supervisor.stop()
    assert not supervisor.lives
    assert len(child.started_s) == 3


async def test_a_process_that_crashes_at_once_is_started_ever_more_seldom() -> None:
    child = Child(CRASHES)
    supervisor = Supervisor("crasher", child.start, Backoff(0.05, 0.4, 30.0), stop_s_max=5.0)
    supervisor.ensure()
    await until(lambda: len(child.started_s) == 6)
    for pause_s, least_s in zip(child.pauses_s, (0.05, 0.1, 0.2, 0.4, 0.4), strict=True):
        assert pause_s >= least_s
    began_s = time.monotonic()
    await supervisor.stop()
    assert time.monotonic() - began_s < 2.0, "a pause does not hold up the stop"


async def test_after_a_steady_run_the_pauses_are_short_again() -> None:
    child = Child(CRASHES)
    supervisor = Supervisor("crasher", child.start, Backoff(0.02, 10.0, 0.0), stop_s_max=5.0)
    supervisor.ensure()
    await until(lambda: len(child.started_s) == 12)  # It would take 40 s if they grew.
    await supervisor.stop()


async def test_a_process_that_does_not_stop_is_killed_at_its_deadline() -> None:
    child = Child(DEAF, subprocess.PIPE)
    supervisor = Supervisor("deaf", child.start, QUICK, stop_s_max=0.3)
    await supervisor.begin()
    process = supervisor._process
    assert process is not None
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == b"deaf\n"
    began_s = time.monotonic()
    await supervisor.stop()
    assert 0.3 <= time.monotonic() - began_s < 5.0
    assert process.returncode == -signal.SIGKILL
    process.stdout.close()


async def test_a_process_that_cannot_be_started_is_tried_again_and_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    child, tries = Child(SLEEPS), []

    async def start() -> subprocess.Popen[bytes]:
        tries.append(1)
        if len(tries) < 5:
            raise OSError(24, "Too many open files")
        return await child.start()

    supervisor = Supervisor("starved", start, QUICK, stop_s_max=5.0, failed=tries.append)
    with pytest.raises(OSError):
        await supervisor.begin()
    tries.clear()
    supervisor.ensure()
    await until(lambda: supervisor.lives)
    assert len(logged(capsys, "starved_not_started")) == 1
    await supervisor.stop()


async def test_what_ends_for_good_is_not_started_again() -> None:
    child = Child(CRASHES)

    async def on_end(code: int) -> bool:
        return code != 3

    supervisor = Supervisor("refuser", child.start, QUICK, stop_s_max=5.0, on_end=on_end)
    supervisor.ensure()
    await asyncio.wait_for(supervisor.wait(), PATIENCE_S)
    assert len(child.started_s) == 1


async def test_one_that_is_stopped_while_it_starts_is_asked_to_end() -> None:
    child, go = Child(SLEEPS), asyncio.Event()

    async def start() -> subprocess.Popen[bytes]:
        await go.wait()
        return await child.start()

    supervisor = Supervisor("late", start, QUICK, stop_s_max=10.0)
    supervisor.ensure()
    await asyncio.sleep(0)
    stopping = asyncio.create_task(supervisor.stop())
    await asyncio.sleep(0.05)
    go.set()
    await asyncio.wait_for(stopping, PATIENCE_S)
    assert len(child.started_s) == 1
    assert not supervisor.lives


async def test_a_process_that_should_have_ended_is_killed() -> None:
    child = Child(SLEEPS)
    supervisor = Supervisor("lingerer", child.start, QUICK, stop_s_max=5.0)
    await supervisor.begin()
    before = supervisor.pid
    supervisor.kill_after(0.05)
    await until(lambda: supervisor.lives and supervisor.pid != before)
    await asyncio.sleep(0.2)
    assert supervisor.lives, "its successor is left alone"
    await supervisor.stop()


async def test_the_end_of_a_process_is_noticed_where_the_system_cannot_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert await asyncio.wait_for(ended(await Child(CRASHES).start()), PATIENCE_S) == 3


@pytest.mark.parametrize("shielded", [True, False])
async def test_a_spawned_module_inherits_descriptors_and_is_shielded_if_asked(shielded: bool) -> None:
    waits = ("timeit", "-n", "1", "-r", "1", "import time; time.sleep(600)")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = await spawn(*waits, descriptors=(theirs.fileno(),), shielded=shielded)
        about = Path(f"/proc/{process.pid}")
        status = await asyncio.to_thread((about / "status").read_text)
        assert await asyncio.to_thread((about / "fd" / str(theirs.fileno())).is_socket)
    blocked = int(status.split("SigBlk:")[1].split()[0], 16)
    assert bool(blocked >> (signal.SIGTERM - 1) & 1) is shielded
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()), "the mask of this process is as before"
    process.kill()
    assert await asyncio.wait_for(ended(process), PATIENCE_S) == -signal.SIGKILL
