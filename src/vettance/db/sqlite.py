"""The embedded store: one SQLite file, one writer that commits whatever waits, and separate readers."""

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from vettance.db.connection import STORE_FILE, prepare
from vettance.db.engine import ANSWER_S_MAX, Row, Statement
from vettance.db.migrate import migrate
from vettance.db.reader_pool import ReaderPool
from vettance.db.write_batcher import WriteBatcher
from vettance.db.writer_channel import ProcessChannel, ThreadChannel
from vettance.telemetry.meters import Meters

Seat = Literal["process", "thread"]


def store_path(data: Path) -> Path:
    """Name the store file of a data folder."""
    return data / STORE_FILE


class SqliteStore:
    """Implements `Store` on a file. Make one with `await SqliteStore.open(...)`; closing it is `close()`.

    The file must be opened through SQLite only: any other open file descriptor of this process on it would,
    when closed, drop the locks that SQLite holds (POSIX advisory locks belong to the process).
    """

    def __init__(
        self, path: Path, batcher: WriteBatcher, channel: ThreadChannel | ProcessChannel, readers: ReaderPool
    ):
        self._path = path
        self._batcher = batcher
        self._channel = channel
        self._readers = readers
        self._closed = False

    @classmethod
    async def open(
        cls, path: Path, *, writer: Seat, read_s_max: float = ANSWER_S_MAX, meters: Meters | None = None
    ) -> Self:
        """Open the store file, making it and its folder where missing; its schema is left to `migrate`.

        `writer` says where the writing connection lives: "process" for a server (only one at a time can
        serve a file so), "thread" for commands, which may write next to a server. `read_s_max` bounds a
        query, in seconds. Raises `StoreDown` with one line that says what is wrong with the file.
        """
        await asyncio.to_thread(prepare, path)
        readers = await asyncio.to_thread(ReaderPool, path, read_s_max)
        batcher = WriteBatcher(meters)
        channel = (ProcessChannel if writer == "process" else ThreadChannel)(path, batcher)
        try:
            await batcher.start(channel)
        except BaseException:
            await readers.close()
            raise
        return cls(path, batcher, channel, readers)

    @property
    def pending(self) -> int:
        """How many writes wait for their commit."""
        return self._batcher.pending

    @property
    def trouble(self) -> str | None:
        """One line that says why writes fail at the moment, or None."""
        return self._batcher.trouble

    @property
    def writer_pid(self) -> int | None:
        """The process id of the writer, None when it is a thread."""
        return self._channel.writer_pid if isinstance(self._channel, ProcessChannel) else None

    def healthy(self) -> bool:
        """Tell whether writes are being kept, as far as is known. Recovers by itself, within a second."""
        return self._batcher.trouble is None and not self._closed

    async def read(self, statement: Statement) -> list[Row]:
        """Return the rows of a query, seeing every write that has returned before."""
        return await self._readers.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        """Apply the statements in one commit and return how many rows each changed; see `Store.write`."""
        return await self._batcher.write(statements)

    async def migrate(self) -> int:
        """Bring the schema to the newest version and return that version's number."""
        return await asyncio.to_thread(migrate, self._path)

    async def close(self) -> None:
        """Finish the writes that wait, then close the file. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        await self._readers.close()
        await self._batcher.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
