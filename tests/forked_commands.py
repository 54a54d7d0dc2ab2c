"""Runs commands in forks of a process that has imported them: importing costs more than most commands do.

A fork is a process of its own, with its own arguments, environment, folder, output and exit code. What the
interpreter reads as it starts (its flags, the language) needs a process that is started anew.
"""

import atexit
import contextlib
import fcntl
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PROJECT = Path(__file__).parents[1]
_REQUEST_BYTES_MAX = 200_000
#: The beginnings of variables that an interpreter reads as it starts.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "MALLOC_", "LD_")


class ForkedProcess:
    """A `vettance` command in a fork, held as `subprocess.Popen` holds a process; whoever starts it ends it.

    `files` are what it reads, writes and complains to: three descriptors, which it has copies of.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        files: Sequence[int | IO[Any]],
        folder: Path | None = None,
    ) -> None:
        told, tell = os.pipe()
        self._ended = os.fdopen(told, "rb", buffering=0)
        self._last_signal = signal.SIGKILL
        self.returncode: int | None = None
        self.stderr: IO[str] | None = None
        request = {
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(folder or Path.cwd()),
        }
        numbers = [one if isinstance(one, int) else one.fileno() for one in files]
        try:
            socket.send_fds(_server(), [json.dumps(request).encode()], [*numbers, tell])
        finally:
            os.close(tell)
        self.pid = int(self._ended.readline())
        try:
            self._handle = os.pidfd_open(self.pid)
        except ProcessLookupError:  # It has ended already, and can be waited for as well.
            self._handle = os.dup(told)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when it has ended: what it says itself, else the signal that ended it."""
        if self.returncode is None:
            if not select.select([self._handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"forked process {self.pid}", timeout or 0)
            code = self._ended.readline()
            self.returncode = int(code) if code else -self._last_signal
            self._ended.close()
            os.close(self._handle)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, which is no longer possible and no error when it has ended."""
        if self.poll() is None:
            self._last_signal = signal.Signals(number)
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def run_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float,
    typed: str = "",
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `vettance ARGUMENTS` on `typed` in `folder`, its output as text; after `timeout_s` it is killed."""
    if _needs_interpreter(environment):
        return subprocess.run(
            [sys.executable, "-m", "vettance.cli", *arguments],
            input=typed,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=environment,
            cwd=folder,
        )
    temporary = tempfile.TemporaryFile
    with temporary() as given, temporary() as output, temporary() as errors:
        given.write(typed.encode())
        given.seek(0)
        process = ForkedProcess(arguments, environment, (given, output, errors), folder)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout_s)
            raise
        return subprocess.CompletedProcess(list(arguments), code, _text(output), _text(errors))


def start_command(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> "ForkedProcess | subprocess.Popen[str]":
    """Start `vettance ARGUMENTS`, with `stderr` to be read."""
    if _needs_interpreter(environment):
        return subprocess.Popen(
            [sys.executable, "-m", "vettance.cli", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
    heard, say = os.pipe()
    try:
        with Path(os.devnull).open("rb") as nothing:
            process = ForkedProcess(arguments, environment, (nothing, 1, say))
    finally:
        os.close(say)
    process.stderr = os.fdopen(heard, "r")
    return process


def _needs_interpreter(environment: Mapping[str, str]) -> bool:
    return not hasattr(os, "pidfd_open") or any(
        name.startswith(_READ_AT_START) and value != os.environ.get(name)
        for name, value in environment.items()
    )


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@functools.cache
def _server() -> socket.socket:
    """Start the process that is forked; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked_commands", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            cwd=PROJECT,
        )

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours


def serve(requests: socket.socket) -> None:
    """Fork one process for each request, until there will be none."""
    import importlib

    from vettance.cli import COMMANDS

    for module in (
        "vettance.deployment.connect",
        "vettance.server.web_process",
        "structlog",
        *(place.partition(":")[0] for place, _ in COMMANDS.values()),
    ):
        importlib.import_module(module)
    gc.freeze()  # The forks need not look through what has been imported.
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # Nobody waits for the forks: they say themselves how they ended.
    while True:
        content, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES_MAX, 4)
        if not content:
            return
        if os.fork() == 0:
            requests.close()
            _become(json.loads(content), *files)
        for file in files:
            os.close(file)


def _become(request: Any, given: int, output: int, errors: int, tell: int) -> None:
    """Be the command of a request, from its first to its last moment."""
    code = 1
    try:
        os.write(tell, b"%d\n" % os.getpid())
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        # What it starts would else hold back that it has ended.
        fcntl.fcntl(tell, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
        for number, file in enumerate((given, output, errors)):
            os.dup2(file, number)
            os.close(file)
        code = _run(request["arguments"])
        threading._shutdown()  # type: ignore[attr-defined]  # What an interpreter does at its end,
        atexit._run_exitfuncs()  # in this order.
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(tell, b"%d\n" % code)
    finally:
        os._exit(code)


def _run(arguments: list[str]) -> int:
    from vettance.cli import main

    sys.argv[1:] = arguments
    try:
        main(arguments, prog_name="python -m vettance.cli")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - an interpreter ends so, whatever it was
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
