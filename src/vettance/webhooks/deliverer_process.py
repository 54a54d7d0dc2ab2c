"""Supervise: keep the process that delivers webhooks running next to the one that decides."""

import os
import subprocess
from typing import Final

from vettance.db.engine import Store
from vettance.db.write_relay import Relay
from vettance.processes.supervisor import Backoff, Supervisor, spawn
from vettance.settings.settings import Settings
from vettance.telemetry.meters import CounterSlot, take_place
from vettance.telemetry.shared_counters import companion_slot
from vettance.webhooks.retry_policy import STOP_S_MAX

_BACKOFF: Final = Backoff(pause_s_min=0.2, pause_s_max=10.0, steady_s=30.0)


class WorkerProcess:
    """The process that delivers, as a child of this one. It starts when it is first needed.

    Delivering in a process of its own keeps the decisions quick: sending costs more time of the interpreter
    than deciding does. It writes through the store of this process (see `db.write_relay`), and ends when that
    connection does, which the kernel ensures even when this process is killed.
    """

    def __init__(self, settings: Settings, store: Store, place: CounterSlot | None = None) -> None:
        self._settings = settings
        self._store = store
        self._place = place or take_place()
        self._relay: Relay | None = None
        self._supervisor = Supervisor(
            "webhook_worker", self._start, _BACKOFF, stop_s_max=STOP_S_MAX, on_end=self._ended
        )
        #: Begins to keep the process running.
        self.ensure = self._supervisor.ensure
        #: Asks it to drain; to be called as soon as the service begins to stop.
        self.begin_stop = self._supervisor.begin_stop
        #: Waits until it has drained, as long as it has time for that.
        self.stop = self._supervisor.stop

    @property
    def pid(self) -> int:
        """The id of the process that was started last; 0: none was."""
        return self._supervisor.pid

    async def _start(self) -> subprocess.Popen[bytes]:
        relay = self._relay = Relay(self._store)
        board = self._place.board
        try:
            with await relay.open() as link:
                return await spawn(
                    "vettance.server.deliverer",
                    *(str(self._settings.data), str(link.fileno())),
                    descriptors=(link.fileno(), *board.descriptors),
                    environment={
                        **_environment(self._settings),
                        **board.place(companion_slot(self._place.slot)),
                    },
                )
        except OSError:
            await relay.close()
            raise

    async def _ended(self, _code: int) -> bool:
        assert self._relay is not None
        await self._relay.close()
        return True


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
