"""The commands of operators: backups and the doctor."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vettance import clock
from vettance.commands import (
    counted_word,
    data_option,
    fail,
    has_store,
    json_option,
    settings_of,
    show,
)
from vettance.db.connection import STORE_FILE
from vettance.db.engine import StoreDown
from vettance.option_types import Whole
from vettance.processes.background import give_way
from vettance.settings.secret_key import known_secret, load_secret
from vettance.settings.settings import Settings, SettingsError, read_settings
from vettance.wire.payload import encode, timestamp

if TYPE_CHECKING:
    from vettance.ops.backup import Manifest, Progress


@click.command()
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("--with-secret", is_flag=True, help="Put the secret into it too; then guard it as such.")
@json_option
@data_option
def backup(target: Path, with_secret: bool, as_json: bool, data: str | None) -> None:
    """Copy store and watchlists into a new folder, as they are at this moment, and verify the copy.

    Works beside a running server. The secret (VETTANCE_SECRET or secret.key) is left out unless asked for:
    keep it apart, because without it no API key of the backup works.

    Example: vettance backup /backups/vettance-2026-11-21 --data ./vettance-data
    """
    from vettance.ops.backup import BackupFault, make_backup, needs_secret

    settings = _embedded(data)
    if not has_store(settings):
        fail(f"{settings.data} holds no store")
    try:
        secret = known_secret(settings)
        if secret is None and not needs_secret(settings.data / STORE_FILE):
            secret = load_secret(settings)
        manifest = make_backup(
            settings.data,
            target,
            secret,
            timestamp(clock.now_ms()),
            _progress(),
            with_secret=with_secret,
        )
    except (BackupFault, StoreDown, SettingsError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"the backup cannot be written: {error.strerror or error}")
    text = f"{target} holds {_words(manifest)}."
    if not with_secret:
        text += " The secret is not in it; keep that apart."
    _show(target, manifest, target, text, as_json=as_json)


@click.command()
@click.argument("source", metavar="FOLDER", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--check", is_flag=True, help="Verify the backup and change nothing.")
@click.option("--other-secret", is_flag=True, help="Restore although the secret is another one.")
@json_option
@data_option
def restore(source: Path, check: bool, other_secret: bool, as_json: bool, data: str | None) -> None:
    """Put a backup into a data folder that holds no store yet, after verifying it.

    Example: vettance restore /backups/vettance-2026-11-21 --data ./restored
    """
    from vettance.ops.backup import BackupFault, check_backup, restore_backup

    try:
        if check:
            manifest = check_backup(source, _progress())
            folder, text = source, f"{source} is as it was made: {_words(manifest)}."
        else:
            settings = _embedded(data)
            folder = settings.data
            manifest = restore_backup(
                source, settings.data, known_secret(settings), _progress(), other_secret=other_secret
            )
            next_step = "Start the server on it."
            if other_secret:
                next_step = "`vettance key create --tenant ID --other-secret` has it go on with your secret."
            text = f"{settings.data} holds {_words(manifest)}. {next_step}"
    except (BackupFault, StoreDown, SettingsError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"the backup cannot be restored: {error.strerror or error}")
    _show(source, manifest, folder, text, as_json=as_json)


def _embedded(data: str | None) -> Settings:
    """Read the settings of a deployment whose store is a file of ours."""
    settings = settings_of(data)
    if settings.database_url is not None:
        fail("PostgreSQL is backed up by its own tools (pg_dump, pg_basebackup): see docs/operations.md")
    return settings


#: Tables that people ask for after a restore, and what they call a row.
_SAVED = {
    "tenant": "tenant",
    "api_key": "API key",
    "decision": "decision",
    "feedback": "label",
    "list_entry": "list entry",
    "subscription": "webhook subscription",
    "delivery": "delivery",
    "job": "job",
    "aml_event": "AML event",
    "aml_case": "AML case",
    "aml_screening": "screening",
    "aml_subject": "screened subject",
}


def _words(manifest: Manifest) -> str:
    """Tell what a backup holds; what it has none of is left out, but for events."""
    newest = "" if manifest.newest_at_ms is None else f" (the newest: {timestamp(manifest.newest_at_ms)})"
    counts = {row: manifest.tables.get(table, 0) for table, row in _SAVED.items()}
    saved = [counted_word(count, row) for row, count in counts.items() if count]
    events = f"{counted_word(manifest.events, 'event')}{newest}"
    files = counted_word(len(manifest.files), "file")
    return f"{', '.join((events, *saved))}; {files}, schema {manifest.schema}"


def _show(backup: Path, manifest: Manifest, folder: Path, text: str, *, as_json: bool) -> None:
    """Tell of a backup, and, on standard error too, which lists are not in the folder where it is now."""
    from vettance.ops.backup import missing_lists

    missing = missing_lists(folder, manifest.schema)
    for name in missing:
        click.echo(
            f"Warning: {folder} lacks {name}, and nobody can be screened against that list: "
            "`vettance doctor` tells the mend.",
            err=True,
        )
    show({**_backup_details(backup, manifest), "missing": missing}, text, as_json=as_json)


def _backup_details(folder: Path, manifest: Manifest) -> dict[str, object]:
    return {
        "backup": str(folder),
        "madeAt": manifest.made_at,
        "events": manifest.events,
        "newestAt": None if manifest.newest_at_ms is None else timestamp(manifest.newest_at_ms),
        "schema": manifest.schema,
        "tables": manifest.tables,
        "files": len(manifest.files),
        "bytes": sum(entry.bytes for entry in manifest.files.values()),
    }


def _progress() -> Progress:
    give_way()
    if not sys.stderr.isatty():
        return lambda _step, _done, _of: None

    def tell(step: str, done: int, of: int) -> None:
        share = f" {done * 100 // of} %" if of > 1 else ""
        click.echo(f"\r\x1b[K{step}{share}", err=True, nl=False)
        if done >= of:
            click.echo("\r\x1b[K", err=True, nl=False)

    return tell


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the server listens, or would.")
@click.option("--port", default=8080, show_default=True, type=Whole(1, 65535), help="Its port.")
@click.option("--strict", is_flag=True, help="Exit 1 for warnings too.")
@json_option
@data_option
def doctor(host: str, port: int, strict: bool, as_json: bool, data: str | None) -> None:
    """Look at everything a server needs and say the mend for each fault. Changes nothing.

    Exits 0 when there is no fault, 1 when there is one.

    Example: vettance doctor --data ./vettance-data
    """
    from vettance.ops.doctor.check import DoctorContext, DoctorFinding, DoctorLevel
    from vettance.ops.doctor.doctor import examine
    from vettance.ops.doctor.machine_checks import judge_variables

    now_ms = clock.now_ms()
    try:
        settings = read_settings(data=data)
        patient = DoctorContext(settings=settings, host=host, port=port, environ=os.environ, now_ms=now_ms)
        findings = examine(patient)
    except SettingsError as error:
        mend = "Correct it, or unset it for its default (docs/settings.md)."
        refused = DoctorFinding("settings", DoctorLevel.FAULT, str(error), mend)
        findings = [refused, *judge_variables(os.environ)]
    counts = Counter(finding.level for finding in findings)
    healthy = not counts[DoctorLevel.FAULT] and not (strict and counts[DoctorLevel.WARNING])
    if as_json:
        click.echo(encode({"healthy": healthy, "findings": findings}).decode())
    else:
        for one in findings:
            mark, colour = _MARKS[one.level]
            click.echo(f"{click.style(mark, fg=colour)} {one.check}: {one.found}")
            if one.mend:
                click.echo(f"    {one.mend}")
        counted = counts[DoctorLevel.FAULT], counts[DoctorLevel.WARNING]
        click.echo(f"{counted_word(counted[0], 'fault')}, {counted_word(counted[1], 'warning')}.")
    raise SystemExit(0 if healthy else 1)


_MARKS = {"ok": ("ok     ", "green"), "warning": ("warning", "yellow"), "fault": ("FAULT  ", "red")}
