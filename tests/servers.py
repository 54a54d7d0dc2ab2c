"""Run tests with the servers that they need: private ones of installed programs, else those that run.

`python tests/servers.py COMMAND …` runs a command. PostgreSQL is the server that VETTANCE_TEST_POSTGRES
names, else a private one of the installed programs in a temporary folder, else the one on its standard
port; as the superuser of a Debian the programs are installed first where they are missing. A private server
does not wait for the disk: what it committed outlives processes that are killed, as tests kill them, but no
loss of power. What could not be had is said in the last lines. NATS is looked for on its standard port, else
installed and started in the same way. Redis is started by its tests; here its program is only looked for,
and so is a RabbitMQ that runs already.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

STANDARD = "postgresql://postgres@127.0.0.1:5432/postgres"
NATS_PORT = 4222
AMQP_PORT = 5672


def main(command: list[str]) -> int:
    """Run the command with what there is, and say what there is not."""
    install()
    with postgres() as url, nats_server() as nats:
        environment = dict(os.environ)
        if nats is not None:
            environment["VETTANCE_TEST_NATS"] = nats
        if url is not None:
            environment["VETTANCE_TEST_POSTGRES"] = url
        code = subprocess.run(command, env=environment, check=False).returncode
    for program, missing in (
        ("PostgreSQL", url is None),
        ("Redis", shutil.which("redis-server") is None),
        ("NATS (Debian's package nats-server)", nats is None),
        ("RabbitMQ (Debian's package rabbitmq-server, running)", not listens(AMQP_PORT)),
        ("Kafka (VETTANCE_TEST_KAFKA names no broker)", not os.environ.get("VETTANCE_TEST_KAFKA")),
        ("promtool (Debian's package prometheus)", shutil.which("promtool") is None),
    ):
        if missing:
            print(f"LEFT OUT: the tests that need {program}, because there is none here.")
    return code


def install() -> None:
    """Install what is missing, where that is allowed."""
    wanted = [
        package
        for package, there in (
            ("postgresql", answers(STANDARD) or programs() is not None),
            ("redis-server", shutil.which("redis-server") is not None),
            ("nats-server", listens(NATS_PORT) or shutil.which("nats-server") is not None),
        )
        if not there
    ]
    if wanted and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"Installing {' and '.join(wanted)} for the tests (once)…", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted],
            check=False,
            stdout=subprocess.DEVNULL,
        )


def programs() -> Path | None:
    """Find the newest installed PostgreSQL."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = shutil.which("initdb")
    if found:
        folders.append(Path(found).resolve().parent)
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


def answers(url: str) -> bool:
    """Tell whether a server takes us for its superuser."""
    import asyncio

    import asyncpg

    async def ask() -> bool:
        connection = await asyncpg.connect(url, timeout=3)
        try:
            return bool(
                await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
            )
        finally:
            await connection.close()

    try:
        return asyncio.run(ask())
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False


@contextlib.contextmanager
def postgres() -> Iterator[str | None]:
    """Yield the URL of a server for the tests, or None."""
    given = os.environ.get("VETTANCE_TEST_POSTGRES")
    folder = programs()
    if given and answers(given):
        yield given
    elif folder is not None:
        with tempfile.TemporaryDirectory(prefix="vettance-postgres-") as place:
            yield from private(folder, Path(place))
    else:
        yield STANDARD if answers(STANDARD) else None


def listens(port: int) -> bool:
    """Tell whether a server of this machine takes connections at a port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def nats_server() -> Iterator[str | None]:
    """Yield the URL of a NATS server with JetStream for the tests, or None."""
    given = os.environ.get("VETTANCE_TEST_NATS")
    if given or listens(NATS_PORT):
        yield given or f"nats://127.0.0.1:{NATS_PORT}"
    elif shutil.which("nats-server") is None:
        yield None
    else:
        with tempfile.TemporaryDirectory(prefix="vettance-nats-") as place:
            yield from private_nats(Path(place))


def private_nats(place: Path) -> Iterator[str | None]:
    """Start a NATS server that keeps its streams in a folder of its own, until the caller is done."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(place)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 10
        while not listens(port) and time.monotonic() < until:
            time.sleep(0.05)
        yield f"nats://127.0.0.1:{port}" if listens(port) else None
    finally:
        process.terminate()
        process.wait(10)


def private(folder: Path, place: Path, primary: str | None = None) -> Iterator[str | None]:
    """Start a server in a folder of its own, a standby where a primary is given; it ends as by a crash.

    PostgreSQL refuses to run as root, and then runs as postgres.
    """
    as_user = (
        ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
    )
    if as_user:
        shutil.chown(place, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = str(place / "data")
    making = (
        [folder / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"]
        if primary is None
        else [folder / "pg_basebackup", "-D", data, "-d", primary, "-R", "-c", "fast", "--no-sync"]
    )
    made = subprocess.run(
        [*as_user, *making],
        check=False,
        capture_output=True,
        text=True,
    )
    options = f"-c fsync=off -c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={place}"
    control = [*as_user, folder / "pg_ctl", "-D", data, "-w", "-l", str(place / "log")]
    if (
        made.returncode
        or subprocess.run([*control, "-o", options, "start"], check=False, capture_output=True).returncode
    ):
        print(f"PostgreSQL could not be started: {made.stderr.strip()}", file=sys.stderr)
        yield None
        return
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, capture_output=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
