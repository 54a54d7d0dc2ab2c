"""A PostgreSQL and a Redis of our own to be broken, and the cables between them and the service."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import uvloop
from small_disk import SmallDisk

START_S_MAX = 60.0
DISK_BYTES = 640 * 1024 * 1024
_PIECE = 1 << 16


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class StoreFault(Exception):
    """A store could not be set up; the message says why."""


def postgres_programs() -> Path:
    """Find the newest installed PostgreSQL. Raises `StoreFault`."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if (found := shutil.which("initdb")) is not None:
        folders.append(Path(found).parent)
    for folder in reversed(folders):
        if (folder / "initdb").exists():
            return folder
    raise StoreFault("there is no PostgreSQL installed (Debian: apt-get install postgresql)")


class Postgres:
    """A server in a folder of its own; it refuses to run as root, and then runs as postgres."""

    def __init__(self, folder: Path) -> None:
        programs = postgres_programs()
        self.folder = folder
        self.port = free_port()
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if _is_root() else []
        folder.mkdir(parents=True, exist_ok=True)
        if user:
            shutil.chown(folder, "postgres", "postgres")
        self._data = folder / "data"
        self._control = [*user, str(programs / "pg_ctl"), "-D", str(self._data), "-w", "-t", "60"]
        self._control += ["-l", str(folder / "log")]
        self._options = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} "
            "-c max_connections=60 -c max_wal_size=96MB -c min_wal_size=32MB"
        )
        made = [*user, str(programs / "initdb"), "-D", str(self._data), "-U", "postgres", "-A", "trust"]
        self._run([*made, "--no-sync"])

    def _run(self, command: list[str], *, check: bool = True) -> int:
        # Not piped: the server would keep the pipe open for as long as it lives.
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if check and done.returncode:
            raise StoreFault(f"`{command[-1]}` failed, see {self.folder / 'log'}")
        return done.returncode

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._run([*self._control, "-o", self._options, "start"])

    def restart(self) -> None:
        """End it as a crash would, and have it recover."""
        self._run([*self._control, "-o", self._options, "-m", "immediate", "restart"])

    def revive(self) -> None:
        """Wait until it answers, and start it where it has ended by itself."""
        until = time.monotonic() + START_S_MAX
        while True:
            with contextlib.suppress(Exception):
                self.ask("SELECT 1")
                return
            if time.monotonic() > until:
                raise StoreFault("PostgreSQL did not come back")
            if self._run([*self._control, "status"], check=False) == 3:  # 3: there is no server
                self._run([*self._control, "-o", self._options, "start"], check=False)
            time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        self._run([*self._control, "-m", "immediate", "stop"], check=False)

    def url(self, database: str, port: int | None = None) -> str:
        """Name a database, by way of another port where one is given."""
        return f"postgresql://postgres@127.0.0.1:{port or self.port}/{database}"

    def ask(self, text: str, *args: Any, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Ask as the superuser, past every wall and every cable."""

        async def whole() -> list[tuple[Any, ...]]:
            connection = await asyncpg.connect(self.url(database), timeout=5)
            try:
                return [tuple(row) for row in await connection.fetch(text, *args)]
            finally:
                await connection.close()

        return asyncio.run(whole())


class Redis:
    """A server that keeps nothing on disk; the port stays."""

    def __init__(self) -> None:
        self._program = shutil.which("redis-server") or ""
        if not self._program:
            raise StoreFault("there is no redis-server installed (Debian: apt-get install redis-server)")
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                self._program,
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + START_S_MAX
        while True:
            with contextlib.suppress(OSError):
                if self.command("PING") == b"+PONG":
                    return
            if time.monotonic() > until:
                raise StoreFault("Redis did not start")
            time.sleep(0.01)

    def kill(self) -> None:
        """End it by SIGKILL; what it held is gone."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def clients(self) -> int:
        """Count the connections of others."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as caller:
            caller.sendall(b"CLIENT LIST\r\n")
            told = b""
            while not told.endswith(b"\n\r\n"):
                told += caller.recv(_PIECE)
        return told.count(b"id=") - 1

    def command(self, *words: str) -> bytes:
        """Have it do something, and return the first line of its answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as caller:
            caller.sendall(f"{' '.join(words)}\r\n".encode())
            return caller.recv(_PIECE).partition(b"\r\n")[0]


class Cable:
    """A way to a port that can be cut, go silent and be slow; made and kept by `Cables`."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self.delay_s = 0.0
        self.port = 0

    async def plug(self) -> None:
        """Take connections."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Reset every connection and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for end in tuple(self._ends):
            end.transport.abort()

    async def silence(self) -> None:
        """Take everything and pass nothing on; what was sent meanwhile arrives when it is over."""
        self._passing.clear()

    async def speak(self) -> None:
        """Pass everything on again."""
        self._passing.set()

    async def slow(self, delay_s: float) -> None:
        """Delay each piece, on its way there and back, by half of this."""
        self.delay_s = delay_s

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passing.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._ends |= both
        try:
            await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
        finally:
            self._ends -= both

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_PIECE):
                await self._passing.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s / 2)
                writer.write(data)
                await writer.drain()
        except (OSError, RuntimeError):
            pass  # uvloop says the latter of a line that was closed meanwhile.
        finally:
            await self._passing.wait()
            writer.close()


class Cables:
    """An event loop in a thread of its own that carries what goes through cables."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def lay(self, to_port: int) -> Cable:
        """Make a cable to a port of this machine."""

        async def made() -> Cable:
            cable = Cable(to_port)
            await cable.plug()
            return cable

        return asyncio.run_coroutine_threadsafe(made(), self._loop).result(10)

    def do(self, act: Coroutine[Any, Any, None]) -> None:
        """Run what a cable is to do."""
        asyncio.run_coroutine_threadsafe(act, self._loop).result(10)

    def close(self) -> None:
        """Let go of everything."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)


@contextlib.contextmanager
def stores(folder: Path, *, small: bool) -> Iterator[tuple[Postgres, Redis, SmallDisk | None]]:
    """Run both until the block ends; with `small`, PostgreSQL on a disk that can be filled."""
    disk = SmallDisk(folder / "postgres", DISK_BYTES) if small else None
    postgres, redis = None, Redis()
    try:
        if disk is not None and not disk.mounted:
            raise StoreFault("filling the disk of PostgreSQL needs a file system of its own (mount a tmpfs)")
        postgres = Postgres(folder / "postgres")
        postgres.start()
        redis.start()
        yield postgres, redis, disk
    finally:
        redis.kill()
        if postgres is not None:
            postgres.stop()
        if disk is not None:
            disk.close()


def _is_root() -> bool:
    return os.geteuid() == 0
