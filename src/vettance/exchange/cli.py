"""The command line of files: export what was decided, import labelled events."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

import click

from vettance import clock
from vettance.commands import (
    data_option,
    fail,
    file_digest,
    find_tenant,
    json_option,
    open_store,
    progress,
    read_time,
    show,
    whole_file,
)
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Refusal
from vettance.exchange import sql
from vettance.exchange.file import FORMATS, FormatFault, format_of, open_sink, rows_of
from vettance.exchange.table import TABLES, Column, read_row
from vettance.history.sql import count_after
from vettance.ids import IdSource
from vettance.jobs.sql import insert_job
from vettance.wire import decode, encode

_ROWS: Final = 1_000
_BATCH: Final = 500  # Events accepted in one commit, with the mark of how far the file is done.

_tenant_option = click.option("--tenant", required=True, metavar="ID", help="Whose events.")


@click.command("export")
@click.argument("what", type=click.Choice(list(TABLES)))
@_tenant_option
@click.option("--from", "from_ms", callback=read_time, metavar="TIME", help="The first moment, inclusive.")
@click.option("--to", "to_ms", callback=read_time, metavar="TIME", help="The last moment, exclusive.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    help="Told by the name of the file if left out; ndjson on standard output.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="A file; standard output if left out."
)
@json_option
@data_option
def export(
    what: str,
    tenant: str,
    from_ms: int | None,
    to_ms: int | None,
    file_format: str | None,
    out: Path | None,
    as_json: bool,
    data: str | None,
) -> None:
    """Write events or decisions to a file, oldest first.

    --json tells on standard output what was written, and so goes with --out.

    Example: vettance export decisions --tenant ten_0190… --from 2026-01-01 --out january.csv
    """
    if as_json and out is None:
        fail("--json goes with --out; without it, standard output takes the rows")
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise click.BadParameter("must not be later than --to", param_hint="--from")

    async def work(chosen: str) -> int:
        async with open_store(data) as (store, _settings):
            await find_tenant(store, tenant)
            columns, moment = TABLES[what]
            with ExitStack() as stack:
                file: IO[bytes] = stack.enter_context(whole_file(out)) if out else sys.stdout.buffer
                return await _export(store, tenant, columns, moment, (from_ms, to_ms), chosen, file)

    try:
        chosen = file_format or (format_of(out) if out else "ndjson")
        count = asyncio.run(work(chosen))
    except FormatFault as fault:
        fail(str(fault))
    if as_json:
        show({"what": what, "rows": count, "format": chosen, "out": str(out)}, "", as_json=True)
    else:
        click.echo(f"{count:,} {what} written.", err=True)


async def _export(
    store: Store,
    tenant: str,
    columns: Sequence[Column],
    moment: str,
    span: tuple[int | None, int | None],
    file_format: str,
    file: IO[bytes],
) -> int:
    sink = open_sink(file_format, file, columns)
    after, count = 0, 0
    if span[0] is not None:
        after = (await store.read(sql.select_start(tenant, moment, span[0])))[0][0]
    ahead = (await store.read(count_after(tenant, after)))[0][0]
    with progress("Exporting", ahead) as advance:
        while found := await store.read(sql.select_exported(tenant, after, moment, *span, _ROWS)):
            rows = [sql.exported_of(row) for row in found]
            labels: dict[str, list[str]] = {}
            first, last = min(row.id for row in rows), max(row.id for row in rows)
            for target, label in await store.read(sql.select_labels(tenant, first, last)):
                labels.setdefault(target, []).append(label)
            sink.write([[column.value(row, labels.get(row.id, ())) for column in columns] for row in rows])
            after = rows[-1].seq
            count += len(rows)
            advance(len(rows))
    sink.close()
    return count


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_tenant_option
@click.option("--format", "file_format", type=click.Choice(FORMATS), help="Told by the name if left out.")
@click.option("--dry-run", is_flag=True, help="Check every row and keep none.")
@click.option(
    "--errors",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where refused rows go, with their lines.",
)
@json_option
@data_option
def import_(
    file: Path,
    tenant: str,
    file_format: str | None,
    dry_run: bool,
    errors: Path | None,
    as_json: bool,
    data: str | None,
) -> None:
    """Take labelled events of the past from a file into the log.

    The running service decides them in the order of the file, tells no subscriber, and keeps each `label` as
    feedback. Run again after an interruption, it goes on where it stopped. Exits 1 when rows were refused;
    the others are taken all the same. A file without rows is said to be one, and is no fault.

    Example: vettance import history.csv --tenant ten_0190… --errors refused.ndjson
    """
    errors = errors or file.with_name(file.name + ".errors.ndjson")

    async def work() -> sql.ImportMark:
        async with open_store(data) as (store, _settings):
            await find_tenant(store, tenant)
            importer = _Importer(store, tenant, file, file_format or format_of(file), dry_run=dry_run)
            return await importer.run(errors)

    try:
        mark = asyncio.run(work())
    except FormatFault as fault:
        fail(str(fault))
    except (Lost, Clash):
        fail("this file is being imported by another command")
    text = _words(mark, file, errors, dry_run=dry_run)
    show({"accepted": mark.accepted, "refused": mark.refused, "dryRun": dry_run}, text, as_json=as_json)
    if mark.refused:
        sys.exit(1)


def _words(mark: sql.ImportMark, file: Path, errors: Path, *, dry_run: bool) -> str:
    if not mark.lines:
        return f"{file} holds no rows: there was nothing to import."
    text = f"{mark.accepted:,} events {'are good' if dry_run else 'accepted'}, {mark.refused:,} refused"
    text += f" (see {errors})." if mark.refused else "."
    if mark.accepted and not dry_run:
        text += "\nA running service decides them now; else the next one that starts does."
    return text


class _Importer:
    """Takes a file in batches; each one and the mark of how far the file is done are one commit."""

    def __init__(self, store: Store, tenant: str, file: Path, file_format: str, *, dry_run: bool) -> None:
        self._store = store
        self._tenant = tenant
        self._file = file
        self._format = file_format
        self._dry_run = dry_run
        self._ids = IdSource()
        self._digest = ""

    async def run(self, errors: Path) -> sql.ImportMark:
        """Take what is left of the file; refused rows are written to `errors`."""
        self._digest = await asyncio.to_thread(file_digest, self._file)
        rows = await self._store.read(sql.select_import_mark(self._tenant, self._digest))
        mark = sql.ImportMark._make(rows[0]) if rows and not self._dry_run else sql.ImportMark()
        jobs: list[Statement] = []
        reached = mark
        with progress("Importing", None) as advance, _ErrorFile(errors, append=mark.lines > 0) as refused:
            for number, (line, row) in enumerate(rows_of(self._format, self._file), 1):
                if number <= mark.lines:
                    continue
                reached = self._take(line, row, jobs, refused, reached._replace(lines=number))
                advance(1)
                if number % _BATCH == 0:
                    mark = await self._commit(jobs, mark, reached)
            return await self._commit(jobs, mark, reached)

    def _take(
        self, line: int, row: Any, jobs: list[Statement], refused: "_ErrorFile", mark: sql.ImportMark
    ) -> sql.ImportMark:
        now_ms = clock.now_ms()
        if isinstance(row, str):
            refused.write(line, {"row": row})
            return mark._replace(refused=mark.refused + 1)
        try:
            one = read_row(row, now_ms)
        except Refusal as refusal:
            refused.write(line, refusal.details)
            return mark._replace(refused=mark.refused + 1)
        job_id = self._ids.make("job", now_ms)
        label = one.label.value if one.label is not None else None
        jobs.append(insert_job(self._tenant, job_id, now_ms, "import", one.sent, label, quiet=True))
        return mark._replace(accepted=mark.accepted + 1)

    async def _commit(
        self, jobs: list[Statement], before: sql.ImportMark, after: sql.ImportMark
    ) -> sql.ImportMark:
        if self._dry_run:
            await asyncio.sleep(0)  # Nothing else would let Ctrl-C through.
        elif after.lines > before.lines:
            mark = sql.move_import_mark(self._tenant, self._digest, before, after)
            await self._store.write(mark, *jobs)
        jobs.clear()
        return after


class _ErrorFile:
    """Refused rows with their line numbers, one JSON object on each line; made when there is one.

    `append` keeps what an import that was interrupted had written about lines before the first of this one.
    """

    def __init__(self, path: Path, *, append: bool) -> None:
        self._path = path
        self._append = append
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "_ErrorFile":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, line: int, details: dict[str, Any]) -> None:
        """Write why a line was refused."""
        if self._file is None:
            self._file = self._path.open("ab")
            self._file.truncate(_end_before(self._path, line) if self._append else 0)
        self._file.write(encode({"line": line, "details": details}) + b"\n")
        self._file.flush()


def _end_before(path: Path, line: int) -> int:
    """Return how many bytes of an error file are about lines before this one."""
    end = 0
    with path.open("rb") as file:
        for said in file:
            try:
                known = decode(said)["line"] < line
            except (ValueError, TypeError, KeyError):
                break  # A line that was cut off, or no error file at all.
            if not known:
                break
            end += len(said)
    return end
