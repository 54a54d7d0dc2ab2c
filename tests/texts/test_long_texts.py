"""Every text of every endpoint takes the longest text of any script, or refuses it by a rule of its own."""

import copy
import random
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import Caller
from tests.websdk.conftest import Page

CHARS = 1_024
#: Spans of characters of four and three bytes. Chosen at random, so that no store makes them shorter.
SCRIPTS = {
    "emoji": (0x1F300, 0x1F64F),
    "cjk": (0x4E00, 0x9FFF),
    "planes": (0x20000, 0x2A6DF),
}


def long_text(script: str, seed: str = "", chars: int = CHARS) -> str:
    first, last = SCRIPTS[script]
    chance = random.Random(script + seed)
    return "".join(chr(chance.randint(first, last)) for _ in range(chars))


def leaves(value: Any, schema: Any, components: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of every text of an example, and of every text that its schema has beyond it."""
    while isinstance(schema, dict) and "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    schema = schema if isinstance(schema, dict) else {}
    variants = [schema, *schema.get("anyOf", ()), *schema.get("allOf", ())]
    if isinstance(value, str) or (value is None and any(one.get("type") == "string" for one in variants)):
        yield path
    elif isinstance(value, dict) or (value is None and path and len(path) < 4):
        members: dict[str, Any] = {}
        for one in variants:
            name = one.get("$ref", "").rpartition("/")[2]
            members.update(components.get(name, one).get("properties", {}))
        for name in {**members, **(value or {})}:
            inner = value.get(name) if isinstance(value, dict) else None
            yield from leaves(inner, members.get(name, {}), components, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, schema.get("items", {}), components, (*path, place))


def put(body: Any, path: tuple[Any, ...], text: str) -> Any:
    whole = inner = copy.deepcopy(body)
    for name in path[:-1]:
        if isinstance(inner, dict) and inner.get(name) is None:
            inner[name] = {}
        inner = inner[name]
    inner[path[-1]] = text
    return whole


def renew(path: str, body: Any, number: int) -> Any:
    """Make an example one that was not sent before, and sent just now."""
    if "sentAt" in body:
        body = {**body, "sentAt": time.time_ns() // 1_000_000}
    if path == "/api/v1/aml/events":
        body = {**body, "externalEventId": f"{body['externalEventId']}-{number}"}
    if "batchId" in body:
        body = {**body, "batchId": f"{body['batchId']}-{number}"}
    return body


def test_no_text_of_any_body_makes_the_service_fail(caller: Caller) -> None:
    document = caller.service.get("/openapi.json", key=None).json
    components = document["components"]["schemas"]
    event = caller.post("/api/v1/events", {"eventName": "page.view"}).json["eventId"]
    answers: dict[tuple[str, str], set[int]] = {}
    number = 0
    for path, methods in sorted(document["paths"].items()):
        if "requestBody" not in methods.get("post", {}):
            continue
        media = methods["post"]["requestBody"]["content"]["application/json"]
        example = media["example"]
        url = path.replace("{id}", event).replace("{email}", "anna%40example.com")
        for place in leaves(example, media["schema"], components):
            for script in SCRIPTS:
                number += 1
                body = put(renew(path, example, number), place, long_text(script, str(number)))
                if path.endswith(("/signals", "/collect")):
                    token = caller.post("/api/v1/websdk/tokens", {}).json["token"]
                    answer = caller.service.call(
                        "POST", url, body, key=None, headers={"Authorization": f"Bearer {token}"}
                    )
                else:
                    answer = caller.post(url, body)
                answers.setdefault((path, ".".join(map(str, place))), set()).add(answer.status)
    assert len(answers) > 100
    assert {at: found for at, found in answers.items() if max(found) >= 500} == {}
    assert sum(found <= {200, 201, 202} for found in answers.values()) > 40


@pytest.mark.parametrize("script", SCRIPTS)
def test_long_names_are_stored_once_and_found_again(caller: Caller, script: str) -> None:
    customer, event, session = (long_text(script, seed) for seed in ("customer", "event", "session"))
    transfer = {
        **caller.service.get("/openapi.json", key=None).json["paths"]["/api/v1/aml/events"]["post"][
            "requestBody"
        ]["content"]["application/json"]["example"],
        "externalEventId": event,
        "customer": {"externalId": customer},
    }
    first = caller.post("/api/v1/aml/events", transfer)
    assert first.status < 300, first.body
    assert first.json["status"] == "ALERTED"
    again = caller.post("/api/v1/aml/events", transfer)
    assert (again.status, again.json) == (first.status, first.json)
    assert caller.post("/api/v1/aml/events", {**transfer, "eventName": "transfer.other"}).status == 409
    cases = caller.get("/api/v1/aml/cases").json["data"]
    assert [case["customer"] for case in cases] == [customer]

    asked = {"inputName": "Nobody At All", "externalId": customer}
    for _ in range(2):
        assert caller.post("/api/v1/aml/screen", asked).status == 200

    page = Page(caller, sdkSessionId=session)
    for _ in range(2):
        answer = page.queue(batchId=event, signals={"webdriver": True})
        assert (answer.status, answer.json.get("batchId")) == (202, event), answer.body

    mail = quote(long_text(script, chars=200) + "@example.com", safe="")
    key = {"Idempotency-Key": "k" * 255}
    posted = [
        caller.post(f"/api/v1/lists/block/emails/{mail}", {"reason": "x"}, headers=key) for _ in range(2)
    ]
    assert posted[0].status < 500
    assert posted[0].body == posted[1].body

    login = {"eventName": "user.login", "customer": {"externalId": customer}, "sessionId": session}
    decided = caller.post("/api/v1/decisions/evaluate", login)
    assert decided.status == 200
    found = caller.get(f"/api/v1/events?customerId={quote(customer, safe='')}")
    assert found.status == 200, found.body
