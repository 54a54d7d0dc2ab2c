"""The demo's shop: a person and a script ask the same, and are told apart before the visitor's eyes."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE_S
from tests.live import Service
from vettance.demo.demo_client import DemoTarget
from vettance.demo.shop import open_shop


@pytest.fixture
def shop(service: Service) -> Iterator[str]:
    _, key = service.new_tenant("Demo shop")
    host, _, port = service.base_url.removeprefix("http://").partition(":")
    with open_shop(DemoTarget(host, int(port), key)) as address:
        yield address


def decided(page: Any, button: str) -> str:
    page.locator(button).click(delay=70)
    page.wait_for_selector("#decision:is([data-state=ALLOW],[data-state=REVIEW],[data-state=BLOCK])")
    return page.get_attribute("#decision", "data-state")


def test_the_decision_changes_between_a_person_and_a_script(browser: Any, shop: str) -> None:
    context = browser.new_context(user_agent="Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0 Safari/537.36")
    context.set_default_timeout(PATIENCE_S * 1000)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.goto(f"{shop}/?core")
    for field, text in (("#email", "me@example.com"), ("#password", "mine")):
        page.locator(field).click(delay=90)
        for number, letter in enumerate(text):
            page.keyboard.press(letter, delay=40 + number * 31 % 70)
            page.wait_for_timeout((20, 260, 60, 410, 130, 35, 330)[number % 7])
    assert decided(page, "#log-in") == "ALLOW"
    assert "keystrokeIntervals" in page.locator("#sent").text_content()
    assert "me@example.com" not in page.locator("#sent").text_content()
    assert decided(page, "#script-login") == "BLOCK"
    assert decided(page, "#script-pay") == "BLOCK"
    assert faults == []
    context.close()


def test_the_full_build_runs_in_the_shop_too(browser: Any, shop: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.goto(shop)
    page.wait_for_timeout(1000)
    assert decided(page, "#script-login") == "BLOCK"
    assert faults == []
    page.close()


def test_the_shop_mints_for_its_own_page_only(browser: Any, shop: str, service: Service) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto(f"{service.base_url}/healthz")
    answer = page.context.request.post(f"{shop}/token", headers={"Origin": "https://evil.example"})
    assert answer.status == 404
    assert page.context.request.get(f"{shop}/../secret").status == 404
    page.close()
