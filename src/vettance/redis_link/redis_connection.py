"""A line to Redis: one connection on which calls go out together and none waits for another's answer."""

import asyncio
import hashlib
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, ClassVar, Final, Protocol

from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ClusterDownError, NoScriptError, ReadOnlyError, RedisError, ResponseError

from vettance.redis_link.down import StateDown
from vettance.telemetry.logs import logger
from vettance.telemetry.outages import Outage

#: How long an answer, or a connection, may take. A call takes a fraction of a millisecond.
PATIENCE_S: Final = 2.0
#: Calls that may wait at one time; beyond it, what Redis is asked comes faster than it answers.
WAITING_MAX: Final = 20_000
_RUN_ID: Final = re.compile(rb"^run_id:(\w{8})", re.MULTILINE)
_RUN_ID_MEND: Final = (
    "By it the loss of the memory is noticed: allow INFO, name Redis itself and no proxy of it."
)
_NUMBER_MEND: Final = "End the URL with a number below its setting `databases`, as in redis://host:6379/0."

#: A refusal is written to the log again after so long, by its code word.
_TELL_S: Final = 60.0
_CODES_MAX: Final = 32
_CODE: Final = re.compile(r"[A-Z]{2,20}\b")

_log = logger()


class Unfit(StateDown):
    """What answers as Redis can never serve, however often it is asked. `mend` says what to do."""

    def __init__(self, found: str, mend: str) -> None:
        super().__init__(found)
        self.mend = mend


class LuaScript:
    """A Lua script: files of the package that runs it, joined behind the constants that they name."""

    def __init__(self, package: str, *names: str, constants: Mapping[str, int] | None = None) -> None:
        self.text = b"\n".join(files(package).joinpath(name).read_bytes() for name in names)
        if constants:
            header = f"local {', '.join(constants)} = {', '.join(map(str, constants.values()))}\n".encode()
            # The flags of a script have to be its first line.
            start = self.text.index(b"\n") + 1 if self.text.startswith(b"#!") else 0
            self.text = self.text[:start] + header + self.text[start:]
        # Redis names scripts so; nothing here rests on it being hard to forge.
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode()


#: What says how long a part is; formatting it takes longer than all else that packs the part.
_LENGTHS: Final = [b"$%d" % length for length in range(512)]


def pack(parts: Sequence[bytes]) -> bytes:
    """Return a command in the protocol of Redis (RESP, "arrays of bulk strings")."""
    sent = [b"*%d" % len(parts)]
    for part in parts:
        length = len(part)
        sent.append(_LENGTHS[length] if length < len(_LENGTHS) else b"$%d" % length)
        sent.append(part)
    sent.append(b"")
    return b"\r\n".join(sent)


class RedisLine(Protocol):
    """What leads to the server of a key: one connection, or those to a cluster."""

    def at(self, key: bytes) -> "RedisConnection":
        """Return the connection to the server that a key is on. Raises `StateDown`."""

    def spread(self, name: str) -> list[bytes]:
        """Return keys of a name that are on as many servers as the keys of a tenant."""

    async def call(self, *parts: bytes) -> Any:
        """Send one command. Raises as `RedisConnection.call`."""

    async def run(self, script: LuaScript, keys: Sequence[bytes], args: Sequence[bytes]) -> Any:
        """Run a script whose keys are on one server."""

    async def close(self) -> None:
        """Let go of what is connected; calls that wait fail."""


class RedisConnection:
    """A pipelined connection, opened at the first call and again after it broke."""

    #: What a server says that serves no longer: another one may answer at the same address by now. The second
    #: is MASTERDOWN too.
    _ending: ClassVar[tuple[type[RedisError], ...]] = (ReadOnlyError, ClusterDownError)

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        """Name the server by a URL such as `redis://host:port/number`. Raises `ValueError` for another."""
        self._pool = ConnectionPool.from_url(
            url, socket_timeout=None, socket_connect_timeout=patience_s, protocol=2
        )
        self._patience_s = patience_s
        self._waiting: list[tuple[float, bytes, asyncio.Future[Any]]] = []
        self._under_way: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._connection: AbstractConnection | None = None
        self._sender: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._answered_s = 0.0
        #: When the connection that there is was opened.
        self.opened_s = 0.0
        self._is_overdue = False
        self._breaking: asyncio.Task[None] | None = None
        self._is_closed = False
        self._server_id: bytes | None = None
        self._told: dict[str, float] = {}
        self._outage = Outage("redis")

    def at(self, _key: bytes) -> "RedisConnection":
        """Return this connection: every key is on its server."""
        return self

    def spread(self, name: str) -> list[bytes]:
        """Return a key of a name: there is one server."""
        return [name.encode()]

    @property
    def known_server(self) -> bytes | None:
        """What `server` returns, while there is a connection."""
        return self._server_id if self._connection is not None else None

    async def server(self) -> bytes:
        """Return what tells this run of the server from every other: 8 bytes. Raises `StateDown`."""
        if self._connection is None or self._server_id is None:
            await self.call(b"PING")
        assert self._server_id is not None
        return self._server_id

    async def call(self, *parts: bytes) -> Any:
        """Send one command and return its answer.

        Raises `StateDown` when there is none (then the command may or may not have been carried out) or Redis
        refuses, whatever the reason, and `NoScriptError` when it does not know a script.
        """
        return await self.answer(self.post(*parts), parts[0])

    def post(self, *parts: bytes) -> asyncio.Future[Any]:
        """Send one command with those of this turn of the loop; `answer` is to be awaited with the result.

        Raises `StateDown` when nothing can be sent.
        """
        if self._is_closed or len(self._waiting) + len(self._under_way) >= WAITING_MAX:
            raise StateDown("the line to Redis is closed or overfull")
        posted = asyncio.get_running_loop().create_future()
        self._waiting.append((time.monotonic(), pack(parts), posted))
        self._start()
        return posted

    async def answer(self, posted: asyncio.Future[Any], command: bytes) -> Any:
        """Return the answer to a command that was posted. Raises as `call` does."""
        try:
            found = await posted
        except StateDown as error:
            if not self._is_closed:
                self._outage.down(str(error))
            raise
        self._outage.up()
        if isinstance(found, NoScriptError):
            raise found
        if isinstance(found, ResponseError):
            raise self._refusal(found, command)
        return found

    async def run(self, script: LuaScript, keys: Sequence[bytes], args: Sequence[bytes]) -> Any:
        """Run a script; it is sent whole only when Redis does not know it."""
        counted = (b"%d" % len(keys), *keys, *args)
        try:
            return await self.call(b"EVALSHA", script.sha, *counted)
        except NoScriptError:
            return await self.call(b"EVAL", script.text, *counted)

    async def close(self) -> None:
        """Let go of the connection; calls that wait fail."""
        self._is_closed = True
        await self._break("the line was closed")

    def _refusal(self, refusal: ResponseError, command: bytes) -> StateDown:
        return StateDown(self._tell(refusal, command))

    def _tell(self, refusal: ResponseError, command: bytes) -> str:
        """Say by its code word what Redis refuses; the rest may hold values. Logged once in a while."""
        found = _CODE.match(refusal.status_code or str(refusal))
        code, now_s = found[0] if found else "ERR", time.monotonic()
        if len(self._told) >= _CODES_MAX:
            self._told.clear()
        if now_s - self._told.get(code, -_TELL_S) >= _TELL_S:
            self._told[code] = now_s
            _log.warning("redis_refuses", code=code, command=command.decode())
        return f"Redis refuses: {code}"

    def _start(self) -> None:
        """Have what waits be sent, and watched until it is answered."""
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(self._patience_s / 4, self._look)
        if self._waiting and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """Send what waits; `_break` cancels it, so that it does not hang on a buffer that stays full."""
        try:
            while self._waiting:
                connection = self._connection or await self._connect()
                # Callers that are ready to ask in this turn of the loop go along.
                await asyncio.sleep(0)
                batch, self._waiting = self._waiting, []
                self._under_way.extend((asked_s, answer) for asked_s, _, answer in batch)
                sent = b"".join(packed for _, packed, _ in batch)
                await connection.send_packed_command(sent, check_health=False)
        except Exception as error:  # noqa: BLE001  Whatever it is, those who wait learn of it at once.
            await self._break(_said(error))

    async def _connect(self) -> AbstractConnection:
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(self._patience_s):
                server_id = await _greet(connection)
        except BaseException:
            await _drop(connection)
            raise
        if self._server_id not in (None, server_id):
            # What waits was asked of a server that is no more; callers learn of it when they ask again.
            self._fail_waiting("Redis was started again")
        self._server_id = server_id
        self._connection = connection
        self._reader = asyncio.create_task(self._read(connection))
        self._answered_s = self.opened_s = time.monotonic()
        return connection

    async def _read(self, connection: AbstractConnection) -> None:
        """Give every answer to the call that is next in turn; notice at once when the connection ends."""
        try:
            while True:
                try:
                    found = await connection.read_response(
                        disable_decoding=True, timeout=float("inf"), disconnect_on_error=False
                    )
                except ResponseError as error:
                    found = error
                _, answer = self._under_way.popleft()
                self._answered_s = time.monotonic()
                if not answer.done():
                    answer.set_result(found)
                if isinstance(found, self._ending):
                    raise found
        except Exception as error:  # noqa: BLE001  Whatever it is, those who wait learn of it at once.
            if connection is self._connection:
                await self._break(_said(error))

    def _look(self) -> None:
        """Give up on everything asked when nothing has come for too long, whatever it is that hangs.

        Two looks must agree: a process that was stopped for a while finds its answers only after the first.
        """
        self._watch = None
        if not self._under_way and not self._waiting:
            self._is_overdue = False
            return
        was_overdue = self._is_overdue
        oldest_s = self._under_way[0][0] if self._under_way else self._waiting[0][0]
        self._is_overdue = time.monotonic() - max(oldest_s, self._answered_s) > self._patience_s
        if was_overdue and self._is_overdue:
            self._fail_waiting("Redis does not answer")
            self._breaking = asyncio.create_task(self._break("Redis does not answer"))
        else:
            self._start()

    async def _break(self, reason: str) -> None:
        """Fail what was sent, and what waits if there was no connection; send the rest over a new one."""
        connection, self._connection = self._connection, None
        reader, self._reader = self._reader, None
        sender, self._sender = self._sender, None
        for task in (reader, sender):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._is_overdue = False
        lost = [answer for _, answer in self._under_way]
        self._under_way.clear()
        if connection is None or self._is_closed:
            self._fail_waiting(reason)
        for answer in lost:
            if not answer.done():
                answer.set_exception(StateDown(reason))
        if self._waiting:
            self._start()
        if connection is not None:
            await _drop(connection)

    def _fail_waiting(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, []
        for _, _, answer in waiting:
            if not answer.done():
                answer.set_exception(StateDown(reason))


def _said(error: Exception) -> str:
    """Say what became of a connection. The texts of others may repeat what was sent."""
    return str(error) if isinstance(error, StateDown) else f"Redis cannot be reached ({type(error).__name__})"


async def try_line(url: str, patience_s: float = PATIENCE_S) -> None:
    """Ask what a line asks first. Raises `Unfit`; a Redis that is silent or refuses for now may yet serve."""
    pool = ConnectionPool.from_url(url, socket_connect_timeout=patience_s, protocol=2)
    connection: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]
    try:
        async with asyncio.timeout(patience_s):
            await _greet(connection)
    except Unfit:
        raise
    except (RedisError, OSError, TimeoutError):
        return
    finally:
        await _drop(connection)


async def _greet(connection: AbstractConnection) -> bytes:
    """Connect; return what tells this run of the server from every other. Raises `Unfit` without it."""
    try:
        await connection.connect_check_health(check_health=False, retry_socket_connect=False)
        await connection.send_command("INFO", "server")
        told = await connection.read_response(disable_decoding=True)
    except ResponseError as error:
        if "DB index" in str(error):
            raise Unfit("it has no database of this number", _NUMBER_MEND) from None
        if not str(error).startswith("unknown command"):
            raise
        told = None
    found = _RUN_ID.search(told) if isinstance(told, bytes) else None
    if found is None:
        raise Unfit("what answers as Redis does not tell its run_id (INFO server)", _RUN_ID_MEND)
    return found[1]


async def _drop(connection: AbstractConnection) -> None:
    """End a connection at once; closing it would wait until Redis takes what was written, so for ever."""
    if connection._writer is not None:
        connection._writer.transport.abort()
    await connection.disconnect(nowait=True)
