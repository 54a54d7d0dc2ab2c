"""What the pieces for Django and FastAPI are made of: addresses, settings, events, deliveries, tags."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st

from tests.web.sample_service import serving
from vettance_client.client import Client
from vettance_client.fastapi import Denied, Risk, StepUpNeeded
from vettance_client.testing import StandIn
from vettance_client.web.client_address import client_address
from vettance_client.web.deliveries import KEEP_S, LEASE_S, MemoryDeliveries
from vettance_client.web.page_scripts import script_tags, start_script
from vettance_client.web.shop import Shop, WrongSetting, shop_of
from vettance_client.web.shop_events import (
    Visitor,
    login_event,
    new_session_id,
    payment_event,
    session_id_of,
    with_visitor,
)

INSIDE = (ip_network("10.0.0.0/8"), ip_network("::1/128"))
GOOD: dict[str, Any] = {"base_url": "https://risk.example.com", "api_key": "vtc_key"}

CLIENTS = Path(__file__).parents[2] / "clients"


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn() as service:
        yield service


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "proxies", "expected"),
    [
        ("203.0.113.9", "", (), "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", (), "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", INSIDE, "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9", INSIDE, "203.0.113.9"),
        ("10.0.0.1", "198.51.100.1, 203.0.113.9", INSIDE, "203.0.113.9"),
        ("10.0.0.1", "198.51.100.1,203.0.113.9, 10.2.3.4", INSIDE, "203.0.113.9"),
        ("10.0.0.1", "10.9.9.9, 10.2.3.4", INSIDE, "10.9.9.9"),
        ("10.0.0.1", "", INSIDE, None),
        ("10.0.0.1", "unknown", INSIDE, None),
        ("10.0.0.1", "garbage, 203.0.113.9", INSIDE, "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9:4711", INSIDE, "203.0.113.9"),
        ("10.0.0.1", "[2001:db8::1]:4711", INSIDE, "2001:db8::1"),
        ("::ffff:10.0.0.1", "::ffff:203.0.113.9", INSIDE, "203.0.113.9"),
        ("::1", "2001:db8::1%eth0", INSIDE, "2001:db8::1"),
        ("", "203.0.113.9", INSIDE, None),
        ("", "203.0.113.9", ("unix",), "203.0.113.9"),
        (None, "203.0.113.9, 10.0.0.1", ("unix", *INSIDE), "203.0.113.9"),
        ("testclient", "203.0.113.9", ("unix",), None),
    ],
)
def test_the_address_of_a_client(
    peer: str | None, forwarded_for: str, proxies: Any, expected: str | None
) -> None:
    assert client_address(peer, forwarded_for, proxies) == expected


@given(st.text(max_size=60), st.ip_addresses())
def test_what_a_client_puts_in_front_never_counts(own: str, real: Any) -> None:
    outside = (ip_network("10.255.255.254/32"),)
    assert client_address("10.255.255.254", f"{own},{real}", outside) == client_address(
        "10.255.255.254", str(real), outside
    )
    assert client_address(str(real), own, ()) == client_address(str(real), "", ())


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"base_url": "risk.example.com"}, "base_url"),
        ({"base_url": None}, "base_url"),
        ({"api_key": ""}, "api_key"),
        ({"api_key": None}, "api_key"),
        ({"origin": "https://shop.example.com/shop"}, "origin"),
        ({"origin": "shop"}, "origin"),
        ({"on_unavailable": "allow"}, "on_unavailable"),
        ({"deadline_ms": 0}, "deadline_ms"),
        ({"proxies": "10.0.0.0/8"}, "proxies"),
        ({"proxies": ["10.0.0.300"]}, "proxies"),
        ({"sdk_integrity": "sha384-x"}, "sdk_version"),
        ({"deadlin_ms": 4}, "deadlin_ms"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(WrongSetting, match=named):
        shop_of({**GOOD, **wrong})


def test_settings_do_not_show_their_secrets() -> None:
    shop = Shop(**GOOD, webhook_secret="whsec_secret")
    assert "vtc_key" not in repr(shop)
    assert "whsec" not in repr(shop)
    with pytest.raises(WrongSetting, match="webhook_secret"):
        Shop(**GOOD).secrets()
    with pytest.raises(WrongSetting, match="origin"):
        Shop(**GOOD).own_origin()


def test_events_have_what_the_request_says_unless_they_say_it() -> None:
    visitor = Visitor("203.0.113.9", "a" * 2000, "s" * 32)
    event = with_visitor(login_event("7", "failure", "a@example.com", {"via": "app"}), visitor)
    assert event["customer"] == {"externalId": "7", "email": "a@example.com"}
    assert event["metadata"] == {"via": "app", "outcome": "failure"}
    assert len(event["userAgent"] or "") == 1024
    assert with_visitor({"eventName": "x", "ip": "192.0.2.1"}, visitor)["ip"] == "192.0.2.1"
    assert "ip" not in with_visitor({"eventName": "x"}, Visitor(None, None, None))
    paid = payment_event(None, Decimal("12.50"), "eur", None, None)
    assert paid["metadata"] == {"amount": 12.5, "currency": "EUR"}
    for amount, currency in ((-1, "EUR"), (float("nan"), "EUR"), (float("inf"), "EUR"), (1, "EURO")):
        with pytest.raises(ValueError, match=r"amount|currency"):
            payment_event(None, amount, currency, None, None)
    with pytest.raises(ValueError, match="outcome"):
        login_event(None, "wrong", None, None)  # type: ignore[arg-type]


def test_a_session_is_one_of_ours_or_none() -> None:
    made = new_session_id()
    assert session_id_of(made) == made
    for other in (None, "", "x", made.upper() + "0", made + "\n", "../" + made[3:]):
        assert session_id_of(other) is None


def test_a_delivery_is_handled_once_and_again_when_its_process_died() -> None:
    now = [0.0]
    deliveries = MemoryDeliveries(lambda: now[0])
    assert deliveries.claim("a") == "new"
    assert deliveries.claim("a") == "busy"
    now[0] += LEASE_S + 1
    assert deliveries.claim("a") == "new"
    deliveries.release("a")
    assert deliveries.claim("a") == "new"
    deliveries.finish("a")
    now[0] += KEEP_S - 1
    assert deliveries.claim("a") == "done"
    assert deliveries.claim("b") == "new"


def test_tags_are_escaped_and_have_a_nonce_and_an_integrity_if_wanted() -> None:
    shop = Shop(**GOOD, browser_url='https://r.example/"><x', sdk_version="1.0.0", sdk_integrity="sha384-x")
    tags = script_tags(shop, "/shop/vettance", 'n"')
    assert "<x" not in tags
    assert tags.count('nonce="n&quot;"') == 2
    assert 'integrity="sha384-x"' in tags
    assert "/sdk/v1/1.0.0/vettance-core.js" in tags
    assert 'src="/shop/vettance/start.js"' in tags
    assert "vtc_key" not in tags
    assert b"innerHTML" not in start_script()


def test_the_client_imports_no_web_framework() -> None:
    code = "import sys, vettance_client; print(*(n for n in ('django', 'fastapi') if n in sys.modules))"
    folder = str(sys.modules["vettance_client"].__path__[0]).removesuffix("vettance_client")
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": folder}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_a_decision_that_does_not_approve_ends_a_handler(stand_in: StandIn) -> None:
    risk = Risk(stand_in.url, "key")
    with Client(stand_in.url, "key") as client:
        for word, error, status in (("review", StepUpNeeded, 403), ("deny", Denied, 403)):
            stand_in.answers("evaluate", {"decision": word})
            decision = client.evaluate({"eventName": "x"})
            with pytest.raises(error) as raised:
                risk.require(decision)
            assert raised.value.status_code == status
        stand_in.answers("evaluate", {"decision": "approve"})
        risk.require(client.evaluate({"eventName": "x"}))


def test_including_the_router_closes_the_connections_at_the_end(stand_in: StandIn) -> None:
    risk = Risk(stand_in.url, "key", customer_of=lambda _: "c-1")
    app = FastAPI()
    app.include_router(risk.router)

    @app.get("/pay")
    async def pay(request: Request) -> dict[str, bool]:
        return {"approved": (await risk.payment(request, amount=2, currency="EUR")).approved}

    from urllib.request import urlopen

    with serving(app, "auto") as port, urlopen(f"http://127.0.0.1:{port}/pay") as answer:
        assert answer.status == 200
    assert risk.client._session is None
    assert stand_in.requests[0].body["customer"] == {"externalId": "c-1"}
    assert stand_in.requests[0].body["ip"] == "127.0.0.1"


IN_DJANGO = """
import asyncio, json, sys
import django
from django.conf import settings
settings.configure(
    VETTANCE=json.loads(sys.argv[1]), ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "vettance_client.django"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    MIDDLEWARE=["vettance_client.django.middleware.StepUpMiddleware"],
)
django.setup()
from django.core.checks import run_checks
from django.http import HttpResponse
from django.test import AsyncClient, Client
from django.urls import include, path
from vettance_client.django import risk

def pay(request):
    risk.require(risk.payment(request, amount=2, currency="EUR"))
    return HttpResponse("paid")

async def apay(request):
    risk.require(await risk.apayment(request, amount=2, currency="EUR"))
    return HttpResponse("paid")

urlpatterns = [path("pay", pay), path("apay", apay), path("v/", include("vettance_client.django.urls"))]
print(json.dumps([one.id + " " + one.msg for one in run_checks()]))
if not run_checks():
    answer = Client().get("/pay")
    later = asyncio.run(AsyncClient().get("/apay"))
    print(json.dumps([answer.status_code, answer.get("Location"), later.status_code, later.get("Location")]))
"""


def in_django(settings: dict[str, Any]) -> list[Any]:
    folder = str(sys.modules["vettance_client"].__path__[0]).removesuffix("vettance_client")
    done = subprocess.run(
        [sys.executable, "-c", IN_DJANGO, json.dumps(settings)],
        env={"PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("approve", [200, None]),
        ("review", [302, "/prove?next=%2F{}"]),
        ("deny", [403, None]),
    ],
)
def test_a_django_view_goes_on_steps_up_or_stops(stand_in: StandIn, word: str, expected: list[Any]) -> None:
    stand_in.answers("evaluate", {"decision": word})
    settings = {"BASE_URL": stand_in.url, "API_KEY": "key", "ORIGIN": "http://shop", "STEP_UP_URL": "/prove"}
    faults, answered = in_django(settings)
    assert faults == []
    status, where = expected
    assert answered == [
        *(status, where and where.format("pay")),
        *(status, where and where.format("apay")),
    ]


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"BASE_URL": "http://risk", "API_KEY": "key"}, "vettance.W001 VETTANCE: origin is not set"),
        ({"BASE_URL": "http://risk"}, "vettance.E001 VETTANCE: api_key is not set"),
        ({"API": "key"}, "vettance.E001 VETTANCE: there is no setting api"),
    ],
)
def test_a_django_site_says_at_its_start_what_is_wrong(settings: dict[str, Any], fault: str) -> None:
    faults = in_django(settings)[0]
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_a_hanging_event_loop_is_not_needed_by_deliveries() -> None:
    # Memory that many tasks share: one claim wins.
    deliveries = MemoryDeliveries()

    async def claim_all() -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(deliveries.claim, "x") for _ in range(20)))

    assert asyncio.run(claim_all()).count("new") == 1


CACHED = """
import json
from django.conf import settings
settings.configure(
    CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    INSTALLED_APPS=["vettance_client.django"], ROOT_URLCONF=__name__,
    VETTANCE={"BASE_URL": "http://risk", "API_KEY": "key", "ORIGIN": "http://shop"},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
import django
django.setup()
from django.core.cache import cache
from django.template import engines
from django.test import RequestFactory
from django.urls import include, path
from vettance_client.django.webhook_view import CacheDeliveries

urlpatterns = [path("v/", include("vettance_client.django.urls"))]
kept = CacheDeliveries(cache)
said = [kept.claim("a"), kept.claim("a"), kept.claim("b")]
kept.release("a")
said.append(kept.claim("a"))
kept.finish("a")
said.append(kept.claim("a"))
request = RequestFactory().get("/")
request.csp_nonce = "n0"
page = engines["django"].from_string("{% load vettance %}{% vettance_scripts %}").render({}, request)
print(json.dumps([said, page.count('nonce="n0"')]))
"""


def test_deliveries_in_a_cache_and_the_nonce_of_a_policy() -> None:
    folder = str(sys.modules["vettance_client"].__path__[0]).removesuffix("vettance_client")
    done = subprocess.run(
        [sys.executable, "-c", CACHED],
        env={"PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["new", "busy", "new", "new", "done"], 2]


def test_both_clients_start_the_sdk_by_the_same_script() -> None:
    python = (CLIENTS / "python/src/vettance_client/web/start.js").read_text("utf-8")
    assert python.strip() in (CLIENTS / "typescript/src/startScript.ts").read_text("utf-8")
