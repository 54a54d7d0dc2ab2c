"""Sends requests and tries again: over urllib3 for programs that wait, over aiohttp for those that await."""

import io
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from vettance_client.endpoint import Endpoint, Reply
from vettance_client.errors import ConnectionFailed, TimedOut, VettanceError, error_of
from vettance_client.request import Request, answer_of, request_of
from vettance_client.retry import Retry

if TYPE_CHECKING:
    import aiohttp
    import urllib3

#: Less time than this is not enough for an answer, so no attempt is made in it.
_WORTH_S = 0.001
_PIECE_BYTES_MAX = 1 << 19


class _Settings:
    """What both callers are told when they are made."""

    def __init__(
        self, base_url: str, api_key: str | None, timeout_s: float, retry: Retry, connections_max: int
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url is the service's address, such as https://risk.example.com")
        if not timeout_s > 0:
            raise ValueError("timeout_s must be more than 0")
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        self.timeout_s = timeout_s
        self.retry = retry
        self.connections_max = connections_max

    def request(
        self,
        endpoint: Endpoint[Any],
        path: tuple[str, ...],
        query: Mapping[str, Any] | None,
        body: Any,
        idempotency_key: str | None,
        token: str | None,
    ) -> Request:
        if token is not None:
            credential: tuple[str, str] | None = ("Authorization", f"Bearer {token}")
        else:
            credential = ("x-api-key", self.api_key) if self.api_key else None
        return request_of(endpoint, path, query, body, credential=credential, idempotency_key=idempotency_key)


class Caller:
    """Calls the service and waits for the answer. It keeps connections, and many threads may use it."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 10.0,
        retry: Retry | None = None,
        connections_max: int = 32,
        pool: "urllib3.HTTPConnectionPool | None" = None,
    ) -> None:
        """`pool` is a urllib3 pool of your own, for a proxy or certificates of your own."""
        self._settings = _Settings(base_url, api_key, timeout_s, retry or Retry(), connections_max)
        self._own_pool = pool is None
        self._pool = pool
        self._prefix = urlsplit(self._settings.base_url).path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._own_pool and self._pool is not None:
            self._pool.close()
            self._pool = None

    def _call(
        self,
        endpoint: Endpoint[Reply],
        path: tuple[str, ...] = (),
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
    ) -> Reply:
        """Call an endpoint; `deadline_s` is the time for all attempts together."""
        request = self._settings.request(endpoint, path, query, body, idempotency_key, token)
        until = None if deadline_s is None else time.monotonic() + deadline_s
        attempt = 0
        while True:
            attempt += 1
            left_s = None if until is None else until - time.monotonic()
            try:
                status, headers, content = self._send(
                    request, _sooner(timeout_s or self._settings.timeout_s, left_s)
                )
                if status < 300:
                    return answer_of(endpoint, headers.get("Content-Type", ""), content)
                failure: VettanceError = error_of(status, headers, content)
            except (ConnectionFailed, TimedOut) as error:
                failure = error
            left_s = None if until is None else until - time.monotonic() - _WORTH_S
            wait_s = self._settings.retry.wait_s(failure, attempt, endpoint.repeat, left_s)
            if wait_s is None:
                raise failure
            time.sleep(wait_s)

    def _send(self, request: Request, timeout_s: float) -> tuple[int, Mapping[str, str], bytes]:
        import urllib3

        pool = self._pool or self._connect()
        until = time.monotonic() + timeout_s
        try:
            answer = pool.urlopen(
                request.method,
                self._prefix + request.target,
                request.content,
                request.headers,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(total=timeout_s),
                preload_content=False,
            )
            content = b"".join(_pieces(answer, until))
            answer.release_conn()
            return answer.status, answer.headers, content
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.NameResolutionError) as error:
            raise ConnectionFailed(
                f"No connection to {self._settings.base_url}: {error}", sent=False
            ) from error
        except urllib3.exceptions.ConnectTimeoutError as error:
            raise ConnectionFailed(f"No connection within {timeout_s:.3g} s.", sent=False) from error
        except (urllib3.exceptions.TimeoutError, TimeoutError) as error:
            raise TimedOut(f"No answer within {timeout_s:.3g} s.") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ConnectionFailed(f"The connection broke: {error}") from error

    def _connect(self) -> "urllib3.HTTPConnectionPool":
        import urllib3

        self._pool = urllib3.connection_from_url(
            self._settings.base_url, maxsize=self._settings.connections_max, block=False
        )
        return self._pool

    def _rows(
        self,
        endpoint: Endpoint[Any],
        path: tuple[str, ...] = (),
        *,
        query: Mapping[str, Any],
        timeout_s: float | None = None,
    ) -> Iterator[Any]:
        """Go through all pages by their cursor, so that none is repeated or skipped while rows are added."""
        asked = dict(query)
        while True:
            page = self._call(endpoint, path, query=asked, timeout_s=timeout_s)
            yield from page.data
            if page.next_cursor is None:
                return
            asked["cursor"] = page.next_cursor


class AsyncCaller:
    """Calls the service and awaits the answer. It keeps connections; use it within one event loop."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 10.0,
        retry: Retry | None = None,
        connections_max: int = 100,
        session: "aiohttp.ClientSession | None" = None,
    ) -> None:
        """`session` is an aiohttp session of your own, for a proxy or certificates of your own."""
        self._settings = _Settings(base_url, api_key, timeout_s, retry or Retry(), connections_max)
        self._own_session = session is None
        self._session = session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._own_session and self._session is not None:
            await self._session.close()
            self._session = None

    async def _call(
        self,
        endpoint: Endpoint[Reply],
        path: tuple[str, ...] = (),
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        token: str | None = None,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
    ) -> Reply:
        """Call an endpoint; `deadline_s` is the time for all attempts together."""
        import asyncio  # A third of what importing the client would take; programs that wait need none of it.

        request = self._settings.request(endpoint, path, query, body, idempotency_key, token)
        until = None if deadline_s is None else time.monotonic() + deadline_s
        attempt = 0
        while True:
            attempt += 1
            left_s = None if until is None else until - time.monotonic()
            try:
                status, headers, content = await self._send(
                    request, _sooner(timeout_s or self._settings.timeout_s, left_s)
                )
                if status < 300:
                    return answer_of(endpoint, headers.get("Content-Type", ""), content)
                failure: VettanceError = error_of(status, headers, content)
            except (ConnectionFailed, TimedOut) as error:
                failure = error
            left_s = None if until is None else until - time.monotonic() - _WORTH_S
            wait_s = self._settings.retry.wait_s(failure, attempt, endpoint.repeat, left_s)
            if wait_s is None:
                raise failure
            await asyncio.sleep(wait_s)

    async def _send(self, request: Request, timeout_s: float) -> tuple[int, Mapping[str, str], bytes]:
        import asyncio

        import aiohttp
        from yarl import URL

        session = self._session or self._connect()
        content = request.content
        try:
            async with (
                asyncio.timeout(timeout_s),
                session.request(
                    request.method,
                    URL(self._settings.base_url + request.target, encoded=True),
                    # aiohttp warns of bytes that are larger: it sends them in one piece.
                    data=io.BytesIO(content) if content and len(content) > _PIECE_BYTES_MAX else content,
                    headers=request.headers,
                    allow_redirects=False,
                ) as answer,
            ):
                return answer.status, answer.headers, await answer.read()
        except aiohttp.ClientConnectorError as error:
            raise ConnectionFailed(
                f"No connection to {self._settings.base_url}: {error}", sent=False
            ) from error
        except TimeoutError as error:
            raise TimedOut(f"No answer within {timeout_s:.3g} s.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(f"The connection broke: {error}") from error

    def _connect(self) -> "aiohttp.ClientSession":
        import aiohttp

        connector = aiohttp.TCPConnector(limit=self._settings.connections_max)
        # `asyncio.timeout` around a request is its only limit: aiohttp's own would come on top.
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        return self._session

    async def _rows(
        self,
        endpoint: Endpoint[Any],
        path: tuple[str, ...] = (),
        *,
        query: Mapping[str, Any],
        timeout_s: float | None = None,
    ) -> AsyncIterator[Any]:
        """Go through all pages by their cursor, so that none is repeated or skipped while rows are added."""
        asked = dict(query)
        while True:
            page = await self._call(endpoint, path, query=asked, timeout_s=timeout_s)
            for row in page.data:
                yield row
            if page.next_cursor is None:
                return
            asked["cursor"] = page.next_cursor


def _sooner(timeout_s: float, left_s: float | None) -> float:
    return timeout_s if left_s is None else max(min(timeout_s, left_s), _WORTH_S)


def _pieces(answer: "urllib3.BaseHTTPResponse", until: float) -> Iterator[bytes]:
    """Read an answer until its end, or its deadline."""
    while piece := answer.read1(65536):
        yield piece
        if time.monotonic() > until:
            answer.close()
            raise TimeoutError
