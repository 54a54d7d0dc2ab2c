"""Every example of the documentation page works when it is sent as it stands, but for the time of a batch."""

import time
from typing import Any

import pytest

from tests.live import Caller, Service
from tests.reviews.conftest import steering

_CASE = "/api/v1/aml/cases/{id}"
# A proposed resolution is needed to turn one down, which a tenant without four eyes never has.
_CONFLICT = {f"{_CASE}/reject"}
# Of the steps with a version, those before and after the first one that is taken are none any more.
_STEPS = ("/rollback", "/approve", "/propose", "/reject")


@pytest.fixture(scope="module")
def examples(service: Service) -> dict[str, Any]:
    """The example of each path that takes a body."""
    document = service.get("/openapi.json", key=None).json
    bodies = {
        path: methods["post"]["requestBody"]["content"]["application/json"]
        for path, methods in document["paths"].items()
        if "requestBody" in methods.get("post", {})
    }
    assert [path for path, media in bodies.items() if "example" not in media] == []
    return {path: media["example"] for path, media in bodies.items()}


def test_the_example_of_features_is_taken(service: Service) -> None:
    document = service.get("/openapi.json", key=None).json
    body = document["paths"]["/api/v1/models/features"]["put"]["requestBody"]
    example = body["content"]["application/json"]["example"]
    tenant = steering(Caller(service, *service.new_tenant("Learner")))
    metadata = {"amount": 12.5, "items": 2}
    assert tenant.post("/api/v1/events", {"eventName": "page.view", "metadata": metadata}).status == 201
    answer = tenant.put("/api/v1/models/features", example)
    assert answer.status == 200, answer.body
    assert "cents_per_item" in {one["name"] for one in answer.json["features"]}


@pytest.fixture(scope="module")
def reader(service: Service) -> Caller:
    """A tenant with the AML product and a loaded list, as somebody has who tries the page."""
    tenant = Caller(service, *service.new_tenant("Reader"))
    service.cli("tenant", "set", tenant.id, "--aml", "on", "--json")
    service.cli("watchlist", "import", "--source", "sample", "--json")
    asked = {"inputName": "Nobody", "externalId": "n-1"}
    service.wait_for(lambda: tenant.post("/api/v1/aml/screen", asked).status == 200)
    return tenant


def test_every_example_is_taken(reader: Caller, examples: dict[str, Any]) -> None:
    event = reader.post("/api/v1/events", {"eventName": "page.view"}).json["eventId"]
    hook = reader.post("/api/v1/webhooks/subscriptions", examples["/api/v1/webhooks/subscriptions"]).json[
        "id"
    ]
    assert reader.post("/api/v1/aml/events", examples["/api/v1/aml/events"]).json["status"] == "ALERTED"
    case = reader.get("/api/v1/aml/cases").json["data"][0]["id"]
    screening = reader.post("/api/v1/aml/screen", examples["/api/v1/aml/screen"]).json["id"]
    named_by = {_CASE: case, "/api/v1/aml/screenings": screening, "/api/v1/webhooks/subscriptions": hook}
    token = reader.post("/api/v1/websdk/tokens", examples["/api/v1/websdk/tokens"]).json["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    reader.post("/api/v1/lists", {"type": "EMAIL", "value": "held@mail.example", "listType": "block"})
    reader.service.cli("tenant", "set", reader.id, "--review-denied", "on", "--json")
    made = reader.service.cli("key", "create", "--tenant", reader.id, "--scope", "rules", "--json")
    ruler = Caller(reader.service, reader.id, made["apiKey"])
    named_by["/api/v1/reviews"] = opened_review(reader)
    for path, example in sorted(examples.items()):
        named = next((found for start, found in named_by.items() if path.startswith(start)), event)
        url = (
            path.replace("{id}", named)
            .replace("{decisionId}", named)
            .replace("{email}", "anna%40example.com")
            .replace("{version}", "2")
        )
        body = {**example, "sentAt": time.time_ns() // 1_000_000} if "sentAt" in example else example
        if path.endswith(("/signals", "/collect")):
            answer = reader.service.call("POST", url, body, key=None, headers=bearer)
        elif any(
            part in path for part in ("/rulesets", "/backtests", "/snoozes", "/suggestions", "/features")
        ):
            answer = ruler.post(url, body)
            assert answer.status == 409 if path.endswith(_STEPS) else answer.status < 300, (path, answer.json)
            if answer.status == 202:  # A tenant has one job at a time.
                (job,) = answer.json.values()
                assert ruler.delete(f"{url}/{job}").status == 200
            continue
        else:
            answer = reader.post(url, body)
        assert answer.status == 409 if path in _CONFLICT else answer.status < 300, (path, answer.json)


def opened_review(reader: Caller) -> str:
    """Have an event denied whose tenant has denials reviewed, once the server has seen that setting."""
    body = {"eventName": "page.view", "customer": {"email": "held@mail.example"}}
    until = time.monotonic() + 20
    while time.monotonic() < until:
        decided = reader.post("/api/v1/decisions/evaluate", body).json["correlationIds"]["eventId"]
        if reader.get(f"/api/v1/reviews/{decided}").status == 200:
            return str(decided)
        time.sleep(0.2)
    raise AssertionError("no review was opened")
