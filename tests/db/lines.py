"""Stands between a store and PostgreSQL: lines can be cut there, and go silent like those of a lost host."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

#: ReadyForQuery of an idle connection, with which a login ends
#: (postgresql.org/docs/15/protocol-message-formats.html).
_READY = b"Z\x00\x00\x00\x05I"


class _Line:
    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.near = near
        self.far = far
        self.is_silent = False


class Lines:
    """The lines of one store; new ones go silent right after their login while `silent_from_login`."""

    def __init__(self, url: str) -> None:
        #: Where the database is without them.
        self.beyond = url
        self._there = urlsplit(url)
        self._open: list[_Line] = []
        self._awaited = b"nothing yet"
        self._said = asyncio.Event()
        self._asked = asyncio.Event()
        self.silent_from_login = False
        #: A line ends when the store says this on it.
        self.ending_at: bytes | None = None
        self.url = ""

    def silence(self) -> None:
        """Let nothing through on the lines that are open; only the server learns that they are gone."""
        for line in self._open:
            line.is_silent = True
            line.far.transport.abort()

    def cut(self) -> None:
        """End the lines that are open."""
        for line in self._open:
            line.near.transport.abort()
            line.far.transport.abort()

    async def sent(self, text: bytes) -> None:
        """Wait until the store says something."""
        self._awaited = text
        async with asyncio.timeout(10):
            await self._said.wait()

    async def asked_in_vain(self) -> None:
        """Wait until something was sent into the silence."""
        async with asyncio.timeout(10):
            await self._asked.wait()

    async def serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        there, far = await asyncio.open_connection(self._there.hostname, self._there.port or 5432)
        line = _Line(near, far)
        self._open.append(line)
        await asyncio.gather(self._pass_on(line, reader, far), self._pass_on(line, there, near))

    async def _pass_on(self, line: _Line, reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if line.is_silent:
                    self._asked.set()
                    continue
                if self.ending_at is not None and self.ending_at in data:
                    line.near.transport.abort()
                    line.far.transport.abort()
                    return
                to.write(data)
                if self._awaited in data:
                    self._said.set()
                if to is line.near and self.silent_from_login and data.endswith(_READY):
                    line.is_silent = True


@contextlib.asynccontextmanager
async def lines_to(url: str) -> AsyncIterator[Lines]:
    """Serve lines to a database; their `url` leads through them."""
    lines = Lines(url)
    server = await asyncio.start_server(lines.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    there = urlsplit(url)
    user = there.netloc.rpartition("@")[0]
    lines.url = there._replace(netloc=f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}").geturl()
    try:
        yield lines
    finally:
        lines.cut()
        server.close()
