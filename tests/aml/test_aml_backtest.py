"""AML rules tried on the past: those in force give what was decided, others what would have been."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.aml.watched_money import WatchedMoney, bank_of
from tests.live import Caller
from vettance import clock
from vettance.aml.features import aml_schema
from vettance.backtests.aml_backtest import AmlBacktest, TriedEvent
from vettance.clock import DAY_MS
from vettance.commands import open_store
from vettance.db.engine import Statement
from vettance.db.tables import AML_EVENT
from vettance.decisions.active_rulesets import active_rules
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import compile_document
from vettance.velocity.memory.memory_velocity import MemoryVelocity

ROOT = "/api/v1/aml/backtests"
EVER = (0, 2**62)


def awaited(caller: Caller, body: dict[str, Any], seconds: float = 120.0) -> dict[str, Any]:
    """Order a backtest and wait for its end."""
    ordered = caller.post(ROOT, body)
    assert ordered.status == 202, ordered.body
    until = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = caller.get(f"{ROOT}/{ordered.json['backtestId']}").json
        if found["state"] not in ("queued", "running"):
            assert found["state"] == "completed", found
            return found
        assert time.monotonic() < until, found
        time.sleep(0.2)


def tried_here(
    caller: Caller, document: str, *, by_records: bool, span: tuple[int, int] = EVER
) -> tuple[AmlBacktest, dict[str, TriedEvent]]:
    """Try rules on what a service watched, in this process."""
    tried: dict[str, TriedEvent] = {}

    async def run() -> AmlBacktest:
        active = active_rules(1, "", *compile_document(document, aml_schema()))
        async with open_store(str(caller.service.data)) as (store, _):
            test = AmlBacktest(store, caller.id, active, MemoryVelocity, by_records=by_records)
            await test.run(span, lambda one: tried.update({one.id: one}), lambda _count: None)
            return test

    return asyncio.run(run()), tried


@pytest.fixture
def environment(money: WatchedMoney, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the service of the bank finds in its environment."""
    for name, value in money.caller.service.env.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("by_records", [True, False])
def test_the_rules_in_force_give_event_by_event_what_was_answered(
    money: WatchedMoney, *, by_records: bool
) -> None:
    test, tried = tried_here(money.caller, load_pack_text("aml"), by_records=by_records)
    assert test.is_by_records == by_records
    answered = {one["id"]: [alert["ruleId"] for alert in one["alerts"]] for one in money.answers}
    assert {event: list(one.now) for event, one in tried.items()} == answered
    assert {event: list(one.was) for event, one in tried.items()} == answered
    assert (test.flips, test.skipped) == (0, 0)
    assert test.before == test.after
    assert sum(ends.raised for ends in test.after.values()) > 20
    assert sum(ends.true_matches for ends in test.after.values()) > 5


def harsher(document: str) -> str:
    """Return a rule set of lower numbers and higher scores that counts nothing else."""
    rules = yaml.safe_load(document)
    for rule in rules["rules"]:
        rule["when"] = re.sub(
            r"\) >= (\d+)$", lambda found: f") >= {max(1, int(found[1]) // 2)}", rule["when"].strip()
        )
        rule["score"] = min(100, rule["score"] + 30)
        rule.pop("tests", None)
    return str(yaml.safe_dump(rules, sort_keys=False))


@pytest.mark.usefixtures("environment")
def test_records_say_what_watching_anew_says(money: WatchedMoney) -> None:
    document = harsher(load_pack_text("aml"))
    now_ms = clock.now_ms()
    for span in (EVER, (now_ms - 20 * DAY_MS, now_ms - 5 * DAY_MS)):
        found = []
        for by_records in (True, False):
            test, tried = tried_here(money.caller, document, by_records=by_records, span=span)
            assert test.is_by_records == by_records
            found.append((test.counts, test.days, test.hits, test.before, test.after, test.skipped, tried))
        assert found[0] == found[1]
        assert found[0][0][None, False, True] > 0
        assert sum(ends.raised for ends in found[0][4].values()) > 0


@pytest.mark.usefixtures("environment")
def test_what_no_record_holds_is_watched_anew(money: WatchedMoney) -> None:
    document = (
        "name: other\nrules:\n  - {id: r, name: R, score: 70, reason: R, explanation: E, "
        "when: 'count(by=party, within=\"13d\") > 3'}\n"
    )
    test, tried = tried_here(money.caller, document, by_records=True)
    assert not test.is_by_records
    assert any(one.now for one in tried.values())


@pytest.mark.usefixtures("environment")
def test_a_damaged_record_is_skipped_and_the_others_count(money: WatchedMoney) -> None:
    caller = money.caller
    last = money.answers[-1]["id"]
    whole = caller.service.rows(f"SELECT record FROM aml_event WHERE id = '{last}'")[0][0]

    def put(record: bytes) -> None:
        async def write() -> None:
            text = "UPDATE aml_event SET record = ? WHERE tenant = ? AND id = ?"
            async with open_store(str(caller.service.data)) as (store, _):
                await store.write(
                    Statement(text, (record, caller.id, last), tenant=caller.id, tables=AML_EVENT)
                )

        asyncio.run(write())

    put(b"\x00\xff")
    try:
        test, tried = tried_here(caller, load_pack_text("aml"), by_records=True)
    finally:
        put(bytes(whole))
    assert (len(tried), test.skipped) == (len({one["id"] for one in money.answers}) - 1, 1)


def test_a_changed_rule_shows_which_alerts_would_be_gone(money: WatchedMoney) -> None:
    same = awaited(money.caller, {"version": 1})["result"]
    assert same["flips"]["count"] == 0
    assert same["alerts"]["before"] == same["alerts"]["after"]
    most = max(same["rules"], key=lambda one: one["before"]["raised"])
    less = awaited(money.caller, {"rule": {"id": most["ruleId"], "mode": "shadow"}})["result"]
    gone = next(one for one in less["rules"] if one["ruleId"] == most["ruleId"])
    assert gone["before"] == most["before"]
    assert gone["after"]["raised"] == 0
    assert gone["fired"] == most["fired"]
    assert less["flips"]["count"] > 0
    flip = less["flips"]["samples"][0]
    assert (flip["was"], flip["now"], flip["rulesNow"]) == ("alerted", "clear", [])
    assert most["ruleId"] in flip["rulesWas"]
    every = less["decisions"]["all"]
    assert every["after"]["alerted"] < every["before"]["alerted"]
    assert sum(day["after"]["alerted"] for day in less["days"]) == every["after"]["alerted"]


def test_orders_of_others_and_of_no_sense_are_refused(money: WatchedMoney, tenant: Caller) -> None:
    caller = money.caller
    assert caller.post(ROOT, {}).status == 422
    assert caller.post(ROOT, {"version": 99}).status == 404
    assert caller.post(ROOT, {"document": "rules: 3"}).status == 422
    assert tenant.post(ROOT, {"version": 1}).status == 403
    fraud = caller.post("/api/v1/backtests", {"rule": {"id": "webdriver", "score": 20}}).json["backtestId"]
    assert caller.get(f"{ROOT}/{fraud}").status == 404
    assert caller.get(f"/api/v1/backtests/{fraud}").status == 200
    other = bank_of(caller.service, "Other bank")
    assert other.get(f"{ROOT}/{fraud}").status == 404
    assert caller.delete(f"/api/v1/backtests/{fraud}").status in (200, 409)


def test_one_is_under_way_at_a_time_and_can_be_cancelled(money: WatchedMoney) -> None:
    caller = money.caller
    first = caller.post(ROOT, {"version": 1}).json["backtestId"]
    assert caller.post(ROOT, {"version": 1}).status == 409
    assert caller.delete(f"{ROOT}/{first}").json["state"] == "cancelled"
    assert caller.delete(f"{ROOT}/{first}").status == 200


def test_a_pipeline_holds_rules_to_expectations(
    money: WatchedMoney, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, caller = money.caller.service, money.caller
    file = tmp_path / "aml-rules.yaml"
    file.write_text(load_pack_text("aml"))
    here = "aml", "backtest", str(file), "--tenant", caller.id
    found = service.cli(*here, "--expect", "true.alerted >= 1", "--json")
    assert [one["met"] for one in found["expectations"]] == [True]
    monkeypatch.setenv("VETTANCE_API_KEY", caller.key)
    afar = "aml", "backtest", str(file), "--server", service.base_url
    missed = service.cli(*afar, "--expect", "false.alerted < .5", ok=False)
    assert missed.returncode == 1, missed.stderr
    assert "not met: false.alerted < .5 (1)" in missed.stdout
    assert "none of them with another end" in missed.stdout
    wrong = service.cli(*here, "--expect", "fraud.caught > 1", ok=False)
    assert wrong.returncode == 2
    assert "'fraud' is none of all, true, false" in wrong.stderr
