"""Supervise: keep the process that delivers webhooks running beside the one that decides."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from typing import Final

from vettance.db.engine import Store
from vettance.db.write_relay import Relay
from vettance.settings.settings import Settings
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import CounterSlot, take_place
from vettance.telemetry.shared_counters import beside
from vettance.webhooks.retry_policy import STOP_S_MAX

_PAUSE_S_MIN: Final = 0.2
_PAUSE_S_MAX: Final = 10.0
_STEADY_S: Final = 30.0

_log = logger()


class WorkerProcess:
    """The worker, as a child of this process. It starts when it is first needed.

    Delivering in a process of its own keeps the decisions quick: sending costs more time of the interpreter
    than deciding does. It writes through the store of this process (see `db.relay`), and ends when that
    connection does, which the kernel sees to even when this process is killed.
    """

    def __init__(self, settings: Settings, store: Store, place: CounterSlot | None = None) -> None:
        self._settings = settings
        self._store = store
        self._place = place or take_place()
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._stop_by = 0.0  # 0 while nobody wants it to stop

    def _is_stopping(self) -> bool:
        return self._stop_by > 0

    def ensure(self) -> None:
        """See to it that there is a worker."""
        if self._keeping is None and not self._is_stopping():
            self._keeping = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        pause_s = _PAUSE_S_MIN
        while not self._is_stopping():
            started = time.monotonic()
            relay = Relay(self._store)
            try:
                self._process = await self._start(relay)
            except OSError as error:
                # Too many processes, open files or no memory: that passes.
                await relay.close()
                _log.error("webhook_worker_not_started", reason=error.strerror)
            else:
                if self._is_stopping():
                    self._signal(signal.SIGTERM)
                code = await self._process.wait()
                await relay.close()
                if self._is_stopping():
                    return
                _log.error("webhook_worker_ended", code=code)
            pause_s = (
                _PAUSE_S_MIN if time.monotonic() - started > _STEADY_S else min(_PAUSE_S_MAX, pause_s * 2)
            )
            await asyncio.sleep(pause_s)

    async def _start(self, relay: Relay) -> asyncio.subprocess.Process:
        with await relay.open() as link:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "vettance.server.deliverer", str(self._settings.data), str(link.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(link.fileno(), *self._place.board.descriptors),
                env={**_environment(self._settings), **self._place.board.place(beside(self._place.slot))},
            )

    def begin_stop(self) -> None:
        """Tell the worker to drain; call it as soon as the service is told to stop."""
        if not self._is_stopping():
            self._stop_by = time.monotonic() + STOP_S_MAX
            self._signal(signal.SIGTERM)

    async def stop(self) -> None:
        """Wait until the worker has drained, as long as it has time for that."""
        self.begin_stop()
        if self._keeping is None:
            return
        left_s = max(0.1, self._stop_by - time.monotonic())
        if self._process is None or self._process.returncode is not None:
            self._keeping.cancel()
        await asyncio.wait((self._keeping,), timeout=left_s)
        self._signal(signal.SIGKILL)
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def _environment(settings: Settings) -> dict[str, str]:
    """Give the worker the very settings of this process, wherever they came from."""
    environment = {**os.environ, "VETTANCE_ENV": settings.environment.value}
    environment["VETTANCE_LOG_LEVEL"] = settings.log_level
    environment["VETTANCE_KEEP_DELIVERIES"] = str(settings.keep.deliveries)
    environment["VETTANCE_DATABASE_URL"] = settings.database_url or ""
    environment["VETTANCE_NAME_SERVERS"] = ",".join(settings.name_servers)
    environment["VETTANCE_UNSAFE_WEBHOOKS"] = "1" if settings.unsafe_webhooks else "0"
    if settings.secret is not None:
        environment["VETTANCE_SECRET"] = settings.secret.hex()
    return environment
