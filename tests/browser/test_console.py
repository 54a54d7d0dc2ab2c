"""The console in a real browser: work by keyboard, nothing that axe finds, nothing from elsewhere."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.visitor import PASSWORD, Visitor, make_user
from tests.live import Caller, Service
from tests.reviews.conftest import held, holding_tenant

AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()
TAGS = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']"
#: The rules among them that look at colours.
COLOUR_RULES = "{type: 'rule', values: ['color-contrast', 'link-in-text-block']}"
CHECK = """axe.run(document, {runOnly: %s}).then((found) => found.violations.map(
  (one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`))"""
#: All of a page but its colours: its elements, the text that is shown, and where each element is.
LAYOUT = """[document.documentElement.outerHTML, document.body.innerText,
  ...[...document.querySelectorAll("*")].map((one) => JSON.stringify(one.getBoundingClientRect()))
].join()"""
PAGES = (
    *("", "queue", "decisions", "lists", "aml/alerts", "aml/cases", "aml/screen", "reports", "webhooks"),
    *("settings", "settings/users", "audit", "profile", "second-factor/set-up", "search?q=nothing"),
    *("models", "queue/bulk", "rules", "rules/aml", "rules/edit", "rules/suggestions", "rules/versions/2"),
    *("models/features", "models/features/edit", "models/features/versions/1"),
    *("rules/aml/high-risk-large", "rules/backtests", "rules/aml/backtests"),
)
#: Compressed bytes of everything that a page loads.
WEIGHT_MAX = 150_000
FIRST_MAX = 60_000


@pytest.fixture(scope="module")
def desk(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    caller = holding_tenant(service, tmp_path_factory.mktemp("desk"), "Browser desk")
    service.cli("tenant", "set", caller.id, "--aml", "on", "--json")
    own = tmp_path_factory.mktemp("own") / "own.yaml"
    own.write_text("twice: {value: metadata.amount * 2, family: amount, text: twice the amount}\n")
    service.cli("model", "features", "push", str(own), "--tenant", caller.id, "--json")
    for one in caller.get("/api/v1/reviews?state=open").json["data"]:
        caller.post(f"/api/v1/reviews/{one['decisionId']}/settle", {"outcome": "approve"})
    roles = ("analyst", "lead", "editor", "admin", "auditor")
    make_user(service, "day@example.com", caller.id, *roles)
    return caller


def sign_in(page: Any, service: Service, email: str = "day@example.com") -> None:
    page.goto(f"{service.base_url}/console/sign-in")
    page.fill("#field-email", email)
    page.fill("#field-password", PASSWORD)
    page.click("button.primary")
    page.wait_for_url("**/console/")


@pytest.fixture
def page(browser: Any, service: Service, desk: Caller) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=False)
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(message.text) if message.type == "error" else None)
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url))
    sign_in(page, service)
    yield page
    context.close()


def test_ten_reviews_are_taken_by_keyboard(page: Any, service: Service, desk: Caller) -> None:
    waiting = [held(desk, 200 + number) for number in range(10)]
    page.goto(f"{service.base_url}/console/queue")
    page.keyboard.press("n")
    page.wait_for_url("**/console/decisions/**")
    for number in range(10):
        before = page.url
        page.keyboard.press("a" if number % 2 else "d")
        page.wait_for_url(lambda url, before=before: url != before and "settled=" in url)
    settled = [desk.get(f"/api/v1/reviews/{one}").json for one in waiting]
    assert {one["state"] for one in settled} == {"settled"}
    assert {one["outcome"] for one in settled} == {"approve", "deny"}
    page.keyboard.press("u")
    page.wait_for_selector("text=Taken back")
    states = [desk.get(f"/api/v1/reviews/{one}").json["state"] for one in waiting]
    assert sorted(states) == ["claimed", *["settled"] * 9]


def test_one_press_decides_one_review(page: Any, service: Service, desk: Caller) -> None:
    page.clock.install()
    for number in range(4):
        held(desk, 400 + number)

    # Of whatever waits: other tests leave reviews behind, and any may be the next one.
    def count_settled() -> int:
        return int(desk.get("/api/v1/reviews?state=settled&limit=1").json["total"])

    before = count_settled()

    def settled() -> int:
        return count_settled() - before

    page.goto(f"{service.base_url}/console/queue")
    page.keyboard.press("n")
    page.wait_for_url("**/console/decisions/**")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)
    first = page.url
    # A key that is held down goes on into the page of the next review.
    page.keyboard.down("a")
    page.wait_for_url(lambda url: url != first and "settled=" in url)
    second = page.url
    for _ in range(3):
        page.keyboard.down("a")
    page.keyboard.up("a")
    # So does a double click, whose second half the next page gets.
    page.locator("button[data-key=d]").click()
    assert (page.url, settled()) == (second, 1)
    page.clock.run_for(1000)
    page.locator("button[data-key=d]").click()
    page.wait_for_url(lambda url: url != second and "settled=" in url)
    assert settled() == 2
    # What can't be taken back any more is not offered.
    assert page.locator("button[data-key=u]").count() == 1
    page.clock.run_for(11_000)
    assert page.locator("button[data-key=u]").count() == 0


def test_a_part_that_gets_no_answer_says_so_until_it_does(page: Any, service: Service) -> None:
    page.clock.install()
    page.goto(f"{service.base_url}/console/")
    page.context.set_offline(True)
    page.clock.run_for(11_000)
    page.wait_for_selector("text=The service does not answer")
    page.context.set_offline(False)
    page.clock.run_for(11_000)
    page.wait_for_selector("text=The service does not answer", state="detached")


def test_a_device_is_blocked_from_a_decision(page: Any, service: Service, desk: Caller) -> None:
    decision = held(desk, 300, device={"fingerprint": "fp-browser"}, customer={"externalId": "c-browser"})
    page.goto(f"{service.base_url}/console/decisions/{decision}")
    page.keyboard.press("b")
    page.click("text=Put on the list")
    page.wait_for_selector("text=Added to the list")
    assert {one["value"] for one in desk.get("/api/v1/lists").json["data"]} == {"fp-browser"}
    page.goto(f"{service.base_url}/console/entities/customer/c-browser")
    assert page.locator("svg.graph").count() == 1


@pytest.fixture(scope="module")
def full_pages(browser: Any, service: Service, desk: Caller) -> list[str]:
    """Make what has a page only once it is there; returns these pages: changes tried, a request in bulk."""
    found = []
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, service)
    sent = {"eventName": "transfer.sent", "customer": {"externalId": "c-axe"}, "externalEventId": "axe"}
    money = {"amount": 12_000, "currency": "EUR", "direction": "out", "counterpartyCountry": "KP"}
    body = {**sent, "metadata": {**money, "counterpartyId": "x-axe"}}
    service.wait_for(lambda: desk.post("/api/v1/aml/events", body).status == 200, seconds=10)
    found.append("aml/events/axe")
    for rule in ("large", "aml/call-for-action"):
        page.goto(f"{service.base_url}/console/rules/{rule}")
        page.fill("#field-score", "1")
        page.click("text=Try on the last 30 days")
        page.wait_for_url("**/backtests/**")
        page.wait_for_selector("progress", state="detached", timeout=100_000)
        found.append(page.url.partition("/console/")[2].partition("?")[0])
        page.wait_for_selector("text=Events that would be answered otherwise")
    for number in range(51):
        held(desk, 150, customer={"externalId": f"bulk-{number}"})
    page.goto(f"{service.base_url}/console/queue/bulk?choose=1")
    page.check("input[value=approve]")
    page.fill("#bulk-note", "Our own tests.")
    page.click("text=Ask to settle")
    page.wait_for_url(lambda url: "/bulk/" in url)
    found.append("queue/bulk?choose=1")
    found.append(page.url.partition("/console/")[2].partition("?")[0])
    page.goto(f"{service.base_url}/console/rules/suggestions")
    page.fill("#field-rule_id", "large")
    page.fill("#field-load", "10")
    page.click("text=Draw its curve")
    page.wait_for_selector("text=Completed", timeout=100_000)
    found.append(page.url.partition("/console/")[2])
    service.cli("tenant", "set", desk.id, "--rule-approval", "on")
    page.goto(f"{service.base_url}/console/models")
    page.select_option("select[name=mode]", "active")
    page.click("text=Save")
    page.wait_for_selector("text=Proposed: it takes effect")
    context.close()
    return found


@pytest.fixture(scope="module")
def kept_pages(service: Service, desk: Caller) -> list[str]:
    """Make what is linked, sent or snoozed; returns the pages that show it."""
    visitor = Visitor(service.base_url)
    visitor.sign_in("day@example.com")
    snooze = {"rule": "large", "type": "DEVICE", "value": "fp-axe", "expiry": "1d", "reason": "Ours."}
    assert visitor.submit("/console/rules", "/console/rules/snoozes", **snooze).status == 303
    webhook = {"url": "https://hooks.example.com/axe", "eventType": ["EVENT_RISK_EVALUATED"]}
    made = visitor.submit("/console/webhooks", "/console/webhooks", **webhook)
    subscription = made.location.rpartition("/")[2]
    for number in range(2):
        customer = {"externalId": f"c-linked-{number}", "email": f"linked-{number}@example.com"}
        held(desk, 150, customer=customer, device={"fingerprint": "fp-linked"}, sessionId="s-linked")
    shown = f"/console/webhooks/{subscription}"
    service.wait_for(lambda: "Send again" in visitor.get(shown).words)
    case = re.findall(r"aml/cases/cas_\w+", visitor.get("/console/aml/cases").text)[0]
    entities = ("entities/customer/c-linked-0", "entities/device/fp-linked", "sessions/s-linked")
    return [*entities, "rules/large", f"webhooks/{subscription}", case]


@pytest.fixture(scope="module")
def paths(desk: Caller, full_pages: list[str], kept_pages: list[str]) -> list[str]:
    """Return every kind of page, full ones as well."""
    decision = held(desk, 250)
    return [*PAGES, f"decisions/{decision}", f"decisions/{decision}?replay=on", *full_pages, *kept_pages]


@pytest.mark.timeout(600)
def test_no_page_has_a_fault_and_nothing_comes_from_elsewhere(
    page: Any, service: Service, paths: list[str]
) -> None:
    for path in paths:
        page.said.clear()
        page.goto(f"{service.base_url}/console/{path}")
        assert page.said == [], path
        # A label leads to the first field that has the id it names.
        ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
        assert [one for one in set(ids) if ids.count(one) > 1] == [], path
        bare = "all => all.filter(one => !one.labels.length && !one.ariaLabel).map(one => one.outerHTML)"
        fields = "input:not([type=hidden]), select, textarea"
        assert page.eval_on_selector_all(fields, bare) == [], path
    assert {
        url for url in page.asked if not url.startswith(service.base_url) and not url.startswith("data:")
    } == set()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [1440, 380])
def test_axe_finds_nothing_in_either_theme(
    browser: Any, page: Any, service: Service, paths: list[str], width: int
) -> None:
    # axe is put into the page from outside, which the page's own policy would forbid.
    checked = browser.new_context(
        storage_state=page.context.storage_state(),
        viewport={"width": width, "height": 900},
        color_scheme="light",
        bypass_csp=True,
    )
    other = checked.new_page()
    faults: list[str] = []
    for path in paths:
        other.emulate_media(color_scheme="light")
        other.goto(f"{service.base_url}/console/{path}")
        other.evaluate(AXE)
        faults += [f"{path}: {one}" for one in other.evaluate(CHECK % TAGS)]
        wide = other.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, path
        # The other theme changes colours and nothing else, so the other rules would find the same again.
        layout = other.evaluate(LAYOUT)
        other.emulate_media(color_scheme="dark")
        assert other.evaluate(LAYOUT) == layout, path
        faults += [f"{path} (dark): {one}" for one in other.evaluate(CHECK % COLOUR_RULES)]
    checked.close()
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("settings/users", {"email": "invited@example.com", "role": "viewer"}),
        ("settings/keys", {"name": "narrow", "scope": "read"}),
        ("webhooks", {"url": "https://hooks.example.com/narrow", "eventType": "EVENT_RISK_EVALUATED"}),
    ],
)
def test_what_is_shown_once_fits_on_a_narrow_screen(
    page: Any, service: Service, path: str, fields: dict[str, str]
) -> None:
    page.set_viewport_size({"width": 380, "height": 900})
    page.goto(f"{service.base_url}/console/{path.removesuffix('/keys')}")
    send = """([action, fields]) => {
      const form = document.querySelector(`form[method=post][action="/console/${action}"]`);
      for (const [name, value] of Object.entries(fields)) form.append(
        Object.assign(document.createElement("input"), {type: "hidden", name, value}));
      form.querySelectorAll("[required]").forEach((one) => one.remove());
      form.submit();
    }"""
    with page.expect_navigation():
        page.evaluate(send, [path, fields])
    assert page.locator(".made code").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


@pytest.mark.parametrize("width", [1440, 380])
def test_a_link_next_to_text_is_known_by_more_than_its_colour(
    page: Any, service: Service, full_pages: list[str], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{service.base_url}/console/aml/alerts")
    lines = page.eval_on_selector_all(
        "td > a:has(+ p)", "all => all.map((one) => getComputedStyle(one).textDecorationLine)"
    )
    assert set(lines) == {"underline"}


@pytest.mark.parametrize("path", ["aml/cases", "aml/alerts"])
def test_the_button_of_a_row_of_filters_is_level_with_its_fields(
    page: Any, service: Service, path: str
) -> None:
    page.goto(f"{service.base_url}/console/{path}")
    bottoms = page.eval_on_selector_all(
        "form.filters :is(select, input, button)",
        "all => all.map((one) => one.getBoundingClientRect().bottom)",
    )
    assert len(set(bottoms)) == 1


def test_a_session_is_read_on_a_telephone(page: Any, service: Service, desk: Caller) -> None:
    for minute in (0, 7):
        event = {
            "eventName": "page.viewed",
            "sessionId": "small",
            "occurredAt": f"2026-11-20T10:0{minute}:00Z",
        }
        assert desk.post("/api/v1/events", event).status == 201
    page.set_viewport_size({"width": 380, "height": 900})
    page.goto(f"{service.base_url}/console/sessions/small")
    heights = page.eval_on_selector_all(
        "svg.time-line :is(text, circle)", "all => all.map((one) => one.getBoundingClientRect().height)"
    )
    assert len(heights) >= 5
    assert min(heights) >= 11
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


@pytest.mark.parametrize("path", ["", "reports"])
def test_the_words_of_charts_are_read_on_a_telephone(page: Any, service: Service, path: str) -> None:
    page.set_viewport_size({"width": 380, "height": 900})
    page.goto(f"{service.base_url}/console/{path}")
    heights = page.eval_on_selector_all(
        ".chart span, svg.picture text", "all => all.map((one) => one.getBoundingClientRect().height)"
    )
    assert len(heights) >= 9
    assert min(heights) >= 11


def test_pages_are_light(page: Any, service: Service) -> None:
    sizes: dict[str, int] = {}

    def weigh(response: Any) -> None:
        if response.url.startswith(service.base_url) and response.status == 200:
            packed = response.headers.get("content-encoding") == "gzip"
            body = response.body()
            sizes[response.url] = len(gzip.compress(body)) if packed else len(body)

    for path in ("", "queue", "reports"):
        sizes.clear()
        fresh = page.context.browser.new_context(storage_state=page.context.storage_state())
        tab = fresh.new_page()
        tab.on("response", weigh)
        tab.goto(f"{service.base_url}/console/{path}", wait_until="load")
        tab.wait_for_timeout(200)
        fresh.close()
        assert sum(sizes.values()) <= (FIRST_MAX if path == "" else WEIGHT_MAX), (path, sizes)
        assert not [url for url in sizes if re.search(r"uplot", url) and path == ""]


@pytest.mark.parametrize("width", [1440, 380])
def test_a_refused_form_is_in_sight_with_what_was_typed_and_without_scripts(
    browser: Any, page: Any, service: Service, width: int
) -> None:
    plain = browser.new_context(
        storage_state=page.context.storage_state(),
        viewport={"width": width, "height": 700},
        bypass_csp=True,
    )
    other = plain.new_page()
    other.route("**/*.js", lambda route: route.abort())
    other.goto(f"{service.base_url}/console/lists")
    other.click("details.adder summary")
    form = other.locator("details.adder form")
    form.locator("[name=type]").select_option("IP")
    form.locator("[name=value]").fill("300.1.2.3")
    form.locator("[name=reason]").fill("Our office")
    form.locator("button").click()
    other.wait_for_selector(".refused")
    assert form.locator("[name=value]").input_value() == "300.1.2.3"
    assert form.locator("[name=reason]").input_value() == "Our office"
    # A browser moves the focus a moment after it has shown the page.
    other.wait_for_selector("details.adder form [name=value]:focus", timeout=5_000)
    assert "IPv4" in form.locator(".fault").inner_text()
    place = form.bounding_box()
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= width
    other.evaluate(AXE)
    assert other.evaluate(CHECK % TAGS) == []
    form.locator("[name=value]").fill("203.0.113.77")
    form.locator("button").click()
    other.wait_for_selector(".notice")
    plain.close()


def test_the_head_of_the_rules_stays_in_sight(page: Any, service: Service) -> None:
    page.goto(f"{service.base_url}/console/rules")
    page.set_viewport_size({"width": 1440, "height": 200})
    head = page.locator("section:has(#rules) thead th").first
    page.evaluate("document.querySelector('section:has(#rules) tbody tr:last-child').scrollIntoView()")
    assert 0 <= head.bounding_box()["y"] < 200


@pytest.mark.parametrize("width", [641, 700, 900, 1024, 1280])
def test_rows_of_lists_are_low_on_narrow_screens(
    page: Any, service: Service, desk: Caller, width: int
) -> None:
    customer = {"externalId": "cus_5b0a2461fec3", "email": "somebody.with.a.name@mail.example"}
    held(
        desk,
        150,
        customer=customer,
        device={"fingerprint": "5b0a2461fec3" * 4},
        ip="203.0.113.199",
        country="DE",
    )
    entry = {
        "type": "DEVICE",
        "value": "0a1b" * 12,
        "listType": "block",
        "reason": "Seen with other cards. " * 20,
    }
    desk.post("/api/v1/lists", entry)
    page.set_viewport_size({"width": width, "height": 900})
    for path, most in (("decisions", 40), ("queue", 40), ("lists", 90 if width < 761 else 66)):
        page.goto(f"{service.base_url}/console/{path}")
        lines = page.eval_on_selector_all(
            "table.rows tbody tr", "all => all.map(row => row.getBoundingClientRect().height)"
        )
        # One line; on the lists three at most, two from half a screen on.
        assert max(lines) <= most, (path, lines)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        broken = page.eval_on_selector_all(
            "table.rows td time", "all => all.filter(one => one.getClientRects().length > 1).length"
        )
        assert broken == 0, path


def test_what_is_typed_stays_while_the_service_is_away(page: Any, service: Service, desk: Caller) -> None:
    decision = held(desk, 150)
    page.goto(f"{service.base_url}/console/decisions/{decision}")
    page.keyboard.press("l")
    page.locator("details[open] select").select_option("FRAUD")
    page.locator("details[open] textarea").fill("Called the customer.")
    page.context.set_offline(True)
    page.locator("details[open] button").click()
    page.wait_for_selector("text=so this was not sent")
    assert page.locator("details[open] textarea").input_value() == "Called the customer."
    page.context.set_offline(False)
    page.locator("details[open] button").click()
    page.wait_for_selector("text=Called the customer.")
    record = desk.get(f"/api/v1/decisions/{decision}").json
    assert [one["notes"] for one in record["feedback"]] == ["Called the customer."]


#: Whether what has the focus can be seen: nothing lies upon it.
SEEN = """() => {
  const focused = document.activeElement, box = focused.getBoundingClientRect();
  const top = document.elementFromPoint(box.x + Math.min(box.width, 20) / 2, box.y + box.height / 2);
  return top !== null && (focused.contains(top) || top.contains(focused));
}"""


def test_what_has_the_focus_is_never_covered(page: Any, service: Service, desk: Caller) -> None:
    for number in range(30):
        held(desk, 150, customer={"externalId": f"covered-{number}"})
    page.set_viewport_size({"width": 1100, "height": 500})
    page.goto(f"{service.base_url}/console/decisions")
    for key in "j" * 30 + "k" * 20:
        page.keyboard.press(key)
        assert page.evaluate(SEEN)
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        assert page.evaluate(SEEN), page.evaluate("document.activeElement.outerHTML")


def test_a_menu_closes_behind_the_focus_and_fits_a_low_window(page: Any, service: Service) -> None:
    page.set_viewport_size({"width": 700, "height": 320})
    page.goto(f"{service.base_url}/console/lists")
    page.focus("details.menu summary")
    page.keyboard.press("Enter")
    last = page.locator("details.menu a").last
    last.scroll_into_view_if_needed()
    last.focus()
    assert page.evaluate(SEEN)
    page.keyboard.press("Tab")
    assert page.locator("details.menu[open]").count() == 0
    page.focus("details.account summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.parentElement.className") == "account"
    page.set_viewport_size({"width": 1100, "height": 500})
    page.keyboard.press("n")
    assert page.locator("details.adder[open]").count() == 1
    page.focus("#find")
    assert page.locator("details.adder[open]").count() == 0


def test_a_double_click_makes_one_key(page: Any, service: Service) -> None:
    page.goto(f"{service.base_url}/console/settings")
    page.click("summary:has-text('Make a key')")
    page.fill("form[action='/console/settings/keys'] input[name=name]", "clicked twice")
    page.dblclick("form[action='/console/settings/keys'] button")
    page.wait_for_selector(".made code")
    assert page.locator("td[data-label=Name]", has_text="clicked twice").count() == 1
