"""The command line of files: export what was decided, import labelled events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from vettance.commands import (
    data_option,
    fail,
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
from vettance.db.engine import Clash, Lost, Store
from vettance.exchange import sql
from vettance.exchange.columns import TABLES
from vettance.exchange.import_file import FileImport, ImportedFile
from vettance.exchange.refused_rows import RefusedRows, reason_of
from vettance.exchange.row_files import FORMATS
from vettance.option_types import StoredFile, hold_apart

if TYPE_CHECKING:
    from vettance.exchange.columns import FileColumn

_ROWS: Final = 1_000
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
    with progress("Exporting", ahead, only_reads=True) as advance:
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
    hold_apart({"--errors": errors}, {"FILE": file, "--labels": labels})

    async def work() -> tuple[ImportedFile, RefusedRows]:
        async with open_store(data) as (store, _settings):
            owner = await find_tenant(store, tenant)
            known = await asyncio.to_thread(read_labels, labels)
            chosen = file_format or format_of(file)
            importer = FileImport(store, owner, file, chosen, known, mapping, dry_run=dry_run, aml=aml)
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
        "labelsUnused": done.labels_unused,
        "dryRun": dry_run,
        "reasons": [{"reason": reason, "rows": rows} for reason, rows in refused.reasons.most_common()],
    }
    show(told, _words(done, refused, file, dry_run=dry_run, waited=wait), as_json=as_json)
    if done.mark.refused:
        sys.exit(1)


def _words(done: ImportedFile, refused: RefusedRows, file: Path, *, dry_run: bool, waited: bool) -> str:

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
        if done.labels_unused:
            lines.append(f"Of the labels, {done.labels_unused:,} belong to no event of this file.")
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
