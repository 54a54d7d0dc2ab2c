"""Commands about rules against a running service: no store, a key, plain words, and three exit codes."""

import json
import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.forked_commands import run_command
from tests.live import Caller, Service
from tests.reviews.conftest import RULES as RULES_TEXT
from tests.reviews.conftest import decided
from vettance.rules.packs import load_pack_text

BROKEN = RULES_TEXT.replace("when: metadata.amount > 100\n", "when: amount > 100\n")
FAILING = RULES_TEXT.replace("amount: 200}}, fires: true", "amount: 20}}, fires: true")
AML = RULES_TEXT.replace("name: Held", "name: Watched").replace(
    "eventName: payment.attempt", "eventName: a, externalEventId: e"
)


class Pipeline:
    """A machine without a store, that runs commands with a key of a tenant."""

    def __init__(self, service: Service, folder: Path, tenant_id: str, key: str) -> None:
        self.url, self.folder, self.tenant_id, self.key = service.base_url, folder, tenant_id, key
        self.service = service

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run(self, *arguments: str, key: str | None = None, url: str | None = None) -> Any:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VETTANCE_")}
        environment["VETTANCE_API_KEY"] = self.key if key is None else key
        return run_command((*arguments, "--server", url or self.url), environment, 120, folder=self.folder)

    def ask(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def key_of(service: Service, tenant_id: str, *scopes: str) -> str:
    given = [part for scope in scopes for part in ("--scope", scope)]
    return str(service.cli("key", "create", "--tenant", tenant_id, *given, "--json")["apiKey"])


@pytest.fixture(scope="module")
def pipeline(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    tenant_id = service.cli("tenant", "create", "Pipeline", "--aml", "--json")["tenantId"]
    key = key_of(service, tenant_id, "rules", "decide")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: caller.get("/api/v1/rulesets").status == 200)
    return Pipeline(service, tmp_path_factory.mktemp("pipeline"), tenant_id, key)


@pytest.mark.parametrize("group", ["rules", "aml"])
def test_a_version_lives_its_life_from_afar(pipeline: Pipeline, group: str) -> None:
    file = pipeline.file(f"{group}.yaml", RULES_TEXT if group == "rules" else AML)
    checked = pipeline.ask(group, "check", file)
    assert (checked["ok"], checked["running"], len(checked["tests"])) == (True, 2, 4)
    tested = pipeline.ask(group, "test", file, "--rule", "huge")
    assert [one["passed"] for one in tested] == [True, True]
    proposed = pipeline.ask(group, "propose", file, "--note", "From a pipeline")
    number = str(proposed["version"])
    assert (proposed["state"], proposed["note"]) == ("proposed", "From a pipeline")
    assert pipeline.ask(group, "approve", number)["state"] == "approved"
    assert pipeline.ask(group, "activate", number)["state"] == "active"
    draft = pipeline.ask(
        group, "propose", pipeline.file("draft.yaml", BROKEN.replace("amount", "nothing")), "--draft"
    )
    assert draft["state"] == "draft"
    assert "nothing" in str(draft["faults"])
    rejected = pipeline.ask(group, "reject", str(draft["version"]), "--note", "It is broken.")
    assert rejected["state"] == "rejected"
    pulled = pipeline.ask(group, "pull")
    assert pulled["document"] == Path(file).read_text()
    changed = pipeline.file(f"{group}-changed.yaml", Path(file).read_text().replace("score: 60", "score: 70"))
    (change,) = pipeline.ask(group, "diff", changed)
    assert (change["rule"], change["after"]) == ("large", {"score": 70})
    pushed = pipeline.ask(group, "push", changed, "--note", "More")
    assert (pushed["saved"], pushed["state"]) == (True, "active")
    assert pipeline.ask(group, "push", changed)["saved"] is False
    late = pipeline.run(group, "rollback", "--to", number, "--over", number)
    assert (late.returncode, "changed these rules" in late.stderr) == (1, True), late.stderr
    rolled = pipeline.ask(group, "rollback", "--to", number, "--over", str(pushed["version"]))
    assert (rolled["state"], rolled["rollbackOf"]) == ("active", int(number))
    listed = pipeline.ask(group, "list")
    assert {one["state"] for one in listed} >= {"active", "retired", "rejected"}
    steps = pipeline.ask(group, "log")
    assert "approved" in str(steps)
    assert steps == pipeline.service.cli(group, "log", "--tenant", pipeline.tenant_id, "--json")


@pytest.mark.parametrize("group", ["rules", "aml"])
def test_a_push_that_waits_says_so_and_the_glass_can_be_broken(pipeline: Pipeline, group: str) -> None:
    service = pipeline.service
    tenant_id = service.cli("tenant", "create", "Two people", "--aml", "--json")["tenantId"]
    service.cli("tenant", "set", tenant_id, "--rule-approval", "on")
    key = key_of(service, tenant_id, "rules")
    service.wait_for(lambda: Caller(service, tenant_id, key).get("/api/v1/rulesets").status == 200)
    file = pipeline.file(f"{group}-waits.yaml", RULES_TEXT if group == "rules" else AML)

    def here(*arguments: str) -> Any:
        return service.cli(*arguments, "--tenant", tenant_id, ok=False)

    for run in (lambda *given: pipeline.run(*given, key=key), here):
        waits = run(group, "push", file, "--yes")
        assert waits.returncode == 0, waits.stderr
        assert "is proposed and NOT in force yet:" in waits.stdout
        assert "still decides" in waits.stdout
        found = json.loads(run(group, "push", file, "--yes", "--json").stdout)
        assert (found["saved"], found["state"], found["inForce"]) == (True, "proposed", False)
        forced = run(group, "push", file, "--yes", "--break-glass", "Under attack", "--json")
        assert forced.returncode == 0, forced.stderr
        found = json.loads(forced.stdout)
        assert (found["state"], found["inForce"], found["breakGlass"]) == ("active", True, "Under attack")
        file = pipeline.file(f"{group}-more.yaml", Path(file).read_text().replace("score: 60", "score: 61"))
        number = json.loads(run(group, "propose", file, "--json").stdout)["version"]
        assert run(group, "activate", str(number)).returncode == 1
        forced = run(group, "activate", str(number), "--break-glass", "Still", "--json")
        assert json.loads(forced.stdout)["breakGlass"] == "Still"
        assert run(group, "activate", str(number), "--break-glass", "").returncode == 2
        same = json.loads(run(group, "push", file, "--json").stdout)
        assert (same["saved"], same["state"], same["inForce"]) == (False, "active", True)
        file = pipeline.file(f"{group}-last.yaml", Path(file).read_text().replace("score: 61", "score: 62"))


@pytest.mark.parametrize("group", ["rules", "aml"])
def test_the_pack_is_had_from_afar(pipeline: Pipeline, group: str) -> None:
    done = pipeline.run(group, "pack")
    assert done.returncode == 0, done.stderr
    assert done.stdout == load_pack_text("fraud" if group == "rules" else "aml")
    assert "document" in pipeline.ask(group, "pack")


def test_snoozes_and_quality_are_had_from_afar(pipeline: Pipeline) -> None:
    # AML rules of a tenant are taken up with its first event.
    caller = Caller(pipeline.service, pipeline.tenant_id, pipeline.key)
    first = {"eventName": "transfer.sent", "externalEventId": "tx-1", "customer": {"externalId": "c-1"}}
    assert caller.post("/api/v1/aml/events", first).status in (200, 201)
    for group in ("rules", "aml"):
        file = pipeline.file("rules.yaml", RULES_TEXT if group == "rules" else AML)
        pushed = pipeline.run(group, "push", file, "--yes")
        assert pushed.returncode == 0, pushed.stderr
        made = ("--type", "DEVICE", "--value", "fp-1", "--until", "2099-01-01", "--reason", "A kiosk")
        # The service takes new rules up within five seconds.
        pipeline.service.wait_for(
            lambda group=group, made=made: pipeline.run(group, "snooze", "large", *made).returncode == 0,
            seconds=10,
        )
        (one,) = pipeline.ask(group, "snoozes")
        assert pipeline.ask(group, "unsnooze", one["id"]) == {"id": one["id"], "ended": True}
        assert pipeline.ask(group, "snoozes") == []
        gone = pipeline.run(group, "unsnooze", one["id"])
        assert (gone.returncode, "Error" in gone.stderr) == (1, True)
    quality = pipeline.ask("rules", "quality", "--from", "2020-01-01", "--to", "2020-02-01")
    assert quality["decisions"] == 0
    shown = pipeline.run("rules", "quality")
    assert shown.returncode == 0, shown.stderr


def test_models_and_their_features_are_had_from_afar(pipeline: Pipeline) -> None:
    assert pipeline.ask("model", "list") == []
    for arguments, said in (((), "no model is in service"), (("7",), "`vettance model list` shows them")):
        done = pipeline.run("model", "card", *arguments)
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    features = ("model", "features")
    file = pipeline.file("own.yaml", "cents_per_item: metadata.amount / metadata.items\n")
    checked = pipeline.ask(*features, "check", file)
    assert "cents_per_item" in [one["name"] for one in checked["features"]]
    pushed = pipeline.ask(*features, "push", file, "--note", "Cents")
    assert pushed["features"] == checked["features"]
    assert pipeline.ask(*features, "show") == {name: pushed[name] for name in ("featureSet", "features")}
    broken = pipeline.run(*features, "push", pipeline.file("broken.yaml", "cents: metadata.amount /\n"))
    assert (broken.returncode, "line 1" in broken.stderr) == (1, True), broken.stderr
    pipeline.ask(*features, "push", pipeline.file("other.yaml", "cents: metadata.amount * 100\n"))
    assert pipeline.ask(*features, "rollback")["features"] == pushed["features"]
    versions = pipeline.ask(*features, "versions")
    assert [one["note"] for one in versions][-1] == "Cents"
    # The store says the same of itself.
    local = pipeline.service.cli(*features, "versions", "--tenant", pipeline.tenant_id, "--json")
    assert local == versions
    shown = pipeline.service.cli(*features, "show", "--tenant", pipeline.tenant_id, "--json")
    assert shown == pipeline.ask(*features, "show")
    assert pipeline.run(*features, "push", file, "--by", "me").returncode == 2


def test_a_backtest_is_waited_for_and_held_to_expectations(pipeline: Pipeline) -> None:
    file = pipeline.file("rules.yaml", RULES_TEXT)
    pipeline.run("rules", "push", file, "--yes")
    caller = Caller(pipeline.service, pipeline.tenant_id, pipeline.key)
    pipeline.service.wait_for(lambda: decided(caller, 150)["decision"] == "review")
    met = pipeline.run("rules", "backtest", file, "--expect", "all.reviewed >= 0.01")
    assert met.returncode == 0, met.stderr
    assert "met: all.reviewed >= 0.01" in met.stdout
    missed = pipeline.run("rules", "backtest", file, "--expect", "all.denied > 0.99", "--json")
    assert missed.returncode == 1
    found = json.loads(missed.stdout)
    assert [one["met"] for one in found["expectations"]] == [False]
    assert found["decisions"]["all"]["after"]["review"] >= 1
    started = pipeline.ask("rules", "backtest", file, "--no-wait")
    pipeline.service.wait_for(
        lambda: caller.get(f"/api/v1/backtests/{started['backtestId']}").json["state"] == "completed",
        seconds=60,
    )


@pytest.mark.parametrize("command", ["check", "test", "propose", "push"])
def test_what_the_gate_refuses_ends_with_one_and_the_place(pipeline: Pipeline, command: str) -> None:
    file = pipeline.file("broken.yaml", BROKEN)
    done = pipeline.run("rules", command, file)
    assert done.returncode == 1
    assert "line 5" in done.stderr
    assert "did you mean metadata.amount?" in done.stderr
    assert "\n        when: amount > 100\n              ^" in done.stderr
    as_json = pipeline.run("rules", command, file, "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["error"]["faults"][0]["line"] == 5


def test_a_failing_test_ends_with_one_and_is_shown(pipeline: Pipeline) -> None:
    done = pipeline.run("rules", "test", pipeline.file("failing.yaml", FAILING))
    assert done.returncode == 1
    assert "FAIL  large: large" in done.stdout
    assert "metadata.amount = 20" in done.stdout
    assert pipeline.run("rules", "check", pipeline.file("failing.yaml", FAILING)).returncode == 1


def test_a_version_that_is_not_there_ends_with_one(pipeline: Pipeline) -> None:
    for words in (("approve", "999999"), ("pull", "--version", "999999"), ("rollback", "--to", "999999")):
        for group in ("rules", "aml"):
            done = pipeline.run(group, *words)
            said = f"Error: there is no such version; `vettance {group} list` shows them\n"
            assert (done.returncode, done.stderr) == (1, said)
    done = pipeline.run("rules", "unsnooze", "snz_nobody")
    assert "there is no such snooze; `vettance rules snoozes` shows them" in done.stderr


def test_a_threshold_of_a_rule_that_is_not_there_ends_with_one(pipeline: Pipeline) -> None:
    done = pipeline.run("rules", "suggest", "--threshold", "nobody")
    assert (done.returncode, "ruleId: is no rule of the rules in force" in done.stderr) == (1, True)
    as_json = json.loads(pipeline.run("rules", "suggest", "--threshold", "nobody", "--json").stdout)["error"]
    assert (as_json["status"], as_json["ruleId"]) == (422, "is no rule of the rules in force")


def test_a_key_that_may_not_is_said_in_plain_words(pipeline: Pipeline) -> None:
    key = key_of(pipeline.service, pipeline.tenant_id, "decide")
    caller = Caller(pipeline.service, pipeline.tenant_id, key)
    pipeline.service.wait_for(lambda: caller.get("/api/v1/lists").status == 200)
    done = pipeline.run("rules", "log", key=key)
    assert done.returncode == 2
    assert "lacks the scope `rules`" in done.stderr
    as_json = pipeline.run("rules", "log", "--json", key=key)
    assert "lacks the scope" in json.loads(as_json.stdout)["error"]["message"]
    unknown = pipeline.run("rules", "log", key="vk_nobody")
    assert (unknown.returncode, "does not know the key" in unknown.stderr) == (2, True)
    missing = pipeline.run("rules", "log", key="")
    assert (missing.returncode, "VETTANCE_API_KEY" in missing.stderr) == (2, True)


def test_nobody_at_the_address_is_said_in_plain_words(pipeline: Pipeline) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        done = pipeline.run("rules", "log", url=url)
    assert done.returncode == 2
    assert f"{url} cannot be reached: Connection refused" in done.stderr
    for wrong in ("ftp://example.com", "nonsense", "http://"):
        assert pipeline.run("rules", "log", url=wrong).returncode == 2


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [(200, {}, b"<html>"), (302, {"Location": "/elsewhere"}, b""), (404, {}, b"not found"), (503, {}, b"{}")],
)
def test_something_else_at_the_address_gets_no_second_request(
    pipeline: Pipeline, status: int, headers: dict[str, str], body: bytes
) -> None:
    asked: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = pipeline.run("rules", "log", url=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 2
    assert "is it the service?" in done.stderr
    assert asked == ["/api/v1/rulesets/log"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("approve", "1", "--by", "ana"),
        ("activate", "1", "--break-glass", " "),
        ("pack", "aml"),
        ("backtest", "FILE", "--output", "flips.ndjson"),
        ("backtest", "FILE", "--no-wait", "--expect", "all.denied < 1"),
    ],
)
def test_what_only_the_store_can_do_is_wrong_use(pipeline: Pipeline, arguments: tuple[str, ...]) -> None:
    file = pipeline.file("rules.yaml", RULES_TEXT)
    done = pipeline.run("rules", *(file if one == "FILE" else one for one in arguments))
    assert done.returncode == 2, done.stderr


def test_without_a_server_a_tenant_has_to_be_named(pipeline: Pipeline) -> None:
    done = run_command(("rules", "log", "--data", str(pipeline.service.data)), os.environ, timeout_s=60)
    assert done.returncode == 2
    assert "--tenant" in done.stderr
