"""The pages of the console, each with what it is about in a store that holds much; none is forgotten."""

import json
import time
from collections.abc import Iterable
from typing import Any, Protocol

from vettance.console.page import ANYBODY
from vettance.console.page_table import PageTable
from vettance.demo.demo_client import HttpAnswer
from vettance.wire.payload import timestamp

#: Pages that are for those who are not signed in, or have no second factor: they look at nothing that grows.
_SMALL = {"/console/sign-in", "/console/second-factor"}
_TRIED_S_MAX = 600.0


class ApiCaller(Protocol):
    """Asks the API with a key."""

    def ask(self, method: str, path: str, body: Any = None) -> HttpAnswer:
        """Return what it answers."""


def addresses(visitor: ApiCaller) -> dict[str, str]:
    """Return the address of every page by its name; makes what a page needs that is not there.

    Raises `LookupError` when a page of the table has no address here.
    """
    now_s = int(time.time())
    month = f"from={now_s - 30 * 86_400}&to={now_s}"
    held = _json(visitor, "/api/v1/decisions?decision=review&limit=1")["data"][0]
    customer, device = held["customer"]["externalId"], held["device"]["fingerprint"]
    alert, event, screening = _money(visitor)
    subscription = _json(visitor, "/api/v1/webhooks/subscriptions")["subscriptions"][0]["id"]
    found = {
        **{f"overview {span}": f"/?span={span}" for span in ("1h", "24h", "7d", "30d")},
        **{f"reports {span}": f"/reports?span={span}" for span in ("7d", "30d")},
        "queue": "/queue",
        "queue by age": "/queue?sort=age",
        "queue in bulk": "/queue/bulk?choose=1",
        "decisions": "/decisions",
        "decisions: deny": "/decisions?decision=deny",
        "decisions: three filters": "/decisions?decision=review&country=DE&minScore=60",
        "decisions: a customer": f"/decisions?customer={customer}",
        "decisions: a day": f"/decisions?from={now_s - 20 * 86_400}&to={now_s - 19 * 86_400}",
        "decisions: search": "/decisions?search=reason_07",
        "decisions: by score": f"/decisions?sortBy=riskScore&{month}",
        "decision": f"/decisions/{held['id']}",
        "decision, replayed": f"/decisions/{held['id']}?replay=on",
        "customer": f"/entities/customer/{customer}",
        "busiest customer": "/entities/customer/cus_00000001",
        "device": f"/entities/device/{device}",
        "address": f"/entities/ip/{held['ip']}",
        "e-mail": f"/entities/email/{held['customer']['email']}",
        "session": "/sessions/session-1",
        "search: an id": f"/search?q={held['id']}",
        "search: a customer": f"/search?q={customer}",
        "search: a part": "/search?q=customer.999",
        "search: nothing": "/search?q=nothing",
        "lists": "/lists",
        "AML alerts": "/aml/alerts",
        "AML cases": "/aml/cases",
        "AML case": f"/aml/cases/{alert}",
        "AML event": f"/aml/events/{event}",
        "screening desk": "/aml/screen",
        "screening": f"/aml/screenings/{screening}",
        "webhooks": "/webhooks",
        "deliveries": f"/webhooks/{subscription}",
        "settings": "/settings",
        "team": "/settings/users",
        "audit": "/audit",
        "profile": "/profile",
        "second factor": "/second-factor/set-up",
        "models": "/models",
        "features": "/models/features",
        "features, editor": "/models/features/edit",
        "suggestions": "/rules/suggestions",
    }
    for kind, root in (("fraud", "/rules"), ("AML", "/rules/aml")):
        api = "/api/v1/backtests" if kind == "fraud" else "/api/v1/aml/backtests"
        rule = first_rule(visitor, kind)
        found |= {
            f"{kind} rules": root,
            f"{kind} rule": f"{root}/{rule}",
            f"{kind} rules, a version": f"{root}/versions/1",
            f"{kind} editor": f"{root}/edit",
            f"{kind} backtests": f"{root}/backtests",
            f"{kind} backtest": f"{root}/backtests/{_backtest(visitor, api, rule, now_s)}",
        }
    found = {name: f"/console{path}" for name, path in found.items()}
    _insist_on_all(found.values())
    return found


def _insist_on_all(paths: Iterable[str]) -> None:
    table = PageTable()
    walked = set()
    for path in paths:
        page = table.find("GET", path.partition("?")[0].encode())
        walked.add(page[0].path if page is not None else path)
    for one in table.pages:
        if one.method == "GET" and one.roles != ANYBODY and one.path not in walked | _SMALL | _RARE:
            raise LookupError(f"no address of the page {one.path} is known")


#: What takes a model, or a request that waits for a second signature: one row each.
_RARE = {
    "/console/models/{version}",
    "/console/models/features/versions/{version}",
    "/console/queue/bulk/{id}",
}


def _json(visitor: ApiCaller, path: str) -> Any:
    return json.loads(visitor.ask("GET", path).body)


def first_rule(visitor: ApiCaller, kind: str) -> str:
    """Name a rule in force, of fraud or of AML."""
    path = "/api/v1/rules/quality" if kind == "fraud" else "/api/v1/aml/rules/quality"
    return str(_json(visitor, path)["rules"][0]["ruleId"])


def _money(visitor: ApiCaller) -> tuple[str, str, str]:
    """Send a transfer that alerts and screen a listed name; returns the case, the event, the screening."""
    money = {"amount": 12_000, "currency": "EUR", "direction": "out", "counterpartyCountry": "KP"}
    name = f"walked-{time.time_ns()}"
    body = {"eventName": "transfer.sent", "externalEventId": name, "customer": {"externalId": name}}
    visitor.ask("POST", "/api/v1/aml/events", {**body, "metadata": {**money, "counterpartyId": "x-1"}})
    alert = _json(visitor, "/api/v1/aml/alerts?limit=1")["data"][0]
    listed = {"inputName": "Sergei Viktorovich Lavrov", "externalId": name}
    screened = visitor.ask("POST", "/api/v1/aml/screen", listed)
    return alert["caseId"], name, json.loads(screened.body)["id"]


def _backtest(visitor: ApiCaller, api: str, rule: str, now_s: int) -> str:
    """Try a rule with another score on the events of two hours, and wait for the end."""
    begins_ms = (now_s - 20 * 86_400) * 1000
    span = {"from": timestamp(begins_ms), "to": timestamp(begins_ms + 7_200_000)}
    ordered = json.loads(visitor.ask("POST", api, {"rule": {"id": rule, "score": 1}, **span}).body)
    job, until_s = ordered["backtestId"], time.monotonic() + _TRIED_S_MAX
    while _json(visitor, f"{api}/{job}")["state"] in ("queued", "running") and time.monotonic() < until_s:
        time.sleep(0.5)
    return str(job)
