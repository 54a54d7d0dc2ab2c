"""Serve: the command that runs the service on a port, and how its server is set up."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
import uvicorn
import uvloop

from vettance import __version__
from vettance.allocator import give_back_early
from vettance.app import Service
from vettance.commands import data_option, fail, settings_of
from vettance.connect import present
from vettance.crew import Child, Crew
from vettance.db.engine import StoreDown
from vettance.db.relay import watch
from vettance.decisions.network import FileUnreadable
from vettance.logs import configure_logs
from vettance.ops.meters import Place
from vettance.ops.served import note_server, remove_note
from vettance.probe import probe_addresses, probe_metrics, probe_redis
from vettance.running import running
from vettance.settings import Role, Settings, SettingsError, check_secret
from vettance.state.port import StateDown
from vettance.web.accept import Acceptor
from vettance.web.connections import ConnectionShares, connections_max
from vettance.web.edge import Asgi
from vettance.web.server import EdgeProtocol

STOP_S_MAX = 10  # Requests in flight get this long after SIGTERM; the whole stop stays under 15 s.
_STOP_LOOK_S = 0.1
BACKLOG = 2048
WORKERS_MAX = 31  # Each has two places on the board of figures (see `ops.board`).


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, WORKERS_MAX),
    help="How many processes answer; more than one needs PostgreSQL and Redis.",
)
@click.option(
    "--role",
    default=Role.ALL.value,
    show_default=True,
    type=click.Choice([role.value for role in Role]),
    help="Answer requests (web), do the work behind them (worker), or both.",
)
@click.option("--seat", hidden=True)
@data_option
def serve(host: str, port: int, workers: int, role: str, seat: str | None, data: str | None) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    Example: vettance serve --port 8080 --data ./vettance-data
    """
    give_back_early()
    settings = msgspec.structs.replace(settings_of(data, make=True), role=Role(role))
    configure_logs(settings.log_level)
    if seat is not None:
        _serve_as_child(settings, Child(seat))
        return
    _insist_on_sharing(settings, workers)
    if settings.unsafe_webhooks:
        _warn_of_unsafe_webhooks()
    try:
        listener = None if settings.role is Role.WORKER else _listen(host, port)
        _insist_on_means(settings)
        say = partial(_say_it_works if listener is None else partial(_say_where, listener), settings.data)
        if listener is None or workers == 1:
            uvloop.run(_serve(settings, listener, say, _say_it_waits))
        else:
            arguments = ("--data", str(settings.data))
            sys.exit(Crew(listener, workers, settings.role, arguments, say, _say_it_waits).run())
    except _REFUSALS as error:
        fail(_reason(error))
    finally:
        remove_note(settings.data)


#: What keeps a server from starting, or from going on.
_REFUSALS = (StoreDown, StateDown, SettingsError, FileUnreadable, OSError)


def _serve_as_child(settings: Settings, child: Child) -> None:
    """Serve as one of several processes. The parent says where, why not yet, and why not."""
    try:
        uvloop.run(_serve(settings, child.listener, child.ready, child.wait, child.link))
    except _REFUSALS as error:
        child.refuse(_reason(error))
        sys.exit(1)


def _reason(error: Exception) -> str:
    reason = (error.full if isinstance(error, StoreDown) else str(error)) or type(error).__name__
    return f"VETTANCE_REDIS_URL: {reason}" if isinstance(error, StateDown) else reason


def _insist_on_means(settings: Settings) -> None:
    """Refuse what can be seen before anything is started or any process forked. Raises `SettingsError`."""
    check_secret(settings)
    probe_addresses(settings)
    probe_metrics(settings)
    probe_redis(settings)


def _insist_on_sharing(settings: Settings, workers: int) -> None:
    """Refuse what would have several processes where only one can be."""
    if workers == 1 and settings.role is Role.ALL:
        return
    asked = f"--workers {workers}" if workers > 1 else f"--role {settings.role.value}"
    missing = [
        name
        for name, value in (
            ("VETTANCE_DATABASE_URL", settings.database_url),
            ("VETTANCE_REDIS_URL", settings.redis),
        )
        if value is None
    ]
    if missing:
        fail(
            f"{asked} means several processes, which must share what they remember: "
            f"set {' and '.join(missing)} (docs/postgresql.md)"
        )


def _warn_of_unsafe_webhooks() -> None:
    click.echo(
        "WARNING: VETTANCE_UNSAFE_WEBHOOKS=1: webhooks may go to http URLs, to this machine and into its "
        "network. Whoever has an API key can reach them. Never use this outside development.",
        err=True,
    )


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before anything else, so that a taken one is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        fail(f"cannot listen on {host}:{port}: {error.strerror or error}")
    return listener


def _say_where(listener: socket.socket, data: Path) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}"
    note_server(data, address)
    click.echo(f"Vettance {__version__} listens on {address} (API page: {address}/docs)", err=True)


def _say_it_works(data: Path) -> None:
    note_server(data, "")
    click.echo(f"Vettance {__version__} works in the background", err=True)


def _say_it_waits(reason: str) -> None:
    click.echo(f"Vettance {__version__} cannot start yet: {reason}", err=True)


class _Server(uvicorn.Server):
    """Says so once it listens, and stops when it was asked to before it did."""

    is_asked_to_stop = False

    def __init__(
        self, config: uvicorn.Config, place: Place, shares: ConnectionShares, say: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._shares = shares
        self._place = place
        self._say = say

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, as uvicorn does, but in turn with the other processes on this socket."""
        assert sockets is not None
        accepting: list[Any] = [self._accept(listener) for listener in sockets]
        self.servers = accepting
        self.started = True
        self.should_exit = self.should_exit or self.is_asked_to_stop
        self._say()

    def _accept(self, listener: socket.socket) -> Acceptor:
        meters = self._place.meters
        make = partial(
            EdgeProtocol,
            self.config,
            self.server_state,
            self.lifespan.state,
            tell=meters.connected,
            shares=self._shares,
        )
        listener.settimeout(0)
        listener.listen(self.config.backlog)
        acceptor = Acceptor(listener, make, self.server_state.connections, self._place.others)
        meters.listens(now=True)
        return acceptor

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and answer what is under way."""
        self._place.meters.listens(now=False)
        await super().shutdown(sockets)


async def _serve(
    settings: Settings,
    listener: socket.socket | None,
    say: Callable[[], None],
    say_it_waits: Callable[[str], None],
    link: socket.socket | None = None,
) -> None:
    """Run the service until it is told to stop; `say` is called when it has started."""

    # Until the server takes the signals over, and after it has given them back (it raises them again, while
    # there is still the store to close), they are only remembered.
    def remember(_number: int, _frame: object) -> None:
        _Server.is_asked_to_stop = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, remember)
    if link is not None:
        # The parent is gone, however it went.
        await watch(link, lambda: os.kill(os.getpid(), signal.SIGTERM))
    async with present(settings, say_it_waits) as misplaced, running(settings) as service:
        service.misplaced = misplaced
        if listener is None:
            say()
            while not _Server.is_asked_to_stop:  # noqa: ASYNC110 - a signal handler sets it
                await asyncio.sleep(_STOP_LOOK_S)
            service.worker.begin_stop()
            return
        shares = ConnectionShares(connections_max(), by_address=settings.proxies == 0)
        server = _Server(server_config(service.app), service.place, shares, say)
        draining = asyncio.create_task(_drain_with(server, service))
        await server.serve(sockets=[listener])
        draining.cancel()


async def _drain_with(server: uvicorn.Server, service: Service) -> None:
    """Have webhooks drain while the requests in flight do, so that both fit into the time a stop may take."""
    while not server.should_exit:  # noqa: ASYNC110 - the server offers nothing to wait for
        await asyncio.sleep(_STOP_LOOK_S)
    service.worker.begin_stop()


def server_config(app: Asgi) -> uvicorn.Config:
    """Return how the edge is served; benchmarks serve their bare handler the same way."""
    return uvicorn.Config(
        app,
        loop="none",
        http=EdgeProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=STOP_S_MAX,
    )
