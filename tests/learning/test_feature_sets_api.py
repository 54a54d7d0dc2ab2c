"""Features of a tenant's own over HTTP: checked, put in force as versions, listed, and gone back from."""

import json
import random
import threading
from typing import Any

import pytest

from tests.learning.conftest import pay
from tests.live import Answer, Caller, Service
from tests.reviews.conftest import steering
from vettance.decisions.sql import record_of

ROOT = "/api/v1/models/features"
OWN = "cents: {value: metadata.amount * 100, family: amount, text: amount in cents}\n"
BROKEN = (
    "cents: metadata.amount *\n"
    "huor: null\n"
    "late: huor > 22\n"
    "odd: {value: hour, family: tiem}\n"
    "own: model.score + 1\n"
    "good: hour\n"
)


@pytest.fixture
def writer(service: Service) -> Caller:
    """A tenant with events, whose key may change rules; nobody has labelled anything."""
    caller = steering(Caller(service, *service.new_tenant("Writer")))
    draw = random.Random(3)
    for number in range(40):
        pay(caller, number, draw)
    return caller


def put(caller: Caller, document: str = OWN, **more: Any) -> Answer:
    return caller.put(ROOT, {"document": document, **more})


def refused(answer: Answer, status: int) -> Any:
    assert answer.status == status, answer.body
    return answer.json["error"]["details"]


def test_a_set_is_put_in_force_and_recorded_with_decisions(writer: Caller) -> None:
    nothing = writer.get(ROOT)
    assert (nothing.status, nothing.json["version"], nothing.json["features"]) == (200, 0, [])
    made = put(writer, note="Cents")
    assert made.status == 200, made.body
    one = made.json
    assert (one["version"], one["note"], one["dryRun"], one["faults"]) == (1, "Cents", False, [])
    features = {each["name"]: each for each in one["features"]}
    assert features["cents"]["own"] is True
    assert (features["amount"]["own"], features["amount"]["family"]) == (False, "amount")
    assert {each["kind"] for each in one["changes"]} == {"added"}
    assert (
        one["author"]
        == writer.service.rows(
            f"SELECT id FROM api_key WHERE tenant = '{writer.id}' AND scopes LIKE '%rules%'"
        )[0][0]
    )
    shown = writer.get(ROOT).json
    assert shown == {name: value for name, value in one.items() if name not in ("dryRun", "faults")}

    def is_recorded() -> bool:
        event, _ = pay(writer, 1, random.Random(1))
        rows = writer.service.rows(f"SELECT record FROM decision WHERE id = '{event}'")
        return bool(record_of(rows[0][0]).feature_set == one["featureSet"])

    writer.service.wait_for(is_recorded, seconds=20)


def test_a_dry_run_says_what_would_change_and_changes_nothing(writer: Caller) -> None:
    would = put(writer, dryRun=True).json
    assert (would["version"], would["dryRun"]) == (0, True)
    assert "cents" in {each["name"] for each in would["changes"]}
    assert writer.get(ROOT).json["features"] == []
    assert writer.get(f"{ROOT}/versions").json["total"] == 0
    assert (
        writer.service.rows(
            f"SELECT action FROM audit_entry WHERE tenant = '{writer.id}' AND action LIKE '%features%'"
        )
        == []
    )
    first = put(writer).json
    assert first["featureSet"] == would["featureSet"]
    would = put(writer, OWN.replace("* 100", "* 1000"), dryRun=True).json
    (change,) = would["changes"]
    assert (change["kind"], change["before"]["value"], change["after"]["value"]) == (
        "changed",
        "metadata.amount * 100",
        "metadata.amount * 1000",
    )
    assert would["version"] == 1


def test_every_fault_is_told_at_once_with_its_place(writer: Caller) -> None:
    for more in ({}, {"dryRun": True}):
        details = refused(put(writer, BROKEN, **more), 422)
        told = [(one["path"], one["line"], one["column"], one["hint"]) for one in details["faults"]]
        assert told == [
            ("cents", 1, 24, None),
            ("huor", 2, 7, "did you mean hour?"),
            ("late", 3, 7, "did you mean hour?"),
            ("odd", 4, 28, "did you mean time?"),
            ("own", 5, 6, None),
        ]
        assert details["late"] == "there is no name huor"
        assert "good" not in details
    for document, line in (("- hour", 1), ("a: [", 2), ("a: hour\nb: &x hour\n", 2)):
        (fault,) = refused(put(writer, document), 422)["faults"]
        assert (fault["path"], fault["line"]) == ("document", line)
    assert writer.get(ROOT).json["version"] == 0


def test_too_much_is_refused_with_the_reason(writer: Caller) -> None:
    many = "".join(f"a{number}: hour + {number}\n" for number in range(401))
    (fault,) = refused(put(writer, many), 422)["faults"]
    assert "1 to 400 features" in fault["message"]
    costly = "".join(
        f'b{number}: avg(metadata.amount, by=customer.key, within="{number}h")\n' for number in range(1, 300)
    )
    (fault,) = refused(put(writer, costly), 422)["faults"]
    assert "ask for too much" in fault["message"]


def test_bad_bodies_are_refused(writer: Caller) -> None:
    assert refused(writer.put(ROOT, {}), 400) == {"document": "is required"}
    assert refused(put(writer, 7), 400) == {"document": "must be a string"}  # type: ignore[arg-type]
    assert set(refused(put(writer, over="x", dryRun=1), 400)) == {"over", "dryRun"}
    assert set(refused(put(writer, note="n" * 4_001, over=-1), 422)) == {"note", "over"}
    assert writer.service.call("PUT", ROOT, {"document": OWN}, key=None).status == 401


def test_of_two_who_put_at_the_same_time_the_second_is_told_the_version(writer: Caller) -> None:
    assert put(writer, over=0).json["version"] == 1
    details = refused(put(writer, "other: hour\n", over=0), 409)
    assert (details["reason"], details["version"]) == ("changed_meanwhile", 1)
    texts = [f"mine: hour + {number}\n" for number in range(4)]
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda text=text: answers.append(put(writer, text))) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = [one.status for one in answers]
    versions = writer.get(f"{ROOT}/versions").json["data"]
    # A tenant checks three documents at a time.
    assert set(statuses) <= {200, 409, 503}
    assert statuses.count(200) == len(versions) - 1 >= 1
    for one in answers:
        if one.status == 409:
            assert one.json["error"]["details"]["version"] in range(1, versions[0]["version"] + 1)
            assert "is in force by now" in one.json["error"]["message"]
    # Who sends again what is in force changes nothing.
    known = writer.get(ROOT).json
    again = put(writer, known["document"], over=0)
    assert (again.status, again.json["version"]) == (200, known["version"])


def test_versions_are_listed_shown_and_gone_back_to(writer: Caller) -> None:
    root = f"{ROOT}/rollback"
    assert refused(writer.post(root), 409)["reason"] == "never_active"
    first = put(writer, note="First").json
    second = put(writer, "cents: null\n", note="?")
    assert second.status == 422
    second = put(writer, "", note="None of our own").json
    assert [(one["kind"], one["name"]) for one in second["changes"]] == [("removed", "cents")]
    back = writer.post(root, {"note": "Back"})
    assert (back.status, back.json["version"], back.json["rollbackOf"]) == (201, 3, 1)
    assert (back.json["featureSet"], back.json["document"]) == (first["featureSet"], OWN)
    assert refused(writer.post(root, {"to": 3}), 409)["reason"] == "in_force"
    assert refused(writer.post(root, {"to": 2, "over": 2}), 409)["version"] == 3
    page = writer.get(f"{ROOT}/versions?limit=2").json
    assert (page["total"], page["hasMore"], [one["version"] for one in page["data"]]) == (3, True, [3, 2])
    assert page["data"][1]["note"] == "None of our own"
    rest = writer.get(f"{ROOT}/versions?limit=2&cursor={page['nextCursor']}").json
    assert [one["version"] for one in rest["data"]] == [1]
    ascending = writer.get(f"{ROOT}/versions?sortOrder=asc").json
    assert [one["version"] for one in ascending["data"]] == [1, 2, 3]
    assert writer.get(f"{ROOT}/versions?cursor=x").status == 400
    one = writer.get(f"{ROOT}/versions/1").json
    assert (one["document"], one["features"]) == (OWN, first["features"])
    for unknown in ("0", "01", "9", "x", "99999999999"):
        assert writer.get(f"{ROOT}/versions/{unknown}").status == 404
    assert writer.post(root, {"to": 9}).status == 404
    entries = writer.service.rows(
        "SELECT action, content FROM audit_entry JOIN audit_part ON audit_part.entry = audit_entry.id "
        f"WHERE audit_entry.tenant = '{writer.id}' AND audit_part.name = 'after'"
    )
    told = {(action, json.loads(content).get("version")) for action, content in entries}
    assert {(f"PUT {ROOT}", 1), (f"PUT {ROOT}", 2), (f"POST {root}", 3)} <= told


def test_keys_need_the_scope_and_other_tenants_see_nothing(service: Service, writer: Caller) -> None:
    put(writer)
    stranger = steering(Caller(service, *service.new_tenant("Stranger")))
    assert stranger.get(ROOT).json["version"] == 0
    assert stranger.get(f"{ROOT}/versions").json["data"] == []
    assert stranger.get(f"{ROOT}/versions/1").status == 404
    made = service.cli("key", "create", "--tenant", writer.id, "--scope", "read", "--json")
    reader = Caller(service, writer.id, made["apiKey"])
    service.wait_for(lambda: reader.get(ROOT).status == 200)
    assert reader.get(f"{ROOT}/versions").json["total"] == 1
    for answer in (put(reader), reader.post(f"{ROOT}/rollback")):
        assert answer.status == 403
    plain = Caller(service, *service.new_tenant("Plain"))
    assert plain.get(ROOT).status == put(plain).status == 403


def test_without_events_only_own_features_are_there_and_a_warning(service: Service) -> None:
    early = steering(Caller(service, *service.new_tenant("Early")))
    made = put(early).json
    assert [one["name"] for one in made["features"]] == ["cents"]
    (warning,) = made["faults"]
    assert (warning["severity"], warning["path"]) == ("warning", "document")
    assert "no event has come in yet" in warning["message"]
