"""The relay: lets a child process write through its parent's store, so that one writer commits for both.

Two processes that write to one file wait for each other's locks, and each commit of one delays the other.
Through the relay the child's writes join the parent's groups. Reads need no relay: they go to the file.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self, cast

import msgspec

from vettance.db.engine import ANSWER_S_MAX, Clash, Lost, Misuse, Row, Statement, Store, StoreDown
from vettance.db.reader_pool import ReaderPool
from vettance.db.tables import RowInsert, Table

# A frame is its length in bytes and `[forms, writes]`: forms of statements not sent before (their numbers go
# on from those before), and writes `[id, [number of the form, arguments, rows], …]`. A form is `[SQL]`, or
# `[SQL, table, width, certain]` of an insert of given rows (`tables.RowInsert`). The answer to it is, as
# writes finish, frames `[id, counts]` or `[id, [kind, sentence]]`.
_LENGTH: Final = struct.Struct(">I")
#: A little longer than the store of the parent takes to give up.
_ANSWER_S_MAX: Final = ANSWER_S_MAX + 2.0
_ENDED: Final = "the parent process is gone"
_FAILURES: Final[dict[str, type[Exception]]] = {
    "clash": Clash,
    "lost": Lost,
    "down": StoreDown,
    "wrong": Misuse,
}
_KINDS: Final = {failure: kind for kind, failure in _FAILURES.items()}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class _RelaySocket(asyncio.Protocol):
    """One end of the socket: cuts what arrives into frames."""

    def __init__(self, take: Callable[[Any], None], ended: Callable[[], None]) -> None:
        self._take = take
        self._ended = ended
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer, start)
            end = start + _LENGTH.size + size
            if len(self._buffer) < end:
                break
            self._take(_decode(self._buffer[start + _LENGTH.size : end]))
            start = end
        del self._buffer[:start]

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self._ended()

    def send(self, message: Any) -> None:
        if self._transport is not None:
            frame = _encode(message)
            self._transport.write(_LENGTH.pack(len(frame)) + frame)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _sent(form: str | RowInsert) -> list[Any]:
    if isinstance(form, RowInsert):
        return [form.text, form.table, form.width, form.certain]
    return [form]


def _received(form: list[Any]) -> tuple[str, RowInsert | None]:
    sql, *insert = form
    if not insert:
        return sql, None
    table, width, certain = insert
    return sql, RowInsert(Table(table), table, sql, width, certain=certain)


async def watch(link: socket.socket, on_end: Callable[[], None]) -> None:
    """Call `on_end` when the other end of a connected socket is gone."""
    await asyncio.get_running_loop().create_connection(
        lambda: _RelaySocket(lambda _: None, on_end), sock=link
    )


class RelayedStore:
    """The child's end: a `Store` that reads the file itself and writes through the parent.

    `on_end` is called when the parent is gone; from then on every write raises `StoreDown`.
    """

    def __init__(self, readers: ReaderPool, on_end: Callable[[], None]) -> None:
        self._readers = readers
        self._on_end = on_end
        self._link: _RelaySocket | None = None
        self._forms: dict[str | RowInsert, int] = {}
        # Packed when they are asked for: what cannot be packed fails by itself, and no others with it.
        self._new_forms: list[msgspec.Raw] = []
        self._writes: list[msgspec.Raw] = []
        self._waiting: dict[int, asyncio.Future[list[int]]] = {}
        self._last_id = 0

    @classmethod
    async def open(cls, path: Path, link: socket.socket, on_end: Callable[[], None]) -> Self:
        """Open the store of a running parent over a connected socket. Raises `StoreDown`."""
        store = cls(await asyncio.to_thread(ReaderPool, path), on_end)
        made = await asyncio.get_running_loop().create_connection(
            lambda: _RelaySocket(store._answered, store._parent_gone), sock=link
        )
        store._link = made[1]
        return store

    def healthy(self) -> bool:
        """Tell whether the parent, which keeps the writes, is there."""
        return self._link is not None

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, seeing every write that has returned before."""
        return await self._readers.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit of the parent's store; see `Store.write`."""
        if self._link is None:
            raise StoreDown(_ENDED)
        self._last_id += 1
        try:
            write = [[self._number(one), one.args, one.rows] for one in statements]
            packed = msgspec.Raw(_encode((self._last_id, write)))
        except (ValueError, TypeError, OverflowError) as error:
            raise Misuse(f"a write cannot be sent to the parent process: {error}") from None
        caller: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = caller
        if not self._writes:
            # At the end of this turn of the loop, so that writes of the same turn share a frame.
            asyncio.get_running_loop().call_soon(self._flush)
        self._writes.append(packed)
        try:
            async with asyncio.timeout(_ANSWER_S_MAX):
                return await caller
        except TimeoutError:
            raise StoreDown("the parent process did not answer in time") from None
        finally:
            del caller  # An exception that is raised here would hold it, and it the exception.

    async def migrate(self) -> int:
        """Never called: the parent has brought the schema up before it has children."""
        raise Misuse("a child process does not migrate the store")

    async def close(self) -> None:
        """Let go of the file and of the parent."""
        if self._link is not None:
            self._link.close()
        await self._readers.close()

    def _number(self, one: Statement) -> int:
        into = one.tables
        form = into if isinstance(into, RowInsert) else one.sql
        number = self._forms.get(form)
        if number is None:
            self._new_forms.append(msgspec.Raw(_encode(_sent(form))))
            number = self._forms[form] = len(self._forms)
        return number

    def _flush(self) -> None:
        frame = (self._new_forms, self._writes)
        self._new_forms, self._writes = [], []
        if self._link is not None:
            self._link.send(frame)

    def _answered(self, answer: Any) -> None:
        caller = self._waiting.pop(answer[0], None)
        if caller is None or caller.done():
            return
        if answer[1] and type(answer[1][0]) is str:
            caller.set_exception(_FAILURES[answer[1][0]](answer[1][1]))
        else:
            caller.set_result(answer[1])

    def _parent_gone(self) -> None:
        self._link = None
        for caller in self._waiting.values():
            if not caller.done():
                caller.set_exception(StoreDown(_ENDED))
        self._waiting.clear()
        self._on_end()


class Relay:
    """The parent's end: applies what the child wants written to the parent's own store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._forms: list[tuple[str, RowInsert | None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._link: _RelaySocket | None = None

    async def open(self) -> socket.socket:
        """Make the connection and return the child's end of it, to be inherited and then closed here."""
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        made = await loop.create_connection(lambda: _RelaySocket(self._take, self._child_gone), sock=ours)
        self._link = made[1]
        return theirs

    async def close(self) -> None:
        """End the connection. Writes under way still take effect."""
        if self._link is not None:
            self._link.close()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, frame: Any) -> None:
        forms, writes = frame
        self._forms += map(_received, forms)
        for number, write in writes:
            statements = [self._statement(*one) for one in write]
            task = asyncio.create_task(self._write(number, statements))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _statement(self, form: int, args: list[Any], rows: int | None) -> Statement:
        sql, into = self._forms[form]
        return Statement(sql, args, rows, tables=into)

    async def _write(self, number: int, statements: list[Statement]) -> None:
        answer: list[Any]
        try:
            answer = list(await self._store.write(*statements))
        except (Clash, Lost, Misuse, StoreDown) as failure:
            answer = [_KINDS.get(type(failure), "down"), str(failure)]
        if self._link is not None:
            self._link.send((number, answer))

    def _child_gone(self) -> None:
        self._link = None
