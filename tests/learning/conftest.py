"""Fixtures of learning: a tenant with a model in service, trained from what it labelled."""

import random

import pytest

from tests.live import Caller, Service
from tests.reviews.conftest import steering
from vettance.decisions.sql import record_of

_FRAUDS = 70


def pay(caller: Caller, number: int, draw: random.Random) -> tuple[str, bool]:
    """Have a payment decided; one in ten is of a stolen card: large, wherever it is."""
    fraud = number % 10 == 0
    amount = draw.gauss(900 if fraud else 60, 15)
    terminal = draw.randrange(37)
    body = {
        "eventName": "payment.authorized",
        "eventCategory": "TRANSACTION",
        "customer": {"externalId": f"c{number % 50}"},
        "metadata": {"amount": round(abs(amount), 2), "currency": "EUR", "terminalId": f"t{terminal}"},
    }
    answer = caller.post("/api/v1/decisions/evaluate", body)
    assert answer.status == 200, answer.body
    return answer.json["correlationIds"]["eventId"], fraud


def label(caller: Caller, event: str, *, fraud: bool) -> None:
    said = {"label": "FRAUD" if fraud else "LEGIT"}
    assert caller.post(f"/api/v1/feedback/event/{event}", said).status == 201


@pytest.fixture(scope="session")
def learner(service: Service) -> Caller:
    """A tenant with a model in service, trained from what it labelled."""
    caller = steering(Caller(service, *service.new_tenant("Learner")))
    draw = random.Random(11)
    for number in range(40):
        event, fraud = pay(caller, number, draw)
        if number > 30:
            label(caller, event, fraud=fraud)

    def is_recording() -> bool:
        shown = caller.service.rows(f"SELECT features FROM model_setting WHERE tenant = '{caller.id}'")
        return bool(shown and shown[0][0])

    def is_recorded() -> bool:
        event, _ = pay(caller, 1, draw)
        [[record]] = caller.service.rows(f"SELECT record FROM decision WHERE id = '{event}'")
        return bool(record_of(record).feature_set)

    service.wait_for(is_recording, seconds=20)
    service.wait_for(is_recorded, seconds=20)
    for number in range(40, 40 + _FRAUDS * 10):
        event, fraud = pay(caller, number, draw)
        if fraud or number % 3 == 0:
            label(caller, event, fraud=fraud)
    said = service.cli("model", "train", "--tenant", caller.id, "--wait", "--json")
    assert said["failure"] is None
    assert said["champion"] is not None, said

    def is_serving() -> bool:
        event, _ = pay(caller, 1_000, draw)
        return caller.get(f"/api/v1/decisions/{event}").json["outputs"]["model"] is not None

    service.wait_for(is_serving, seconds=10)
    return caller
