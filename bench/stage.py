"""What the benchmarks of the whole service share: bodies to send, rules in force, processes to weigh."""

import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fifty_rules import fifty_rules

from vettance.demo.demo_client import DemoTarget
from vettance.demo.drive import PATH
from vettance.demo.launch import READY_S_MAX, Launched, command

BODY_BYTES = 1024
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def payment_bodies(count: int, seed: int = 1) -> list[bytes]:
    """Make payments of 1 KB, each of a customer, device, card and address of its own; they fire no rule."""
    rng = random.Random(seed)
    bodies = []
    for number in range(count):
        event: dict[str, Any] = {
            "eventName": "payment.attempt",
            "eventCategory": "TRANSACTION",
            "customer": {"externalId": f"cus_{number:08d}", "email": f"customer.{number}@mail.example"},
            "device": {"fingerprint": f"{rng.getrandbits(128):032x}", "externalId": f"dev_{number:08d}"},
            "ip": f"100.{64 + (number >> 16 & 63)}.{number >> 8 & 255}.{number & 255}",
            "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0",
            "country": "DE",
            "sessionId": f"{rng.getrandbits(80):020x}",
            "metadata": {
                "amount": round(rng.uniform(20, 60), 2),
                "currency": "EUR",
                "merchantId": f"mer_{rng.randrange(400):04d}",
                "cardHash": f"card_{rng.getrandbits(96):024x}",
                "channel": "web",
            },
            "custom_fields": {"note": ""},
        }
        short = BODY_BYTES - len(json.dumps(event, separators=(",", ":")))
        event["custom_fields"]["note"] = "x" * short
        bodies.append(json.dumps(event, separators=(",", ":")).encode())
    return bodies


def put_fifty_rules_in_force(to: Launched, folder: Path, body: bytes) -> None:
    """Push the fifty rules and wait until the running service decides by them."""
    file = folder / "fifty-rules.yaml"
    file.write_text(fifty_rules())
    version = str(command(folder, "rules", "push", str(file), "--yes", "--tenant", to.tenant_id)["version"])
    until = time.monotonic() + 15
    while ask(to.target, PATH, body)["ruleVersion"]["version"] != version:
        if time.monotonic() > until:
            raise SystemExit("the fifty rules did not come into force")
        time.sleep(0.1)


def ask(to: DemoTarget, path: str, body: bytes | None = None) -> Any:
    """Send one request and return the JSON of its answer."""
    headers = {"x-api-key": to.api_key, "content-type": "application/json"}
    request = urllib.request.Request(to.base_url + path, body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


@contextlib.contextmanager
def bare_server() -> Iterator[str]:
    """Run the bare handler in a process of its own; yields its address."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("bare.py"))], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        until = time.monotonic() + READY_S_MAX
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                request = urllib.request.Request(address, b"{}", method="POST")
                urllib.request.urlopen(request, timeout=5).close()
                break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(15)
        process.stdout.close()


def processes_of(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def cpu_s(pid: int) -> float:
    """Return the processor seconds a process has used, its ended children left out. Raises `OSError`."""
    # The clock that Linux keeps of each process (clock_getcpuclockid); /proc counts hundredths only.
    return time.clock_gettime(~pid << 3 | 2)


def say(line: str) -> None:
    """Tell whoever watches how far it is; standard output is for results."""
    print(line, file=sys.stderr, flush=True)


def resident_mb(pid: int) -> float:
    """Return the resident memory of one process in MB (10^6 bytes)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


def proportional_mb(pid: int) -> float:
    """Return the memory of one process in MB (10^6 bytes), of shared pages only its part (Linux's PSS)."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)[1]) * 1024 / 1e6  # type: ignore[index]


def machine() -> dict[str, Any]:
    """Say on what, and how busy it is: load is the mean number of runnable processes over a minute."""
    model = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": sys.version.split()[0],
    }
