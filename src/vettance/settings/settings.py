"""Settings: what the environment may say, in one table; every one is described in docs/settings.md."""

import enum
import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from vettance.reference.jurisdictions import Jurisdictions
from vettance.settings.aml_settings import AML_ROWS, read_jurisdictions
from vettance.settings.oidc_settings import OIDC_ROWS, OidcSettings, read_oidc
from vettance.settings.retention_policy import Policy, read_policy
from vettance.settings.setting_row import SettingRow
from vettance.settings.urls import (
    read_collector_url,
    read_database_url,
    read_name_servers,
    read_redis_url,
    read_replica_url,
)
from vettance.telemetry.shared_counters import SEARCHERS_MAX
from vettance.wire.numbers import read_whole

Part = TypeVar("Part")

SECRET_BYTES = 32
_PORT_MAX = 65535
_MEBIBYTE = 1024 * 1024
_HISTORY_MB_MAX = 1024 * 1024


class Environment(enum.StrEnum):
    """Which of the three deployments this is; production is strict where the others are convenient."""

    PRODUCTION = "production"
    STAGING = "staging"
    DEVELOPMENT = "development"


class ProcessRole(enum.StrEnum):
    """What a process does: answer requests, work in the background, or both."""

    WEB = "web"
    WORKER = "worker"
    ALL = "all"


class SettingsError(Exception):
    """A setting that cannot be used; the message names it and says what it takes."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one process, read once at its start."""

    data: Path = Path("vettance-data")
    database_url: str | None = None
    database_read_url: str | None = None
    database_read_lag_s: int = 10
    role: ProcessRole = ProcessRole.ALL
    environment: Environment = Environment.DEVELOPMENT
    secret: bytes | None = None
    geoip_country: Path | None = None
    geoip_asn: Path | None = None
    keep: Policy = Policy()
    log_level: str = "info"
    redis: str | None = None
    metrics: tuple[str, int] | None = None
    traces: str | None = None
    console: bool = True
    console_address: tuple[str, int] | None = None
    proxies: int = 0
    session_idle_minutes: int = 30
    session_hours: int = 12
    oidc: OidcSettings | None = None
    unsafe_webhooks: bool = False
    name_servers: tuple[str, ...] = ()
    searchers: int = 1
    history_bytes: int = 256 * _MEBIBYTE
    training_seed: int = 1
    jurisdictions: Jurisdictions = Jurisdictions()


SETTINGS = (
    SettingRow("VETTANCE_DATA", "a folder", "vettance-data", "Where the store and the secret file live."),
    SettingRow(
        "VETTANCE_DATABASE_URL",
        "a URL such as postgresql://vettance@db.internal/vettance",
        "none",
        "The PostgreSQL database that holds the store in place of a file in the data folder "
        "([more](postgresql.md)).",
    ),
    SettingRow(
        "VETTANCE_DATABASE_READ_URL",
        "a URL such as postgresql://vettance@replica.internal/vettance",
        "none",
        "A streaming replica of it for reads that may lag ([more](postgresql.md#reading-from-a-replica)).",
    ),
    SettingRow(
        "VETTANCE_DATABASE_READ_LAG", "1 to 3600 seconds", "10", "How far behind the replica is still read."
    ),
    SettingRow(
        "VETTANCE_ENV",
        "production, staging or development",
        "development",
        "Which deployment this is. Keys are `vtc_live_…` in production and `vtc_test_…` elsewhere; "
        "production refuses to start without `VETTANCE_SECRET`.",
    ),
    SettingRow(
        "VETTANCE_SECRET",
        "64 hexadecimal digits (32 bytes)",
        "the file `secret.key` in the data folder, made at first use with mode 0600",
        "Keys the hashes of API keys and seals the signing secrets of webhooks. Whoever loses it must issue "
        "new API keys and subscribe webhooks anew.",
    ),
    SettingRow(
        "VETTANCE_REDIS_URL",
        "a URL such as redis://127.0.0.1:6379/0 or redis+cluster://one:6379,two:6379",
        "none",
        "The Redis (7.0 or newer), or Redis Cluster, in which several processes share the memory between "
        "events, throttle and quota (docs/redis.md); without it each process counts alone.",
    ),
    SettingRow("VETTANCE_GEOIP_COUNTRY", "a MaxMind-format file", "none", "The country of an IP, for rules."),
    SettingRow(
        "VETTANCE_GEOIP_ASN", "a MaxMind-format file", "none", "The network (ASN) of an IP, for rules."
    ),
    SettingRow("VETTANCE_LOG_LEVEL", "debug, info, warning or error", "info", "How much the log says."),
    SettingRow(
        "VETTANCE_METRICS",
        "an address such as 127.0.0.1:9464",
        "none",
        "Where `GET /metrics` answers, for Prometheus; without it nothing does. It asks for no key: keep the "
        "address on this machine or in a network of your own.",
    ),
    SettingRow(
        "VETTANCE_TRACES",
        "a URL such as http://127.0.0.1:4318",
        "none",
        "Where OpenTelemetry traces go (OTLP over HTTP). Needs `pip install vettance[otel]`.",
    ),
    SettingRow(
        "VETTANCE_CONSOLE",
        "on, off, or an address such as 127.0.0.1:8081",
        "on",
        "Where the console is: under `/console` at the address of the API, nowhere, or at an address of its "
        "own and then not at that of the API.",
    ),
    SettingRow(
        "VETTANCE_PROXIES",
        "0 to 9",
        "0",
        "How many proxies of yours stand in front. With one or more, the address of a browser is read from "
        "`X-Forwarded-For`, that many places from the right; with none it is that of the connection.",
    ),
    SettingRow(
        "VETTANCE_KEEP_EVENTS",
        "days",
        "0",
        "How long events, their decisions and their feedback are kept by `vettance retention run`; "
        "0 is for ever.",
    ),
    SettingRow("VETTANCE_KEEP_STATISTICS", "days", "0", "The same for counts, which name nobody."),
    SettingRow(
        "VETTANCE_KEEP_SCREENINGS",
        "days",
        "0",
        "The same for screenings that opened no case and joined none; the others stay with their case.",
    ),
    SettingRow(
        "VETTANCE_SESSION_IDLE_MINUTES",
        "1 to 1440",
        "30",
        "How long a session of the console lives while nobody uses it.",
    ),
    SettingRow(
        "VETTANCE_SESSION_HOURS", "1 to 168", "12", "How long a session of the console lives at most."
    ),
    *OIDC_ROWS,
    SettingRow("VETTANCE_KEEP_JOBS", "days", "30", "The same for settled jobs of `POST /events/async`."),
    SettingRow(
        "VETTANCE_KEEP_STREAM_MESSAGES",
        "days",
        "30",
        "How long the ids of messages that `vettance consume` took are known. No shorter than their brokers "
        "may deliver them again.",
    ),
    SettingRow("VETTANCE_KEEP_DELIVERIES", "days", "90", "The same for settled deliveries of webhooks."),
    SettingRow("VETTANCE_KEEP_CHANGES", "days", "30", "The same for what tells processes to read again."),
    SettingRow(
        "VETTANCE_UNSAFE_WEBHOOKS",
        "1 or 0",
        "0",
        "With 1, webhooks may go to http URLs and to this machine and its network, for development and "
        "tests. Said loudly at start; refused in production.",
    ),
    SettingRow(
        "VETTANCE_NAME_SERVERS",
        "addresses with commas between, such as 10.0.0.53,[fd00::53]:5353",
        "those of /etc/resolv.conf",
        "Who is asked for the addresses of webhook receivers, and of nothing else.",
    ),
    SettingRow(
        "VETTANCE_SEARCHERS",
        "0 to 16",
        "1; 2 with four processors or more, unless on PostgreSQL",
        "How many processes search watchlists for each process that answers. They start with the first list; "
        "each takes 25 to 90 MB beside what all share, by how many names it has met. With 0, threads of the "
        "answering process search, and slow down its other answers.",
    ),
    SettingRow(
        "VETTANCE_BACKGROUND",
        "low or usual",
        "low",
        "What work behind decisions gets of the processor. `low` gives backtests, trainings and exports what "
        "is left, so that on a machine that is always busy they hardly get on, and imports, deliveries and "
        "counts less than decisions. `usual` lets all of it compete, for machines where it has processors of "
        "its own.",
    ),
    SettingRow(
        "VETTANCE_HISTORY_MEMORY",
        "16 to 1048576 MB",
        "256",
        "How much of the history's columns each process that answers keeps in memory. What does not fit is "
        "read from the store each time. A decision takes 90 bytes when everything is asked about: lists, "
        "searches, links.",
    ),
    SettingRow(
        "VETTANCE_TRAINING_SEED",
        "1 to 1000000",
        "1",
        "The seed by which models are trained. The same log and seed give the same model; another seed shows "
        "how much of a figure is chance.",
    ),
    *AML_ROWS,
)


def read_settings(environ: Mapping[str, str] = os.environ, data: str | None = None) -> Settings:
    """Read the settings; `data`, from the command line, wins over `VETTANCE_DATA`. Raises `SettingsError`."""
    named = (environ.get("VETTANCE_ENV") or "development").lower()
    if named not in list(Environment):
        raise SettingsError("VETTANCE_ENV must be production, staging or development")
    level = (environ.get("VETTANCE_LOG_LEVEL") or "info").lower()
    if level not in ("debug", "info", "warning", "error"):
        raise SettingsError("VETTANCE_LOG_LEVEL must be debug, info, warning or error")
    unsafe = environ.get("VETTANCE_UNSAFE_WEBHOOKS") or "0"
    if unsafe not in ("0", "1"):
        raise SettingsError("VETTANCE_UNSAFE_WEBHOOKS must be 1 or 0")
    if unsafe == "1" and named == Environment.PRODUCTION:
        raise SettingsError("VETTANCE_UNSAFE_WEBHOOKS must not be set in production")
    proxies = environ.get("VETTANCE_PROXIES") or "0"
    if (hops := read_whole(proxies, 0, 9)) is None:
        raise SettingsError("VETTANCE_PROXIES must be a number from 0 to 9")
    # Read by `processes.background`, before a process has its settings.
    if (environ.get("VETTANCE_BACKGROUND") or "low") not in ("low", "usual"):
        raise SettingsError("VETTANCE_BACKGROUND must be low or usual")
    is_shown, console_address = _console(environ)
    return Settings(
        data=Path(data or environ.get("VETTANCE_DATA") or "vettance-data"),
        database_url=_read_url(environ, "VETTANCE_DATABASE_URL", read_database_url),
        database_read_url=_read_replica_url(environ),
        database_read_lag_s=_read_count(environ, "VETTANCE_DATABASE_READ_LAG", 10, 3_600),
        environment=Environment(named),
        secret=_read_secret(environ.get("VETTANCE_SECRET")),
        geoip_country=_read_file(environ, "VETTANCE_GEOIP_COUNTRY"),
        geoip_asn=_read_file(environ, "VETTANCE_GEOIP_ASN"),
        keep=_part(read_policy, environ),
        log_level=level,
        redis=_read_url(environ, "VETTANCE_REDIS_URL", read_redis_url),
        metrics=_address(environ, "VETTANCE_METRICS"),
        traces=_collector(environ),
        console=is_shown,
        console_address=console_address,
        proxies=hops,
        session_idle_minutes=_read_count(environ, "VETTANCE_SESSION_IDLE_MINUTES", 30, 1440),
        session_hours=_read_count(environ, "VETTANCE_SESSION_HOURS", 12, 168),
        oidc=_part(read_oidc, environ),
        unsafe_webhooks=unsafe == "1",
        name_servers=_name_servers(environ),
        searchers=_read_searchers(environ),
        history_bytes=_MEBIBYTE
        * _read_count(environ, "VETTANCE_HISTORY_MEMORY", 256, _HISTORY_MB_MAX, least=16),
        training_seed=_read_count(environ, "VETTANCE_TRAINING_SEED", 1, 1_000_000),
        jurisdictions=_part(read_jurisdictions, environ),
    )


def _read_searchers(environ: Mapping[str, str]) -> int:
    text = environ.get("VETTANCE_SEARCHERS")
    if not text:
        # On PostgreSQL there may be as many processes that answer as there are processors.
        many = (os.cpu_count() or 1) >= 4 and not environ.get("VETTANCE_DATABASE_URL")
        return 2 if many else 1
    if (searchers := read_whole(text, 0, SEARCHERS_MAX)) is None:
        raise SettingsError(f"VETTANCE_SEARCHERS must be a number from 0 to {SEARCHERS_MAX}")
    return searchers


def _read_count(environ: Mapping[str, str], variable: str, default: int, most: int, *, least: int = 1) -> int:
    count = read_whole(environ.get(variable) or str(default), least, most)
    if count is None:
        raise SettingsError(f"{variable} must be a number from {least} to {most}")
    return count


def _part(read: Callable[[Mapping[str, str]], Part], environ: Mapping[str, str]) -> Part:
    try:
        return read(environ)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _name_servers(environ: Mapping[str, str]) -> tuple[str, ...]:
    text = _read_url(environ, "VETTANCE_NAME_SERVERS", read_name_servers)
    return tuple(text.split(",")) if text else ()


def _collector(environ: Mapping[str, str]) -> str | None:
    url = _read_url(environ, "VETTANCE_TRACES", read_collector_url)
    if url is not None and importlib.util.find_spec("opentelemetry") is None:
        raise SettingsError("VETTANCE_TRACES needs OpenTelemetry: pip install vettance[otel]")
    return url


def _address(environ: Mapping[str, str], variable: str) -> tuple[str, int] | None:
    text = environ.get(variable)
    if not text:
        return None
    host, colon, digits = text.rpartition(":")
    port = read_whole(digits, 0, _PORT_MAX)
    if not colon or port is None:
        raise SettingsError(f"{variable} must be an address and a port, such as 127.0.0.1:9464")
    return host.strip("[]") or "127.0.0.1", port


def _console(environ: Mapping[str, str]) -> tuple[bool, tuple[str, int] | None]:
    """Return whether there is a console, and its address where it has one of its own."""
    text = (environ.get("VETTANCE_CONSOLE") or "on").lower()
    if text in ("on", "off"):
        return text == "on", None
    try:
        return True, _address(environ, "VETTANCE_CONSOLE")
    except SettingsError:
        message = "VETTANCE_CONSOLE must be on, off, or an address and a port, such as 127.0.0.1:8081"
        raise SettingsError(message) from None


def _read_url(environ: Mapping[str, str], variable: str, read: Callable[[str], str]) -> str | None:
    text = environ.get(variable)
    if not text:
        return None
    try:
        return read(text)
    except ValueError as error:
        raise SettingsError(f"{variable} {error}") from None


def _read_replica_url(environ: Mapping[str, str]) -> str | None:
    url = _read_url(environ, "VETTANCE_DATABASE_READ_URL", read_replica_url)
    if url is not None and not environ.get("VETTANCE_DATABASE_URL"):
        raise SettingsError("VETTANCE_DATABASE_READ_URL needs VETTANCE_DATABASE_URL, the primary")
    return url


def _read_secret(text: str | None) -> bytes | None:
    if not text:
        return None
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise SettingsError("VETTANCE_SECRET must be 64 hexadecimal digits")
    return secret


def _read_file(environ: Mapping[str, str], variable: str) -> Path | None:
    text = environ.get(variable)
    if not text:
        return None
    path = Path(text)
    if not path.is_file():
        raise SettingsError(f"{variable} names a file that does not exist: {path}")
    return path


def open_data_folder(settings: Settings) -> Path:
    """Make the data folder (mode 0700) if it is not there. Raises `SettingsError`."""
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"the data folder {settings.data} cannot be made: {error.strerror}") from None
    return settings.data
