"""Serving: how the server of a process is set up, and how it runs until it must stop."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import uvicorn

from vettance.db.engine import StoreDown
from vettance.db.write_relay import watch
from vettance.decisions.network import FileUnreadable
from vettance.deployment.connect import stores_of
from vettance.limits.connection_shares import ConnectionShares, connections_max
from vettance.redis_link.down import StateDown
from vettance.server.application import Service
from vettance.server.console_front import console_alone
from vettance.server.lifecycle import running
from vettance.server.stop_times import REQUESTS_S_MAX
from vettance.settings.settings import Settings, SettingsError
from vettance.telemetry.meters import CounterSlot
from vettance.web.accept import Acceptor
from vettance.web.edge import Asgi
from vettance.web.server import EdgeProtocol

_STOP_LOOK_S = 0.1
BACKLOG = 2048
#: How long a thread that computes may keep the event loop waiting each time; by default it is 5 ms.
_THREAD_TURN_S = 0.0005

#: What keeps a server from starting, or from going on.
REFUSALS = (StoreDown, StateDown, SettingsError, FileUnreadable, OSError)


class Server(uvicorn.Server):
    """Says so once it listens, and stops when it was asked to before it did."""

    is_asked_to_stop = False

    def __init__(
        self,
        config: uvicorn.Config,
        place: CounterSlot,
        shares: ConnectionShares,
        say: Callable[[], None],
        others: Mapping[int, uvicorn.Config] = MappingProxyType({}),
    ) -> None:
        """`others` configure sockets (by their number) on which another application answers."""
        super().__init__(config)
        self._others = others
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
            self._others.get(listener.fileno(), self.config),
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


async def serve_until_stopped(
    settings: Settings,
    listener: socket.socket | None,
    say: Callable[[], None],
    say_it_waits: Callable[[str], None],
    link: socket.socket | None = None,
) -> None:
    """Run the service until it must stop; `say` is called when it has started."""

    # Until the server takes the signals over, and after it has given them back (it raises them again, while
    # there is still the store to close), they are only remembered.
    def remember(_number: int, _frame: object) -> None:
        Server.is_asked_to_stop = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, remember)
    sys.setswitchinterval(_THREAD_TURN_S)
    if link is not None:
        # The parent is gone, however it went.
        await watch(link, lambda: os.kill(os.getpid(), signal.SIGTERM))
    async with stores_of(settings).exclusive_use(say_it_waits) as misplaced, running(settings) as service:
        service.misplaced = misplaced
        if listener is None:
            say()
            while not Server.is_asked_to_stop:  # noqa: ASYNC110 - a signal handler sets it
                await asyncio.sleep(_STOP_LOOK_S)
            service.worker.begin_stop()
            return
        shares = ConnectionShares(connections_max(), by_address=settings.proxies == 0)
        sockets, others = [listener], {}
        # Of several processes of a server the first one shows the console, where that has its own address.
        if settings.console_address is not None and service.place.slot == 0:
            sockets.append(listen(*settings.console_address))
            others[sockets[-1].fileno()] = config = server_config(console_alone(service))
            config.load()
        server = Server(server_config(service.app), service.place, shares, say, others)
        draining = asyncio.create_task(_drain_with(server, service))
        await server.serve(sockets=sockets)
        draining.cancel()


def listen(host: str, port: int) -> socket.socket:
    """Take a port before anything listens on it. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


async def _drain_with(server: uvicorn.Server, service: Service) -> None:
    """Have webhooks drain while the requests in flight do, so that both fit into the time a stop may take."""
    while not server.should_exit:  # noqa: ASYNC110 - the server offers nothing to wait for
        await asyncio.sleep(_STOP_LOOK_S)
    service.worker.begin_stop()


def server_config(app: Asgi) -> uvicorn.Config:
    """Return how the edge is served; benchmarks serve their bare handler the same way."""
    return uvicorn.Config(
        app,
        interface="asgi3",
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
        timeout_graceful_shutdown=REQUESTS_S_MAX,
    )
