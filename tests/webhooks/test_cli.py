"""`vettance webhooks listen` and `verify`, as somebody who writes a receiver uses them."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.live import Caller, Service, started
from tests.webhooks.sink import Sink, sinking
from vettance.outbox import MessageType
from vettance.webhooks.listening import hindrance
from vettance.webhooks.webhook import Subscription, make_secret, signed_headers, verify

ROOT = "/api/v1/webhooks/subscriptions"


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = started(tmp_path_factory.mktemp("listen"), VETTANCE_UNSAFE_WEBHOOKS="1")
    yield running
    assert running.stop() == 0


@pytest.fixture
def sink() -> Iterator[Sink]:
    with sinking() as running:
        yield running


def test_listening_forwards_what_arrives_and_leaves_nothing_behind(unsafe: Service, sink: Sink) -> None:
    mine = Caller(unsafe, unsafe.tenant_id, unsafe.api_key)
    process = subprocess.Popen(
        [sys.executable, "-m", "vettance.cli", "webhooks", "listen", "--tenant", mine.id,
         "--forward-to", sink.url, "--event", "EVENT_RISK_EVALUATED", "--data", str(unsafe.data)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **unsafe.env, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert process.stdout is not None
        hello = process.stderr.readline() + process.stderr.readline()
        secret = re.search(r"whsec_\S+", hello)
        assert secret, hello
        sink.status = 202
        asked = {}
        until = time.monotonic() + 5
        while not sink.got:  # A running server sees a change from the command line within 5 seconds.
            assert time.monotonic() < until
            told = mine.post("/api/v1/decisions/evaluate", {"eventName": "user.login"}).json
            asked[told["correlationIds"]["eventId"]] = told
            time.sleep(0.2)
        headers, body = sink.got[0]
        verify(secret[0], headers, body, int(time.time()))
        line = process.stdout.readline()
        assert "EVENT_RISK_EVALUATED" in line
        assert any(event_id in line for event_id in asked)
        assert "202" in line
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
        assert mine.get(ROOT).json == {"subscriptions": []}
    finally:
        process.kill()
        process.communicate()


def listening(service: Service, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "vettance.cli", "webhooks", "listen", "--tenant", service.tenant_id,
         *arguments, "--data", str(service.data)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **service.env},
    )  # fmt: skip


def ask_until(service: Service, done: Callable[[], bool]) -> set[str]:
    """Have events decided until something is seen, and return their ids."""
    asked = set()
    until = time.monotonic() + 20
    while not done():
        assert time.monotonic() < until
        told = service.post("/api/v1/decisions/evaluate", {"eventName": "user.login"}).json
        asked.add(told["correlationIds"]["eventId"])
        time.sleep(0.2)
    return asked


def test_a_script_that_listens_gets_a_json_object_on_each_line(unsafe: Service) -> None:
    process = listening(unsafe, "--event", "EVENT_RISK_EVALUATED", "--json")
    try:
        assert process.stdout is not None
        session = json.loads(process.stdout.readline())
        assert session["signingSecret"].startswith("whsec_")
        refused = urllib.request.Request(session["url"], b"{}", {"X-Webhook-Signature": "sha256=00"})
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(refused, timeout=20)
        told = json.loads(process.stdout.readline())
        assert (told["verified"], told["status"], told["body"]) == (False, 401, None)
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.append(process.stdout.readline()), daemon=True)
        reader.start()
        asked = ask_until(unsafe, lambda: bool(lines))
        told = json.loads(lines[0])
        assert (told["verified"], told["status"], told["fault"]) == (True, 200, None)
        assert (told["eventType"], told["attempt"]) == ("EVENT_RISK_EVALUATED", 1)
        assert told["deliveryId"].startswith("dlv_")
        assert told["body"]["data"]["id"] in asked
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.communicate()


def test_listening_ends_when_nobody_reads_any_more(unsafe: Service) -> None:
    process = listening(unsafe, "--event", "EVENT_RISK_EVALUATED", "--json")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        url = json.loads(process.stdout.readline())["url"]
        process.stdout.close()
        ask_until(unsafe, lambda: process.poll() is not None)
        assert process.returncode == 1
        assert "Traceback" not in process.stderr.read()
        assert url not in [one["url"] for one in unsafe.get(ROOT).json["subscriptions"]]
    finally:
        process.kill()
        process.wait(15)
        assert process.stderr is not None
        process.stderr.close()


def run_verify(body: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "vettance.cli", "webhooks", "verify", *arguments],
        input=body,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_verify_tells_a_good_signature_from_a_bad_one(tmp_path: Path) -> None:
    secret, body = make_secret(), b'{"a":1}'
    (tmp_path / "body.json").write_bytes(body)
    for age_s, flags, code in ((0, (), 0), (9999, (), 1), (9999, ("--any-time",), 0)):
        made = signed_headers("X", "dlv_1", 1, int(time.time()) - age_s, body, [secret])
        headers = [part for name, value in made for part in ("--header", f"{name}: {value}")]
        done = run_verify(b"", "--secret", secret, *headers, *flags, str(tmp_path / "body.json"))
        assert done.returncode == code, done.stderr
    assert run_verify(body + b" ", "--secret", secret, "--any-time", *headers).returncode == 1
    assert b"there is no signature" in run_verify(body, "--secret", secret).stderr


def test_listening_says_what_it_does_not_receive_and_why_nothing_comes(service: Service) -> None:
    """The server of this test does not run with VETTANCE_UNSAFE_WEBHOOKS."""
    process = listening(service, "--event", "EVENT_RISK_EVALUATED")
    said: list[str] = []
    assert process.stderr is not None
    reader = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
    reader.start()
    try:
        ask_until(service, lambda: any(line.startswith("Deliveries do not come") for line in said))
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
        reader.join(5)
        process.stderr.close()
        assert process.stdout is not None
        process.stdout.close()
    hello = "".join(said)
    assert "Not received here: Left out by --event: EVENT_FEEDBACK_SUBMITTED" in hello
    assert "AML (which has no webhooks)" in hello
    why = [line for line in said if line.startswith("Deliveries do not come")]
    assert len(why) == 1
    assert "start it with VETTANCE_UNSAFE_WEBHOOKS=1" in why[0]


SUBSCRIBED = Subscription(
    id="whs_1", tenant="ten_1", slot="0000", url="http://127.0.0.1:1/", event_types=tuple(MessageType),
    created_at_ms=0, updated_at_ms=0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("error", "oldest_at_ms", "expected"),
    [
        (None, None, None),
        (None, 98_000, None),
        (None, 90_000, "nobody sends them"),
        ("refused", 99_000, "another machine or in a container"),
        ("forbidden_address", 99_000, "VETTANCE_UNSAFE_WEBHOOKS=1"),
        ("timeout", 99_000, "--forward-to"),
        ("internal", 99_000, "vettance doctor"),
        ("status 500", 99_000, None),
        ("something_new", 99_000, "something_new"),
    ],
)
def test_each_reason_why_nothing_comes_has_a_sentence(
    error: str | None, oldest_at_ms: int | None, expected: str | None
) -> None:
    found = msgspec.structs.replace(SUBSCRIBED, last_error=error, failures_in_a_row=int(error is not None))
    why = hindrance(found, oldest_at_ms, 100_000)
    assert why is None if expected is None else expected in (why or "")


def test_a_subscription_that_was_removed_meanwhile_is_said() -> None:
    assert "was removed" in (hindrance(None, None, 0) or "")
