"""The command line of batches: screen everybody in a file."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from vettance import clock
from vettance.aml.screening import sql
from vettance.aml.screening.screen import Screener, SearchResult, saving
from vettance.commands import (
    data_option,
    fail,
    file_digest,
    find_tenant,
    force_option,
    json_option,
    keep_existing,
    open_store,
    output_option,
    show,
    whole_file,
)
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Unprocessable
from vettance.exchange.row_files import FORMATS, open_sink
from vettance.exchange.screening.journal import Journal, JournalLine
from vettance.exchange.screening.row import COLUMNS, cells_of
from vettance.exchange.sql import ImportMark, move_import_mark, select_import_mark
from vettance.ids import IdSource
from vettance.option_types import StoredFile, Whole, hold_apart
from vettance.processes.background import give_way
from vettance.settings.settings import Settings
from vettance.watchlists.list_store import EVERYBODY
from vettance.watchlists.refresh import IndexKeeper
from vettance.watchlists.search_processes import searching
from vettance.watchlists.subject_screening import SHOWN_MIN, Profile
from vettance.watchlists.tenant_index import Reach
from vettance.wire.payload import JSON, decode, encode

if TYPE_CHECKING:
    from vettance.aml.screening.screening_request import ScreenRequest
    from vettance.watchlists.match import EntityMatch
    from vettance.watchlists.search_processes import SearchProcess

#: Rows searched by one process at a time, and written in one commit.
_CHUNK: Final = 100
_TRIES: Final = 8
_PATH: Final = click.Path(path_type=Path, dir_okay=False)


class _Row(msgspec.Struct, frozen=True):
    """A row of the file: the subject to screen, or why there is none."""

    number: int
    line: int
    request: ScreenRequest | None
    refused: dict[str, Any] | None


@click.command("screen")
@click.argument("file", type=StoredFile())
@click.option(
    "--tenant", metavar="ID", help="Whose subjects these are: screenings, alerts and cases are kept."
)
@click.option("--profile", type=click.Choice(list(Profile)), help="Of rows that name none.")
@output_option("Where the results go; FILE.screened.csv if left out.")
@click.option(
    "--format", "file_format", type=click.Choice(FORMATS), help="Of the results; told by their name."
)
@click.option("--errors", type=_PATH, help="Where refused rows go; FILE.errors.ndjson if left out.")
@click.option("--workers", type=Whole(1, 64), help="Processes that search; one for each processor.")
@force_option
@click.option("--restart", is_flag=True, help="Begin anew instead of going on with a run that was cut off.")
@json_option
@data_option
def screen_file(
    file: Path,
    tenant: str | None,
    profile: str | None,
    out: Path | None,
    file_format: str | None,
    errors: Path | None,
    workers: int | None,
    force: bool,
    restart: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Screen everybody in a file (CSV, NDJSON or Parquet) and write the results as one of these.

    Columns: name (or inputName), id (externalId), type, dob, nationality, aliases and documents (several by
    `;`, documents as `passport:X123`), profile; only the name is required. Run again after an interruption,
    it goes on where it stopped. With --tenant, each row is kept as POST /aml/screen keeps it. Results and
    refused rows of an earlier run are not overwritten without --force. Exits 1 when rows were refused; the
    others are screened all the same.

    Example: vettance screen customers.csv --tenant ten_0190… --output results.parquet
    """
    from vettance.exchange.row_files import FormatFault, format_of
    from vettance.exchange.screening.journal import JournalBusy
    from vettance.watchlists.search_processes import SearchFault

    give_way()
    out = out or file.with_name(f"{file.stem}.screened.csv")
    errors = errors or file.with_name(file.name + ".errors.ndjson")
    hold_apart({"--output": out, "--errors": errors}, {"FILE": file})
    for path in (out, errors):
        keep_existing(path, force=force)

    async def work() -> JSON:
        async with open_store(data) as (store, settings):
            if tenant is not None:
                await find_tenant(store, tenant)
            batch = _FileBatch(store, settings, tenant, profile, file)
            return await batch.run(out, file_format or format_of(out), errors, workers, restart=restart)

    try:
        result = asyncio.run(work())
    except (FormatFault, SearchFault) as fault:
        fail(str(fault))
    except JournalBusy:
        fail("this file is being screened by another command")
    text = (
        f"{result['screened']:,} screened ({result['confirmed']:,} confirmed, {result['review']:,} to "
        f"review, {result['autoClear']:,} clear), {result['refused']:,} refused. Results: {out}"
    )
    show(result, text + (f"; refused: {errors}" if result["refused"] else ""), as_json=as_json)
    if result["refused"]:
        sys.exit(1)


class _FileBatch:
    """One file of one tenant, or without a tenant."""

    def __init__(
        self, store: Store, settings: Settings, tenant: str | None, profile: str | None, file: Path
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._profile = profile
        self._file = file
        self._keeper = IndexKeeper(store, settings.data)
        self._screener = Screener(store, IdSource(), self._keeper)

    async def run(
        self, out: Path, file_format: str, errors: Path, workers: int | None, *, restart: bool
    ) -> JSON:
        """Screen what is left of the file, and write all results."""
        await self._keeper.reload()
        reach = await self._keeper.reach(self._tenant or EVERYBODY)
        if reach is None:
            fail("no watchlist is loaded; `vettance watchlist import` loads one")
        # Fails before an hour of work where a format is not installed.
        open_sink(file_format, io.BytesIO(), COLUMNS)
        digest = await asyncio.to_thread(file_digest, self._file)
        name = f"screen-{hashlib.sha256(f'{digest}|{self._tenant}|{self._profile}'.encode()).hexdigest()}"
        journal = Journal(out.with_name(f"{out.name}.{name[-8:]}.part"), name)
        try:
            done = await self._resume(journal, name, restart=restart)
            started = time.monotonic()
            if not journal.is_done:
                await self._screen(journal, name, reach, workers or os.cpu_count() or 1)
                journal.finish()
            screened = journal.rows - done
            result = _write(journal, out, file_format, errors)
            if self._tenant is not None:
                await self._store.write(sql.delete_batch_mark(self._tenant, name))
        except BaseException:
            journal.close(remove=not journal.rows and not journal.is_done)
            raise
        finally:
            self._screener.close()
        journal.close(remove=True)
        rate = round(screened / max(time.monotonic() - started, 0.001), 1)
        return result | {"resumedAfter": done, "perSecond": rate, "out": str(out), "errors": str(errors)}

    async def _resume(self, journal: Journal, name: str, *, restart: bool) -> int:
        """Bring the journal in line with the store; returns how many rows are done."""
        if self._tenant is None:
            if restart:
                journal.keep(0)
            return journal.rows
        rows = await self._store.read(select_import_mark(self._tenant, name))
        kept = ImportMark._make(rows[0]).lines if rows else 0
        if restart:
            await self._store.write(sql.delete_batch_mark(self._tenant, name))
            journal.keep(0)
        elif journal.rows < kept:
            fail(
                f"{kept:,} rows of this file are screened, but their results are gone; --restart begins anew"
            )
        elif not journal.is_done:
            journal.keep(kept)
        return journal.rows

    async def _screen(self, journal: Journal, name: str, reach: Reach, workers: int) -> None:
        processes = [searching(reach.folders, SHOWN_MIN, reach.folders[0]) for _ in range(workers)]
        chunks = _chunks(_rows(self._file, journal.rows, self._profile))
        waiting: list[tuple[list[_Row], asyncio.Task[list[list[EntityMatch] | None]]]] = []
        free = itertools.cycle(processes)
        try:
            with _progress(self._file, journal.rows) as advance:
                for chunk in chunks:
                    waiting.append((chunk, asyncio.create_task(_search(next(free), chunk))))
                    if len(waiting) >= workers:
                        advance(await self._take(journal, name, reach, *waiting.pop(0)))
                while waiting:
                    advance(await self._take(journal, name, reach, *waiting.pop(0)))
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)
            await asyncio.gather(*(process.close() for process in processes))

    async def _take(
        self,
        journal: Journal,
        name: str,
        reach: Reach,
        rows: Sequence[_Row],
        search: asyncio.Task[list[list[EntityMatch] | None]],
    ) -> int:
        """Keep a chunk once it is searched: its rows in the journal first, then all of it in one commit."""
        found = [
            (row, SearchResult(reach.versions, reach.id, matches) if matches is not None else None)
            for row, matches in zip(rows, await search, strict=True)
        ]
        before = journal.rows
        for _ in range(_TRIES):
            lines, statements = await self._judge(found)
            journal.append(lines)
            if self._tenant is None:
                break
            marks = ImportMark(before), ImportMark(journal.rows)
            try:
                await self._store.write(move_import_mark(self._tenant, name, *marks), *statements)
            except (Clash, Lost):
                journal.keep(before)  # An officer or the running service changed a case in between.
                continue
            break
        else:
            fail("others change the cases of these subjects at the moment; run it again to go on")
        return len(rows)

    async def _judge(
        self, found: Sequence[tuple[_Row, SearchResult | None]]
    ) -> tuple[list[JournalLine], list[Statement]]:
        lines: list[JournalLine] = []
        statements: list[Statement] = []
        for row, one in found:
            if row.request is None or one is None:
                refused = row.refused or {"row": "could not be searched"}
                lines.append(JournalLine(row.number, row.line, None, refused))
                continue
            if self._tenant is None:
                record = _record(row.request, one)
            else:
                record, written = await self._place(self._tenant, row.request, one)
                statements += written
            cells = cells_of(row.line, row.request.subject.name, record)
            lines.append(JournalLine(row.number, row.line, cells, None))
        return lines, statements

    async def _place(
        self, tenant: str, request: ScreenRequest, found: SearchResult
    ) -> tuple[JSON, list[Statement]]:
        weighed, before = await self._screener.weigh_with_case(tenant, request, found)
        now_ms = clock.now_ms()
        placed = self._screener.place(tenant, weighed, before, now_ms)
        return decode(placed.answer), [*placed.statements, *saving(tenant, before, placed)]


def _record(request: ScreenRequest, found: SearchResult) -> JSON:
    from vettance.watchlists.subject_screening import screen, screening_record

    screening = screen(found, request.subject, request.profile or Profile.BALANCED)
    return screening_record(screening, "", request.external_id, 0.0)


async def _search(process: SearchProcess, rows: Sequence[_Row]) -> list[list[EntityMatch] | None]:
    asked = [row.request.subject for row in rows if row.request is not None]
    found = iter(await process.search(asked)) if asked else iter(())
    return [next(found) if row.request is not None else None for row in rows]


def _rows(file: Path, done: int, profile: str | None) -> Iterator[_Row]:
    from vettance.exchange.row_files import format_of, rows_of
    from vettance.exchange.screening.row import details_of, request_of

    for number, (line, row) in enumerate(rows_of(format_of(file), file), 1):
        if number <= done:
            continue
        if isinstance(row, str):
            yield _Row(number, line, None, {"row": row})
            continue
        try:
            yield _Row(number, line, request_of(row, number, profile, clock.now_ms()), None)
        except Unprocessable as refusal:
            yield _Row(number, line, None, details_of(refusal))


def _chunks(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Cut rows into chunks; of one subject, a chunk has no more than one row, so that they meet in a case."""
    chunk: list[_Row] = []
    names: set[str] = set()
    for row in rows:
        name = row.request.external_id if row.request is not None else None
        if len(chunk) >= _CHUNK or name in names:
            yield chunk
            chunk, names = [], set()
        chunk.append(row)
        if name is not None:
            names.add(name)
    if chunk:
        yield chunk


def _write(journal: Journal, out: Path, file_format: str, errors: Path) -> JSON:
    """Write the results and, where there are any, the refused rows, and count them."""
    from vettance.watchlists.subject_screening import ScreeningOutcome

    counts = dict.fromkeys(ScreeningOutcome, 0)
    alerts: set[object] = set()
    refused = 0
    names = [column.name for column in COLUMNS]
    decision, alert = names.index("decision"), names.index("alertId")
    with contextlib.ExitStack() as files:
        sink = open_sink(file_format, files.enter_context(whole_file(out)), COLUMNS)
        faults = None
        for line in journal.lines():
            if line.cells is None:
                refused += 1
                faults = faults or files.enter_context(whole_file(errors))
                faults.write(encode({"line": line.line, "details": line.refused}) + b"\n")
                continue
            counts[ScreeningOutcome(str(line.cells[decision]))] += 1
            if line.cells[alert] is not None:
                alerts.add(line.cells[alert])
            sink.write([line.cells])
        sink.close()
    return {
        "screened": sum(counts.values()),
        "refused": refused,
        "confirmed": counts[ScreeningOutcome.CONFIRMED],
        "review": counts[ScreeningOutcome.REVIEW],
        "autoClear": counts[ScreeningOutcome.AUTO_CLEAR],
        "alerts": len(alerts),
    }


@contextlib.contextmanager
def _progress(file: Path, done: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error while it is a terminal; yields what to call with each number of rows."""
    from vettance.exchange.row_files import format_of, rows_of

    if not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("Screening", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=sum(1 for _ in rows_of(format_of(file), file)), completed=done)
        yield lambda count: bar.advance(task, count)
