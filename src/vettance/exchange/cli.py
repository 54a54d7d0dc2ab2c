"""The command line of files: export what was decided, import labelled events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import click

from vettance import clock
from vettance.commands import (
    data_option,
    fail,
    file_digest,
    find_tenant,
    force_option,
    from_option,
    json_option,
    keep_existing,
    open_store,
    output_option,
    progress,
    show,
    to_option,
    whole_file,
)
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Refusal
from vettance.exchange import sql
from vettance.exchange.columns import TABLES, is_aml, read_aml_row, read_row
from vettance.exchange.refused_rows import RefusedRows, reason_of
from vettance.exchange.row_files import FORMATS, count_rows, rows_of
from vettance.ids import IdSource
from vettance.jobs.sql import insert_imported
from vettance.option_types import StoredFile
from vettance.tenants.tenant import Tenant

if TYPE_CHECKING:
    from vettance.exchange.column_mapping import ColumnMapping
    from vettance.exchange.columns import FileColumn
    from vettance.exchange.labels import Labels

_ROWS: Final = 1_000
_BATCH: Final = 500  # Events accepted in one commit, with the mark of how far the file is done.
_LOOK_S: Final = 0.2
REASONS_SHOWN: Final = 10  # One can be mended after the other; the file has them all.
_DECIDED_SOON: Final = "A running service decides them now; else the next one that starts does."
_REFUSED_BEFORE: Final = "The refused rows were told by the run that refused them."

_tenant_option = click.option("--tenant", required=True, metavar="ID", help="Whose events.")


@click.command("export")
@click.argument("what", type=click.Choice(list(TABLES)))
@_tenant_option
@from_option
@to_option
@click.option(
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    help="Told by the name of the file if left out; ndjson on standard output.",
)
@output_option("A file; standard output if left out.")
@force_option
@json_option
@data_option
def export(
    what: str,
    tenant: str,
    from_ms: int | None,
    to_ms: int | None,
    file_format: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Write events or decisions to a file, in the order in which they were decided.

    --from and --to are about the time at which events happened, as in the statistics. A file that is there is
    not overwritten without --force. --json tells on standard output what was written, and so goes with
    --output.

    Example: vettance export decisions --tenant ten_0190… --from 2026-01-01 --output january.csv
    """
    from vettance.deployment.connect import long_reads
    from vettance.exchange.row_files import FormatFault, format_of

    if as_json and out is None:
        fail("--json goes with --output; without it, standard output takes the rows")
    keep_existing(out, force=force)

    async def work(chosen: str) -> int:
        async with open_store(data) as (store, settings):
            await find_tenant(store, tenant)
            columns, moment = TABLES[what]
            await store.record()  # Before anything leaves: an export that is interrupted was one too.
            async with long_reads(settings, store, tenant) as reading:
                with ExitStack() as stack:
                    file: IO[bytes] = stack.enter_context(whole_file(out)) if out else sys.stdout.buffer
                    return await _export(reading, tenant, columns, moment, (from_ms, to_ms), chosen, file)

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
    columns: Sequence[FileColumn],
    moment: str,
    span: tuple[int | None, int | None],
    file_format: str,
    file: IO[bytes],
) -> int:
    from vettance.exchange.row_files import open_sink
    from vettance.history.sql import count_after

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
@click.argument("file", type=StoredFile())
@_tenant_option
@click.option("--format", "file_format", type=click.Choice(FORMATS), help="Told by the name if left out.")
@click.option(
    "--labels",
    type=StoredFile(),
    help="A file with a `label` for the `reference` (metadata.reference) or the `line` of each event.",
)
@click.option("--aml", is_flag=True, help="Events of AML; told by `externalEventId` in the first row, too.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="MEMBER=COLUMN",
    help="Which column a member of the event is read from; the others are then left out.",
)
@click.option(
    "--set",
    "constants",
    multiple=True,
    metavar="MEMBER=VALUE",
    help="What every event of the file has, such as eventName=payment.",
)
@click.option("--dry-run", is_flag=True, help="Check every row and keep none.")
@click.option(
    "--errors",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where refused rows go, with their lines.",
)
@click.option("--wait", is_flag=True, help="Return when the service has decided every event.")
@json_option
@data_option
def import_(
    file: Path,
    tenant: str,
    file_format: str | None,
    labels: Path | None,
    aml: bool,
    columns: tuple[str, ...],
    constants: tuple[str, ...],
    dry_run: bool,
    errors: Path | None,
    wait: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Take events of the past from a file: what `generate` and `export` wrote, or rows of your own.

    When the file is read, the running service decides its events in the order of their own time, each by what
    was known then. No subscriber is told; each label is kept as feedback. Run again after an interruption, it
    goes on where it stopped; a file that was imported before is known by its content. Exits 1 when rows were
    refused; the others are taken all the same. A file without rows is said to be one, and is no fault.

    Example: vettance import traffic/events.ndjson --labels traffic/truth.ndjson --tenant ten_0190…
    """
    from vettance.exchange.column_mapping import MappingFault, read_mapping
    from vettance.exchange.labels import read_labels
    from vettance.exchange.row_files import FormatFault, format_of

    try:
        mapping = read_mapping(columns, constants)
    except MappingFault as fault:
        raise click.UsageError(str(fault)) from None
    errors = errors or file.with_name(file.name + ".errors.ndjson")

    async def work() -> tuple[_Result, RefusedRows]:
        async with open_store(data) as (store, _settings):
            owner = await find_tenant(store, tenant)
            known = await asyncio.to_thread(read_labels, labels)
            chosen = file_format or format_of(file)
            importer = _Importer(store, owner, file, chosen, known, mapping, dry_run=dry_run, aml=aml)
            done, refused = await importer.run(errors)
            if wait and not dry_run:
                await importer.wait()
            return done, refused

    try:
        done, refused = asyncio.run(work())
    except FormatFault as fault:
        fail(str(fault))
    except (Lost, Clash):
        fail("this file is being imported by another command")
    told = {
        "accepted": done.mark.accepted,
        "known": done.known,
        "refused": done.mark.refused,
        "labelled": done.labelled,
        "dryRun": dry_run,
        "reasons": [{"reason": reason, "rows": rows} for reason, rows in refused.reasons.most_common()],
    }
    show(told, _words(done, refused, file, dry_run=dry_run, waited=wait), as_json=as_json)
    if done.mark.refused:
        sys.exit(1)


class _Result(NamedTuple):
    """How far the file is done, how many of its events an earlier run had taken, how many of the others have
    a label."""

    mark: sql.ImportMark
    known: int
    labelled: int


def _words(done: _Result, refused: RefusedRows, file: Path, *, dry_run: bool, waited: bool) -> str:

    mark = done.mark
    if not mark.lines:
        return f"{file} holds no rows: there was nothing to import."
    new = mark.accepted - done.known
    if done.known and not new:
        lines = [f"{file} was imported already: {done.known:,} events known, 0 new."]
    else:
        lines = [f"{new:,} events {'are good' if dry_run else 'accepted'}, {mark.refused:,} refused."]
        if done.known:
            lines[0] += f" An earlier run had taken {done.known:,} more."
        if done.labelled:
            lines.append(f"{done.labelled:,} of them are labelled.")
    for row in refused.first:
        lines.append(f"  line {row.line:,}: {reason_of(row.details)}")
    if sum(refused.reasons.values()) > len(refused.first):
        lines.append("Refused rows by reason:")
        lines += [f"  {rows:>9,}  {reason}" for reason, rows in refused.reasons.most_common(REASONS_SHOWN)]
    if mark.refused:
        lines.append(f"Every refused row stands in {refused.path}." if refused.first else _REFUSED_BEFORE)
    if new and not dry_run:
        lines.append("All are decided." if waited else _DECIDED_SOON)
    return "\n".join(lines)


class _Importer:
    """Takes a file in batches; each one and the mark of how far the file is done are one commit."""

    def __init__(
        self,
        store: Store,
        owner: Tenant,
        file: Path,
        file_format: str,
        labels: Labels,
        mapping: ColumnMapping,
        *,
        dry_run: bool,
        aml: bool,
    ) -> None:
        self._store = store
        self._owner = owner
        self._tenant = owner.id
        self._file = file
        self._format = file_format
        self._labels = labels
        self._mapping = mapping
        self._dry_run = dry_run
        self._aml = aml
        self._ids = IdSource()
        self._digest = ""
        self._labelled = 0

    @property
    def _import_id(self) -> str:
        # Half of the digest tells files apart, and each event carries it.
        return f"imp_{self._digest[:32]}"

    async def run(self, errors: Path) -> tuple[_Result, RefusedRows]:
        """Take what is left of the file; refused rows are written to `errors`."""
        self._digest = await asyncio.to_thread(file_digest, self._file)
        rows = await self._store.read(sql.select_import_mark(self._tenant, self._digest))
        mark = sql.ImportMark._make(rows[0]) if rows and not self._dry_run else sql.ImportMark()
        known = mark.accepted
        jobs: list[Statement] = []
        reached = mark
        total = await asyncio.to_thread(count_rows, self._format, self._file)
        with progress("Importing", total) as advance, RefusedRows(errors, append=mark.lines > 0) as refused:
            for number, (line, found) in enumerate(rows_of(self._format, self._file), 1):
                advance(1)
                row = found if isinstance(found, str) else self._mapping.applied(found)
                if number == 1:
                    self._tell_kind(row)
                if number <= mark.lines:
                    continue
                reached = self._take(line, row, jobs, refused, reached._replace(lines=number))
                if number % _BATCH == 0:
                    mark = await self._commit(jobs, mark, reached)
            mark = await self._commit(jobs, mark, reached)
        if not self._dry_run and mark.accepted:
            await self._store.write(sql.release_import(self._tenant, self._import_id))
        elif not self._dry_run:
            # Nothing was taken, so that it may be tried again, as of another kind say.
            await self._store.write(*sql.forget_import(self._tenant, self._digest, self._import_id))
        return _Result(mark, known, self._labelled), refused

    def _tell_kind(self, row: Any) -> None:
        self._aml = self._aml or (not isinstance(row, str) and is_aml(row))
        if self._aml and not self._owner.aml:
            on = f"vettance tenant set {self._tenant} --aml on"
            fail(f"these are events of AML, which this tenant does not have; `{on}` turns it on")

    def _take(
        self, line: int, row: Any, jobs: list[Statement], refused: RefusedRows, mark: sql.ImportMark
    ) -> sql.ImportMark:
        now_ms = clock.now_ms()
        if isinstance(row, str):
            refused.write(line, {"row": row})
            return mark._replace(refused=mark.refused + 1)
        try:
            moment, sent, label = self._read(line, row, now_ms)
        except Refusal as refusal:
            refused.write(line, refusal.details)
            return mark._replace(refused=mark.refused + 1)
        job_id = self._ids.make("job", now_ms)
        self._labelled += label is not None
        jobs.append(insert_imported(self._tenant, job_id, self._import_id, now_ms, moment, sent, label))
        return mark._replace(accepted=mark.accepted + 1)

    def _read(self, line: int, row: Mapping[str, Any], now_ms: int) -> tuple[int, bytes, str | None]:
        """Return the moment of the event of a row, its body and its label. Raises `Refusal`."""
        if self._aml:
            event, sent = read_aml_row(row, now_ms)
            return event.occurred_at_ms, sent, None
        one = read_row(row, now_ms)
        label = one.label or self._labels.of(line, one.event.metadata)
        return one.event.occurred_at_ms, one.sent, label

    async def _commit(
        self, jobs: list[Statement], before: sql.ImportMark, after: sql.ImportMark
    ) -> sql.ImportMark:
        if self._dry_run:
            await asyncio.sleep(0)  # Nothing else would let Ctrl-C through.
        elif after.lines > before.lines:
            mark = sql.move_import_mark(self._tenant, self._digest, before, after)
            run = sql.begin_import(
                self._tenant, self._import_id, sql.AML if self._aml else sql.FRAUD, clock.now_ms()
            )
            await self._store.write(mark, run, *jobs)
        jobs.clear()
        return after

    async def wait(self) -> None:
        """Wait until the service has decided every event of the file, and show a progress bar."""
        left = None
        with progress("Deciding", None) as advance:
            while rows := await self._store.read(sql.select_import(self._tenant, self._import_id)):
                state, queued = rows[0]
                if state == sql.DECIDED:
                    return
                advance(0 if left is None else left - queued)
                left = queued
                await asyncio.sleep(_LOOK_S)
