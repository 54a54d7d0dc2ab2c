"""Canaries are sent through every door; none may ever be seen in logs, metrics, traces or refusals."""

import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import Answer, Service, started
from tests.server.collector import Collector
from tests.webhooks.receivers import receiving

#: Each stands for a kind of personal or secret data. `in` is looked for in whatever case and half of a word.
CANARIES = {
    "email": "canary.mail@canary-mail.example",
    "name": "Canaria Canarsson-Byrd",
    "ip": "203.0.113.251",
    "device": "fp-canary-device-77",
    "card": "card-canary-4111",
    "text": "canary free text",
    "customer": "cus-canary-0042",
    "agent": "CanaryAgent/9.9",
}


def event(**more: Any) -> dict[str, Any]:
    return {
        "eventName": "payment.attempt",
        "eventCategory": "TRANSACTION",
        "customer": {
            "externalId": CANARIES["customer"],
            "email": CANARIES["email"],
            "metadata": {"note": CANARIES["text"]},
        },
        "device": {"fingerprint": CANARIES["device"]},
        "ip": CANARIES["ip"],
        "userAgent": CANARIES["agent"],
        "sessionId": CANARIES["text"],
        "metadata": {"cardHash": CANARIES["card"], "amount": 3, "who": CANARIES["name"]},
        **more,
    }


class Watched:
    """A service whose every refusal is kept."""

    def __init__(self, service: Service, key: str) -> None:
        self.service = service
        self.key = key
        self.refusals: list[tuple[str, bytes]] = []

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        options.setdefault("key", self.key)
        options["headers"] = {"User-Agent": CANARIES["agent"], **options.get("headers", {})}
        answer = self.service.call(method, path, body, **options)
        if answer.status >= 400:
            self.refusals.append((f"{method} {path}", answer.body))
        return answer


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[Watched, Collector]]:
    collector = Collector()
    service = started(
        tmp_path,
        VETTANCE_METRICS="127.0.0.1:0",
        VETTANCE_TRACES=collector.url,
        VETTANCE_LOG_LEVEL="debug",
        VETTANCE_UNSAFE_WEBHOOKS="1",
    )
    service.cli("tenant", "set", service.tenant_id, "--aml", "on")
    service.cli("watchlist", "import", "--source", "sample")
    service.wait_for(lambda: service.get("/api/v1/aml/cases").status == 200)
    yield Watched(service, service.api_key), collector
    if service.process is not None:
        service.stop(signal.SIGKILL)
    collector.close()


def through_the_fraud_doors(watched: Watched) -> None:
    email, text = CANARIES["email"], CANARIES["text"]
    for path in ("decisions/evaluate", "events", "events/ingest", "events/async"):
        watched.send("POST", f"/api/v1/{path}", event())
        watched.send("POST", f"/api/v1/{path}", event(eventCategory=text, ip=text, occurredAt=text))
        watched.send("POST", f"/api/v1/{path}", event(customer=email))
        watched.send("POST", f"/api/v1/{path}", event(metadata={"deep": [text] * 600}))
        watched.send("POST", f"/api/v1/{path}", json.dumps(event()).encode()[:-9])
        watched.send("POST", f"/api/v1/{path}", event(), headers={"Idempotency-Key": "é" + "x"})
        watched.send("POST", f"/api/v1/{path}", event(), headers={"Content-Type": f"text/{text[:6]}"})
    found = watched.send("POST", "/api/v1/decisions/evaluate", event()).json["correlationIds"]["eventId"]
    watched.send("GET", f"/api/v1/decisions/{found}")
    for query in (
        f"search={text[:6]}",
        f"customer={email}",
        f"from={text[:6]}",
        f"device={CANARIES['device']}",
    ):
        watched.send("GET", f"/api/v1/decisions?{query}")
        watched.send("GET", f"/api/v1/events?{query}")
    watched.send("GET", f"/api/v1/decisions/{email}")
    watched.send("POST", f"/api/v1/feedback/decision/{found}", {"label": text, "notes": text})
    watched.send("POST", f"/api/v1/feedback/decision/{found}", {"label": "FRAUD", "notes": text})
    watched.send("POST", f"/api/v1/feedback/event/{email}", {"label": "FRAUD", "notes": text})


def through_the_list_doors(watched: Watched) -> None:
    for kind, value in (("EMAIL", "email"), ("IP", "ip"), ("DEVICE", "device")):
        body = {"type": kind, "value": CANARIES[value], "listType": "block", "reason": CANARIES["text"]}
        for _ in range(2):  # The second one is a conflict.
            watched.send("POST", "/api/v1/lists", body)
    watched.send("POST", "/api/v1/lists", {"type": "IP", "value": CANARIES["email"], "listType": "block"})
    watched.send(
        "POST", "/api/v1/lists", {"type": CANARIES["text"], "value": 1, "listType": CANARIES["text"]}
    )
    watched.send("POST", f"/api/v1/lists/customer/{CANARIES['email']}", {"listType": CANARIES["text"]})
    watched.send("DELETE", f"/api/v1/lists/ip/{CANARIES['ip']}")
    watched.send("DELETE", f"/api/v1/lists/{CANARIES['email']}")


def through_the_browser_doors(watched: Watched) -> None:
    minted = watched.send(
        "POST", "/api/v1/websdk/tokens", {"userExternalId": CANARIES["customer"], "flow": CANARIES["text"]}
    ).json
    bearer = {"Authorization": f"Bearer {minted['token']}"}
    collect = {
        "sessionId": minted["sdkSessionId"],
        "category": "OTHER",
        "payload": {"note": CANARIES["text"], "email": CANARIES["email"]},
        "sdkSignals": {"fingerprint": CANARIES["device"]},
    }
    signals = {
        "schemaVersion": "websdk.v1",
        "batchId": CANARIES["device"],
        "sentAt": time.time_ns() // 1_000_000,
        "sdkSessionId": minted["sdkSessionId"],
        "signals": {"who": CANARIES["name"]},
        "page": {"url": f"https://shop.example/?q={CANARIES['email']}"},
    }
    for path, body in (("collect", collect), ("websdk/signals", signals)):
        field = "sessionId" if path == "collect" else "sdkSessionId"
        watched.send("POST", f"/api/v1/{path}", body, key=None, headers=bearer)
        watched.send("POST", f"/api/v1/{path}", {**body, field: CANARIES["text"]}, key=None, headers=bearer)
        broken = {"Authorization": bearer["Authorization"] + "canary"}
        watched.send("POST", f"/api/v1/{path}", body, key=None, headers=broken)
        watched.send(
            "POST", f"/api/v1/{path}", {**body, "payload": CANARIES["text"]}, key=None, headers=bearer
        )
    CANARIES["token"] = minted["token"]


def through_the_aml_doors(watched: Watched) -> None:
    body = {
        "eventName": "transfer",
        "externalEventId": CANARIES["customer"],
        "customer": {"externalId": CANARIES["customer"], "name": CANARIES["name"]},
        "metadata": {
            "note": CANARIES["text"],
            "amount": 12_000,
            "currency": "EUR",
            "counterpartyCountry": "KP",
        },
    }
    watched.send("POST", "/api/v1/aml/events", body)
    watched.send("POST", "/api/v1/aml/events", {**body, "ip": CANARIES["ip"]})  # A conflict.
    watched.send("POST", "/api/v1/aml/events", {**body, "country": CANARIES["text"], "customer": 1})
    watched.send("GET", f"/api/v1/aml/events/{CANARIES['email']}")
    subject = {"inputName": CANARIES["name"], "externalId": CANARIES["customer"]}
    watched.send("POST", "/api/v1/aml/screen", subject)
    watched.send("POST", "/api/v1/aml/screen", {**subject, "inputDob": CANARIES["text"], "entityType": "x"})
    watched.send("GET", f"/api/v1/aml/screenings/{CANARIES['email']}")


def through_the_front_door(watched: Watched) -> None:
    stolen = "vtc_test_" + "CanaryKey" * 3 + "Canar"
    CANARIES["stolen key"] = stolen
    watched.send("GET", "/api/v1/lists", key=stolen)
    watched.send("GET", f"/api/v1/{CANARIES['customer']}")
    watched.send("DELETE", "/api/v1/decisions/evaluate", headers={"X-Canary": CANARIES["text"]})
    host, _, port = watched.service.base_url.rpartition("/")[2].partition(":")
    for raw in (
        f"GET /{CANARIES['text']} HTTP/9.9\r\nX: {CANARIES['email']}\r\n\r\n",
        f"{CANARIES['text']}\r\n\r\n",
        f"POST /api/v1/lists HTTP/1.1\r\nHost: x\r\nContent-Length: {CANARIES['card']}\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(raw.encode())
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        watched.refusals.append((raw, answer))


def kill_the_writer(service: Service) -> None:
    """The store fails under the service, and comes back."""
    assert service.process is not None
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == service.process.pid and b"vettance.db.writer" in words:
            os.kill(int(folder.name), signal.SIGKILL)
            return
    raise AssertionError("there is no writer")


def metrics_of(service: Service) -> bytes:
    told = next(json.loads(line) for line in service.log if '"metrics_listen"' in line)
    with urllib.request.urlopen(f"http://{told['host']}:{told['port']}/metrics", timeout=20) as answer:
        content: bytes = answer.read()
    return content


async def test_no_canary_is_ever_seen_again(watched: tuple[Watched, Collector]) -> None:
    front, collector = watched
    service = front.service
    async with receiving(lambda _n, _r: 500) as receiver:
        hook = {"url": f"{receiver.url}?for={CANARIES['customer']}", "eventTypes": ["EVENT_RISK_EVALUATED"]}
        CANARIES["signing secret"] = front.send("POST", "/api/v1/webhooks/subscriptions", hook).json[
            "signingSecret"
        ]
        front.send("POST", "/api/v1/webhooks/subscriptions", {**hook, "url": f"ftp://{CANARIES['email']}"})
        through_the_fraud_doors(front)
        through_the_list_doors(front)
        through_the_browser_doors(front)
        through_the_aml_doors(front)
        through_the_front_door(front)
        await receiver.wait_for(1)
        kill_the_writer(service)
        front.send("POST", "/api/v1/decisions/evaluate", event())
        service.wait_for(lambda: front.send("POST", "/api/v1/events", event()).status == 201)
    figures = metrics_of(service)
    ready = service.get("/readyz", key=None).body
    CANARIES["api key"] = front.key
    assert service.stop() == 0
    assert len(front.refusals) > 40
    assert collector.raw
    places = {
        "metrics": figures,
        "readiness": ready,
        "traces": b"\n".join(collector.raw),
        "log": "".join(service.log).encode(),
        **{f"refusal of {name}": body for name, body in front.refusals},
    }
    seen = [
        (kind, place)
        for place, content in places.items()
        for kind, canary in CANARIES.items()
        if canary.encode().lower() in content.lower()
    ]
    assert seen == []
    for line in service.log:
        if "listens on http" not in line and "WARNING: VETTANCE_UNSAFE" not in line:
            json.loads(line)
