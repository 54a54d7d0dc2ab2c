"""Supervise: processes that search for this one, so that thousands of searches slow no answer down."""

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from vettance.processes.standard_input import tell
from vettance.watchlists.match import EntityMatch, Subject
from vettance.watchlists.search_protocol import LENGTH_BYTES, framed

#: Reading the largest lists and indexing what is new of them takes minutes at the most.
START_S_MAX: Final = 900.0
#: A message holds a few hundred subjects of milliseconds each, on a machine that may be busy.
SEARCH_S_MAX: Final = 300.0
_decode_matches = msgspec.msgpack.Decoder(list[list[EntityMatch] | None]).decode


class SearchFault(Exception):
    """The process that searches has ended, or does not answer."""


class SearchProcess:
    """A process that searches indexes (see `worker.py`), started when first asked. One call at a time."""

    def __init__(self, task: Sequence[str], least: int, base: Path | None = None, niceness: int = 0) -> None:
        self._arguments = (str(niceness), str(least), str(base) if base is not None else "-", *task)
        self._process: asyncio.subprocess.Process | None = None
        self._entities = 0

    async def entities(self) -> int:
        """Return how many entities are searched. Raises `SearchFault`."""
        if self._process is None:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "vettance.watchlists.worker", *self._arguments),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
            except OSError as error:
                raise SearchFault(f"the process that searches cannot be started: {error.strerror}") from None
            self._entities = msgspec.msgpack.decode(await self._answer(START_S_MAX), type=int)
        return self._entities

    async def search(self, subjects: Sequence[Subject]) -> list[list[EntityMatch] | None]:
        """Return for each subject the matches that score enough, or None when searching it failed.

        Raises `SearchFault`; the next call then starts another process.
        """
        await self.entities()
        return _decode_matches(await self._answer(SEARCH_S_MAX, framed(msgspec.msgpack.encode(subjects))))

    async def _answer(self, seconds: float, question: bytes = b"") -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            tell(self._process, question)
            async with asyncio.timeout(seconds):
                length = int.from_bytes(await self._process.stdout.readexactly(LENGTH_BYTES))
                return await self._process.stdout.readexactly(length)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            raise SearchFault(f"the process that searches does not answer: {error!r}") from None

    async def close(self) -> None:
        """End the process; it leaves nothing behind."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(1.0):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def searching(folders: Sequence[Path], least: int, base: Path | None = None) -> SearchProcess:
    """Return a process that searches the indexes in these folders."""
    return SearchProcess(("search", *map(str, folders)), least, base)


def searching_changes(
    data: Path,
    tenant: str,
    versions: tuple[Mapping[str, str], Mapping[str, str]],
    least: int,
    base: Path,
    niceness: int,
) -> SearchProcess:
    """Return a process that searches what is new between two sets of list versions for a tenant."""
    texts = (msgspec.json.encode(dict(one)).decode() for one in versions)
    return SearchProcess(("changes", str(data), tenant, *texts), least, base, niceness)
