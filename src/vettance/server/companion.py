"""The companion's side: what every child of a server does that works on its store."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import uvloop

from vettance.db.engine import Store, StoreDown
from vettance.decisions.network import FileUnreadable
from vettance.deployment.protocols import Stores
from vettance.processes.background import be_nicer
from vettance.processes.malloc import give_back_early
from vettance.settings.settings import Settings, SettingsError, read_settings
from vettance.telemetry.logs import configure_logs, logger

_REFUSALS: Final = (StoreDown, SettingsError, FileUnreadable, OSError)

_log = logger()


class Work(Protocol):
    """What a companion does until it is asked to stop."""

    def stop(self) -> None:
        """Have `run` finish soon."""

    async def run(self) -> None:
        """Work until stopped, or until cancelled."""


async def accompany(stores: Stores, link: socket.socket, begin: Callable[[Store], Work]) -> None:
    """Do what `begin` returns until a signal says stop, or until the parent is gone.

    Without a parent it ends at once: another server may already be at this store, and goes on with what was
    under way here.
    """
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    opening = asyncio.create_task(stores.open_in_child(link, lambda: _note(stopped)))
    await asyncio.wait((opening, stopped), return_when=asyncio.FIRST_COMPLETED)
    if not opening.done():
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        return
    store = await opening
    try:
        work = begin(store)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.stop)
        running = asyncio.ensure_future(work.run())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        await store.close()


def run_companion(
    arguments: list[str],
    name: str,
    niceness: int,
    main: Callable[[Settings, socket.socket], Awaitable[None]],
) -> int:
    """Run a companion: the arguments are the data folder and the descriptor of the link to the parent.

    Where all want a processor, decisions go first by the `niceness`. Returns the exit code.
    """
    try:
        folder, descriptor = arguments
        settings = read_settings(data=folder)
        configure_logs(settings.log_level)
        give_back_early()
        be_nicer(niceness)
        uvloop.run(_main(main, settings, int(descriptor)))
    except _REFUSALS as error:
        _log.error(f"{name}_failed", reason=str(error) or type(error).__name__)
        return 1
    return 0


async def _main(
    main: Callable[[Settings, socket.socket], Awaitable[None]], settings: Settings, descriptor: int
) -> None:
    await main(settings, socket.socket(fileno=descriptor))


def _note(stopped: "asyncio.Future[None]") -> None:
    if not stopped.done():
        stopped.set_result(None)
