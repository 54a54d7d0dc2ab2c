"""A real service of the demo's own: a fresh folder, a tenant with a key, `vettance serve` as a child."""

import contextlib
import http.client
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from vettance.demo.demo_client import DemoTarget

READY_S_MAX: Final = 60.0
STOP_S_MAX: Final = 15.0
COMMAND_S_MAX: Final = 60.0
LOG_FILE: Final = "service.log"
# Wide enough never to be reached; the demo shows decisions, not limits.
THROTTLE: Final = 10_000_000
QUOTA: Final = 100_000_000
_MARKER: Final = ".vettance-demo"
_LISTENS = re.compile(r"listens on http://([^:\s]+):(\d+)")


class LaunchFault(Exception):
    """The service could not be set up or started; the message says why."""


class RunningService(NamedTuple):
    """A running service: how to ask it, whose the key is, and its process."""

    target: DemoTarget
    tenant_id: str
    process: subprocess.Popen[bytes]


def make_fresh(folder: Path) -> None:
    """Make the folder anew. Only a folder that an earlier demo made is emptied; else raises `LaunchFault`."""
    try:
        if folder.exists() and any(folder.iterdir()):
            if not (folder / _MARKER).exists():
                raise LaunchFault(f"{folder} holds something that is not a demo's; name another folder")
            shutil.rmtree(folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / _MARKER).touch()
    except OSError as error:
        raise LaunchFault(f"{folder} cannot be used: {error.strerror}") from None


def command(folder: Path, *arguments: str, seconds_max: float = COMMAND_S_MAX) -> Any:
    """Run a `vettance` command on the folder and return what it answered as JSON. Raises `LaunchFault`."""
    try:
        done = subprocess.run(  # noqa: S603 - our own command, no shell.
            [sys.executable, "-m", "vettance.cli", *arguments, "--json", "--data", str(folder)],
            capture_output=True,
            check=False,
            timeout=seconds_max,
        )
    except subprocess.TimeoutExpired:
        raise LaunchFault(f"`vettance {' '.join(arguments[:2])}` took over {seconds_max:.0f} s") from None
    if done.returncode != 0:
        raise LaunchFault(done.stderr.decode("utf-8", "replace").strip() or f"`{arguments[0]}` failed")
    return json.loads(done.stdout)


@contextlib.contextmanager
def launched(folder: Path, port: int = 0, workers: int = 1) -> Iterator[RunningService]:
    """Make a tenant and a key in the folder and run the service on it until the block ends.

    Raises `LaunchFault`.
    """
    tenant = command(folder, "tenant", "create", "Demo Shop")["tenantId"]
    command(folder, "tenant", "set", tenant, "--throttle", str(THROTTLE), "--quota", str(QUOTA))
    api_key = command(folder, "key", "create", "--tenant", tenant)["apiKey"]
    with serving(folder, tenant, api_key, port, workers) as service:
        yield service


@contextlib.contextmanager
def serving(
    folder: Path, tenant_id: str, api_key: str, port: int = 0, workers: int = 1, patience: int = 1
) -> Iterator[RunningService]:
    """Run the service on a folder that is set up, until the block ends. Raises `LaunchFault`.

    The child stays in our process group: whatever ends a terminal session ends both. `patience` is how many
    times as long its start and its end may take: a large store is read whole at the first start.
    """
    with (folder / LOG_FILE).open("wb") as log:
        process = _spawn(folder, port, log, workers)
        try:
            host, taken = _wait_listening(process, folder / LOG_FILE, patience)
            _wait_ready(process, host, taken, patience)
            yield RunningService(DemoTarget(host, taken, api_key), tenant_id, process)
        finally:
            stop(process, patience)


def _spawn(folder: Path, port: int, log: IO[bytes], workers: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own command, no shell.
        [
            *(sys.executable, "-m", "vettance.cli", "serve", "--port", str(port), "--data", str(folder)),
            *("--workers", str(workers)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )


def stop(process: subprocess.Popen[bytes], patience: int = 1) -> None:
    """End the service as an operator would, and for good when it does not."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_S_MAX * patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_S_MAX)


def _wait_listening(process: subprocess.Popen[bytes], log: Path, patience: int) -> tuple[str, int]:
    until = time.monotonic() + READY_S_MAX * patience
    while time.monotonic() < until:
        found = _LISTENS.search(log.read_text("utf-8", "replace"))
        if found:
            return found[1], int(found[2])
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise LaunchFault(f"the service did not start:\n{log.read_text('utf-8', 'replace').strip()}")


def _wait_ready(process: subprocess.Popen[bytes], host: str, port: int, patience: int) -> None:
    until = time.monotonic() + READY_S_MAX * patience
    while time.monotonic() < until and process.poll() is None:
        line = http.client.HTTPConnection(host, port, timeout=5)
        try:
            line.request("GET", "/readyz")
            if line.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            line.close()
        time.sleep(0.02)
    raise LaunchFault("the service did not become ready")
