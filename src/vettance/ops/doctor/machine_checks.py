"""What the doctor looks at on the machine: runtime, data folder, disk, ports."""

import os
import resource
import shutil
import socket
import sqlite3
import stat
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from vettance.db.connection import STORE_FILE
from vettance.ops.doctor.check import DoctorContext, DoctorFinding, fault, ok, warning
from vettance.ops.preflight import probe_addresses, probe_listening
from vettance.ops.server_note import FILE as SERVER_FILE
from vettance.ops.server_note import read_note
from vettance.settings.secret_key import SECRET_FILE
from vettance.settings.settings import SettingsError
from vettance.settings.unread_variables import find_unread

#: Below the first the store will stop before long; below the second somebody should look.
_DISK_FAULT_BYTES: Final = 256 * 1024 * 1024
_DISK_WARNING_BYTES: Final = 2 * 1024 * 1024 * 1024
#: Connections, readers, and what a burst of requests opens.
_FILES_MIN: Final = 1024
#: SQLite with the trigram tokenizer, which the search of the history uses (sqlite.org/changes.html, 3.34).
_SQLITE_MIN: Final = (3, 34, 0)
_ASK_S_MAX: Final = 3.0
#: What a server writes in its data folder. Whatever else is there is not ours (`lost+found` of a volume).
_WRITTEN: Final = (f"{STORE_FILE}*", "admitted*", "used*", "watchlists", "memory", f"{SERVER_FILE}*")
_ANSWER_BYTES_MAX: Final = 1024 * 1024


def check_runtime(_patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look at the interpreter, SQLite and the limits of the process."""
    name = "runtime"
    version = ".".join(map(str, sys.version_info[:3]))
    if sqlite3.sqlite_version_info < _SQLITE_MIN:
        yield fault(
            name,
            f"SQLite {sqlite3.sqlite_version} has no trigram search",
            "Use a Python that is built with SQLite 3.34 or newer.",
        )
    else:
        yield ok(name, f"Python {version}, SQLite {sqlite3.sqlite_version}")
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files < _FILES_MIN:
        yield warning(
            "open files",
            f"a process may open {files} files",
            f"Raise the limit to {_FILES_MIN} or more (`ulimit -n`, LimitNOFILE= in a systemd unit).",
        )


def check_variables(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look for variables that are meant as settings and are none."""
    yield from judge_variables(patient.environ)


def judge_variables(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Name each variable that nothing reads, also where the settings cannot be read."""
    for unread in find_unread(environ):
        yield warning("settings", f"nothing reads {unread.name}", f"{unread.hint} Rename or unset it.")


def check_data_folder(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look at the data folder and its rights."""
    name, folder = "data folder", patient.settings.data
    if not os.access(folder, os.F_OK) and may_use(folder, os.R_OK):
        yield warning(
            name, f"{folder} is not there yet", "Nothing: `vettance serve` makes it. Or name another: --data."
        )
        return
    shut = first_shut(patient)
    if shut is not None:
        use = "read" if shut.name == SECRET_FILE else "written"
        yield fault(name, f"{shut} cannot be {use} by this user ({os.geteuid()})", _opening(folder, shut))
        return
    if not folder.is_dir():
        yield fault(name, f"{folder} is no folder", "Name the data folder: --data or VETTANCE_DATA.")
        return
    if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield warning(
            name,
            f"{folder} is open to other users of this machine",
            f"`chmod 700 {folder}`: it holds customers' data.",
        )
    else:
        yield ok(name, f"{folder}, for its owner only")


def first_shut(patient: DoctorContext) -> Path | None:
    """Return what this user may not use of what a server makes in the data folder, folders first."""
    return next((path for path, wanted in _used(patient) if not may_use(path, wanted)), None)


def _used(patient: DoctorContext) -> Iterator[tuple[Path, int]]:
    both, folder = os.R_OK | os.W_OK, patient.settings.data
    yield folder, both
    if patient.settings.secret is None:
        yield folder / SECRET_FILE, os.R_OK
    for path in (path for pattern in _WRITTEN for path in sorted(folder.glob(pattern))):
        yield path, both
        for below in path.rglob("*"):
            # Lists, indexes and snapshots are written once, and another takes their place.
            yield below, both if below.is_dir() else os.R_OK


def may_use(path: Path, wanted: int) -> bool:
    """Tell whether this user has these rights to a file or folder; what is not there is made when needed."""
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return os.access(path, wanted | (os.X_OK if is_folder else 0), effective_ids=True)


def _opening(folder: Path, shut: Path) -> str:
    seen = next(path for path in (shut, *shut.absolute().parents) if os.access(path, os.F_OK))
    if os.statvfs(seen).f_flag & os.ST_RDONLY:
        return "Its file system is mounted read-only: mount it for writing, or name another folder."
    if seen.stat().st_uid == os.geteuid():
        return f"`chmod -R u+rwX {folder}`"
    return (
        f"Run as the owner of {seen} ({seen.stat().st_uid}), or `chown -R` {folder} to the user that runs "
        "the service."
    )


def check_disk(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Look at the free space."""
    name = "disk"
    folder = next(
        path for path in (patient.settings.data, *patient.settings.data.absolute().parents) if path.exists()
    )
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e9:.1f} GB free"
    mend = "Make room, or remove what is old: VETTANCE_KEEP_EVENTS and `vettance retention run`."
    if free < _DISK_FAULT_BYTES:
        yield fault(name, found, mend)
    elif free < _DISK_WARNING_BYTES:
        yield warning(name, found, mend)
    else:
        yield ok(name, found)


def check_server(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Find the server that runs on the data folder, wherever it listens."""
    name, note = "server", read_note(patient.settings.data)
    if note is None or not note.runs:
        yield ok(name, "none runs on this folder")
        return
    since = f"Vettance {note.version}, process {note.pid}, since {note.started_at}"
    if not note.url:
        yield ok(name, f"one works in the background ({since})")
        return
    where = urllib.parse.urlsplit(note.url)
    if _is_ours(where.hostname or "", where.port or 0, "/readyz", b'"status":"ready"'):
        yield ok(name, f"one answers on {note.url} ({since})")
    elif _is_ours(where.hostname or "", where.port or 0, "/healthz", b'{"status":"ok"}'):
        yield fault(name, f"the one on {note.url} is not ready ({since})", f"{note.url}/readyz says why.")
    else:
        yield warning(
            name,
            f"{note.url} does not answer ({since})",
            "If that process is no Vettance, the server was killed; start it again.",
        )


def check_port(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """See whether the port is free, or a server of ours has it."""
    name, where = "port", f"{patient.host}:{patient.port}"
    note = read_note(patient.settings.data)
    if note is not None and note.runs:
        return  # The server of this folder has its port already.
    family = socket.AF_INET6 if ":" in patient.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((patient.host, patient.port))
        except OSError as error:
            if _is_ours(patient.host, patient.port, "/healthz", b'{"status":"ok"}'):
                yield ok(name, f"a Vettance server answers on {where}")
            else:
                yield fault(
                    name, f"{where}: {error.strerror}", "Name another (--port), or end what holds it."
                )
            return
    yield ok(name, f"{where} is free")


def check_metrics(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """See whether metrics can answer where they are to, or those of a server of ours do."""
    if patient.settings.metrics is None:
        return
    name, (host, port) = "metrics address", patient.settings.metrics
    try:
        probe_listening(patient.settings, (patient.host, patient.port))
    except SettingsError as error:
        if _is_ours(host, port, "/metrics", b"vettance_build_info"):
            yield ok(name, f"a Vettance server answers on {host}:{port}")
        else:
            yield fault(
                name, str(error), "Name an address of this machine that is free, or end what holds it."
            )
        return
    yield ok(name, f"{host}:{port} is free")


def check_addresses(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Open the files that know addresses, where some are named."""
    name = "GeoIP files"
    if patient.settings.geoip_country is None and patient.settings.geoip_asn is None:
        return
    try:
        probe_addresses(patient.settings)
    except SettingsError as error:
        yield fault(name, str(error), "Get the file again, name one in MaxMind's format, or unset it.")
        return
    yield ok(name, "they can be read")


def _is_ours(host: str, port: int, path: str, said: bytes) -> bool:
    named = f"[{host}]" if ":" in host else host
    try:
        with urllib.request.urlopen(f"http://{named}:{port}{path}", timeout=_ASK_S_MAX) as answer:
            return said in answer.read(_ANSWER_BYTES_MAX)
    except (OSError, ValueError):
        return False


def check_exposure(patient: DoctorContext) -> Iterator[DoctorFinding]:
    """Tell what is reachable and should not be."""
    if patient.settings.unsafe_webhooks:
        yield warning(
            "webhooks",
            "VETTANCE_UNSAFE_WEBHOOKS=1: whoever has an API key can reach this machine and its network",
            "Unset it wherever anybody but you has a key.",
        )
    metrics = patient.settings.metrics
    if metrics is not None and metrics[0] not in ("127.0.0.1", "::1", "localhost"):
        yield warning(
            "metrics",
            f"{metrics[0]}:{metrics[1]} answers whoever reaches it",
            "See that only your Prometheus does (a private network, a NetworkPolicy), or use 127.0.0.1.",
        )
