"""The doors of screening: decided, kept for ever, and worked on by officers."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import Answer, Caller, Service, searchers_of, started

PATH = "/api/v1/aml/screen"
KEPT = "/api/v1/aml/screenings"
CASES = "/api/v1/aml/cases"
LISTS = "/api/v1/aml/watchlists"

OWN_LIST = """\
id,name,type,aliases,birth_dates,countries,documents,reason
1,Rosalind Achterberg,INDIVIDUAL,Roos Achterberg,1969-10-11,NL,passport:NX1234567:NL,Chargeback ring
2,Quillon Vandermeersch,INDIVIDUAL,,1971-02-03,BE,,{reason}
3,Ostrava Brightwater Shipping LLC,ORGANIZATION,,,PA,,Front company
4,Sergey Viktorovich Lavrov,INDIVIDUAL,,1950-03-21,RU,,Own copy of the sample's entry
"""

_numbers = iter(range(10**9))


def own_list(folder: Path, reason: str = "Mule account") -> Path:
    path = folder / "own.csv"
    path.write_text(OWN_LIST.format(reason=reason))
    return path


@pytest.fixture(scope="module")
def screened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the sample and a list of its own loaded while it runs."""
    running = started(tmp_path_factory.mktemp("screened"))
    running.cli("watchlist", "import", "--source", "sample")
    running.cli("watchlist", "import", "--source", "csv", str(own_list(running.data)))
    yield running
    assert running.stop() == 0


def new_officer(service: Service) -> Caller:
    tenant_id, key = service.new_tenant(f"Screens {next(_numbers)}")
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: caller.get(CASES).status == 200)
    return caller


def index_of(caller: Caller) -> str | None:
    index = caller.get(LISTS).json["index"]
    return index["id"] if index else None


@pytest.fixture(scope="module")
def clerk(screened: Service) -> Caller:
    caller = new_officer(screened)
    screened.wait_for(lambda: len(caller.get(LISTS).json["data"]) == 2 and index_of(caller) is not None)
    screened.wait_for(lambda: screen(caller, inputName="Rosalind Achterberg").json["decision"] == "REVIEW")
    return caller


def screen(caller: Caller, **members: Any) -> Answer:
    body = {"inputName": "Wilhelmina Oakes", "externalId": f"subject-{next(_numbers)}", **members}
    return caller.post(PATH, body)


ROSALIND = {"inputName": "Rosalind Achterberg", "inputDob": "1969-10-11"}
LINK = {"caseId", "alertId", "caseCreated", "reusedExistingCase"}


def test_a_name_on_no_list_is_cleared_and_kept(clerk: Caller) -> None:
    answer = screen(clerk, externalId="oakes-1", inputDob="1980-01-01", inputNationality="NL")
    assert answer.status == 200
    assert answer.json["id"].startswith("scr_")
    assert answer.json["externalId"] == "oakes-1"
    assert (answer.json["decision"], answer.json["matches"], answer.json["listsHit"]) == (
        "AUTO_CLEAR",
        [],
        [],
    )
    assert answer.json["processingMs"] > 0
    assert set(answer.json["listVersions"]) == {"sample", "csv"}
    assert not LINK & set(answer.json)
    kept = clerk.get(f"{KEPT}/{answer.json['id']}")
    assert (kept.status, kept.body) == (200, answer.body)
    assert clerk.get(f"{CASES}?customer=oakes-1").json["total"] == 0


def test_a_name_with_its_date_of_birth_is_confirmed_explained_and_opens_a_case(clerk: Caller) -> None:
    answer = screen(clerk, externalId="rosalind", **ROSALIND)
    found = answer.json
    assert found["decision"] == "CONFIRMED"
    assert found["listsHit"] == ["OWN LIST"]
    match = found["matches"][0]
    assert match["entityName"] == "Rosalind Achterberg"
    assert match["classification"] == "EXACT"
    assert match["sanctionReason"] == "Chargeback ring"
    assert match["datesOfBirth"] == ["1969-10-11"]
    assert set(match["scoreBreakdown"]) == set(match["explanation"]) >= {"name", "dob"}
    assert (found["caseCreated"], found["reusedExistingCase"]) == (True, False)
    assert clerk.get(f"{KEPT}/{found['id']}").body == answer.body
    case = clerk.get(f"{CASES}/{found['caseId']}").json
    assert (case["customer"], case["severity"], case["alertCount"]) == ("rosalind", "CRITICAL", 1)
    alert = case["alerts"][0]
    assert (alert["id"], alert["origin"]) == (found["alertId"], "screening")
    assert "Rosalind Achterberg" in alert["summary"]
    assert alert["figures"]["values"]["screening"] == found["id"]
    assert [line["kind"] for line in case["timeline"]] == ["OPENED", "ALERTED"]
    page = clerk.get(f"{CASES}/{found['caseId']}/export?format=html")
    assert page.status == 200
    assert b"Watchlist screening" in page.body


def test_the_same_person_on_several_lists_is_one_alert(clerk: Caller) -> None:
    found = screen(clerk, externalId="two-lists", inputName="Sergey Viktorovich Lavrov").json
    assert found["decision"] == "REVIEW"
    assert set(found["listsHit"]) == {"SAMPLE", "OWN LIST"}
    assert len(found["matches"]) >= 2
    case = clerk.get(f"{CASES}/{found['caseId']}").json
    assert len(case["alerts"]) == 1


def test_another_screening_joins_the_open_case_of_the_external_id(clerk: Caller) -> None:
    first = screen(clerk, externalId="joins", inputName="Rosalind Achterberg").json
    again = screen(clerk, externalId="joins", inputName="Rosalind Achterberg").json
    assert again["id"] != first["id"]
    assert (again["caseId"], again["caseCreated"], again["reusedExistingCase"]) == (
        first["caseId"],
        False,
        True,
    )
    assert again["alertId"] == first["alertId"]
    worse = screen(clerk, externalId="joins", **ROSALIND).json
    assert worse["caseId"] == first["caseId"]
    assert worse["alertId"] != first["alertId"]
    other = screen(clerk, externalId="joins", inputName="Quillon Vandermeersch").json
    assert other["caseId"] == first["caseId"]
    case = clerk.get(f"{CASES}/{first['caseId']}").json
    assert case["alertCount"] == len(case["alerts"]) == 3
    assert sorted(alert["events"] for alert in case["alerts"]) == [1, 1, 2]


def test_simultaneous_screenings_of_one_subject_open_one_case(clerk: Caller) -> None:
    answers: list[Answer] = []

    def ask() -> None:
        answers.append(screen(clerk, externalId="at-once", **ROSALIND))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 12
    assert len({answer.json["caseId"] for answer in answers}) == 1
    assert sum(answer.json["caseCreated"] for answer in answers) == 1
    assert len({answer.json["id"] for answer in answers}) == 12


def test_a_screening_joins_the_case_that_a_rule_opened(clerk: Caller) -> None:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": "rule-first",
        "customer": {"externalId": "both"},
        "metadata": {"amount": 12_000, "counterpartyCountry": "KP", "direction": "out"},
    }
    assert clerk.post("/api/v1/aml/events", body).json["status"] == "ALERTED"
    found = screen(clerk, externalId="both", **ROSALIND).json
    assert found["reusedExistingCase"] is True
    origins = {alert["origin"] for alert in clerk.get(f"{CASES}/{found['caseId']}").json["alerts"]}
    assert origins == {"rule", "screening"}


def resolve(clerk: Caller, case_id: str, resolution: str) -> None:
    body = {"resolution": resolution, "notes": "Looked at the passport.", "officer": "ann"}
    assert clerk.post(f"{CASES}/{case_id}/resolve", body).status == 200


def test_a_false_positive_is_remembered_for_this_pair_only(clerk: Caller) -> None:
    first = screen(clerk, externalId="namesake", inputName="Rosalind Achterberg").json
    resolve(clerk, first["caseId"], "FALSE_POSITIVE")
    quiet = screen(clerk, externalId="namesake", inputName="Rosalind Achterberg").json
    assert quiet["decision"] == "AUTO_CLEAR"
    assert quiet["matches"][0]["falsePositiveRemembered"] is True
    assert not LINK & set(quiet)
    assert screen(clerk, inputName="Rosalind Achterberg").json["decision"] == "REVIEW"
    other = screen(clerk, externalId="namesake", inputName="Quillon Vandermeersch").json
    assert (other["decision"], other["caseCreated"]) == ("REVIEW", True)


def dismiss(clerk: Caller, screening: dict[str, Any], entity: str) -> Answer:
    body = {"watchlistEntityId": entity, "notes": "Another face.", "officer": "ann"}
    return clerk.post(f"{KEPT}/{screening['id']}/dismiss", body)


def test_matches_are_dismissed_one_by_one_and_the_last_resolves_the_case(clerk: Caller) -> None:
    asked = {"externalId": "two-dismissed", "inputName": "Sergey Viktorovich Lavrov"}
    first = screen(clerk, **asked).json
    one, other = (match["watchlistEntityId"] for match in first["matches"])
    case = dismiss(clerk, first, one).json
    assert (case["state"], case["alertCount"]) == ("OPEN", 2)
    again = screen(clerk, **asked).json
    held = {match["watchlistEntityId"]: match["falsePositiveRemembered"] for match in again["matches"]}
    assert held == {one: True, other: False}
    assert (again["caseId"], again["alertId"]) == (first["caseId"], first["alertId"])
    twice = dismiss(clerk, again, one)
    assert (twice.status, twice.json["error"]["details"]["reason"]) == (409, "already_resolved")
    closed = dismiss(clerk, again, other).json
    assert (closed["state"], closed["resolution"], closed["resolvedBy"]) == (
        "CLOSED",
        "FALSE_POSITIVE",
        "ann",
    )
    assert screen(clerk, **asked).json["decision"] == "AUTO_CLEAR"
    record = clerk.get(f"{CASES}/{case['id']}").json
    assert {alert["state"] for alert in record["alerts"]} == {"CLOSED"}
    assert "is not" in record["timeline"][-1]["text"]
    assert "Another face." in record["timeline"][-1]["text"]


def test_a_dismissal_leaves_what_a_rule_found_open(clerk: Caller) -> None:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": "rule-and-name",
        "customer": {"externalId": "rule-and-name"},
        "metadata": {"amount": 12_000, "counterpartyCountry": "KP", "direction": "out"},
    }
    assert clerk.post("/api/v1/aml/events", body).json["status"] == "ALERTED"
    found = screen(clerk, externalId="rule-and-name", **ROSALIND).json
    case = dismiss(clerk, found, found["matches"][0]["watchlistEntityId"]).json
    assert case["state"] == "OPEN"
    alerts = clerk.get(f"{CASES}/{case['id']}").json["alerts"]
    assert {alert["origin"] for alert in alerts if alert["state"] == "OPEN"} == {"rule"}
    assert screen(clerk, externalId="rule-and-name", **ROSALIND).json["decision"] == "AUTO_CLEAR"


def test_what_cannot_be_dismissed_is_not_found_or_refused(clerk: Caller) -> None:
    clear = screen(clerk, externalId="nobody-listed").json
    assert dismiss(clerk, clear, "csv-1").status == 404
    assert dismiss(clerk, {"id": "scr_" + "0" * 32}, "csv-1").status == 404
    found = screen(clerk, externalId="eyes", **ROSALIND).json
    entity = found["matches"][0]["watchlistEntityId"]
    assert dismiss(new_officer(clerk.service), found, entity).status == 404
    assert clerk.post(f"{KEPT}/{found['id']}/dismiss", {}).status == 422
    clerk.service.cli("aml", "set", "--tenant", clerk.id, "--four-eyes", "on", "--json")
    try:
        refused = dismiss(clerk, found, entity)
        assert (refused.status, refused.json["error"]["details"]["reason"]) == (409, "second_officer_needed")
    finally:
        clerk.service.cli("aml", "set", "--tenant", clerk.id, "--four-eyes", "off", "--json")


def test_a_true_match_alerts_again(clerk: Caller) -> None:
    first = screen(clerk, externalId="listed", **ROSALIND).json
    resolve(clerk, first["caseId"], "TRUE_MATCH")
    again = screen(clerk, externalId="listed", **ROSALIND).json
    assert (again["decision"], again["caseCreated"]) == ("CONFIRMED", True)
    assert again["caseId"] != first["caseId"]


def test_an_identifier_confirms_and_an_unknown_member_is_ignored(clerk: Caller) -> None:
    found = screen(
        clerk,
        inputName="R. Achterberg",
        entityType="INDIVIDUAL",
        inputAliases=["Roos Achterberg"],
        inputIdDocuments=[{"type": "passport", "value": "NX1234567"}],
        tenantId="ten_somebody_else",
        extra=1,
    ).json
    assert found["decision"] == "CONFIRMED"
    assert found["matches"][0]["scoreBreakdown"]["idDocument"] == 1


def test_the_profile_moves_the_bound(clerk: Caller) -> None:
    bounds = {
        name: screen(clerk, sensitivityProfile=name).json["reviewBound"]
        for name in ("CONSERVATIVE", "BALANCED", "LIBERAL")
    }
    assert bounds == {"CONSERVATIVE": 65, "BALANCED": 75, "LIBERAL": 85}
    assert screen(clerk).json["sensitivityProfile"] == "BALANCED"


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"inputName": None}, "inputName"),
        ({"inputName": ""}, "inputName"),
        ({"inputName": "  --  "}, "inputName"),
        ({"inputName": 7}, "inputName"),
        ({"inputName": "n" * 1025}, "inputName"),
        ({"externalId": ""}, "externalId"),
        ({"externalId": 12}, "externalId"),
        ({"entityType": "PERSON"}, "entityType"),
        ({"entityType": "UNKNOWN"}, "entityType"),
        ({"inputDob": "11/10/1969"}, "inputDob"),
        ({"inputDob": "1969-02-30"}, "inputDob"),
        ({"inputDob": 1969}, "inputDob"),
        ({"inputDob": "2068-10-11"}, "inputDob"),
        ({"inputNationality": "Netherlands"}, "inputNationality"),
        ({"inputNationality": "QQ"}, "inputNationality"),
        ({"inputAliases": "Roos"}, "inputAliases"),
        ({"inputAliases": ["Roos", 3]}, "inputAliases.1"),
        ({"inputAliases": ["a"] * 51}, "inputAliases"),
        ({"inputAliases": ["a" * 512] * 9}, "inputAliases"),
        ({"inputIdDocuments": [{"type": "passport"}]}, "inputIdDocuments.0.value"),
        ({"inputIdDocuments": [{"type": "passport", "value": "9" * 1025}]}, "inputIdDocuments.0.value"),
        ({"inputIdDocuments": ["NX1"]}, "inputIdDocuments.0"),
        ({"sensitivityProfile": "STRICT"}, "sensitivityProfile"),
    ],
)
def test_every_fault_of_a_well_formed_body_is_422(clerk: Caller, members: Any, path: str) -> None:
    answer = screen(clerk, **members)
    assert (answer.status, answer.json["error"]["code"]) == (422, "UNPROCESSABLE_ENTITY")
    assert path in answer.json["error"]["details"]


def test_texts_may_be_as_long_as_everywhere_else(clerk: Caller) -> None:
    long = "n" * 1024
    documents = [{"type": long, "value": long}]
    answer = screen(clerk, externalId=long, inputName=long, inputAliases=[long], inputIdDocuments=documents)
    assert answer.status == 200


def test_malformed_json_is_400_and_another_value_422(clerk: Caller) -> None:
    assert clerk.post(PATH, b"{").status == 400
    assert clerk.post(PATH, []).status == 422


def test_a_screening_of_another_tenant_or_none_is_not_found(screened: Service, clerk: Caller) -> None:
    stranger = new_officer(screened)
    kept = screen(clerk, externalId="secret", **ROSALIND).json
    refused = [
        stranger.get(f"{KEPT}/{kept['id']}"),
        clerk.get(f"{KEPT}/scr_{'0' * 32}"),
        clerk.get(f"{KEPT}/nonsense"),
    ]
    assert [answer.status for answer in refused] == [404] * 3
    assert len({answer.body for answer in refused}) == 1
    own = screen(stranger, externalId="secret", **ROSALIND).json
    assert own["caseCreated"] is True
    assert own["caseId"] != kept["caseId"]


def test_without_a_key_401_and_without_the_product_403(screened: Service) -> None:
    body = {"inputName": "Wilhelmina Oakes", "externalId": "x"}
    assert screened.post(PATH, body, key=None).status == 401
    assert screened.post(PATH, body).status == 403
    assert screened.get(f"{KEPT}/scr_{'0' * 32}").status == 403
    assert screened.get(LISTS).status == 403


def test_the_lists_are_told_with_their_versions_and_ages(clerk: Caller) -> None:
    found = clerk.get(LISTS).json
    lists = {row["code"]: row for row in found["data"]}
    assert set(lists) == {"SAMPLE", "OWN LIST"}
    assert lists["OWN LIST"]["entities"] == 4
    assert lists["OWN LIST"]["stale"] is False
    assert 0 <= lists["OWN LIST"]["ageSeconds"] < 600
    assert found["index"]["entities"] == sum(row["entities"] for row in found["data"])
    versions = {row["source"]: row["version"] for row in found["data"]}
    assert screen(clerk).json["listVersions"] == versions


def test_without_a_list_screening_is_502_and_the_service_ready(own_service: Service) -> None:
    officer = new_officer(own_service)
    answer = screen(officer)
    assert (answer.status, answer.json["error"]["code"]) == (502, "BAD_GATEWAY")
    assert "vettance watchlist import" in answer.json["error"]["message"]
    assert officer.get(LISTS).json == {"data": [], "index": None, "rescreening": None}
    ready = own_service.get("/readyz", key=None)
    assert ready.status == 200
    assert {"name": "watchlists", "ok": True, "reason": None} in ready.json["checks"]


def test_screenings_cases_and_clearances_outlive_a_crash_and_a_new_version(own_service: Service) -> None:
    path = own_list(own_service.data)
    own_service.cli("watchlist", "import", "--source", "csv", str(path))
    officer = new_officer(own_service)
    own_service.wait_for(lambda: index_of(officer) is not None)
    first = screen(officer, externalId="quill", inputName="Quillon Vandermeersch")
    rosalind = screen(officer, externalId="rosa", inputName="Rosalind Achterberg").json
    resolve(officer, first.json["caseId"], "FALSE_POSITIVE")
    resolve(officer, rosalind["caseId"], "FALSE_POSITIVE")
    assert own_service.stop(9) != 0
    own_service.start()
    assert officer.get(f"{KEPT}/{first.json['id']}").body == first.body
    assert (
        screen(officer, externalId="quill", inputName="Quillon Vandermeersch").json["decision"]
        == "AUTO_CLEAR"
    )
    before = index_of(officer)
    own_list(own_service.data, reason="Convicted in the meantime")
    own_service.cli("watchlist", "import", "--source", "csv", str(path))
    own_service.wait_for(lambda: index_of(officer) != before)
    changed = screen(officer, externalId="quill", inputName="Quillon Vandermeersch").json
    assert (changed["decision"], changed["caseCreated"]) == ("REVIEW", True)
    still = screen(officer, externalId="rosa", inputName="Rosalind Achterberg").json
    assert still["decision"] == "AUTO_CLEAR"
    assert officer.get(f"{KEPT}/{first.json['id']}").body == first.body


def test_a_search_ends_at_its_deadline_and_goes_on_when_its_process_was_killed(
    screened: Service, clerk: Caller
) -> None:
    def is_late_while_they_stand_still() -> bool:
        pids = searchers_of(screened)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        answer = screen(clerk, externalId="late")
        if answer.status == 200:  # They were not all there yet.
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            return False
        assert (answer.status, answer.json["error"]["code"]) == (504, "GATEWAY_TIMEOUT")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return True

    screened.wait_for(is_late_while_they_stand_still)
    assert screen(clerk, **ROSALIND).json["decision"] == "CONFIRMED"


def test_a_tenant_sets_its_own_profile_and_bounds(screened: Service) -> None:
    officer = new_officer(screened)
    command = ("aml", "screening", "--tenant", officer.id, "--json")
    said = screened.cli(*command, "--profile", "LIBERAL", "--liberal", "90", "--balanced", "80")
    assert said["bounds"] == {"CONSERVATIVE": 65, "BALANCED": 80, "LIBERAL": 90}
    found = screen(officer).json
    assert (found["sensitivityProfile"], found["reviewBound"]) == ("LIBERAL", 90)
    assert screen(officer, sensitivityProfile="BALANCED").json["reviewBound"] == 80
    refused = screened.cli(*command, "--conservative", "85", ok=False)
    assert refused.returncode != 0
    assert "must not fall" in refused.stderr
    assert screened.cli(*command) == said
