"""Supervise: start a child process, watch it, start it again when it ends, and stop it in time."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.telemetry.logs import logger

#: How often a child is looked at where the system cannot tell of its end (macOS), or has no file for that.
_POLL_S: Final = 0.05

_log = logger()


class Backoff(NamedTuple):
    """The pauses between the end of a child and its next start: each twice as long as the one before.

    After a child that ran for `steady_s` they begin with the shortest again.
    """

    pause_s_min: float
    pause_s_max: float
    steady_s: float


class Supervisor:
    """Keeps one child process running until it is stopped. Needs the event loop only; nothing here blocks it.

    `start` returns a process that has begun, or raises `OSError` or one of `failures`; `failed` hears of
    these. `on_end` is called with the exit code of each process, and says whether another is to be started.
    `ask_to_stop` asks a process to end (by default SIGTERM); `stop_s_max` after that it is killed. `name` and
    `details` are for the log.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], Awaitable[subprocess.Popen[bytes]]],
        backoff: Backoff,
        *,
        stop_s_max: float,
        on_end: Callable[[int], Awaitable[bool]] | None = None,
        failures: tuple[type[Exception], ...] = (),
        failed: Callable[[Exception], None] = lambda _error: None,
        restarted: Callable[[], None] = lambda: None,
        ask_to_stop: Callable[[], None] | None = None,
        details: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._name = name
        self._start = start
        self._backoff = backoff
        self._stop_s_max = stop_s_max
        self._on_end = on_end
        self._failures: tuple[type[Exception], ...] = (OSError, *failures)
        self._failed = failed
        self._restarted = restarted
        self._ask_to_stop = ask_to_stop or (lambda: self.signal(signal.SIGTERM))
        self._details = details
        self._process: subprocess.Popen[bytes] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._reported = ""
        self._stopping = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def pid(self) -> int:
        """The id of the process that was started last; 0: none was."""
        return self._process.pid if self._process is not None else 0

    @property
    def lives(self) -> bool:
        """Whether that process has not been found ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def is_stopping(self) -> bool:
        """Whether no other process will be started."""
        return self._stopping.is_set()

    def ensure(self) -> None:
        """Begin to keep a process running, unless that has begun, or has ended."""
        if self._keeping is None and not self.is_stopping:
            self._keep_from(None)

    async def begin(self) -> None:
        """The same, and wait for the first start. Raises what `start` raises; then nothing has begun."""
        process = self._process = await self._start()
        self._keep_from(process)

    def signal(self, number: int) -> None:
        """Send a signal to the process, if there is one."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def kill(self) -> None:
        """End the process at once."""
        self.signal(signal.SIGKILL)

    def kill_after(self, patience_s: float) -> None:
        """Give the process that there is now so long to end by itself."""
        process = self._process

        def kill() -> None:
            if process is self._process:
                self.kill()

        self._timers.append(asyncio.get_running_loop().call_later(patience_s, kill))

    def begin_stop(self) -> None:
        """Ask the process to end, and start no other."""
        if not self.is_stopping:
            self._stopping.set()
            if self.lives:
                self._ask_to_stop()
            self._timers.append(asyncio.get_running_loop().call_later(self._stop_s_max, self.kill))

    async def stop(self) -> None:
        """Ask the process to end and wait for that; it takes `stop_s_max` at most."""
        self.begin_stop()
        await self.wait()

    async def wait(self) -> None:
        """Wait until the process has ended and no other is to be started."""
        try:
            if self._keeping is not None:
                await self._keeping
        finally:
            for timer in self._timers:
                timer.cancel()

    def _keep_from(self, process: subprocess.Popen[bytes] | None) -> None:
        self._keeping = asyncio.create_task(self._keep(process))
        self._keeping.add_done_callback(self._note_end)

    def _note_end(self, keeping: asyncio.Task[None]) -> None:
        if not keeping.cancelled() and (error := keeping.exception()) is not None:
            _log.error(f"{self._name}_not_supervised", exc_info=error)

    async def _keep(self, process: subprocess.Popen[bytes] | None) -> None:
        pause_s = self._backoff.pause_s_min
        while True:
            began_s = time.monotonic()
            try:
                process = process or await self._start()
            except self._failures as error:
                # Too many processes, open files or no memory: that passes.
                self._report(getattr(error, "strerror", None) or str(error))
                self._failed(error)
            else:
                self._process, self._reported = process, ""
                if not await self._watch(process):
                    return
                if time.monotonic() - began_s > self._backoff.steady_s:
                    pause_s = self._backoff.pause_s_min
            process = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            if self.is_stopping:
                return
            pause_s = min(self._backoff.pause_s_max, pause_s * 2)
            self._restarted()

    def _report(self, reason: str) -> None:
        """Log why a process cannot be started, once for as long as the reason is the same."""
        if reason != self._reported:
            self._reported = reason
            _log.error(f"{self._name}_not_started", **{"reason": reason, **self._details()})

    async def _watch(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end of a process; tells whether to start another."""
        if self.is_stopping:
            self._ask_to_stop()
        code = await ended(process)
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        is_wanted = self._on_end is None or await self._on_end(code)
        if self.is_stopping or not is_wanted:
            return False
        _log.error(f"{self._name}_ended", code=code, **self._details())
        return True


async def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a child of this process; return its exit code."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        while (code := process.poll()) is None:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(_POLL_S)
        return code
    loop = asyncio.get_running_loop()
    end: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: None if end.done() else end.set_result(None))
    try:
        await end
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()


async def spawn(
    module: str,
    *arguments: str,
    descriptors: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    shielded: bool = False,
    group: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a module of ours as a process that inherits `descriptors`. Raises `OSError`.

    A `shielded` one takes no SIGINT and SIGTERM, which reach all processes of a terminal or a supervisor: it
    ends when its parent says so. One in a `group` of its own gets none that are for the parent's.
    """
    return await asyncio.to_thread(_spawn, (module, *arguments), descriptors, environment, shielded, group)


def _spawn(
    command: Sequence[str],
    descriptors: Sequence[int],
    environment: Mapping[str, str] | None,
    shielded: bool,
    group: bool,
) -> subprocess.Popen[bytes]:
    # A signal mask is inherited. It is that of this thread alone.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM) if shielded else ())
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
            (sys.executable, "-P", "-m", *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if shielded else None,
            pass_fds=descriptors,
            env=environment,
            start_new_session=group,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
