"""What the doctor looks at in the stores that processes share: PostgreSQL and Redis."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from vettance import clock
from vettance.commands import counted_word
from vettance.db.engine import StoreDown
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, fault, ok, warning
from vettance.settings.urls import is_cluster

POSTGRES_MIN: Final = 150_000
REDIS_MIN: Final = 7
#: Connections that one process may hold, with those of commands at the same time (docs/postgresql.md).
CONNECTIONS_EACH: Final = 10
_ASK_S_MAX: Final = 3.0
_DATABASE: Final = "PostgreSQL"
_REPLICA: Final = "replica"
_REDIS: Final = "Redis"


def check_database(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look at durability, the months to come and the clock of the database, where one is set."""
    if patient.settings.database_url is None:
        return
    from vettance.db.postgres_examine import examine  # The driver is loaded where it is used only.

    try:
        asked_ms = clock.now_ms()
        health = asyncio.run(examine(patient.settings.database_url))
    except (StoreDown, OSError, TimeoutError):
        return  # The check of the store tells.
    found = [
        *judge_settings(health.settings),
        *judge_clock(_DATABASE, health.now_ms, asked_ms, clock.now_ms()),
    ]
    if health.version < POSTGRES_MIN:
        mend = "Move to PostgreSQL 15 or newer."
        found.append(fault(_DATABASE, f"it is version {health.version // 10_000}", mend))
    if health.is_standby:
        mend = "Name the primary in VETTANCE_DATABASE_URL, or promote this server."
        found.append(fault(_DATABASE, "it is a standby and takes no writes", mend))
    if health.lacking is not None:
        mend = "Give it these rights as the owner of the tables; the service goes on within a second."
        found.append(fault(_DATABASE, health.lacking, mend))
    if health.connections_max < 2 * CONNECTIONS_EACH:
        mend = f"Count {CONNECTIONS_EACH} for each process of Vettance and raise max_connections."
        found.append(
            warning(_DATABASE, f"it takes {counted_word(health.connections_max, 'connection')}", mend)
        )
    if health.partless:
        mend = (
            "Start a server, which makes them, or run `vettance migrate`; else these months stand together."
        )
        found.append(warning(_DATABASE, f"no partition yet for {', '.join(health.partless)}", mend))
    yield from found or [ok(_DATABASE, "commits are durable, its clock agrees")]


def check_replica(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Ask the replica how far it is behind, where one is set."""
    settings = patient.settings
    if settings.database_url is None or settings.database_read_url is None:
        return
    from vettance.db.postgres_examine import lag_of

    within = f"within VETTANCE_DATABASE_READ_LAG ({settings.database_read_lag_s} s)"
    try:
        lag_s = asyncio.run(lag_of(settings.database_url, settings.database_read_url))
    except StoreDown as error:
        mend = "See that it runs, follows the database and takes the service; the primary is read meanwhile."
        yield warning(_REPLICA, error.full, mend)
        return
    if lag_s is None:
        return  # The check of the database tells.
    if lag_s > settings.database_read_lag_s:
        mend = "See what holds its replay up; the primary is read until it is " + within + "."
        yield warning(_REPLICA, f"it is {lag_s:.1f} s behind", mend)
    else:
        yield ok(_REPLICA, f"it is {lag_s:.1f} s behind, {within}")


def judge_settings(settings: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Say which settings of a database let an acknowledged commit be lost, or the store decay."""
    from vettance.db.postgres_examine import COMMIT, COMMITS, DURABLE, VACUUM

    for name, wanted in DURABLE.items():
        if settings[name] != wanted:
            mend = (
                f"Set `{name} = {wanted}` in postgresql.conf and start it anew: a crash can ruin the store."
            )
            yield fault(_DATABASE, f"{name} is {settings[name]}", mend)
    if settings[COMMIT] not in COMMITS:
        mend = (
            "The service asks for `on`: have the pooler in between pass settings on, or set it for the role."
        )
        yield fault(_DATABASE, f"{COMMIT} is {settings[COMMIT]}: what was acknowledged can be lost", mend)
    if settings[VACUUM] != "on":
        mend = f"Set `{VACUUM} = on` and reload, or run `vacuumdb --analyze` every night."
        yield warning(_DATABASE, f"{VACUUM} is {settings[VACUUM]}: its tables grow and get slower", mend)


def judge_clock(whose: str, theirs_ms: int, asked_ms: int, answered_ms: int) -> Iterator[DoctorFinding]:
    """Say whether a clock is too far from ours, by which it was asked and answered at these moments."""
    ahead_ms = theirs_ms - min(max(theirs_ms, asked_ms), answered_ms)
    if abs(ahead_ms) > clock.CLOCKS_APART_MS:
        way = "ahead of" if ahead_ms > 0 else "behind"
        mend = "Keep both clocks (chrony or systemd-timesyncd): windows and limits go by them."
        yield warning(whose, f"its clock is {abs(ahead_ms) / 1000:.0f} s {way} this one", mend)


def check_redis(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Ask Redis, where one is set."""
    url = patient.environ.get("VETTANCE_REDIS_URL")
    if not url:
        return
    from vettance.redis_link.cluster_connection import try_cluster
    from vettance.redis_link.redis_connection import Unfit

    if not is_cluster(url):
        yield from _check_server(url)
        return
    try:
        masters = asyncio.run(try_cluster(url))
    except Unfit as unfit:
        yield fault(_REDIS, str(unfit), unfit.mend)
        return
    if not masters:
        mend = (
            "See that its nodes run, that `redis-cli --cluster check` finds no fault, and what the URL names."
        )
        yield fault(_REDIS, "no node of the cluster says who serves its slots", mend)
    for master in masters:
        yield from _check_server(master)


def _check_server(url: str) -> Iterator[DoctorFinding]:
    """Ask one server."""
    import redis

    from vettance.redis_link.redis_connection import Unfit, try_line

    try:
        asyncio.run(try_line(url))
        line = redis.Redis.from_url(url, socket_timeout=_ASK_S_MAX, socket_connect_timeout=_ASK_S_MAX)
        with closing(line):
            asked_ms = clock.now_ms()
            seconds, microseconds = line.time()
            answered_ms = clock.now_ms()
            told = {**line.info("server"), **line.info("replication"), **line.info("memory")}
            settings = {name: _setting(line, name) for name in ("maxmemory-policy", "save", "appendonly")}
    except Unfit as unfit:
        yield fault(_REDIS, str(unfit), unfit.mend)
        return
    except (redis.RedisError, OSError, ValueError) as error:
        yield fault(_REDIS, *judge_refusal(error))
        return
    version = str(told["redis_version"])
    found = [
        *judge_redis(version, settings),
        *judge_writes(told),
        *judge_clock(_REDIS, seconds * 1000 + microseconds // 1000, asked_ms, answered_ms),
    ]
    yield from found
    if not found:
        persists = settings["save"] or settings["appendonly"] == "yes"
        note = (
            "; it writes to disk, which is not needed: the log in the store is the truth" if persists else ""
        )
        yield ok(_REDIS, f"it answers, version {version}{note}")


def judge_redis(version: str, settings: Mapping[str, str | None]) -> Iterator[DoctorFinding]:
    """Say what of a Redis makes counters wrong. A setting that may not be asked for is None."""
    if int(version.partition(".")[0]) < REDIS_MIN:
        yield fault(
            _REDIS, f"it is version {version}", f"Move to Redis {REDIS_MIN}.0 or newer, or to Valkey."
        )
    policy = settings["maxmemory-policy"]
    if policy not in (None, "noeviction"):
        yield fault(
            _REDIS,
            f"it throws keys away when it is full ({policy})",
            "`maxmemory-policy noeviction`: counters that vanish make decisions wrong without a word.",
        )


def judge_writes(told: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    """Say why a Redis takes no writes, by what its INFO tells of it."""
    if told.get("role") == "slave":
        mend = "Name the primary in VETTANCE_REDIS_URL, or promote this server."
        yield fault(_REDIS, "it follows another one and takes no writes", mend)
    most = int(told.get("maxmemory", 0))
    if 0 < most <= int(told.get("used_memory", 0)):
        mend = "Raise `maxmemory`: a memory is filled beside the one in use, which needs room for both."
        yield fault(_REDIS, f"it is full ({most / 1e6:.0f} MB) and takes no writes", mend)


def judge_refusal(error: Exception) -> tuple[str, str]:
    """Return what is wrong with a Redis that could not be asked, and the mend.

    The text of the error is not shown: it could hold the password that is in the URL.
    """
    import redis.exceptions

    if isinstance(error, redis.exceptions.AuthenticationError):
        return "it refuses user and password", (
            "Put them into VETTANCE_REDIS_URL: redis://user:password@host:6379/0."
        )
    if isinstance(error, redis.exceptions.NoPermissionError):
        return "its user may not ask it", "Let the user run every command on every key: `+@all ~*`."
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return "it is still loading its file", "Wait, or keep none: the log in the store is the truth."
    if str(error).startswith("DENIED"):
        return "it is in protected mode and takes callers of its own machine only", (
            "Give it a password, or `--protected-mode no` where only Vettance reaches it."
        )
    return f"it does not answer ({type(error).__name__})", (
        "See that it runs, and that VETTANCE_REDIS_URL names its address, user and password."
    )


def _setting(line: Any, name: str) -> str | None:
    import redis

    try:
        value = dict(line.config_get(name)).get(name)
    except redis.RedisError:
        return None  # Many who rent a Redis may not ask.
    return None if value is None else str(value)
