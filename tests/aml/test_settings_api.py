"""How AML works for a tenant, looked at and changed over HTTP and from a machine without the store."""

from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_remote import Pipeline, key_of
from tests.live import Caller, Service
from vettance.aml import sql
from vettance.aml.screening import sql as screening_sql
from vettance.aml.screening.screening_alert import ScreeningSettings
from vettance.aml.settings import sql as settings_sql
from vettance.db.sqlite import SqliteStore
from vettance.watchlists.subject_screening import Profile

PATH = "/api/v1/aml/settings"
FIRST = {"fourEyes": False, "inlineScreening": False, "profile": "BALANCED"}


class Watching:
    """A tenant of AML with keys of several scopes."""

    def __init__(self, service: Service) -> None:
        self.id = service.cli("tenant", "create", "Watching", "--aml", "--json")["tenantId"]
        self.service = service
        self.manage, self.rules, self.decide = (self.key(one) for one in ("manage", "rules", "decide"))
        service.wait_for(lambda: self.manage.get(PATH).status == 200)
        service.wait_for(lambda: self.decide.get("/api/v1/lists").status == 200)

    def key(self, scope: str) -> Caller:
        return Caller(self.service, self.id, key_of(self.service, self.id, scope))


@pytest.fixture(scope="module")
def watching(service: Service) -> Watching:
    return Watching(service)


def test_settings_are_changed_one_by_one_and_heard_of(watching: Watching) -> None:
    first = watching.rules.get(PATH).json
    assert first == {**FIRST, "bounds": first["bounds"]}
    changed = watching.manage.put(PATH, {"fourEyes": True})
    assert (changed.status, changed.json) == (200, {**first, "fourEyes": True})
    bounds = {**first["bounds"], "CONSERVATIVE": 60}
    more = watching.manage.put(PATH, {"profile": "CONSERVATIVE", "conservative": 60, "inlineScreening": True})
    wanted = {"fourEyes": True, "inlineScreening": True, "profile": "CONSERVATIVE", "bounds": bounds}
    assert more.json == watching.rules.get(PATH).json == wanted
    here = watching.service.cli("aml", "set", "--tenant", watching.id, "--json")
    assert (here["fourEyes"], here["inlineScreening"]) == (True, True)
    assert watching.service.cli("aml", "screening", "--tenant", watching.id, "--json")["bounds"] == bounds
    exported = watching.service.cli("audit", "export", "--tenant", watching.id).stdout
    assert exported.count("PUT /api/v1/aml/settings") == 2


async def test_two_who_change_different_settings_at_once_both_get_what_they_asked_for(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        # Both have read that nothing is set.
        await store.write(settings_sql.save_four_eyes("ten_a", is_on=True))
        await store.write(settings_sql.save_inline_screening("ten_a", is_on=True))
        kept = sql.settings_of(await store.read(sql.select_settings("ten_a")))
        assert (kept.four_eyes, kept.inline_screening) == (True, True)
        bounds = {**ScreeningSettings().bounds, Profile.CONSERVATIVE: 60}
        await store.write(settings_sql.save_profile("ten_a", Profile.LIBERAL))
        await store.write(settings_sql.save_bounds("ten_a", bounds))
        found = screening_sql.settings_of(await store.read(screening_sql.select_settings("ten_a")))
        assert (found.profile, found.bounds[Profile.CONSERVATIVE]) == (Profile.LIBERAL, 60)


@pytest.mark.parametrize(
    ("body", "status", "member"),
    [
        ({"fourEyes": "on"}, 422, "fourEyes"),
        ({"balanced": 75.5}, 422, "balanced"),
        ([], 422, "body"),
        ({"profile": "BRAVE"}, 422, "profile"),
        ({"balanced": 49}, 422, "balanced"),
        ({"liberal": 101}, 422, "liberal"),
        ({"conservative": 99}, 422, "conservative"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    watching: Watching, body: Any, status: int, member: str
) -> None:
    before = watching.rules.get(PATH).json
    answer = watching.manage.put(PATH, body)
    assert (answer.status, list(answer.json["error"]["details"])) == (status, [member])
    assert watching.rules.get(PATH).json == before


def test_keys_need_the_scope_and_tenants_the_product(watching: Watching, other: Caller) -> None:
    for caller, scope in ((watching.rules, "manage"), (watching.decide, "manage")):
        refused = caller.put(PATH, {"fourEyes": False})
        assert (refused.status, refused.json["error"]["details"]["scope"]) == (403, scope)
    assert watching.decide.get(PATH).status == 403
    assert watching.service.call("GET", PATH, key=None).status == 401
    key = key_of(watching.service, other.id, "manage")
    stranger = Caller(watching.service, other.id, key)
    watching.service.wait_for(lambda: stranger.get("/api/v1/lists").status == 200)
    assert stranger.get(PATH).status == 403


def test_the_command_line_needs_no_store(watching: Watching, tmp_path: Path) -> None:
    pipeline = Pipeline(watching.service, tmp_path, watching.id, watching.manage.key)
    found = pipeline.ask("aml", "set", "--four-eyes", "off")
    assert found["fourEyes"] is False
    assert pipeline.ask("aml", "set") == found
    screening = pipeline.ask("aml", "screening", "--liberal", "95")
    assert screening["bounds"]["LIBERAL"] == 95
    assert "LIBERAL from 95" in pipeline.run("aml", "screening").stdout
    lacks = pipeline.run("aml", "set", "--four-eyes", "on", key=watching.rules.key)
    assert (lacks.returncode, "lacks the scope `manage`" in lacks.stderr) == (2, True)
    unnamed = watching.service.cli("aml", "set", ok=False)
    assert (unnamed.returncode, "--tenant" in unnamed.stderr) == (2, True)


def test_rules_of_the_pack_are_snoozed_here_before_any_were_pushed(watching: Watching) -> None:
    made = ("--type", "CUSTOMER", "--value", "c-1", "--until", "2099-01-01", "--reason", "Known")
    mine = ("--tenant", watching.id, "--json")
    one = watching.service.cli("aml", "snooze", "structuring", *made, *mine)
    assert one["ruleId"] == "structuring"
    assert watching.service.cli("aml", "snooze", "no-such", *made, *mine, ok=False).returncode == 1
