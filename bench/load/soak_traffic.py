"""The traffic of the soak: everything the service does, of a bounded set of customers, devices and parties.

The same customers come again and again, so that velocity fills up: every series of every key reaches its
bound, and memory has no reason left to grow.
"""

import json
import random
import time
from collections import deque
from collections.abc import Callable, Container, Iterator
from itertools import count
from typing import Any

from bench.client.open_loop import Ask
from vettance.demo.demo_client import request

CUSTOMERS = 40
PARTIES = 40
PAYEES = 3  # Of each party, always the same: pairs of parties are remembered too.
PAGES = 16
ORIGIN = "https://shop.example"
API = "/api/v1"
NAMES = ("Rosalind Achterberg", "Jonas Keller", "Sergey Lavrov", "Maria Oliveira", "Li Wei", "Anna Novak")
SIGNALS = {
    "interactionCount": 61,
    "mouseMoves": 214,
    "keystrokeIntervals": [80.5 + number * 37 % 190 for number in range(20)],
    "mouseEntropy": 0.65,
    "languages": ["de-DE"],
}
#: How many of a hundred requests are of a kind.
MIX = {
    "evaluate": 36,
    "event": 14,
    "async": 8,
    "collect": 4,
    "signals": 4,
    "aml": 8,
    "screen": 3,
    "list": 5,
    "feedback": 4,
    "look": 4,
    "find": 6,
    "figures": 2,
    "mint": 2,
}


class Traffic:
    """Makes requests without end. `key` is of a tenant with the AML product; some kinds may be left out."""

    def __init__(self, key: str, seed: int = 1, without: Container[str] = ()) -> None:
        self._key = key
        self._rng = random.Random(seed)
        self._numbers = count()
        self._run = f"{random.SystemRandom().getrandbits(40):010x}"
        self._decided: deque[str] = deque(maxlen=2_000)
        self._entries: deque[str] = deque()
        self._pages: dict[str, str] = {}
        self._mix = {kind: weight for kind, weight in MIX.items() if kind not in without}

    def __iter__(self) -> Iterator[Ask]:
        for page in range(PAGES):
            yield self._token(page)
        kinds: list[Callable[[int], Ask]] = [getattr(self, f"_{kind}") for kind in self._mix]
        weights = list(self._mix.values())
        while True:
            for make in self._rng.choices(kinds, weights, k=1_000):
                yield make(next(self._numbers))

    def of_kind(self, kind: str, number: int) -> list[Ask]:
        """Make so many requests of one kind; those about a decision come after some have been evaluated."""
        make: Callable[[int], Ask] = getattr(self, f"_{kind}")
        return [make(next(self._numbers)) for _ in range(number)]

    def _event(self, number: int) -> Ask:
        return self._post("event", "/events", self._body(number))

    def _evaluate(self, number: int) -> Ask:
        headers = [f"Idempotency-Key: {self._run}-{number}"] if number % 16 == 0 else []
        return self._post("evaluate", "/decisions/evaluate", self._body(number), self._note_decision, headers)

    def _async(self, number: int) -> Ask:
        return self._post("async", "/events/async", self._body(number))

    def _body(self, number: int) -> dict[str, Any]:
        rng, who = self._rng, self._rng.randrange(CUSTOMERS)
        body: dict[str, Any] = {
            "customer": {"externalId": f"c-{who}", "email": f"customer.{who}@mail.example"},
            "device": {"fingerprint": f"fp-{who + rng.randrange(3)}"},
            "ip": f"100.64.0.{who + rng.randrange(3)}",
            "country": rng.choice(("DE", "FR", "NL")),
            "sessionId": f"s-{who}",
        }
        if number % 3:
            metadata = {
                "amount": round(rng.uniform(1, 200), 2),
                "currency": "EUR",
                "merchantId": f"m-{rng.randrange(20)}",
                "cardHash": f"card-{who}-{rng.randrange(2)}",
            }
            return {
                "eventName": "payment.attempt",
                "eventCategory": "TRANSACTION",
                "metadata": metadata,
            } | body
        outcome = "failure" if number % 5 == 0 else "success"
        return {"eventName": "user.login", "metadata": {"outcome": outcome}} | body

    def _aml(self, number: int) -> Ask:
        rng = self._rng
        one = rng.randrange(PARTIES)
        two = (one + rng.randint(1, PAYEES)) % PARTIES
        body = {
            "eventName": "transfer.sent",
            "externalEventId": f"{self._run}-{number}",
            "eventCategory": "TRANSACTION",
            "customer": {"externalId": f"p-{one}"},
            "metadata": {
                "amount": round(rng.uniform(5, 9_000), 2),
                "direction": "out",
                "counterpartyId": f"p-{two}",
                "counterpartyCountry": rng.choice(("DE", "HT", "FR")),
            },
        }
        return self._post("aml", "/aml/events", body)

    def _screen(self, number: int) -> Ask:
        name = f"{NAMES[number % len(NAMES)]} {'abcdefgh'[number % 8].upper()}"
        body = {"inputName": name, "externalId": f"p-{number % PARTIES}", "entityType": "INDIVIDUAL"}
        return self._post("screen", "/aml/screen", body)

    def _list(self, number: int) -> Ask:
        if len(self._entries) > 50:
            return self._send("unlist", "DELETE", f"/lists/{self._entries.popleft()}")
        body = {"type": "DEVICE", "value": f"listed-{number % 2_000}", "listType": "block"}
        return self._post("list", "/lists", body, self._note_entry)

    def _feedback(self, number: int) -> Ask:
        if not self._decided:
            return self._evaluate(number)
        body = {"label": self._rng.choice(("FRAUD", "LEGIT")), "notes": "looked at"}
        return self._post("feedback", f"/feedback/decision/{self._rng.choice(self._decided)}", body)

    def _look(self, number: int) -> Ask:
        if not self._decided:
            return self._evaluate(number)
        return self._send("look", "GET", f"/decisions/{self._rng.choice(self._decided)}")

    def _find(self, number: int) -> Ask:
        customer = number % CUSTOMERS
        paths = (
            f"/decisions?customer=c-{customer}&limit=20",
            "/decisions?decision=deny&sortBy=riskScore&limit=50",
            f"/events?device=fp-{customer}&limit=20",
            "/events?eventName=user.login&page=3",
            "/aml/cases?limit=20",
            "/lists?limit=50",
        )
        return self._send("find", "GET", paths[number % len(paths)])

    def _figures(self, number: int) -> Ask:
        return self._send("figures", "GET", "/decisions/stats" if number % 2 else "/events/stats")

    def _mint(self, number: int) -> Ask:
        return self._token(number % PAGES)

    def _token(self, page: int) -> Ask:
        def observe(status: int, answer: bytes) -> None:
            if status == 201:
                self._pages[f"sdk_page{page}"] = json.loads(answer)["token"]

        return self._post(
            "mint", "/websdk/tokens", {"origin": ORIGIN, "sdkSessionId": f"sdk_page{page}"}, observe
        )

    def _collect(self, number: int) -> Ask:
        if not self._pages:
            return self._evaluate(number)
        session, headers = self._page()
        body = {"sessionId": session, "category": "OTHER", "sdkSignals": SIGNALS}
        return Ask("collect", request("POST", f"{API}/collect", "", body, headers))

    def _signals(self, number: int) -> Ask:
        if not self._pages:
            return self._evaluate(number)
        session, headers = self._page()
        body = {
            "schemaVersion": "websdk.v1",
            "batchId": f"b-{self._run}-{number}",
            "sentAt": time.time_ns() // 1_000_000,
            "sdkSessionId": session,
            "signals": SIGNALS,
        }
        return Ask("signals", request("POST", f"{API}/websdk/signals", "", body, headers))

    def _page(self) -> tuple[str, list[str]]:
        session = self._rng.choice(list(self._pages))
        return session, [f"Authorization: Bearer {self._pages[session]}", f"Origin: {ORIGIN}"]

    def _note_decision(self, status: int, answer: bytes) -> None:
        if status == 200:
            self._decided.append(json.loads(answer)["correlationIds"]["eventId"])

    def _note_entry(self, status: int, answer: bytes) -> None:
        if status in (200, 201):
            self._entries.append(json.loads(answer)["id"])

    def _post(
        self,
        kind: str,
        path: str,
        body: Any,
        observe: Callable[[int, bytes], None] | None = None,
        headers: list[str] | None = None,
    ) -> Ask:
        return Ask(kind, request("POST", API + path, self._key, body, headers or []), observe)

    def _send(self, kind: str, method: str, path: str) -> Ask:
        return Ask(kind, request(method, API + path, self._key))
