"""Post: sends one signed request to a receiver, and trusts nothing about the way there or what comes back.

A small HTTP/1.1 client, because what matters here is what general ones hide: the very address that a socket
connects to, one deadline for everything, how many bytes are read, and whether a connection was used before.
It follows no redirects, heeds no proxy settings, keeps no cookies and unpacks no encodings.
"""

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, cast

import httptools

from vettance import clock
from vettance.webhooks.receiver_address import AddressForbidden, ReceiverTarget, check_receiver, read_target
from vettance.webhooks.resolve import Address, ResolutionFailure, Resolver
from vettance.webhooks.retry_policy import ATTEMPT_S_MAX
from vettance.webhooks.webhook import ANSWER_BYTES_MAX, AttemptFailure, AttemptOutcome

_CONNECT_S_MAX: Final = 4.0  # for each address, so that a dead one leaves time for another
_ADDRESSES_MAX: Final = 3
# Once there is a status, the rest of the answer is only for the log: nobody waits long for it.
_ANSWER_S_MAX: Final = 1.0
_HEAD_BYTES_MAX: Final = 64 * 1024
# Node.js and uvicorn close a connection that is idle for 5 seconds; being earlier avoids crossing with that.
_IDLE_S_MAX: Final = 4.0
_IDLE_MAX: Final = 512

Headers = Sequence[tuple[str, str]]


class _Failed(Exception):
    """An attempt failed in a way that has a class."""

    def __init__(self, failure: AttemptFailure, text: str = "") -> None:
        super().__init__(text)
        self.failure = failure


class _Connection(asyncio.Protocol):
    """One connection, used for one request at a time."""

    def __init__(self, forget: Callable[["_Connection"], None]) -> None:
        self._forget = forget
        self.transport: asyncio.Transport | None = None
        self.idle_since = 0.0
        self.used = False
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self.touched = False
        self.status = 0
        self.answer = bytearray()
        self.reusable = False
        self._head: asyncio.Future[None] | None = None
        self._end: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by behaviour, not by class.
        self.transport = cast(asyncio.Transport, transport)

    async def exchange(self, request: bytes) -> None:
        """Send a request and wait for the status, then a moment for the body. Raises `_Failed`."""
        assert self.transport is not None
        self._begin()
        loop = asyncio.get_running_loop()
        self._head, self._end = loop.create_future(), loop.create_future()
        self.transport.write(request)
        await self._head
        if not self._end.done():
            await asyncio.wait((self._end,), timeout=_ANSWER_S_MAX)
        self.used = True

    def data_received(self, data: bytes) -> None:
        if self._head is None or (self._end is not None and self._end.done()):
            self.close()  # Nothing was asked for: whatever this is, it answers no request of ours.
            return
        self.touched = True
        if not self.status:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES_MAX:
                self._fail(AttemptFailure.PROTOCOL)
                return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            # Once there is a status, a body that breaks the rules changes nothing about it.
            self._finish() if self.status else self._fail(AttemptFailure.PROTOCOL)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and self._head is not None and not self._head.done():
            self.status = status
            self._head.set_result(None)

    def on_body(self, body: bytes) -> None:
        self.answer += body[: ANSWER_BYTES_MAX - len(self.answer)]
        if len(self.answer) >= ANSWER_BYTES_MAX:
            self._finish()

    def on_message_complete(self) -> None:
        if not self.status:
            # An interim answer (1xx). The parser has to begin anew for the one that follows.
            return
        if self._end is not None and not self._end.done():
            self.reusable = self._parser.should_keep_alive()
            self._end.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        self._forget(self)
        self._finish() if self.status else self._fail(AttemptFailure.DISCONNECTED)

    def _finish(self) -> None:
        """End the exchange with what there is; the connection cannot be used again."""
        self.reusable = False
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def _fail(self, failure: AttemptFailure) -> None:
        if self._head is not None and not self._head.done():
            self._head.set_exception(_Failed(failure))
            # Nobody may be waiting any more, after a time-out.
            self._head.exception()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class WebhookClient:
    """Sends deliveries, over connections that it keeps for a few seconds.

    `unsafe` takes http and local receivers; `name_servers` are asked in place of those of the system; `trust`
    replaces the certificates that are trusted (for tests).
    """

    def __init__(
        self,
        *,
        unsafe: bool = False,
        name_servers: Sequence[str] = (),
        trust: ssl.SSLContext | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._unsafe = unsafe
        self._trust = trust
        self._reading_trust = asyncio.Lock()
        self._now_ms = now_ms
        self._idle: dict[tuple[str, str, int], deque[_Connection]] = {}
        self._idle_count = 0
        self._resolver = Resolver(name_servers)
        self._sweeper: asyncio.TimerHandle | None = None

    async def post(
        self, url: str, headers: Headers, body: bytes, attempt_s_max: float = ATTEMPT_S_MAX
    ) -> AttemptOutcome:
        """Make one attempt and tell how it went; never raises for what the receiver or the network does.

        `attempt_s_max` bounds what the receiver has time for: connecting, sending, and the answer's status.
        Finding its address comes before that and has a bound of its own (`RESOLVE_S_MAX`).
        """
        started_at_ms, started = self._now_ms(), time.perf_counter()
        status, answer, failure = 0, b"", None
        try:
            target = read_target(url, unsafe=self._unsafe)
            status, answer = await self._attempt(target, _request(target, headers, body), attempt_s_max)
        except AddressForbidden:
            failure = AttemptFailure.ADDRESS
        except _Failed as failed:
            failure = failed.failure
        except TimeoutError:
            failure = AttemptFailure.TIMEOUT
        if failure is None and not 200 <= status < 300:
            failure = AttemptFailure.STATUS
        duration_ms = round((time.perf_counter() - started) * 1000)
        return AttemptOutcome(status, failure, answer, started_at_ms, self._now_ms() + 1, duration_ms)

    async def find(self, url: str) -> list[Address]:
        """Return the addresses that a receiver may be connected to at.

        Raises `ResolutionFailure`, and `AddressForbidden` when one of them is none that webhooks go to.
        """
        target = read_target(url, unsafe=self._unsafe)
        addresses = await self._resolver.find(target.host, target.port)
        for _, (address, _) in addresses:
            check_receiver(address, unsafe=self._unsafe)
        return addresses

    async def _attempt(
        self, target: ReceiverTarget, request: bytes, attempt_s_max: float
    ) -> tuple[int, bytes]:
        connection, spent_s = self._take(target), 0.0
        if connection is not None:
            began_s = time.monotonic()
            try:
                async with asyncio.timeout(attempt_s_max):
                    return await self._exchange(target, connection, request)
            except _Failed:
                # A kept connection may have been closed at the other end before it saw the request. Then
                # this is not an answer to it, and a new connection is still the same attempt.
                if connection.touched:
                    raise
            spent_s = time.monotonic() - began_s
        try:
            addresses = await self._resolver.find(target.host, target.port)
        except ResolutionFailure:
            raise _Failed(AttemptFailure.DNS) from None
        async with asyncio.timeout(attempt_s_max - spent_s):
            return await self._exchange(target, await self._connect(target, addresses), request)

    async def _exchange(
        self, target: ReceiverTarget, connection: _Connection, request: bytes
    ) -> tuple[int, bytes]:
        try:
            await connection.exchange(request)
        except BaseException:
            connection.close()
            raise
        if connection.reusable and self._idle_count < _IDLE_MAX:
            self._keep(target, connection)
        else:
            connection.close()
        return connection.status, bytes(connection.answer)

    async def _connect(self, target: ReceiverTarget, addresses: Sequence[Address]) -> _Connection:
        last: _Failed = _Failed(AttemptFailure.DNS)
        for family, address in addresses[:_ADDRESSES_MAX]:
            try:
                async with asyncio.timeout(_CONNECT_S_MAX):
                    return await self._connect_to(target, family, address)
            except TimeoutError:
                last = _Failed(AttemptFailure.TIMEOUT)
            except ConnectionRefusedError:
                last = _Failed(AttemptFailure.REFUSED)
            except ssl.SSLError as error:
                last = _Failed(AttemptFailure.TLS, str(error))
            except ConnectionError:
                last = _Failed(AttemptFailure.DISCONNECTED)
            except OSError as error:
                last = _Failed(AttemptFailure.NETWORK, str(error))
        raise last

    async def _connect_to(self, target: ReceiverTarget, family: int, address: tuple[str, int]) -> _Connection:
        """Connect to one address. The check is here, on the socket itself, so that no name can resolve
        to one address when it is checked and to another when it is used (DNS rebinding)."""
        check_receiver(address[0], unsafe=self._unsafe)
        loop = asyncio.get_running_loop()
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, address)
            check_receiver(sock.getpeername()[0], unsafe=self._unsafe)
            secure = target.scheme == "https"
            trust = await self._trusted() if secure else None
            _, connection = await loop.create_connection(
                lambda: _Connection(self._forget),
                sock=sock,
                ssl=trust,
                server_hostname=target.host if secure else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    async def _trusted(self) -> ssl.SSLContext:
        """Return what certificates are checked with. Reading the system's takes a tenth of a second, once."""
        async with self._reading_trust:
            if self._trust is None:
                self._trust = await asyncio.to_thread(_trust_as_system)
            return self._trust

    def _take(self, target: ReceiverTarget) -> _Connection | None:
        """Return a kept connection, the one used last: the others may fall idle and go."""
        kept = self._idle.get((target.scheme, target.host, target.port))
        since = time.monotonic() - _IDLE_S_MAX
        while kept:
            connection = kept.pop()
            self._idle_count -= 1
            if (
                connection.idle_since > since
                and connection.transport
                and not connection.transport.is_closing()
            ):
                return connection
            connection.close()
        return None

    def _keep(self, target: ReceiverTarget, connection: _Connection) -> None:
        connection.idle_since = time.monotonic()
        self._idle.setdefault((target.scheme, target.host, target.port), deque()).append(connection)
        self._idle_count += 1
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_IDLE_S_MAX, self._sweep)

    def _forget(self, connection: _Connection) -> None:
        if not connection.idle_since:
            return
        for kept in self._idle.values():
            if connection in kept:
                kept.remove(connection)
                self._idle_count -= 1
                return

    def _sweep(self) -> None:
        """Close what has been idle for too long."""
        self._sweeper = None
        since = time.monotonic() - _IDLE_S_MAX
        for place, kept in list(self._idle.items()):
            while kept and kept[0].idle_since <= since:
                self._idle_count -= 1
                kept.popleft().close()
            if not kept:
                del self._idle[place]
        if self._idle:
            self._sweeper = asyncio.get_running_loop().call_later(1.0, self._sweep)

    async def close(self) -> None:
        """Close every connection. Attempts under way must have ended."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for kept in self._idle.values():
            for connection in list(kept):
                connection.close()
        self._idle.clear()
        await self._resolver.close()
        await asyncio.sleep(0)


def _trust_as_system() -> ssl.SSLContext:
    trust = ssl.create_default_context()
    trust.set_alpn_protocols(["http/1.1"])
    return trust


def _request(target: ReceiverTarget, headers: Headers, body: bytes) -> bytes:
    lines = [f"POST {target.path} HTTP/1.1", f"Host: {target.authority}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines += ["Accept: */*", "", ""]
    return "\r\n".join(lines).encode("ascii") + body
