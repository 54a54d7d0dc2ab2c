"""The doctor: looks at everything a server needs, changes nothing, and says the mend for each fault."""

import enum
import os
import resource
import shutil
import socket
import sqlite3
import stat
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from vettance.aml.screening.freshness import is_stale
from vettance.db.connection import LOG_BYTES_MAX, failure, open_reader
from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.migrate import check as pending_migrations
from vettance.ops import sql
from vettance.settings import SECRET_FILE, Environment, Settings, SettingsError, known_secret
from vettance.tenants import sql as tenants_sql
from vettance.vault import Sealed, Vault
from vettance.watchlists import sql as watchlists_sql
from vettance.watchlists.shelf import FOLDER as WATCHLISTS
from vettance.watchlists.shelf import version_path
from vettance.webhooks.sql import unseal

STORE_FILE: Final = "vettance.db"
#: Below the first the store will stop before long; below the second somebody should look.
_DISK_FAULT_BYTES: Final = 256 * 1024 * 1024
_DISK_WARNING_BYTES: Final = 2 * 1024 * 1024 * 1024
#: Connections, readers, and what a burst of requests opens.
_FILES_MIN: Final = 1024
#: SQLite with the trigram tokenizer, which the search of the history uses (sqlite.org/changes.html, 3.34).
_SQLITE_MIN: Final = (3, 34, 0)
#: No clock of a machine that runs this version is right before it was written.
_CLOCK_MIN_MS: Final = 1_767_225_600_000
_AHEAD_MS: Final = 5 * 60_000
_OVERDUE_MS: Final = 10 * 60_000
_ASK_S_MAX: Final = 3.0


class Level(enum.StrEnum):
    """How bad it is. A fault keeps the service, or a part of it, from working."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check found; `mend` says what to do, where something is to be done."""

    check: str
    level: Level
    found: str
    mend: str = ""


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at: the settings, where the server would listen, the environment, the time."""

    settings: Settings
    host: str
    port: int
    environ: Mapping[str, str]
    now_ms: int

    @property
    def store(self) -> Path:
        """The file of the embedded store."""
        return self.settings.data / STORE_FILE


Check = Callable[[Patient], Iterator[Finding]]


def examine(patient: Patient) -> list[Finding]:
    """Run every check, in the order of the table."""
    return [finding for check in CHECKS for finding in check(patient)]


def _ok(check: str, found: str) -> Finding:
    return Finding(check, Level.OK, found)


def _warning(check: str, found: str, mend: str) -> Finding:
    return Finding(check, Level.WARNING, found, mend)


def _fault(check: str, found: str, mend: str) -> Finding:
    return Finding(check, Level.FAULT, found, mend)


def _runtime(_patient: Patient) -> Iterator[Finding]:
    name = "runtime"
    version = ".".join(map(str, sys.version_info[:3]))
    if sqlite3.sqlite_version_info < _SQLITE_MIN:
        yield _fault(
            name,
            f"SQLite {sqlite3.sqlite_version} has no trigram search",
            "Use a Python that is built with SQLite 3.34 or newer.",
        )
    else:
        yield _ok(name, f"Python {version}, SQLite {sqlite3.sqlite_version}")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files < _FILES_MIN:
        yield _warning(
            "open files",
            f"a process may open {files} files",
            f"Raise the limit to {_FILES_MIN} or more (`ulimit -n`, LimitNOFILE= in a systemd unit).",
        )


def _data_folder(patient: Patient) -> Iterator[Finding]:
    name, folder = "data folder", patient.settings.data
    if not folder.exists():
        yield _warning(
            name, f"{folder} is not there yet", "Nothing: `vettance serve` makes it. Or name another: --data."
        )
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield _fault(
            name,
            f"{folder} cannot be written by this user ({os.geteuid()})",
            f"Run as its owner ({folder.stat().st_uid}), or `chown -R` it to the user that runs the service.",
        )
        return
    if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield _warning(
            name,
            f"{folder} is open to other users of this machine",
            f"`chmod 700 {folder}`: it holds customers' data.",
        )
    else:
        yield _ok(name, f"{folder}, for its owner only")


def _secret(patient: Patient) -> Iterator[Finding]:
    name, path = "secret", patient.settings.data / SECRET_FILE
    try:
        secret = known_secret(patient.settings)
    except SettingsError as error:
        yield _fault(name, str(error), "Put the right file back, from wherever you keep passwords.")
        return
    if secret is None:
        if patient.settings.environment is Environment.PRODUCTION:
            yield _fault(
                name,
                "production has no VETTANCE_SECRET",
                "Set it to 64 hexadecimal digits (`openssl rand -hex 32`), once, and keep it.",
            )
        elif _has_keys(patient):
            yield _fault(
                name,
                f"the store has API keys, and {path} is gone",
                "Put the file back (or set VETTANCE_SECRET). A new secret makes every API key worthless.",
            )
        else:
            yield _ok(name, "none yet; it is made at the first start")
        return
    if patient.settings.secret is None and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield _warning(name, f"{path} is open to other users of this machine", f"`chmod 600 {path}`")
        return
    if patient.settings.secret is None and patient.settings.environment is Environment.PRODUCTION:
        yield _fault(
            name,
            "production takes its secret from VETTANCE_SECRET only",
            f"Set VETTANCE_SECRET to what stands in {path}, then move that file to where you keep passwords.",
        )
        return
    yield _ok(name, "VETTANCE_SECRET" if patient.settings.secret is not None else str(path))


def _has_keys(patient: Patient) -> bool:
    keys = _ask(patient, tenants_sql.select_keys())
    return bool(keys)


def _disk(patient: Patient) -> Iterator[Finding]:
    name = "disk"
    folder = next(
        path for path in (patient.settings.data, *patient.settings.data.absolute().parents) if path.exists()
    )
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e9:.1f} GB free"
    mend = "Make room, or remove what is old: VETTANCE_KEEP_EVENTS and `vettance retention run`."
    if free < _DISK_FAULT_BYTES:
        yield _fault(name, found, mend)
    elif free < _DISK_WARNING_BYTES:
        yield _warning(name, found, mend)
    else:
        yield _ok(name, found)


def _clock(patient: Patient) -> Iterator[Finding]:
    name = "clock"
    mend = (
        "Set the clock, and keep it set (chrony or systemd-timesyncd): windows, tokens and retries go by it."
    )
    if patient.now_ms < _CLOCK_MIN_MS:
        yield _fault(name, "the clock stands before this version was made", mend)
        return
    newest = _ask(patient, sql.select_newest_event())
    if newest and newest[0][0] > patient.now_ms + _AHEAD_MS:
        minutes = (newest[0][0] - patient.now_ms) // 60_000
        yield _fault(name, f"the store has an event from {minutes} minutes ahead of the clock", mend)
        return
    yield _ok(name, time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(patient.now_ms / 1000)))


def _ask(patient: Patient, statement: Statement) -> list[Row] | None:
    """Ask the embedded store; None when it is not there or cannot answer, which is told by its own check."""
    try:
        with closing(open_reader(patient.store)) as reader:
            return reader.execute(statement.sql, statement.args).fetchall()
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error:
        return None


def _embedded_store(patient: Patient) -> Iterator[Finding]:
    name, path = "store", patient.store
    if patient.environ.get("VETTANCE_DATABASE_URL"):
        return
    if not path.exists():
        yield _ok(name, "none yet; it is made at the first start")
        return
    try:
        pending = pending_migrations(path)
        size, log = path.stat().st_size, path.with_name(path.name + "-wal")
    except (StoreDown, sqlite3.Error) as error:
        told = str(error) if isinstance(error, StoreDown) else f"{path}: {failure(error)[1]}"
        yield _fault(
            name,
            told,
            "If the file is damaged, restore the newest backup (`vettance restore`) into a new folder.",
        )
        return
    if pending:
        yield _warning(
            name,
            f"{len(pending)} migrations are pending, from {pending[0]}",
            "`vettance backup` first, then `vettance migrate`; `vettance serve` also does it at its start.",
        )
        return
    if log.exists() and log.stat().st_size > 4 * LOG_BYTES_MAX:
        yield _warning(
            name,
            f"its log has {log.stat().st_size / 1e9:.1f} GB: something has been reading the store for long",
            "End what holds it (a backup, an sqlite3 shell); the server then moves the log into the store.",
        )
        return
    yield _ok(name, f"{path}, {size / 1e6:,.0f} MB, newest schema")


def _sealed(patient: Patient) -> Iterator[Finding]:
    """Tell whether the secret that is here is the one that this store was written with."""
    secret = _quietly(known_secret, patient.settings)
    rows = _ask(patient, sql.select_any_sealed())
    if secret is None or not rows:
        return
    tenant, subscription, sealed = rows[0]
    try:
        unseal(Vault(secret), sealed, tenant, subscription)
    except Sealed:
        yield _fault(
            "webhook secrets",
            "they do not open: the secret that is here is not the one the store was written with",
            "Set VETTANCE_SECRET (or secret.key) to the former one, or make API keys and webhooks anew.",
        )
    else:
        yield _ok("webhook secrets", "they open")


def _quietly(read: Callable[[Settings], bytes | None], settings: Settings) -> bytes | None:
    try:
        return read(settings)
    except SettingsError:
        return None


def _queues(patient: Patient) -> Iterator[Finding]:
    job = _ask(patient, sql.select_oldest_job())
    deliveries = _ask(patient, sql.count_waiting_deliveries())
    if job and patient.now_ms - job[0][0] > _OVERDUE_MS:
        yield _warning(
            "jobs",
            "accepted events have waited for more than ten minutes",
            "Start a server; if one runs, read its log.",
        )
    waiting, due = deliveries[0] if deliveries else (0, None)
    if due is not None and patient.now_ms - due > _OVERDUE_MS:
        yield _warning(
            "webhooks",
            f"{waiting:,} deliveries wait, the oldest for more than ten minutes",
            "Start a server; if one runs, look at the health of the subscriptions and at its log.",
        )


def _watchlists(patient: Patient) -> Iterator[Finding]:
    name = "watchlists"
    rows, aml = _ask(patient, watchlists_sql.select_current()), _ask(patient, sql.count_aml_tenants())
    if rows is None or not aml:
        return
    versions, has_aml = [watchlists_sql.version_of(row) for row in rows], aml[0][0]
    if not versions:
        if has_aml:
            yield _fault(
                name,
                f"{has_aml} tenants screen names and no list is loaded: every screening answers 502",
                "`vettance watchlist refresh`, or `vettance watchlist import` with files of your own.",
            )
        return
    shelf = patient.settings.data / WATCHLISTS
    for one in (each.version for each in versions):
        if not version_path(shelf, one.source, one.version).is_file():
            yield _fault(
                name,
                f"the files of {one.source} are gone",
                f"`vettance watchlist refresh --source {one.source}`",
            )
    stale = [one.version.source for one in versions if is_stale(one, patient.now_ms)]
    if stale:
        yield _warning(
            name,
            f"not compared for a week: {', '.join(stale)}",
            "`vettance watchlist refresh`, daily, from a timer.",
        )
    else:
        yield _ok(name, f"{len(versions)} lists, {sum(one.version.entities for one in versions):,} entities")


def _redis(patient: Patient) -> Iterator[Finding]:
    name, url = "Redis", patient.environ.get("VETTANCE_REDIS_URL")
    if not url:
        return
    import redis

    try:
        line = redis.Redis.from_url(url, socket_timeout=_ASK_S_MAX, socket_connect_timeout=_ASK_S_MAX)
        with closing(line):
            line.ping()
            policy = _policy(line)
    except (redis.RedisError, OSError, ValueError) as error:
        # The text could hold the password that stands in the URL.
        yield _fault(
            name,
            f"it does not answer ({type(error).__name__})",
            "See that it runs, and that VETTANCE_REDIS_URL names its address, user and password.",
        )
        return
    if policy not in (None, "noeviction"):
        yield _warning(
            name,
            f"it throws keys away when it is full ({policy})",
            "`maxmemory-policy noeviction`: counters that vanish make decisions wrong without a word.",
        )
    else:
        yield _ok(name, "it answers")


def _policy(line: object) -> str | None:
    import redis

    try:
        return dict(line.config_get("maxmemory-policy")).get("maxmemory-policy")  # type: ignore[attr-defined]
    except redis.RedisError:
        return None  # Many who rent a Redis may not ask.


def _port(patient: Patient) -> Iterator[Finding]:
    name, where = "port", f"{patient.host}:{patient.port}"
    family = socket.AF_INET6 if ":" in patient.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((patient.host, patient.port))
        except OSError as error:
            if _is_ours(patient):
                yield _ok(name, f"a Vettance server answers on {where}")
            else:
                yield _fault(
                    name, f"{where}: {error.strerror}", "Name another (--port), or end what holds it."
                )
            return
    yield _ok(name, f"{where} is free")


def _is_ours(patient: Patient) -> bool:
    host = f"[{patient.host}]" if ":" in patient.host else patient.host
    try:
        with urllib.request.urlopen(f"http://{host}:{patient.port}/healthz", timeout=_ASK_S_MAX) as answer:
            return bool(answer.read(100) == b'{"status":"ok"}')
    except OSError:
        return False


def _exposure(patient: Patient) -> Iterator[Finding]:
    if patient.settings.unsafe_webhooks:
        yield _warning(
            "webhooks",
            "VETTANCE_UNSAFE_WEBHOOKS=1: whoever has an API key can reach this machine and its network",
            "Unset it wherever anybody but you has a key.",
        )
    metrics = patient.settings.metrics
    if metrics is not None and metrics[0] not in ("127.0.0.1", "::1", "localhost"):
        yield _warning(
            "metrics",
            f"{metrics[0]}:{metrics[1]} answers whoever reaches it",
            "See that only your Prometheus does (a private network, a NetworkPolicy), or use 127.0.0.1.",
        )


#: Every check, in the order in which faults are best mended.
CHECKS: Final[tuple[Check, ...]] = (
    _runtime,
    _data_folder,
    _secret,
    _disk,
    _embedded_store,
    _sealed,
    _clock,
    _redis,
    _watchlists,
    _queues,
    _port,
    _exposure,
)
