"""Rule sets over HTTP: checked, proposed, approved by another key, put into force and taken back."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.live import Answer, Caller, Service
from vettance.rules.packs import load_pack_text

ROOT = "/api/v1/rulesets"
GOOD = "extends: default\nrules:\n  - {id: webdriver, score: SCORE}\n"
BROKEN = "extends: default\nrules:\n  - id: webdriver\n    when: event.kindd == 'login'\n"
AML = "extends: default\nrules:\n  - {id: structuring, score: 35}\n"
WORN = {"eventName": "user.login", "customer": {"externalId": "c-1"}}


class Team:
    """Two keys that may change rules and one that may only read, of a tenant whose rules need approval."""

    def __init__(self, service: Service) -> None:
        self.id = service.cli("tenant", "create", "Team", "--aml", "--json")["tenantId"]
        service.cli("tenant", "set", self.id, "--rule-approval", "on")
        self.service = service
        self.ana, self.ben, self.eve, self.shop = (
            self._key(scope) for scope in ("rules", "rules", "read", "decide")
        )
        service.wait_for(lambda: self.shop.get("/api/v1/lists").status == 200)

    def _key(self, scope: str) -> Caller:
        made = self.service.cli("key", "create", "--tenant", self.id, "--scope", scope, "--json")
        return Caller(self.service, self.id, made["apiKey"])


@pytest.fixture(scope="module")
def team(service: Service) -> Team:
    return Team(service)


def reason_of(answer: Answer) -> Any:
    assert answer.status in (403, 409), answer.body
    return answer.json["error"]["details"]["reason"]


def test_a_version_goes_its_way_and_decides(team: Team) -> None:
    ana, ben = team.ana, team.ben
    before = ana.get(f"{ROOT}/active").json
    made = ana.post(ROOT, {"document": GOOD.replace("SCORE", "20"), "note": "Less", "propose": True})
    assert made.status == 201, made.body
    version = made.json["version"]
    assert (made.json["state"], made.json["note"], made.json["faults"]) == ("proposed", "Less", [])
    assert reason_of(ana.post(f"{ROOT}/{version}/approve")) == "second_person_needed"
    assert reason_of(ana.post(f"{ROOT}/{version}/activate")) == "approval_needed"
    approved = ben.post(f"{ROOT}/{version}/approve", {"note": "Seen"})
    assert (approved.status, approved.json["state"]) == (200, "approved")
    assert approved.json["approvedBy"] != approved.json["author"]
    unseen = ana.post(f"{ROOT}/{version}/activate", {"over": before["version"] + 7})
    assert reason_of(unseen) == "changed_meanwhile"
    active = ana.post(f"{ROOT}/{version}/activate", {"over": before["version"]})
    assert (active.status, active.json["state"]) == (200, "active")
    evaluate = "/api/v1/decisions/evaluate"
    told = str(version)
    team.service.wait_for(
        lambda: team.shop.post(evaluate, WORN).json["ruleVersion"]["version"] == told, seconds=5
    )
    whole = ana.get(f"{ROOT}/{version}").json
    assert whole["document"] == GOOD.replace("SCORE", "20")
    assert len(whole["resolved"]) > 10_000
    assert ana.get(f"{ROOT}/active").json["version"] == version
    assert reason_of(ana.post(f"{ROOT}/rollback", {"over": before["version"]})) == "changed_meanwhile"
    back = ana.post(f"{ROOT}/rollback", {"over": version})
    assert (back.status, back.json["rollbackOf"]) == (201, before["version"])
    again = ana.post(f"{ROOT}/rollback", {"to": version})
    assert (again.status, again.json["rollbackOf"]) == (201, version)
    steps = [(one["version"], one["step"]) for one in ana.get(f"{ROOT}/log").json["data"]]
    assert steps[:5] == [
        (version + 2, "rolled_back"),
        (version + 1, "rolled_back"),
        (version, "activated"),
        (version, "approved"),
        (version, "proposed"),
    ]
    entries = team.service.rows(f"SELECT action FROM audit_entry WHERE tenant = '{team.id}'")
    assert ("POST /api/v1/rulesets/{version}/approve",) in [tuple(row) for row in entries]


def test_a_draft_may_be_broken_and_is_proposed_when_it_is_not(team: Team) -> None:
    made = team.ana.post(ROOT, {"document": BROKEN})
    assert (made.status, made.json["state"]) == (201, "draft")
    assert made.json["faults"][0]["line"] == 4
    version = made.json["version"]
    refused = team.ana.post(f"{ROOT}/{version}/propose")
    assert refused.status == 422
    assert refused.json["error"]["details"]["faults"][0]["path"] == "rules.webdriver"
    assert team.ana.get(f"{ROOT}/{version}").json["state"] == "draft"
    assert team.ana.post(f"{ROOT}/{version}/reject", {"note": "No"}).json["state"] == "rejected"
    assert reason_of(team.ben.post(f"{ROOT}/{version}/approve")) == "wrong_state"
    refused = team.ana.post(ROOT, {"document": BROKEN, "propose": True})
    assert refused.status == 422
    good = team.ana.post(ROOT, {"document": GOOD.replace("SCORE", "30")}).json["version"]
    assert team.ana.post(f"{ROOT}/{good}/propose").json["state"] == "proposed"


def test_a_check_names_every_fault_and_saves_nothing(team: Team) -> None:
    total = team.ana.get(ROOT).json["total"]
    found = team.ana.post(f"{ROOT}/check", {"document": BROKEN}).json
    assert found["ok"] is False
    fault = found["faults"][0]
    assert (fault["line"], fault["column"], fault["severity"]) == (4, 11, "error")
    assert "event.kind" in fault["hint"]
    good = team.ana.post(f"{ROOT}/check", {"document": GOOD.replace("SCORE", "20")}).json
    assert good["ok"] is True
    assert good["cost"] > 0
    assert len(good["tests"]) > 200
    assert all(one["passed"] for one in good["tests"])
    for nonsense in ("", "{", "rules: 1", "\x07", "x" * 2_000, "a: &a [*a]"):
        answer = team.ana.post(f"{ROOT}/check", {"document": nonsense})
        assert answer.status == (400 if not nonsense else 200)
        assert nonsense == "" or answer.json["ok"] is False
    assert team.ana.get(ROOT).json["total"] == total


def test_keys_need_the_scope_and_see_their_own_tenant_only(team: Team, other: Caller) -> None:
    body = {"document": GOOD.replace("SCORE", "20")}
    for method, path, asked in (("GET", ROOT, None), ("POST", ROOT, body), ("POST", f"{ROOT}/check", body)):
        answer = team.service.call(method, path, asked, key=team.shop.key)
        assert reason_of(answer) == "insufficient_scope"
        assert answer.json["error"]["details"]["scope"] == "rules"
    assert team.eve.get(ROOT).status == 200
    assert reason_of(team.eve.post(ROOT, body)) == "insufficient_scope"
    made = team.service.cli("key", "create", "--tenant", other.id, "--scope", "rules", "--json")
    stranger = Caller(team.service, other.id, made["apiKey"])
    newest = max(one["version"] for one in team.ana.get(ROOT).json["data"])
    assert stranger.get(f"{ROOT}/{newest}").status == 404
    assert stranger.post(f"{ROOT}/{newest}/approve").status == 404
    assert stranger.get("/api/v1/aml/rulesets").status == 403


def test_pages_of_versions_neither_repeat_nor_skip(team: Team) -> None:
    first = team.ana.get(f"{ROOT}?limit=2").json
    assert first["hasMore"] is (first["total"] > 2)
    seen = [one["version"] for one in first["data"]]
    while first["hasMore"]:
        first = team.ana.get(f"{ROOT}?limit=2&cursor={first['nextCursor']}").json
        seen += [one["version"] for one in first["data"]]
    assert seen == sorted(seen, reverse=True) == list(range(first["total"], 0, -1))
    assert [one["state"] for one in team.ana.get(f"{ROOT}?state=active").json["data"]] == ["active"]
    assert team.ana.get(f"{ROOT}?sortOrder=asc&limit=1").json["data"][0]["version"] == 1
    assert team.ana.get(f"{ROOT}?cursor=x").status == 400


def test_aml_rules_are_steered_alike(team: Team) -> None:
    root = "/api/v1/aml/rulesets"
    assert team.ana.get(f"{root}/active").json["version"] == 0
    made = team.ana.post(root, {"document": AML, "activate": True})
    assert (made.status, made.json["state"]) == (201, "proposed"), made.body
    version = made.json["version"]
    assert team.ben.post(f"{root}/{version}/approve").status == 200
    assert team.ben.post(f"{root}/{version}/activate").json["state"] == "active"
    assert team.ana.get(f"{root}/active").json["document"] == AML
    assert team.ana.post(f"{root}/rollback", {}).json["rollbackOf"] == 1


@pytest.mark.parametrize("root", [ROOT, "/api/v1/aml/rulesets"])
def test_breaking_the_glass_is_heard(team: Team, root: str) -> None:
    kind, note = ("aml", "Mules right now") if "aml" in root else ("fraud", "Card testing right now")
    document = AML.replace("35", "36") if kind == "aml" else GOOD.replace("SCORE", "41")
    for blank in ("", "  "):
        refused = team.ana.post(root, {"document": document, "activate": True, "breakGlass": blank})
        assert (refused.status, list(refused.json["error"]["details"])) == (422, ["breakGlass"])
    assert team.ana.post(root, {"document": document, "propose": True, "breakGlass": note}).status == 422
    made = team.ana.post(root, {"document": document, "activate": True, "breakGlass": note})
    assert (made.status, made.json["state"], made.json["breakGlass"]) == (201, "active", note), made.body
    waiting = team.ana.post(root, {"document": f"{document}# More\n", "propose": True}).json["version"]
    step = f"{root}/{waiting}/activate"
    assert reason_of(team.ana.post(step, {"note": "Please"})) == "approval_needed"
    assert team.ana.post(step, {"breakGlass": ""}).status == 422
    done = team.ana.post(step, {"breakGlass": note})
    assert (done.status, done.json["state"], done.json["breakGlass"]) == (200, "active", note)
    steps = team.ana.get(f"{root}/log").json["data"]
    broken = [(one["version"], one["note"]) for one in steps if one["step"] == "broke_glass"]
    assert broken == [(waiting, note), (made.json["version"], note)]
    # What `vettance_rules_break_glass_total` counts.
    counted = f"SELECT COUNT(*) FROM rule_step WHERE tenant = '{team.id}' AND kind = '{kind}'"
    assert team.service.rows(f"{counted} AND step = 'broke_glass'")[0][0] == 2

    def logged() -> bool:
        said = [line for line in team.service.log if "rules_break_glass" in line and team.id in line]
        return sum(f'"kind":"{kind}"' in line.replace(" ", "") for line in said) == 2

    team.service.wait_for(logged)
    exported = team.service.cli("audit", "export", "--tenant", team.id)
    assert exported.stdout.count(note) == 2


def test_what_waits_already_is_not_proposed_again(team: Team) -> None:
    body = {"document": GOOD.replace("SCORE", "43"), "activate": True}
    first, second = (team.ana.post(ROOT, body).json for _ in range(2))
    assert (first["state"], second) == ("proposed", first)
    assert team.ben.post(f"{ROOT}/{first['version']}/approve").status == 200
    third = team.ana.post(ROOT, body).json
    assert (third["version"], third["state"]) == (first["version"], "approved")
    activated = team.ana.post(f"{ROOT}/{first['version']}/activate", {"note": "Now"})
    assert activated.json["state"] == "active"
    assert team.ana.get(f"{ROOT}/log").json["data"][0]["note"] == "Now"


def test_the_pack_is_had_whoever_decides(team: Team) -> None:
    for root, name in ((ROOT, "fraud"), ("/api/v1/aml/rulesets", "aml")):
        pack = team.ana.get(f"{root}/pack").json
        assert (pack["version"], pack["state"], pack["document"]) == (0, "retired", load_pack_text(name))


def test_a_version_is_found_by_its_number_only(team: Team) -> None:
    for root in (ROOT, "/api/v1/aml/rulesets"):
        made = team.ana.post(root, {"document": AML if "aml" in root else GOOD})
        version = made.json["version"]
        assert team.ana.get(f"{root}/{version}").status == 200
        far = quote("".join(chr(0x0660 + int(digit)) for digit in str(version)))
        for text in (f"0{version}", f"%2B{version}", f"%20{version}", f"{version}%20", f"{version}_0", far):
            assert team.ana.get(f"{root}/{text}").status == 404, text
            for step in ("approve", "reject", "activate", "propose"):
                assert team.ana.post(f"{root}/{text}/{step}").status == 404, text


def test_bad_bodies_and_unknown_versions_are_refused(team: Team) -> None:
    for body, status in (
        ({}, 400),
        ({"document": 1}, 400),
        ({"document": GOOD, "note": "x" * 4_001}, 422),
        ({"document": GOOD, "propose": "yes"}, 400),
    ):
        assert team.ana.post(ROOT, body).status == status, body
    for version in ("0", "99999", "2147483648", "9" * 30, "none", "-1"):
        assert team.ana.get(f"{ROOT}/{version}").status == 404
        for step in ("approve", "reject", "activate", "propose"):
            assert team.ana.post(f"{ROOT}/{version}/{step}").status == 404
    assert team.ana.post(f"{ROOT}/rollback", {"to": 99_999}).status == 404
    assert team.ana.post(f"{ROOT}/rollback", {"to": 2**40}).status == 422


@pytest.mark.parametrize("body", [[], {"document": 7, "version": "x", "rule": 3, "rules": 4}], ids=str)
@pytest.mark.parametrize("path", ["rulesets", "backtests", "rules/snoozes"])
def test_a_body_of_the_wrong_shape_is_422_below_aml_and_400_elsewhere(
    path: str, body: Any, team: Team
) -> None:
    answers = [team.ana.post(f"/api/v1/{area}{path}", body) for area in ("", "aml/")]
    assert [(one.status, one.json["error"]["code"]) for one in answers] == [
        (400, "VALIDATION_ERROR"),
        (422, "UNPROCESSABLE_ENTITY"),
    ]
    assert answers[0].json["error"]["details"] == answers[1].json["error"]["details"]
