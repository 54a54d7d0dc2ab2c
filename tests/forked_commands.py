"""Runs commands in forks of a process that has imported them: importing costs more than most commands do.

A fork is a process of its own, with its own arguments, environment, folder, output and exit code. What the
interpreter reads as it starts (its flags, the language) needs a process that is started anew.
"""

import atexit
import functools
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


def run_command(
    arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `vettance ARGUMENTS` on `typed`, its output as text; after `timeout_s` it is killed."""
    if any(
        name.startswith(_READ_AT_START) and value != os.environ.get(name)
        for name, value in environment.items()
    ):
        return subprocess.run(
            [sys.executable, "-m", "vettance.cli", *arguments],
            input=typed,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=environment,
        )
    temporary = tempfile.TemporaryFile
    with temporary() as given, temporary() as output, temporary() as errors:
        given.write(typed.encode())
        given.seek(0)
        code = _fork(arguments, environment, (given, output, errors), timeout_s)
        return subprocess.CompletedProcess(list(arguments), code, _text(output), _text(errors))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _fork(
    arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[IO[bytes]], timeout_s: float
) -> int:
    told, tell = os.pipe()
    with os.fdopen(told, "rb", buffering=0) as answer:
        try:
            request = {"arguments": arguments, "environment": dict(environment), "folder": str(Path.cwd())}
            socket.send_fds(
                _server(), [json.dumps(request).encode()], [*(one.fileno() for one in files), tell]
            )
        finally:
            os.close(tell)
        pid = int(answer.readline())
        if not select.select([answer], [], [], timeout_s)[0]:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(list(arguments), timeout_s)
        code = answer.readline()
    return int(code) if code else -signal.SIGKILL


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
        *(place.partition(":")[0] for place, _ in COMMANDS.values()),
    ):
        importlib.import_module(module)
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
