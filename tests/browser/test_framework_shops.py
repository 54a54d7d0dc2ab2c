"""The SDK in the pages of the example shops, in a real Chromium under their own policies."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE_S
from tests.clients.framework_shops import PASSWORD, FrameworkShop, shop_tenant
from tests.clients.three_clients import TYPESCRIPT
from tests.live import Caller, Service

FRAMEWORKS = ("django", "fastapi", "express")


@pytest.fixture
def opened(service: Service, tmp_path: Path) -> Iterator[Callable[[str], tuple[FrameworkShop, Caller]]]:
    shops: list[FrameworkShop] = []

    def open_shop(framework: str) -> tuple[FrameworkShop, Caller]:
        if framework == "express" and not (
            shutil.which("node") and (TYPESCRIPT / "dist/express.js").exists()
        ):
            pytest.skip("the TypeScript client is not built: `make typescript` (needs Node 20 with npm)")
        tenant = shop_tenant(service, tmp_path, framework)
        shops.append(FrameworkShop(framework, tmp_path))
        shops[-1].start(service.base_url, tenant.key)
        return shops[-1], tenant

    yield open_shop
    for shop in shops:
        shop.stop()


def is_fault(said: Any) -> bool:
    """Tell whether the console told of a fault: Chromium asks for an icon now and then, and there is none."""
    return said.type == "error" and not said.location["url"].endswith("/favicon.ico")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_a_page_measured_is_there_when_its_form_is_decided(
    browser: Any, opened: Callable[[str], tuple[FrameworkShop, Caller]], framework: str
) -> None:
    shop, tenant = opened(framework)
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_S * 1000)
    page = context.new_page()
    faults: list[str] = []
    page.on(
        "console",
        lambda said: faults.append(f"{said.text} {said.location['url']}") if is_fault(said) else None,
    )
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{shop.origin}/login/" if framework == "django" else shop.origin)
    page.locator("input[name=username],input[name=email]").click(delay=80)
    page.keyboard.type("anna@example.com", delay=60)
    page.locator("input[name=password]").click(delay=80)
    page.keyboard.type(PASSWORD, delay=60)
    assert page.evaluate("typeof window.vettance.flush") == "function"
    page.locator("button").click(delay=80)
    page.wait_for_url(f"{shop.origin}/orders" if framework != "django" else f"{shop.origin}/")
    row = tenant.get("/api/v1/decisions?limit=1").json["data"][0]
    inputs = tenant.get(f"/api/v1/decisions/{row['id']}").json["inputs"]
    assert inputs["sessionSignals"]["keyCount"] >= 20
    assert faults == []
    context.close()
