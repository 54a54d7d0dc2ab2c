"""Pages of work that goes on behind them, in a real browser: they follow it and leave what is typed."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.test_console import sign_in
from tests.console.visitor import make_user
from tests.live import Caller, Service
from tests.reviews.conftest import holding_tenant


@pytest.fixture(scope="module")
def desk(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    caller = holding_tenant(service, tmp_path_factory.mktemp("jobs"), "Jobs")
    make_user(service, "jobs@example.com", caller.id, "editor", "admin")
    return caller


@pytest.fixture
def page(browser: Any, service: Service, desk: Caller) -> Iterator[Any]:
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, service, "jobs@example.com")
    yield page
    context.close()


def test_the_page_of_models_follows_a_training_and_keeps_what_is_chosen(page: Any, service: Service) -> None:
    page.goto(f"{service.base_url}/console/models")
    page.click("text=Train now")
    page.wait_for_selector("text=A training is asked for or running.")
    page.select_option("select[name=mode]", "active")
    page.focus("select[name=mode]")
    # Nobody has labelled anything, so it ends without a model.
    page.wait_for_selector("text=The last training gave no model", timeout=60_000)
    assert page.locator("text=A training is asked for").count() == 0
    assert page.eval_on_selector("select[name=mode]", "one => one.value") == "active"
    assert page.evaluate("document.activeElement.name") == "mode"


def test_nothing_says_that_work_is_ordered_once_it_has_ended(page: Any, service: Service) -> None:
    page.goto(f"{service.base_url}/console/rules/backtests")
    page.click("text=Try it")
    page.wait_for_selector("text=Answered otherwise", timeout=60_000)
    assert page.locator(".notice").count() == 0
    page.goto(f"{service.base_url}/console/rules/suggestions")
    page.fill("#field-rule_id", "large")
    page.fill("#field-load", "10")
    page.click("text=Draw its curve")
    page.wait_for_selector("text=Completed", timeout=60_000)
    assert page.locator(".notice").count() == 0
