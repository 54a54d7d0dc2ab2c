"""Fixtures of reviews: tenants whose payments above 100 are held, and above 1000 denied."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.databases import absence, database
from tests.live import Caller, Service
from tests.reviews.office import Office, opened

RULES = """name: Held
rules:
  - id: large
    name: A large payment
    when: metadata.amount > 100
    score: 60
    reason: LARGE
    explanation: A large payment.
    tests:
      - {name: large, event: {eventName: payment.attempt, metadata: {amount: 200}}, fires: true}
      - {name: small, event: {eventName: payment.attempt, metadata: {amount: 2}}, fires: false}
  - id: huge
    name: A huge payment
    when: metadata.amount > 1000
    score: 40
    reason: HUGE
    explanation: A huge payment.
    tests:
      - {name: huge, event: {eventName: payment.attempt, metadata: {amount: 2000}}, fires: true}
      - {name: not huge, event: {eventName: payment.attempt, metadata: {amount: 2}}, fires: false}
"""


def holding_tenant(service: Service, folder: Path, name: str = "Holding") -> Caller:
    """Make a tenant that holds payments above 100."""
    file = folder / "held.yaml"
    file.write_text(RULES)
    tenant_id, key = service.new_tenant(name)
    service.cli("rules", "push", str(file), "--tenant", tenant_id, "--yes", "--json")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: outcome_of(caller, 150) == "review", seconds=10)
    return caller


def steering(caller: Caller) -> Caller:
    """The same tenant with a key for rules too."""
    scopes = "--scope", "decide", "--scope", "rules"
    made = caller.service.cli("key", "create", "--tenant", caller.id, *scopes, "--json")
    steerer = Caller(caller.service, caller.id, made["apiKey"])
    caller.service.wait_for(lambda: steerer.get("/api/v1/lists").status == 200)
    return steerer


def outcome_of(caller: Caller, amount: float, **more: object) -> str:
    return str(decided(caller, amount, **more)["decision"])


def decided(caller: Caller, amount: float, **more: object) -> dict[str, object]:
    """Have a payment decided."""
    body = {"eventName": "payment.attempt", "metadata": {"amount": amount, "currency": "EUR"}, **more}
    answer = caller.post("/api/v1/decisions/evaluate", body)
    assert answer.status == 200, answer.body
    found: dict[str, object] = answer.json
    return found


def held(caller: Caller, amount: float = 150, **more: object) -> str:
    """Have a payment held, and return its id."""
    found = decided(caller, amount, **more)
    assert found["decision"] == "review", found
    return str(found["correlationIds"]["eventId"])  # type: ignore[index]


@pytest.fixture(scope="module")
def holding(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    return holding_tenant(service, tmp_path_factory.mktemp("rules"))


@pytest.fixture(params=["sqlite", "postgres"])
async def office(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Office]:
    if request.param == "postgres" and (reason := absence()):
        pytest.skip(reason)
    if request.param == "sqlite":
        async with opened(tmp_path, None) as store:
            yield Office(store)
        return
    with database() as url:
        async with opened(tmp_path, url) as store:
            yield Office(store)
