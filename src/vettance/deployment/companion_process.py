"""Companions: keep a process with another duty running next to the one that decides."""

import asyncio
import os
import subprocess
from typing import Final, NamedTuple

from vettance.db.engine import Store
from vettance.db.write_relay import Relay
from vettance.processes.supervisor import Backoff, Supervisor, spawn
from vettance.settings.settings import Settings
from vettance.telemetry.shared_counters import SharedBoard

_BACKOFF: Final = Backoff(pause_s_min=0.2, pause_s_max=10.0, steady_s=30.0)


class Companion(NamedTuple):
    """One kind of such processes: its name in the log, the module it runs, how long it may take to stop."""

    name: str
    module: str
    stop_s_max: float


class CompanionProcess:
    """A child of this process that works on the same store. It starts when it is first needed.

    What it does would cost decisions time of their interpreter. It writes through the store of this process
    (see `db.write_relay`), and ends when that connection does, which the kernel ensures even when this one is
    killed. It counts in the `slot` of the `board`.
    """

    def __init__(
        self, companion: Companion, settings: Settings, store: Store, board: SharedBoard, slot: int
    ) -> None:
        self._companion = companion
        self._settings = settings
        self._store = store
        self._board = board
        self._slot = slot
        self._relay: Relay | None = None
        self._supervisor = Supervisor(
            companion.name, self._start, _BACKOFF, stop_s_max=companion.stop_s_max, on_end=self._ended
        )
        #: Begins to keep the process running.
        self.ensure = self._supervisor.ensure
        #: Asks it to finish; to be called as soon as the service begins to stop.
        self.begin_stop = self._supervisor.begin_stop
        #: Waits until it has finished, as long as it has time for that.
        self.stop = self._supervisor.stop

    @property
    def pid(self) -> int:
        """The id of the process that was started last; 0: none was."""
        return self._supervisor.pid

    async def keep(self, after_s: float) -> None:
        """Keep it running until cancelled, from so many seconds on."""
        await asyncio.sleep(after_s)
        self.ensure()
        try:
            await asyncio.Event().wait()
        finally:
            await self.stop()

    async def _start(self) -> subprocess.Popen[bytes]:
        relay = self._relay = Relay(self._store)
        try:
            with await relay.open() as link:
                return await spawn(
                    self._companion.module,
                    *(str(self._settings.data), str(link.fileno())),
                    descriptors=(link.fileno(), *self._board.descriptors),
                    environment={**_environment(self._settings), **self._board.place(self._slot)},
                )
        except OSError:
            await relay.close()
            raise

    async def _ended(self, _code: int) -> bool:
        assert self._relay is not None
        await self._relay.close()
        return True


def _environment(settings: Settings) -> dict[str, str]:
    """Give the process the very settings of this one, wherever they came from."""
    environment = {**os.environ, "VETTANCE_ENV": settings.environment.value}
    environment["VETTANCE_LOG_LEVEL"] = settings.log_level
    environment["VETTANCE_KEEP_DELIVERIES"] = str(settings.keep.deliveries)
    environment["VETTANCE_DATABASE_URL"] = settings.database_url or ""
    environment["VETTANCE_NAME_SERVERS"] = ",".join(settings.name_servers)
    environment["VETTANCE_UNSAFE_WEBHOOKS"] = "1" if settings.unsafe_webhooks else "0"
    environment["VETTANCE_GEOIP_COUNTRY"] = str(settings.geoip_country or "")
    environment["VETTANCE_GEOIP_ASN"] = str(settings.geoip_asn or "")
    if settings.secret is not None:
        environment["VETTANCE_SECRET"] = settings.secret.hex()
    return environment
