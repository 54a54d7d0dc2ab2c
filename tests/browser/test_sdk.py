"""The SDK in a real browser, against a real service of another origin."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.browser.conftest import Shop, Visit

Open = Callable[..., Visit]


def test_a_page_of_another_origin_gets_a_decision(visit: Open) -> None:
    page = visit()
    decision = page.collect(eventName="user.login")
    assert set(decision) == {"eventId", "decision", "score", "eventCategory", "rulesEvaluated"}
    record = page.shop.tenant.get(f"/api/v1/events/{decision['eventId']}").json
    assert record["eventName"] == "user.login"
    assert record["sdkSignals"]["timezone"] == "Europe/Berlin"
    assert record["sdkSignals"]["timezoneOffset"] in (-60, -120)
    assert record["sdkSignals"]["acceptLanguage"].startswith("de-DE")
    assert page.page.evaluate("said.errors") == []


def test_a_batch_that_was_taken_reaches_the_next_evaluation(visit: Open) -> None:
    page = visit(flushEveryMs=0)
    page.type_like_a_person("#user", "anna")
    page.page.evaluate("sdk.flush()")
    assert page.page.evaluate("said.queued.length") == 1
    signals = page.evaluated()
    assert signals["sdk"] == "core"
    assert len(signals["keystrokeIntervals"]) >= 2
    assert signals["page"]["url"] == f"{page.shop.origin}/"


def test_counts_of_batches_add_up_to_those_of_the_page(visit: Open) -> None:
    page = visit(flushEveryMs=0)
    for _ in range(4):
        page.page.mouse.click(100, 30)
        page.page.evaluate("sdk.flush()")
    assert page.page.evaluate("said.queued.length") == 4
    page.collect("OTHER")
    assert page.sent("/collect")[-1]["sdkSignals"]["clickCount"] == 4
    assert page.evaluated()["clickCount"] == 4


def test_what_was_measured_is_delivered_when_the_page_is_left(visit: Open) -> None:
    page = visit(flushEveryMs=0)
    page.type_like_a_person("#user", "gone")
    assert page.sent("/websdk/signals") == []
    page.page.goto(f"{page.shop.origin}/plain")
    assert page.until(page.evaluated, "the signals")["keyCount"] == 4


def test_batches_wait_while_the_browser_is_offline_and_go_when_it_is_back(visit: Open) -> None:
    page = visit(flushEveryMs=200)
    page.wait("said.errors.length === 0")
    page.collect("OTHER")
    page.page.context.set_offline(True)
    page.type_like_a_person("#user", "offline")
    page.wait("said.errors.some((event) => event.what === 'signals')")
    assert page.page.evaluate("said.queued.length") == 0
    assert page.collect("OTHER") is None
    page.page.context.set_offline(False)
    page.until(lambda: page.evaluated().get("keyCount") == len("offline"), "every key")


def test_a_service_that_asks_for_patience_gets_it(visit: Open, shop: Shop) -> None:
    page = visit(flushEveryMs=0)
    asked: list[object] = []

    def answer(route: Any) -> None:
        asked.append(route.request)
        if len(asked) > 1:
            route.continue_()
            return
        open_to = {"access-control-allow-origin": shop.origin, "access-control-expose-headers": "retry-after"}
        route.fulfill(status=429, headers={**open_to, "retry-after": "7"}, json={"error": {}})

    page.page.route("**/websdk/signals", answer)
    page.page.clock.install()
    page.page.clock.pause_at(datetime.now(UTC) + timedelta(seconds=60))
    page.page.mouse.click(100, 30)
    page.page.evaluate("void sdk.flush()")
    page.wait("said.errors.some((event) => event.status === 429)")
    page.page.clock.run_for(6900)
    assert len(asked) == 1
    page.page.clock.run_for(200)
    page.wait("said.queued.length === 1")
    assert len(asked) == 2


def test_a_person_who_comes_from_another_page_of_the_session_is_not_nobody(visit: Open) -> None:
    page = visit(flushEveryMs=0)
    page.type_like_a_person("#user", "anna")
    page.page.evaluate("sdk.flush()")
    page.page.evaluate("sdk.page()")
    assert page.collect("TRANSACTION", eventName="payment.attempt")["decision"] == "ALLOW"
    page.page.evaluate("document.getElementById('note').value = 'put there by a script'")
    assert page.collect("TRANSACTION", eventName="payment.attempt")["decision"] != "ALLOW"


def test_a_mouse_that_jumps_and_keys_that_leave_no_gap_are_seen(visit: Open) -> None:
    page = visit()
    page.page.locator("#user").click()
    page.type("#user", "annaexample", [80], [79])
    page.page.locator("#note").click()
    page.collect()
    signals = page.sent("/collect")[-1]["sdkSignals"]
    assert signals["jumpCount"] == 1
    assert len(signals["keystrokeGaps"]) == 10
    assert all(0 < gap < 3 for gap in signals["keystrokeGaps"])
    person = visit()
    person.type_like_a_person("#user", "annaexample")
    person.collect()
    assert min(person.sent("/collect")[-1]["sdkSignals"]["keystrokeGaps"]) < 0


def test_a_token_is_renewed_at_four_fifths_of_its_life(visit: Open, shop: Shop, browser: object) -> None:
    page = visit()
    page.page.clock.install()
    page.page.reload()
    page.wait("window.sdk !== undefined")
    page.collect("OTHER")
    minted = len(shop.minted)
    page.page.clock.run_for(700_000)
    assert len(shop.minted) == minted
    page.page.clock.run_for(25_000)
    page.until(lambda: len(shop.minted) > minted, "a new token")
    assert len(shop.minted) == minted + 1


def test_a_refused_token_is_replaced_once(visit: Open, shop: Shop) -> None:
    page = visit()
    page.page.evaluate(
        """() => {
          const fetched = async () => (await fetch('/token', { method: 'POST' })).json()
          window.calls = 0
          const once = async () => ({ ...(await fetched()), ...(calls++ ? {} : { token: 'old' }) })
          window.second = make({ getToken: once })
          window.third = make({ getToken: async () => ({ ...(await fetched()), token: 'bad' }) })
        }"""
    )
    assert page.page.evaluate("second.collect({ category: 'OTHER' })") is not None
    assert page.page.evaluate("calls") == 2
    before = len(page.sent("/collect"))
    assert page.page.evaluate("third.collect({ category: 'OTHER' })") is None
    assert len(page.sent("/collect")) == before + 2
    assert page.page.evaluate("said.errors.at(-1)") == {"what": "collect", "status": 401}


def test_a_token_of_another_origin_gets_nothing(visit: Open, shop: Shop) -> None:
    shop.claims = {"origin": "https://elsewhere.example"}
    page = visit()
    assert page.collect("OTHER") is None
    assert page.page.evaluate("said.errors.at(-1).status") == 401


def test_a_wrong_clock_is_put_right(visit: Open) -> None:
    page = visit(before="const real = Date.now; Date.now = () => real() - 3_600_000;", flushEveryMs=100)
    page.page.mouse.click(100, 30)
    page.wait("said.queued.length > 0")
    assert page.page.evaluate("said.errors") == []


def test_paste_is_seen_and_what_was_pasted_is_not_sent(visit: Open) -> None:
    page = visit()
    page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.page.evaluate("navigator.clipboard.writeText('CANARY-PASTED')")
    page.page.locator("#user").focus()
    page.page.keyboard.press("Control+V")
    assert page.page.locator("#user").input_value() == "CANARY-PASTED"
    page.collect()
    signals = page.sent("/collect")[-1]["sdkSignals"]
    assert signals["paste"] is True
    assert signals["fields"] == {"filled": 1, "pasted": 1}


def test_the_ways_in_which_fields_are_filled_are_told_apart(visit: Open) -> None:
    page = visit()
    page.type_like_a_person("#user", "me")
    page.page.locator("#secret").fill("by the driver")
    page.page.evaluate("document.getElementById('note').value = 'without any event'")
    page.collect()
    fields = page.sent("/collect")[-1]["sdkSignals"]["fields"]
    assert fields == {"filled": 3, "typed": 1, "inserted": 1, "silent": 1}


def test_typing_like_a_person_and_like_a_machine_give_other_decisions(visit: Open) -> None:
    person = visit()
    person.type_like_a_person("#user", "annaexample")
    person.page.mouse.click(100, 30, delay=80)
    assert person.collect()["decision"] == "ALLOW"
    machine = visit()
    machine.type("#user", "annaexample", [80], [79])
    assert machine.collect()["decision"] != "ALLOW"


def test_keys_of_no_length_at_a_pace_of_fingers_are_held_where_nobody_points(visit: Open) -> None:
    pauses_ms = (143, 88, 201, 120, 310, 97, 260, 76, 180)
    program = visit()
    program.type("#user", "annaexamplecom", pauses_ms, [1, 2, 14, 1])
    assert program.collect()["decision"] != "ALLOW"
    person = visit()
    person.type("#user", "annaexamplecom", pauses_ms, [92, 104, 81, 110, 73])
    assert person.collect()["decision"] == "ALLOW"


def test_a_stall_in_the_middle_of_a_way_does_not_tear_it(visit: Open) -> None:
    page = visit(flushEveryMs=0)
    line = page.page.context.new_cdp_session(page.page)
    at_s = time.time()
    for step in range(8):
        at_s += 0.22 if step == 4 else 0.016
        place = {"x": 40 + 30 * step, "y": 20 + 10 * step, "timestamp": at_s}
        line.send("Input.dispatchMouseEvent", {"type": "mouseMoved", **place})
    page.collect()
    mouse = page.sent("/collect")[-1]["sdkSignals"]["mouse"]
    assert mouse["strokes"] == 1
    assert mouse["turn"] < 0.02


def test_a_mouse_that_reports_a_thousand_times_a_second_has_the_steps_of_the_hand(visit: Open) -> None:
    page = visit(flushEveryMs=0)
    line = page.page.context.new_cdp_session(page.page)
    at_s = time.time()
    before = 0
    for tick in range(401):
        share = tick / 400
        across = round(220 * share**3 * (10 - 15 * share + 6 * share**2))
        # Nearly all of its steps are of one pixel, however fast the hand is.
        if across != before:
            place = {"x": 40 + across, "y": 30, "timestamp": at_s + tick / 1000}
            line.send("Input.dispatchMouseEvent", {"type": "mouseMoved", **place})
        before = across
    page.collect()
    assert page.sent("/collect")[-1]["sdkSignals"]["mouse"]["stepSpread"] > 0.5


CANARIES = ("CANARYUSER", "CANARYSECRET", "CANARYNOTE", "CANARYQUERY", "CANARYHASH")


@pytest.mark.parametrize("build", ["core", "full"])
def test_nothing_typed_ever_leaves_and_nobody_else_is_called(visit: Open, build: str) -> None:
    page = visit(build=build, flushEveryMs=100)
    page.page.evaluate("history.replaceState({}, '', '?full&q=CANARYQUERY#CANARYHASH')")
    for field, canary in zip(("#user", "#secret", "#note"), CANARIES, strict=False):
        page.page.locator(field).press_sequentially(canary, delay=5)
    page.page.mouse.move(300, 200, steps=12)
    page.page.locator("#go").click()
    if build == "full":
        page.collect_with_device()
    page.wait("said.queued.length > 0")
    page.collect(amount=5)
    page.page.goto(f"{page.shop.origin}/plain")
    own = (page.shop.origin, page.shop.tenant.service.base_url)
    for request in page.requests:
        assert request.url.startswith((*own, "data:", "about:", "blob:")), request.url
    bodies = [each.post_data or "" for each in page.requests if "/api/v1/" in each.url]
    assert len(bodies) >= 2
    for body in bodies:
        assert not [canary for canary in CANARIES if canary.lower() in body.lower()]
        assert "clientX" not in body
        assert len(body) <= 16_384


@pytest.mark.parametrize("build", ["core", "full"])
def test_the_strictest_policies_are_kept(visit: Open, build: str) -> None:
    page = visit(build=build)
    assert (page.collect_with_device() if build == "full" else page.collect("OTHER")) is not None
    assert page.page.evaluate("said.violations") == []
    assert page.page.evaluate("said.errors") == []


def test_the_full_build_names_the_device_the_same_twice(visit: Open) -> None:
    found = []
    for _ in range(2):
        page = visit(build="full")
        decision = page.collect_with_device()
        record = page.shop.tenant.get(f"/api/v1/events/{decision['eventId']}").json
        found.append(record["device"]["fingerprint"])
        assert record["sdkSignals"]["headless"] is True
        assert record["sdkSignals"]["webdriver"] is False
    assert found[0] == found[1]
    assert len(found[0]) == 32


def test_without_consent_nothing_is_measured_stored_or_queued(visit: Open) -> None:
    page = visit(consent=False, flushEveryMs=50)
    page.type_like_a_person("#user", "private")
    page.page.evaluate("sdk.flush()")
    assert page.collect("OTHER") is not None
    assert "sdkSignals" not in page.sent("/collect")[-1]
    assert page.sent("/websdk/signals") == []
    assert page.page.evaluate("localStorage.length") == 0


def test_forgetting_deletes_and_stops(visit: Open) -> None:
    page = visit(flushEveryMs=50)
    page.page.mouse.click(100, 30)
    page.wait("said.queued.length > 0")
    assert page.page.evaluate("localStorage.length") == 1
    page.page.evaluate("sdk.forget()")
    sent = len(page.sent("/websdk/signals"))
    page.page.mouse.click(100, 30)
    page.page.evaluate("sdk.flush()")
    page.page.wait_for_timeout(200)
    assert len(page.sent("/websdk/signals")) == sent
    assert page.page.evaluate("localStorage.length") == 0


def test_a_navigation_within_the_page_begins_a_new_account(visit: Open) -> None:
    page = visit(flushEveryMs=100)
    page.type_like_a_person("#user", "one")
    page.page.evaluate("history.pushState({}, '', '/second')")

    def on_the_second() -> list[dict[str, object]]:
        page.page.mouse.click(100, 30)
        sent = page.sent("/websdk/signals")
        return [each for each in sent if each["page"]["url"] == f"{page.shop.origin}/second"]

    page.until(on_the_second, "a batch of the second page")
    page.collect("OTHER")
    assert page.sent("/collect")[-1]["sdkSignals"]["keystrokeIntervals"] == []


@pytest.mark.parametrize(
    "options",
    [
        {"endpoint": "http://127.0.0.1:9", "collectTimeoutMs": 500},
        {"endpoint": "nonsense", "collectTimeoutMs": 500},
    ],
)
def test_a_service_that_is_away_never_breaks_the_page(visit: Open, options: dict[str, object]) -> None:
    page = visit()
    faults: list[object] = []
    page.page.on("pageerror", lambda fault: faults.append(fault))  # noqa: PLW0108
    answer = page.page.evaluate(
        "async (options) => { const one = make(options); await one.start(); one.page(); one.identify('u');"
        " await one.flush(); return await one.collect({ category: 'OTHER' }) }",
        options,
    )
    assert answer is None
    page.page.wait_for_timeout(200)
    assert faults == []


def test_a_token_that_cannot_be_had_is_told_and_harms_nothing(visit: Open) -> None:
    page = visit()
    faults: list[object] = []
    page.page.on("pageerror", lambda fault: faults.append(fault))  # noqa: PLW0108
    answer = page.page.evaluate(
        "async () => { const one = make({ getToken: () => Promise.reject(new Error('no')) });"
        " await one.start(); return await one.collect({ category: 'OTHER' }) }"
    )
    assert answer is None
    page.page.wait_for_timeout(100)
    assert faults == []
    assert {"what": "token"} in page.page.evaluate("said.errors")
