"""AML rules tried on the past: those in force give what was decided, others what would have been."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.aml.watched_money import WatchedMoney, bank_of
from tests.live import Caller
from vettance.aml.features import aml_schema
from vettance.backtests.aml_backtest import AmlBacktest, TriedEvent
from vettance.commands import open_store
from vettance.decisions.active_rulesets import active_rules
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import compile_document
from vettance.velocity.memory.memory_velocity import MemoryVelocity

ROOT = "/api/v1/aml/backtests"


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


def test_the_rules_in_force_give_event_by_event_what_was_answered(
    money: WatchedMoney, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = money.caller
    for name, value in caller.service.env.items():
        monkeypatch.setenv(name, value)
    tried: dict[str, TriedEvent] = {}

    async def run() -> AmlBacktest:
        ruleset, compiled = compile_document(load_pack_text("aml"), aml_schema())
        active = active_rules(1, "", ruleset, compiled)
        async with open_store(str(caller.service.data)) as (store, _):
            test = AmlBacktest(store, caller.id, active, MemoryVelocity)
            await test.run((0, 2**62), lambda one: tried.update({one.id: one}), lambda _count: None)
            return test

    test = asyncio.run(run())
    answered = {one["id"]: [alert["ruleId"] for alert in one["alerts"]] for one in money.answers}
    assert {event: list(one.now) for event, one in tried.items()} == answered
    assert {event: list(one.was) for event, one in tried.items()} == answered
    assert (test.flips, test.skipped) == (0, 0)
    assert test.before == test.after
    assert sum(ends.raised for ends in test.after.values()) > 20
    assert sum(ends.true_matches for ends in test.after.values()) > 5


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
