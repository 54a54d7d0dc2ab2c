"""Taking connections from a socket on which several processes listen, so that each gets its share."""

import asyncio
import socket
from collections.abc import Callable, Sequence, Sized
from typing import Final

from vettance.telemetry.logs import logger
from vettance.web.server import EdgeProtocol

#: How often a process that holds more connections than another looks whether that one takes the next, and
#: when. By looks and not by the clock: a machine that stops for a moment stops the others, too.
COURTESY_LOOKS: Final = 10
_LOOK_S: Final = 0.001
#: So many are taken in one go at most.
_AT_ONCE_MAX: Final = 64
#: Out of descriptors or memory: taking connections rests for so long.
_REST_S: Final = 0.5

_log = logger()


class Acceptor:
    """Accepts connections in the turn of the processes that hold fewer; uvicorn keeps it as a `Server`.

    Else the process that wakes first takes all that waits: of 32 clients that came at once, one of four
    processes had 31, and kept them for as long as they asked.

    A process that holds more than the one that holds least leaves the next connection to it for
    `COURTESY_LOOKS` looks, about 10 ms.
    Where nobody takes any, because the others are at work or stopped, it takes ever more at a time.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], EdgeProtocol],
        held: Sized,
        others: Callable[[], Sequence[int]],
    ) -> None:
        """`held` are the connections of this process; `others` tells how many each other process holds."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make = make
        self._held = held
        self._others = others
        self._coming: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._looks_left = 0
        self._at_once = 1
        self._is_closed = False
        self._listen()

    def close(self) -> None:
        """Take no more connections."""
        self._is_closed = True
        self._loop.remove_reader(self._listener)
        if self._timer is not None:
            self._timer.cancel()

    async def wait_closed(self) -> None:
        """Wait for connections that were taken just before."""
        await asyncio.gather(*self._coming)

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._take)

    def _pause(self, pause_s: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._listener)
        self._timer = self._loop.call_later(pause_s, then)

    def _is_ahead(self) -> bool:
        """Tell whether another process holds fewer; of many, an eighth more is no matter."""
        least = min(self._others(), default=None)
        return least is not None and len(self._held) + len(self._coming) > least + least // 8

    def _take(self) -> None:
        """Take what waits, until it is the turn of another process."""
        try:
            for _ in range(_AT_ONCE_MAX):
                if self._is_ahead():
                    break
                if not self._accept():
                    return
            else:
                return  # Requests first; the loop comes back for the rest.
        except OSError as error:
            self._rest(error)
            return
        self._looks_left = COURTESY_LOOKS
        self._pause(_LOOK_S, self._give_way)

    def _give_way(self) -> None:
        """Look whether it is the turn of this process again, or nobody else takes what waits."""
        is_in_vain = False
        if self._is_ahead():
            if self._looks_left > 0:
                self._looks_left -= 1
                self._pause(_LOOK_S, self._give_way)
                return
            try:
                is_in_vain = all(self._accept() for _ in range(self._at_once))
            except OSError as error:
                self._rest(error)
                return
        self._at_once = min(_AT_ONCE_MAX, self._at_once * 2) if is_in_vain else 1
        self._listen()

    def _rest(self, error: OSError) -> None:
        """Out of descriptors or memory, which passes: others may take what waits."""
        _log.error("connections_not_taken", reason=error.strerror)
        self._pause(_REST_S, self._listen)

    def _accept(self) -> bool:
        """Take one connection; False where none waits (any more)."""
        try:
            taken, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        task = self._loop.create_task(self._begin(taken))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)
        return True

    async def _begin(self, taken: socket.socket) -> None:
        taken.settimeout(0)
        try:
            _, served = await self._loop.connect_accepted_socket(self._make, taken)
        except OSError:  # It has gone already.
            taken.close()
            return
        if self._is_closed:
            served.shutdown()
