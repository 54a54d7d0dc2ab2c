"""The import of a file of past events: read in batches, gone on with where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vettance import clock
from vettance.commands import fail, file_digest, progress
from vettance.db.engine import Statement, Store
from vettance.errors import Refusal
from vettance.exchange import sql
from vettance.exchange.columns import is_aml, read_aml_row, read_row
from vettance.exchange.refused_rows import RefusedRows
from vettance.exchange.row_files import FormatFault, count_rows, rows_of
from vettance.ids import IdSource
from vettance.jobs.sql import insert_imported
from vettance.tenants.tenant import Tenant

if TYPE_CHECKING:
    from vettance.exchange.column_mapping import ColumnMapping
    from vettance.exchange.labels import Labels

_BATCH: Final = 500  # Events accepted in one commit, with the mark of how far the file is done.
_LOOK_S: Final = 0.2


def _state_of(file: Path) -> tuple[int, int]:
    """Return what changes when a file is written to."""
    found = file.stat()
    return found.st_size, found.st_mtime_ns


class ImportedFile(NamedTuple):
    """How far the file is done, how many of its events an earlier run had taken, how many of the others have
    a label, and how many labels of the other file belong to none of them, where that is known."""

    mark: sql.ImportMark
    known: int
    labelled: int
    labels_unused: int | None


class FileImport:
    """Takes a file in batches; each one and the mark of how far the file is done are one commit.

    A file is known by its content. One that changes while it is read would be known by a content that it no
    longer has, and be taken again as a whole the next time: nothing of it is kept.
    """

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
        self._known_by: tuple[int, int] = (0, 0)
        self._labelled = 0

    @property
    def _import_id(self) -> str:
        # Half of the digest tells files apart, and each event carries it.
        return f"imp_{self._digest[:32]}"

    async def run(self, errors: Path) -> tuple[ImportedFile, RefusedRows]:
        """Take what is left of the file; refused rows are written to `errors`. Raises `FormatFault`."""
        self._known_by = _state_of(self._file)
        self._digest = await asyncio.to_thread(file_digest, self._file)
        rows = await self._store.read(sql.select_import_mark(self._tenant, self._digest))
        mark = sql.ImportMark._make(rows[0]) if rows and not self._dry_run else sql.ImportMark()
        begun, known = mark.lines, mark.accepted
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
        # What an earlier run took was not looked up again.
        unused = None if begun else self._labels.unused
        return ImportedFile(mark, known, self._labelled, unused), refused

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
        beside = self._labels.of(line, one.event.metadata)
        return one.event.occurred_at_ms, one.sent, one.label or beside

    async def _commit(
        self, jobs: list[Statement], before: sql.ImportMark, after: sql.ImportMark
    ) -> sql.ImportMark:
        if _state_of(self._file) != self._known_by:
            if not self._dry_run:
                await self._forget_changed()
            raise FormatFault(
                f"{self._file.name} changed while it was read, so nothing of this run is kept; "
                "import it when it is whole"
            )
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

    async def _forget_changed(self) -> None:
        """Drop the events of a file that was not read to its end; those of one that was stay."""
        await self._store.write(sql.forget_mark(self._tenant, self._digest, self._import_id))
        while rows := await self._store.read(sql.select_unreleased(self._tenant, self._import_id, _BATCH)):
            await self._store.write(*(sql.delete_unreleased(self._tenant, seq) for (seq,) in rows))
        await self._store.write(sql.forget_reading(self._tenant, self._import_id))

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
