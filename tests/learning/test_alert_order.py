"""Alerts ordered by what officers said of earlier ones: unknown before, sortable, hiding none."""

from typing import Any

import pytest

from tests.live import Caller, Service

ALERTS = "/api/v1/aml/alerts"
CASES = "/api/v1/aml/cases"


def raise_alert(caller: Caller, name: str, amount: float) -> str:
    """Have a transfer to a jurisdiction under a call for action watched; its alert is never suppressed."""
    body = {
        "eventName": "transfer.sent",
        "externalEventId": f"e-{name}",
        "customer": {"externalId": name},
        "metadata": {
            "amount": amount,
            "currency": "EUR",
            "direction": "out",
            "counterpartyId": f"x-{name}",
            "counterpartyCountry": "KP",
        },
    }
    answer = caller.post("/api/v1/aml/events", body)
    assert answer.status == 200, answer.body
    alert: str = answer.json["alerts"][0]["id"]
    return alert


def close(caller: Caller, customer: str, *, is_true: bool) -> None:
    case = caller.get(f"{CASES}?customer={customer}").json["data"][0]
    said = {"resolution": "TRUE_MATCH" if is_true else "FALSE_POSITIVE"}
    assert caller.post(f"{CASES}/{case['id']}/resolve", said).status == 200


def open_alerts(caller: Caller, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = caller.get(f"{ALERTS}?state=OPEN&limit=100{query}").json["data"]
    return found


def bank_of(service: Service, name: str) -> Caller:
    caller = Caller(service, *service.new_tenant(name))
    service.cli("tenant", "set", caller.id, "--aml", "on", "--json")
    service.wait_for(lambda: caller.get(ALERTS).status == 200, seconds=10)
    return caller


@pytest.fixture(scope="module")
def bank(service: Service) -> Caller:
    """A bank whose officers confirm large transfers and no others; four alerts are open."""
    caller = bank_of(service, "Ordered bank")
    assert "50 are needed" in str(
        service.cli("model", "alerts", "train", "--tenant", caller.id, "--wait", ok=False)
    )
    for number in range(165):
        is_true = number % 3 == 0
        raise_alert(caller, f"c{number}", 20_000 + number if is_true else 300 + number)
        close(caller, f"c{number}", is_true=is_true)
    for name, amount in (("small", 310), ("large", 20_010), ("tiny", 305), ("huge", 20_150)):
        raise_alert(caller, name, amount)
    said = service.cli("model", "alerts", "train", "--tenant", caller.id, "--wait", "--json")
    assert said["champion"] is not None, said
    service.wait_for(lambda: all(one["priority"] is not None for one in open_alerts(caller)), seconds=10)
    return caller


def test_likely_alerts_come_first_and_none_is_hidden(bank: Caller) -> None:
    found = open_alerts(bank, "&sortBy=priority")
    customers = [one["customer"] for one in found]
    assert set(customers[: len(customers) // 2]) == {"large", "huge"}
    assert {one["customer"] for one in found} == {"small", "large", "tiny", "huge"}
    assert found[0]["priority"] > 50 > found[-1]["priority"] >= 0
    upwards = open_alerts(bank, "&sortBy=priority&sortOrder=asc")
    assert [one["id"] for one in upwards] == [one["id"] for one in found[::-1]]


def test_a_new_alert_has_its_priority_within_seconds_and_comes_first_until_then(bank: Caller) -> None:
    alert = raise_alert(bank, "late", 20_050)

    def is_ordered() -> bool:
        found = open_alerts(bank, "&sortBy=priority")
        known = [one["priority"] is not None for one in found]
        assert known == sorted(known)
        return next(one["priority"] is not None for one in found if one["id"] == alert)

    bank.service.wait_for(is_ordered, seconds=5)
    case = bank.get(f"{CASES}?customer=late").json["data"][0]
    assert case["priority"] > 50
    assert bank.get(f"{CASES}/{case['id']}").json["alerts"][0]["priority"] == case["priority"]
    close(bank, "late", is_true=True)
    closed = bank.get(f"{CASES}/{case['id']}").json
    assert closed["priority"] is None
    assert closed["alerts"][0]["priority"] == case["priority"]


def test_pages_by_priority_follow_each_other(bank: Caller) -> None:
    known = [one["id"] for one in open_alerts(bank, "&sortBy=priority")]
    seen: list[str] = []
    cursor = ""
    while True:
        page = bank.get(f"{ALERTS}?state=OPEN&limit=2&sortBy=priority{cursor}").json
        seen += [one["id"] for one in page["data"]]
        if not page["hasMore"]:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == known
    everything = bank.get(f"{ALERTS}?limit=100&sortBy=priority").json
    assert everything["total"] >= 169
    assert bank.get(f"{ALERTS}?sortBy=priority&cursor={known[0]}").status == 400
    assert bank.get(f"{ALERTS}?sortBy=priority&cursor=12.{known[0]}x").status == 400
    assert bank.get(f"{ALERTS}?sortBy=urgency").status == 400


def test_another_tenant_has_no_priority_from_it(service: Service, bank: Caller) -> None:
    other = bank_of(service, "Other bank")
    raise_alert(other, "c1", 20_000)
    assert open_alerts(other, "&sortBy=priority")[0]["priority"] is None
    assert service.cli("model", "alerts", "list", "--tenant", other.id, "--json") == []


def test_commands_show_the_model_and_take_it_back(service: Service, bank: Caller) -> None:
    rows = service.cli("model", "alerts", "list", "--tenant", bank.id, "--json")
    assert rows[0]["state"] == "champion"
    assert rows[0]["confirmed"] >= 55
    card = service.cli("model", "alerts", "card", "--tenant", bank.id, "--json")["card"]
    assert card["averagePrecision"] > card["averagePrecisionBefore"]
    service.cli("model", "alerts", "set", "off", "--tenant", bank.id, "--json")
    service.wait_for(lambda: all(one["priority"] is None for one in open_alerts(bank)), seconds=5)
    service.cli("model", "alerts", "set", "on", "--tenant", bank.id, "--json")
    service.wait_for(lambda: all(one["priority"] is not None for one in open_alerts(bank)), seconds=5)
    # The service itself may have trained one before.
    while service.cli("model", "alerts", "rollback", "--tenant", bank.id, "--json")["champion"] is not None:
        pass
    service.wait_for(lambda: all(one["priority"] is None for one in open_alerts(bank)), seconds=5)
    again = service.cli("model", "alerts", "promote", "1", "--tenant", bank.id, "--json")
    assert again["champion"] == 1
    service.wait_for(lambda: all(one["priority"] is not None for one in open_alerts(bank)), seconds=5)
    service.cli("model", "alerts", "promote", "9", "--tenant", bank.id, ok=False)
