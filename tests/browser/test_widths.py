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
    make_user(service, "widths@example.com", caller.id, "analyst", "editor", "admin")
    return caller


@pytest.fixture
def page(browser: Any, service: Service, desk: Caller) -> Iterator[Any]:
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, service, "widths@example.com")
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


@pytest.mark.parametrize("width", [700, 1100, 1280])
def test_no_figure_of_the_overview_is_alone_in_its_row(page: Any, service: Service, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{service.base_url}/console/")
    tops = page.eval_on_selector_all(".tiles > *", "all => all.map(one => one.getBoundingClientRect().top)")
    assert min(tops.count(top) for top in tops) > 1


@pytest.mark.parametrize("width", [380, 760, 1280])
def test_the_form_of_a_key_reaches_beyond_its_panel(page: Any, service: Service, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.goto(f"{service.base_url}/console/settings")
    page.click("text=Make a key")
    page.fill("#field-name", f"for {width}")
    page.click("text=Make it", timeout=5_000)
    assert page.locator(".made h2").inner_text() == f"A new key: for {width}"


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


@pytest.mark.parametrize("width", [641, 760, 1280])
def test_rows_of_work_on_many_events_are_one_line(
    page: Any, service: Service, desk: Caller, width: int
) -> None:
    for number in range(3):
        held(desk, 150, customer={"externalId": f"cus_5b0a2461fe{number}"})
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{service.base_url}/console/queue/bulk?choose=1")
    page.wait_for_selector("table.rows tbody tr")
    heights = page.eval_on_selector_all(
        "table.rows tbody tr", "all => all.map(row => row.getBoundingClientRect().height)"
    )
    assert max(heights) <= 40
