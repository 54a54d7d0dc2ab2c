"""Search: hand subjects to processes that search for this one, so that a search takes no turn of its loop.

A search is milliseconds of one processor. Each process (`worker.py`, task `answer`) maps the same files of
an index, answers one request after the other, and is started again whenever it ends.
"""

import asyncio
import socket
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import msgspec

from vettance.processes.supervisor import Backoff, Supervisor, spawn
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.watchlists.match import EntityMatch, Subject
from vettance.watchlists.search_processes import SearchFault
from vettance.watchlists.search_protocol import INDEX_GONE, LATE, LENGTH_BYTES, SearchCall, framed

#: Requests that a process holds at a time: the next one is there when it has answered the last.
LEAD: Final = 2
#: A process that has not even given up a search this long after its deadline does not live.
STUCK_S: Final = 3.0
_END_S_MAX: Final = 1.0
_WARMING_S_MAX: Final = 10.0
#: Without a type it is read as a person, an organisation and a craft.
_ANYBODY: Final = Subject(name="Maria Ivanovna Petrova")
_BACKOFF: Final = Backoff(pause_s_min=0.05, pause_s_max=5.0, steady_s=30.0)

_log = logger()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[EntityMatch] | str).decode


class IndexGone(Exception):
    """A process could not open an index that this one has open: it was removed in between."""


class _Request:
    """A request on its way: as sent, how often it was, and the future of its answer."""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.tries = 0
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()


class Searchers:
    """Processes that search for this one. They begin to start when this is first asked for anything."""

    def __init__(self, count: int, least: int, meters: Meters | None = None) -> None:
        """`count` processes (0: never ready), which leave out matches that score below `least`."""
        self._meters = meters or Meters()
        self._seats = [_SearcherSlot(self, least, self._meters) for _ in range(count)]
        self._queue: deque[_Request] = deque()
        #: The index that a process searches before it is asked for anything.
        self.warming: Path | None = None

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes that can be asked now."""
        return tuple(seat.supervisor.pid for seat in self._seats if seat.transport is not None)

    @property
    def living(self) -> tuple[int, ...]:
        """The ids of the processes that there are, those included that are still starting."""
        return tuple(seat.supervisor.pid for seat in self._seats if seat.supervisor.lives)

    def ensure(self, folder: Path | None = None) -> bool:
        """Ensure that there are processes; returns whether one can be asked by now.

        A process that starts searches the index in `folder` once before it is asked, so that it has read
        what it needs of its files and of its own code.
        """
        self.warming = folder or self.warming
        for seat in self._seats:
            seat.supervisor.ensure()
        return any(seat.transport is not None for seat in self._seats)

    async def search(self, folders: Sequence[Path], subject: Subject, deadline_s: float) -> list[EntityMatch]:
        """Return the matches of a subject in these indexes; the first counts how common words are.

        Raises `TimeoutError` past the deadline, and the work is given up then; `IndexGone` when an index
        cannot be opened; `SearchFault` when the search failed, or one process more than there are places
        ended under it: all there were may have been killed at once.
        """
        asking = SearchCall(time.monotonic() + deadline_s, [str(folder) for folder in folders], subject)
        request = _Request(framed(_encode(asking)))
        self._queue.append(request)
        self.give_out()
        try:
            async with asyncio.timeout(deadline_s):
                answer = _decode(await request.answer)
        except TimeoutError:
            asyncio.get_running_loop().call_later(STUCK_S, self._end_stuck, request)
            raise
        if isinstance(answer, list):
            return answer
        if answer == LATE:
            raise TimeoutError
        if answer == INDEX_GONE:
            raise IndexGone
        raise SearchFault(answer)

    def give_out(self) -> None:
        """Hand waiting requests to the process that has the least to do."""
        while self._queue:
            free = [seat for seat in self._seats if seat.transport is not None and len(seat.running) < LEAD]
            if not free:
                return
            request = self._queue.popleft()
            if not request.answer.done():
                min(free, key=_load).send(request)

    def lost(self, requests: Sequence[_Request]) -> None:
        """Take requests back whose process has ended: others get them, as often as `search` says."""
        for request in reversed(requests):
            if request.answer.done():
                continue
            if request.tries > len(self._seats):
                reason = f"{request.tries} processes that searched have ended"
                request.answer.set_exception(SearchFault(reason))
            else:
                self._queue.appendleft(request)
        self.give_out()

    def _end_stuck(self, request: _Request) -> None:
        for seat in self._seats:
            if request in seat.running:
                _log.error("search_process_stuck", pid=seat.supervisor.pid)
                seat.supervisor.kill()

    async def close(self) -> None:
        """End the processes. What still waits for an answer gets none."""
        await asyncio.gather(*(seat.supervisor.stop() for seat in self._seats))
        for request in self._queue:
            request.answer.cancel()


class _SearcherSlot(asyncio.Protocol):
    """The place of one process, whichever takes it, and our end of the socket to it."""

    def __init__(self, searchers: Searchers, least: int, meters: Meters) -> None:
        self._searchers = searchers
        self._least = least
        self._buffer = b""
        #: Requests that were sent and not answered yet, in their order.
        self.running: deque[_Request] = deque()
        self._way: asyncio.Transport | None = None
        #: The way to the process once it has said that it is there.
        self.transport: asyncio.Transport | None = None
        self.supervisor = Supervisor(
            "search_process",
            self._start,
            _BACKOFF,
            stop_s_max=_END_S_MAX,
            restarted=meters.search_restarted,
            ask_to_stop=self._leave,
            details=lambda: {"pid": self.supervisor.pid},
        )

    async def _start(self) -> subprocess.Popen[bytes]:
        ours, theirs = socket.socketpair()
        with theirs:
            process = await spawn(
                "vettance.watchlists.worker",
                *("0", str(self._least), "-", "answer", str(theirs.fileno())),
                descriptors=(theirs.fileno(),),
                shielded=True,
            )
        self._buffer = b""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=ours)
        return process

    def send(self, request: _Request) -> None:
        """Send a request; the kernel holds what the process has not read."""
        assert self.transport is not None
        request.tries += 1
        self.running.append(request)
        self.transport.write(request.frame)

    def _leave(self) -> None:
        """Close the way to the process, which ends by that, even while it is starting."""
        if self._way is not None:
            self._way.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the way; the process says by an empty answer that it is there."""
        self._way = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass answers on."""
        buffer = self._buffer + data if self._buffer else data
        start = 0
        while len(buffer) - start >= LENGTH_BYTES:
            end = start + LENGTH_BYTES + int.from_bytes(buffer[start : start + LENGTH_BYTES])
            if len(buffer) < end:
                break
            self._answered(buffer[start + LENGTH_BYTES : end])
            start = end
        self._buffer = buffer[start:]
        self._searchers.give_out()

    def _answered(self, answer: bytes) -> None:
        if self.transport is None:
            if not answer and (folder := self._searchers.warming) is not None:
                asking = SearchCall(time.monotonic() + _WARMING_S_MAX, [str(folder)], _ANYBODY)
                assert self._way is not None
                self._way.write(framed(_encode(asking)))
            else:
                self.transport = self._way
            return
        request = self.running.popleft()
        if not request.answer.done():
            request.answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it ended does not matter
        """Give back what was not answered."""
        self._way = self.transport = None
        self.supervisor.kill_after(_END_S_MAX)
        requests = tuple(self.running)
        self.running.clear()
        self._searchers.lost(requests)


def _load(seat: _SearcherSlot) -> int:
    return len(seat.running)
