"""The first decision, as somebody has it who has just installed the packages."""

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from release.commands import CleanEnvironment, ReleaseFault, clean_environment, run

START_S_MAX = 60.0
STOP_S_MAX = 30.0
_FIRST = """
import sys
from vettance_client import Client
with Client(sys.argv[1], sys.argv[2]) as client:
    decision = client.evaluate({
        "eventName": "user.login", "eventCategory": "AUTHENTICATION",
        "customer": {"externalId": "first"}, "metadata": {"outcome": "success"},
    })
print(decision.decision)
"""


def first_decision(service: CleanEnvironment, client: CleanEnvironment, scratch: Path) -> dict[str, Any]:
    """Run the demo with the installed service, start it on its data, and ask it with the installed client.

    Raises `ReleaseFault` when a step fails.
    """
    data = scratch / "demo-data"
    vettance = service.program("vettance")
    demo = json.loads(
        run(
            vettance,
            "demo",
            "--exit",
            "--json",
            "--customers",
            "30",
            "--days",
            "5",
            "--folder",
            data,
            folder=scratch,
        )
    )
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    with (scratch / "serve.log").open("w") as log:
        serving = subprocess.Popen(
            [vettance, "serve", "--data", data, "--port", str(port)],
            cwd=scratch, env=clean_environment(), stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait_until_ready(url, serving)
            answer = run(client.python, "-c", _FIRST, url, demo["apiKey"], folder=scratch).strip()
        finally:
            serving.send_signal(signal.SIGTERM)
            try:
                serving.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                serving.kill()
    if answer not in {"approve", "review", "deny"}:
        raise ReleaseFault(f"the first decision was {answer!r}")
    return {"demoDecisions": demo["decided"], "firstDecision": answer}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_until_ready(url: str, serving: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S_MAX
    while time.monotonic() < until and serving.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise ReleaseFault(f"the installed service was not ready within {START_S_MAX:g} s")
