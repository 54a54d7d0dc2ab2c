"""Pages at widths between a telephone and a desk: nothing runs out of its place."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.test_console import sign_in
from tests.console.visitor import make_user
from tests.live import Caller, Service
from tests.reviews.conftest import held, holding_tenant


@pytest.fixture(scope="module")
def desk(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    caller = holding_tenant(service, tmp_path_factory.mktemp("widths"), "Widths")
    service.cli("tenant", "set", caller.id, "--aml", "on", "--json")
    make_user(service, "day@example.com", caller.id, "analyst", "editor", "admin")
    return caller


@pytest.fixture
def page(browser: Any, service: Service, desk: Caller) -> Iterator[Any]:
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, service)
    yield page
    context.close()


def test_an_e_mail_address_without_a_break_fits_on_a_telephone(
    page: Any, service: Service, desk: Caller
) -> None:
    decision = held(desk, 150, customer={"externalId": "c-long", "email": f"{'name' * 14}@mail.example"})
    page.set_viewport_size({"width": 380, "height": 900})
    page.goto(f"{service.base_url}/console/decisions/{decision}")
    assert page.locator(".address").count()
    ends = page.eval_on_selector_all(".address", "all => all.map(one => one.getBoundingClientRect().right)")
    assert max(ends) <= 380


@pytest.mark.parametrize("width", [641, 760, 1024, 1280])
@pytest.mark.parametrize("path", ["", "reports"])
def test_three_pictures_are_next_to_each_other(page: Any, service: Service, path: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{service.base_url}/console/{path}")
    tops = page.eval_on_selector_all(
        ".thirds > section", "all => all.map(one => one.getBoundingClientRect().top)"
    )
    assert (len(tops), len(set(tops))) == (3, 1)


@pytest.mark.parametrize("width", [700, 1280])
def test_modes_of_rules_are_whole_words(page: Any, service: Service, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{service.base_url}/console/rules/aml?q=shadow")
    heights = page.eval_on_selector_all(
        "td[data-label=Mode]",
        """all => all.map(one => {
          const text = document.createRange();
          text.selectNodeContents(one);
          return new Set([...text.getClientRects()].map((box) => box.top)).size;
        })""",
    )
    assert set(heights) == {1}
