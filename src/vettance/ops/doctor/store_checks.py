"""What the doctor looks at in the store: secret, schema, clock, lists, queues."""

import asyncio
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from vettance.aml.screening.freshness import DATA_OLD_MS, days_of, is_of_old, is_stale
from vettance.clock import DAY_MS
from vettance.commands import counted_word
from vettance.db.connection import LOG_BYTES_MAX, failure, open_reader
from vettance.db.engine import Misuse, Row, Statement, StoreDown
from vettance.db.migrate import SchemaRefused
from vettance.db.migrate import check as pending_migrations
from vettance.fairness.isolation import RETRY_S_MAX
from vettance.ops import sql
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, fault, ok, warning
from vettance.ops.doctor.machine_checks import first_shut, may_use
from vettance.settings.secret_key import SECRET_FILE, known_secret
from vettance.settings.settings import Environment, Settings, SettingsError
from vettance.tenants import sql as tenants_sql
from vettance.tenants.vault import UnsealFailure, Vault, secret_digest
from vettance.watchlists import sql as watchlists_sql
from vettance.watchlists.list_store import EVERYBODY, shelf_path, version_path
from vettance.watchlists.sources.source_table import SOURCES
from vettance.webhooks.sql import unseal

#: No clock of a machine that runs this version is right before it was written.
_CLOCK_MIN_MS: Final = 1_767_225_600_000
_AHEAD_MS: Final = 5 * 60_000
_OVERDUE_MS: Final = 10 * 60_000
#: A million events are read, and decided, in less.
_IMPORT_MS: Final = 60 * 60_000
_ASK_S_MAX: Final = 10.0
_SHOWN_MAX: Final = 10
_SCHEMA_MEND: Final = (
    "Start the version that it was made for, or restore a backup of before (`vettance restore`) into a new "
    "folder."
)
_STORE_MEND: Final = (
    "If another process holds it, end that. If its disk is full, failing or shared over a network, make room "
    "or move it to a disk of this machine. If the file is damaged, restore the newest backup "
    "(`vettance restore`) into a new folder."
)


def check_secret(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look for the secret of the deployment."""
    name, path = "secret", patient.settings.data / SECRET_FILE
    if patient.settings.secret is None and not may_use(path, os.R_OK):
        return  # The check of the data folder tells.
    try:
        secret = known_secret(patient.settings)
    except SettingsError as error:
        yield fault(name, str(error), "Put the right file back, from wherever you keep passwords.")
        return
    if secret is None:
        if patient.settings.environment is Environment.PRODUCTION:
            yield fault(
                name,
                "production has no VETTANCE_SECRET",
                "Set it to 64 hexadecimal digits (`openssl rand -hex 32`), once, and keep it.",
            )
        elif _hangs_on_a_secret(patient):
            yield fault(
                name,
                f"the store has API keys, and {path} is gone",
                "Put the file back (or set VETTANCE_SECRET). A new secret makes every API key worthless.",
            )
        else:
            yield ok(name, "none yet; it is made at the first start")
        return
    known = ask(patient, tenants_sql.select_secret_digest())
    if known and known[0][0] != secret_digest(secret):
        yield fault(
            name,
            f"{_where(patient)} is not the secret that this store was made with: no server starts with it",
            "Set VETTANCE_SECRET (or put secret.key back) to the former one. If that is lost, "
            "`vettance key create --tenant ID --other-secret` goes on with this one.",
        )
        return
    if patient.settings.secret is None and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield warning(name, f"{path} is open to other users of this machine", f"`chmod 600 {path}`")
        return
    if patient.settings.secret is None and patient.settings.environment is Environment.PRODUCTION:
        yield fault(
            name,
            "production takes its secret from VETTANCE_SECRET only",
            f"Set VETTANCE_SECRET to what stands in {path}, then move that file to where you keep passwords.",
        )
        return
    yield ok(name, _where(patient))


def _where(patient: DoctorContext) -> str:
    settings = patient.settings
    return "VETTANCE_SECRET" if settings.secret is not None else str(settings.data / SECRET_FILE)


def _hangs_on_a_secret(patient: DoctorContext) -> bool:
    asked = (tenants_sql.select_any_key(), tenants_sql.select_secret_digest())
    return any(ask(patient, one) for one in asked)


def check_clock(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Hold the clock against what the store has seen."""
    name = "clock"
    mend = (
        "Set the clock, and keep it set (chrony or systemd-timesyncd): windows, tokens and retries go by it."
    )
    if patient.now_ms < _CLOCK_MIN_MS:
        yield fault(name, "the clock stands before this version was made", mend)
        return
    newest = ask(patient, sql.select_newest_event())
    if newest and newest[0][0] > patient.now_ms + _AHEAD_MS:
        ahead = counted_word((newest[0][0] - patient.now_ms) // 60_000, "minute")
        yield fault(name, f"the store has an event from {ahead} ahead of the clock", mend)
        return
    yield ok(name, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(patient.now_ms / 1000)))


def _ask_database(url: str) -> DoctorFinding:
    from vettance.db.postgres_schema import check  # The driver is loaded where it is used only.

    name = "store"
    try:
        pending = asyncio.run(check(url, within_s=_ASK_S_MAX))
    except (StoreDown, OSError, TimeoutError) as error:
        told = error.full if isinstance(error, StoreDown) else type(error).__name__
        return fault(
            name,
            f"cannot be used: {told.replace(url, 'VETTANCE_DATABASE_URL')}",
            "See that it runs, and that VETTANCE_DATABASE_URL names its address, user and password.",
        )
    if pending:
        return _pending(name, pending)
    return ok(name, "PostgreSQL answers, newest schema")


def _pending(name: str, pending: list[str]) -> DoctorFinding:
    return warning(
        name,
        f"{counted_word(len(pending), 'migration')} pending, from {pending[0]}",
        "Make a backup, then `vettance migrate`; `vettance serve` also does it at its start.",
    )


def ask(patient: DoctorContext, statement: Statement) -> list[Row] | None:
    """Ask the store; None when it is not there or cannot answer, which has a check of its own."""
    if patient.settings.database_url is not None:
        from vettance.db import postgres_examine

        try:
            return asyncio.run(postgres_examine.ask(patient.settings.database_url, statement))
        except (StoreDown, Misuse, OSError, TimeoutError):
            return None
    try:
        with closing(open_reader(patient.store)) as reader:
            return reader.execute(statement.sql, statement.args).fetchall()
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error:
        return None


def _without_store(path: Path) -> DoctorFinding:
    if not path.exists():
        return ok("store", "none yet; it is made at the first start")
    return fault(
        "store",
        f"{path} is empty",
        "If it ever held anything, copy it again, or restore the newest backup into a new folder. "
        "If not, remove it: the first start makes it.",
    )


def check_store(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Open the embedded store and look at its schema and its log."""
    name, path = "store", patient.store
    if patient.settings.database_url is not None:
        yield _ask_database(patient.settings.database_url)
        return
    if first_shut(patient) is not None:
        return  # The check of the data folder tells.
    if not path.exists() or path.stat().st_size == 0:
        yield _without_store(path)
        return
    try:
        pending = pending_migrations(path)
        size, log = path.stat().st_size, path.with_name(path.name + "-wal")
    except (StoreDown, sqlite3.Error) as error:
        told = str(error) if isinstance(error, StoreDown) else f"{path}: {failure(error)[1]}"
        yield fault(name, told, _SCHEMA_MEND if isinstance(error, SchemaRefused) else _STORE_MEND)
        return
    if pending:
        yield _pending(name, pending)
        return
    if log.exists() and log.stat().st_size > 4 * LOG_BYTES_MAX:
        yield warning(
            name,
            f"its log has {log.stat().st_size / 1e9:.1f} GB: something has been reading the store for long",
            "End what holds it (a backup, an sqlite3 shell); the server then moves the log into the store.",
        )
        return
    yield ok(name, f"{path}, {size / 1e6:,.0f} MB, newest schema")


def check_sealed(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Tell whether the secret that is here is the one that this store was written with."""
    secret = _quietly(known_secret, patient.settings)
    rows = ask(patient, sql.select_any_sealed())
    if secret is None or not rows:
        return
    tenant, subscription, sealed = rows[0]
    try:
        unseal(Vault(secret), sealed, tenant, subscription)
    except UnsealFailure:
        yield fault(
            "webhook secrets",
            "they do not open: the secret that is here is not the one the store was written with",
            "Set VETTANCE_SECRET (or secret.key) to the former one, or make API keys and webhooks anew.",
        )
    else:
        yield ok("webhook secrets", "they open")


def _quietly(read: Callable[[Settings], bytes | None], settings: Settings) -> bytes | None:
    try:
        return read(settings)
    except SettingsError:
        return None


def check_queues(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look for what has waited too long."""
    job = ask(patient, sql.select_oldest_job())
    deliveries = ask(patient, sql.count_waiting_deliveries())
    if job and patient.now_ms - job[0][0] > _OVERDUE_MS:
        yield warning(
            "jobs",
            "accepted events have waited for more than ten minutes",
            "Start a server; if one runs, read its log.",
        )
    waiting, due = deliveries[0] if deliveries else (0, None)
    if due is not None and patient.now_ms - due > _OVERDUE_MS:
        yield warning(
            "webhooks",
            f"{counted_word(waiting, 'delivery')} waiting, the oldest for more than ten minutes",
            "Start a server; if one runs, look at the health of the subscriptions and at its log.",
        )
    ((subscriptions, given_up),) = ask(patient, sql.count_overflowed(patient.now_ms - DAY_MS)) or ((0, 0),)
    if subscriptions:
        yield warning(
            "webhooks",
            f"too much waited for their tenants: {counted_word(given_up, 'delivery')} of "
            f"{counted_word(subscriptions, 'subscription')} {'was' if given_up == 1 else 'were'} given up, "
            "the last within a day",
            "Look at the health of the subscriptions; replay what was exhausted once their receivers answer.",
        )


#: By the state of an import: what is amiss when it stays so, and the mend.
_IMPORTS: Final = {
    "reading": (
        "was begun more than an hour ago. What a file brought is decided when it is read to the end",
        "Run `vettance import` with the same file again: it goes on where it stopped.",
    ),
    "waiting": (
        "was begun more than an hour ago",
        "Start a server; if one runs, see that `vettance_import_events_waiting` falls, and read its log.",
    ),
}


def check_imports(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look for imports that make no progress, which nothing else reports."""
    for state, count, begun_at_ms in ask(patient, sql.select_waiting_imports()) or ():
        if patient.now_ms - begun_at_ms > _IMPORT_MS:
            found, mend = _IMPORTS[state]
            yield warning("imports", f"{counted_word(count, 'import')} {state}; the oldest {found}", mend)


def check_work(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look for work of the server that fails for one tenant or row and is tried again and again."""
    since_ms = patient.now_ms - round(2 * RETRY_S_MAX * 1000)
    for work, subject, tries, error in ask(patient, sql.select_failing(since_ms, _SHOWN_MAX)) or ():
        about = f" of {subject}" if subject else ""
        yield warning(
            "background work",
            f"{work}{about} has failed {counted_word(tries, 'time')} in a row ({error})",
            "The server's log says why (`work_failed`); everybody else is served meanwhile.",
        )


def check_watchlists(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look at the lists, everybody's and those of single tenants: their files and their age."""
    name = "watchlists"
    if first_shut(patient) is not None:
        return  # The check of the data folder tells.
    rows = ask(patient, watchlists_sql.select_all_current())
    counts = ask(patient, sql.count_listless_tenants())
    if rows is None or not counts:
        return
    every = [watchlists_sql.version_of(row) for row in rows]
    for one in every:
        version = one.version
        shelf = shelf_path(patient.settings.data, one.owner)
        if not version_path(shelf, version.source, version.version).is_file():
            yield _gone(one)
    versions = [one for one in every if one.owner == EVERYBODY]
    if not versions:
        yield from _listless(*counts[0])
        return
    stale = [one.version.source for one in versions if is_stale(one, patient.now_ms)]
    if stale:
        yield warning(
            name,
            f"not compared for a week: {', '.join(stale)}",
            "`vettance watchlist refresh`, daily, from a timer.",
        )
    if old := [days_of(one) for one in versions if is_of_old(one, patient.now_ms)]:
        yield warning(
            name,
            f"data older than {DATA_OLD_MS // DAY_MS} days, by what its publisher states: {', '.join(old)}",
            "Look whether the publisher offers newer files, then `vettance watchlist refresh` or `import`.",
        )
    if not stale and not old:
        entities = sum(one.version.entities for one in versions)
        yield ok(name, f"{counted_word(len(versions), 'list')}, {counted_word(entities, 'entity')}")


def _listless(tenants: int, screening: int) -> Iterator[DoctorFinding]:
    """Say what is amiss where no list is loaded: nothing yet, as long as nobody screens names."""
    name = "watchlists"
    mend = "`vettance watchlist refresh --source un_sc` (or another one), or `watchlist import` with files."
    if screening:
        who = f"{counted_word(screening, 'tenant')} {'screens' if screening == 1 else 'screen'} names"
        found = f"{who} and no list is loaded: every screening answers 502"
        yield fault(name, found, mend)
    elif tenants:
        who = f"{counted_word(tenants, 'tenant')} {'has' if tenants == 1 else 'have'} the AML product"
        found = f"{who} and no list is loaded: a screening would answer 502"
        yield warning(name, found, mend)


def _gone(one: watchlists_sql.StoredVersion) -> DoctorFinding:
    """Say how a list gets its file back: from its publisher, from a copy, or from a backup."""
    name, source = "watchlists", one.version.source
    if one.owner == EVERYBODY:
        known = SOURCES.get(source)
        again = "refresh" if known is not None and known.urls else "import"
        return fault(
            name, f"the files of {source} are gone", f"`vettance watchlist {again} --source {source}`"
        )
    return fault(
        name,
        f"the file of the own list of tenant {one.owner} is gone",
        "Put the folder watchlists/tenants back from a backup, or "
        f"`vettance watchlist import --source csv --tenant {one.owner} FILE`",
    )
