"""A month of generated money, watched by a service: late and repeated events, cases resolved meanwhile."""

import json
import random
from typing import Any, NamedTuple

from tests.live import Caller, Service
from vettance import clock
from vettance.clock import DAY_MS
from vettance.generate.aml_stream import Watch, aml_events

EVENTS = "/api/v1/aml/events"
CASES = "/api/v1/aml/cases"
_DAYS = 30
_LATE = 40  # Places by which late events come later.
#: After so many events officers resolve what is open.
_ROUND = 150


class WatchedMoney(NamedTuple):
    """A tenant with its events as they were answered, in the order in which they were sent."""

    caller: Caller
    answers: list[dict[str, Any]]


def bank_of(service: Service, name: str) -> Caller:
    """Make a tenant with AML whose key reaches events, cases and rules."""
    tenant_id, _ = service.new_tenant(name)
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    scopes = "--scope", "decide", "--scope", "rules"
    caller = Caller(
        service, tenant_id, service.cli("key", "create", "--tenant", tenant_id, *scopes, "--json")["apiKey"]
    )
    service.wait_for(lambda: caller.get(CASES).status == 200)
    return caller


def resolve(caller: Caller, case_id: str, *, is_true: bool) -> None:
    """Close a case."""
    body = {"resolution": "TRUE_MATCH" if is_true else "FALSE_POSITIVE", "officer": "ann"}
    assert caller.post(f"{CASES}/{case_id}/resolve", body).status == 200


def watch_money(caller: Caller, customers: int, seed: int) -> WatchedMoney:
    """Send generated money: one event in twenty comes late, one in twenty twice, cases are resolved."""
    chance = random.Random(seed)
    start_ms = clock.now_ms() - _DAYS * DAY_MS
    bodies = [body for _, body in aml_events(Watch(customers, _DAYS, seed, start_ms, cases=1))]
    order = sorted(range(len(bodies)), key=lambda place: place + (_LATE if chance.random() < 0.05 else 0))
    answers = []
    for number, place in enumerate(order):
        answer = caller.post(EVENTS, bodies[place])
        assert answer.status == 200, answer.body
        answers.append(answer.json)
        if chance.random() < 0.05:
            assert caller.post(EVENTS, bodies[place]).json["id"] == answer.json["id"]
        if number % _ROUND == _ROUND - 1:
            for case in caller.get(f"{CASES}?state=OPEN&limit=100").json["data"]:
                if chance.random() < 0.6:
                    resolve(caller, case["id"], is_true=chance.random() < 0.5)
    return WatchedMoney(caller, answers)


def records_of(caller: Caller) -> list[tuple[str, dict[str, Any]]]:
    """Return (id, record) of the events of a tenant in the order of the log."""
    rows = caller.service.rows(f"SELECT id, record FROM aml_event WHERE tenant = '{caller.id}' ORDER BY seq")
    names = (
        *("version", "facts", "answers", "inexact", "fired", "failed", "unknown", "withheld", "additions"),
        "late_answers",
    )
    return [(event, dict(zip(names, json.loads(bytes(record)), strict=True))) for event, record in rows]
