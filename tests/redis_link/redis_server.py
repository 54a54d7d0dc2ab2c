"""A private redis-server for tests: on a free port, nothing kept on disk, to be stopped and emptied."""

import asyncio
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest

from vettance.deployment.shared import count_in
from vettance.velocity.port import Observation, Plan, VelocityAnswer

SECRET = b"a secret of tests".ljust(32, b".")
Result = TypeVar("Result")
#: Nothing here is tested by waiting for it; a machine that is busy may take its time.
PATIENCE_S = 30.0
_AT_ONCE = 500


class PrivateRedis:
    """A server of our own; `stop` and `start` may be called in turns, the port stays."""

    def __init__(self, *options: str) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("no redis-server here, so what needs one was left out")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *options]
        self._folder = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[str] | None = None
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, and wait until the server takes connections."""
        self._process = subprocess.Popen(
            [*self._command, "--dir", self._folder.name], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if "Ready to accept connections" in line:
                return
        raise AssertionError("".join(said))

    def stop(self) -> None:
        """Kill the server; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def halt(self) -> None:
        """Have the server hang: its connections stay, and nothing is read or answered."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def command(self, *words: str) -> None:
        """Have the server do something, in one round."""
        with socket.create_connection(("127.0.0.1", self.port)) as caller:
            caller.sendall(f"{' '.join(words)}\r\n".encode())
            assert caller.recv(64) == b"+OK\r\n"

    def empty(self) -> None:
        """Forget everything."""
        self.command("FLUSHALL")

    def close(self) -> None:
        self.stop()
        self._folder.cleanup()


class Shared:
    """A memory in Redis, or in a cluster, for tests that do not await, beside the memory engine."""

    def __init__(self, url: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.line, self.velocity = count_in(url, SECRET, PATIENCE_S)

    def wait(self, work: Awaitable[Result]) -> Result:
        async def bound() -> Result:
            return await work

        return self.loop.run_until_complete(bound())

    def close(self) -> None:
        self.wait(self.line.close())
        self.loop.close()

    def install(self, tenant: str, plan: Plan) -> None:
        self.wait(self.velocity.install(tenant, plan))

    def uninstall(self, tenant: str) -> None:
        self.wait(self.velocity.uninstall(tenant))

    def adopt(self, tenant: str, coming: str) -> None:
        self.wait(self.velocity.adopt(tenant, coming))

    def observe(self, tenant: str, event_id: str, at_ms: int, seen: Observation) -> VelocityAnswer:
        return self.wait(self.velocity.observe(tenant, event_id, at_ms, seen))

    def observe_all(self, tenant: str, events: list[tuple[str, int, Observation]]) -> list[VelocityAnswer]:
        async def together() -> list[VelocityAnswer]:
            answers: list[VelocityAnswer] = []
            for first in range(0, len(events), _AT_ONCE):
                part = events[first : first + _AT_ONCE]
                answers += await asyncio.gather(*(self.velocity.observe(tenant, *event) for event in part))
                for event_id, _, _ in part:
                    self.velocity.settle(tenant, event_id)
            return answers

        return self.wait(together())

    def command(self, *parts: bytes) -> Any:
        return self.wait(self.line.call(*parts))
