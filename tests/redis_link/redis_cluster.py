"""A private Redis Cluster for tests: real servers on free ports, some of which may follow others."""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

SLOTS = 16_384
_READY_S = 60.0


class ClusterNode:
    """One server of a cluster, with a folder of its own."""

    def __init__(self, folder: Path, timeout_ms: int) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("no redis-server here, so what needs one was left out")
        self.port, bus = _free_ports()
        folder.mkdir()
        cluster = ("--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout")
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *cluster]
        self._command += [str(timeout_ms), "--repl-diskless-sync-delay", "0", "--dir", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None
        self.bus = bus
        self.ask = redis.Redis(port=self.port, socket_timeout=10)
        # Keys need not be text.
        self.ask.set_response_callback("CLUSTER GETKEYSINSLOT", lambda keys, **_: keys)
        self.start()
        self.id = self.tell("CLUSTER MYID").decode()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until(self.ask.ping)

    def tell(self, *words: Any) -> Any:
        return self.ask.execute_command(*words)  # type: ignore[no-untyped-call]

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


class PrivateCluster:
    """Masters that share the slots, each with so many replicas; `spare` masters serve none at first."""

    def __init__(self, masters: int = 3, replicas: int = 0, spare: int = 0, timeout_ms: int = 15_000) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vettance-cluster-")
        count = masters * (1 + replicas) + spare
        self.nodes = [ClusterNode(Path(self._folder.name) / str(one), timeout_ms) for one in range(count)]
        self.masters, rest = self.nodes[:masters], self.nodes[masters:]
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            node.tell("CLUSTER SET-CONFIG-EPOCH", number + 1)
            if node is not first:
                node.tell("CLUSTER MEET", "127.0.0.1", first.port, first.bus)
        for number, node in enumerate(self.masters):
            bounds = number * SLOTS // masters, (number + 1) * SLOTS // masters - 1
            node.tell("CLUSTER ADDSLOTSRANGE", *bounds)
        until(lambda: all(self._knows_all(node) for node in self.nodes))
        for number, node in enumerate(rest[: masters * replicas]):
            node.tell("CLUSTER REPLICATE", self.masters[number % masters].id)
        until(lambda: all(self._is_ready(node) for node in self.nodes))
        seeds = ",".join(f"127.0.0.1:{node.port}" for node in self.masters[:2])
        self.url = f"redis+cluster://{seeds}"

    def _knows_all(self, node: ClusterNode) -> bool:
        return len(node.tell("CLUSTER NODES")) == len(self.nodes)

    def _is_ready(self, node: ClusterNode) -> bool:
        role = node.tell("ROLE")
        is_ok: bool = node.tell("CLUSTER INFO")["cluster_state"] == "ok" and (
            role[0] == b"master" or role[3] == b"connected"
        )
        return is_ok

    def owner(self, slot: int) -> ClusterNode:
        """Return the master that serves a slot, as the first node that lives knows it."""
        for node in self.nodes:
            with contextlib.suppress(redis.RedisError):
                for first, last, master, *_ in node.tell("CLUSTER SLOTS"):
                    if first <= slot <= last:
                        return next(one for one in self.nodes if one.port == master[1])
        raise AssertionError(slot)

    def move(self, slot: int, to: ClusterNode, pause_s: float = 0.0) -> None:
        """Move a slot as `redis-cli --cluster reshard` does, with a pause after each key."""
        source = self.owner(slot)
        to.tell("CLUSTER SETSLOT", slot, "IMPORTING", source.id)
        source.tell("CLUSTER SETSLOT", slot, "MIGRATING", to.id)
        until_s = time.monotonic() + _READY_S
        while keys := source.tell("CLUSTER GETKEYSINSLOT", slot, 1):
            assert time.monotonic() < until_s
            source.tell("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)
            time.sleep(pause_s)
        for node in (to, source, *(one for one in self.masters if one not in (to, source))):
            node.tell("CLUSTER SETSLOT", slot, "NODE", to.id)

    def empty(self) -> None:
        for node in self.nodes:
            if node.tell("ROLE")[0] == b"master":
                node.tell("FLUSHALL")

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
            node.ask.close()
        self._folder.cleanup()


def until(done: Callable[[], Any]) -> None:
    """Wait until something is so."""
    until_s = time.monotonic() + _READY_S
    while True:
        with contextlib.suppress(redis.RedisError):
            if done():
                return
        assert time.monotonic() < until_s
        time.sleep(0.02)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
