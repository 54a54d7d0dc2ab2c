"""What commands print for people: pleasant values, and examples of their own product."""

import re
from pathlib import Path

import pytest

from tests.live import Caller, Service, run_cli
from vettance.commands import show_table
from vettance.watchlists.labelled import LabelledCase
from vettance.watchlists.match_evaluation import Evaluation, report

SEVERAL = re.compile(
    r"\b1 (?:\w+ )?(?:events|rows|files|tenants|keys|decisions|entries|lists|faults|warnings)\b"
)


def test_a_table_has_no_words_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"name": "hour", "psi": 0.12345678, "warning": False, "scopes": ["decide", "read"], "rows": 1234567},
        {"name": "amount", "psi": 1234.5678, "warning": True, "scopes": [], "rows": None},
    ]
    show_table("Drift", rows, as_json=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[3:] == [["hour", "0.1235", "decide,", "read", "1234567"], ["amount", "1235", "yes"]]


def test_the_scopes_of_a_key_are_shown_as_words(tmp_path: Path) -> None:
    tenant = run_cli(tmp_path, "tenant", "create", "Shop", "--json")["tenantId"]
    run_cli(tmp_path, "key", "create", "--tenant", tenant, "--scope", "decide", "--json")
    for command in (("tenant", "show", tenant), ("key", "list")):
        done = run_cli(tmp_path, *command, ok=False)
        assert "KeyScope" not in done.stdout
        assert "  decide  " in done.stdout


@pytest.mark.parametrize("command", ["push", "propose", "reject"])
def test_examples_of_aml_are_about_money(tmp_path: Path, command: str) -> None:
    told = run_cli(tmp_path, "aml", command, "--help", ok=False, data=False).stdout
    assert "login" not in told
    assert "customers" not in told.partition("Example:")[2]
    assert "--note" in told.partition("Example:")[2]


def test_what_there_is_one_of_is_counted_as_one(tmp_path: Path) -> None:
    service = Service(tmp_path / "data")
    service.start()
    tenant, key = service.new_tenant()
    service.cli("tenant", "set", tenant, "--aml", "on")
    mine = Caller(service, tenant, key)
    login = {"eventName": "user.login", "customer": {"externalId": "c-1"}}
    assert mine.post("/api/v1/events", login).status == 201
    entry = {"type": "IP", "value": "203.0.113.9", "listType": "block"}
    assert mine.post("/api/v1/lists", entry).status == 201
    service.stop()

    def said(*command: str) -> str:
        text = service.cli(*command, ok=False).stdout
        assert not SEVERAL.search(text), text
        return str(text)

    backup = said("backup", str(tmp_path / "backup"))
    assert "1 event (the newest: " in backup
    assert ", 1 tenant, 1 API key, 1 decision, 1 list entry; " in backup
    assert "1 tenant has the AML product" in said("doctor")
    erased = said("customer", "erase", "--tenant", tenant, "--external-id", "c-1")
    assert erased.startswith("1 event and ")
    generate = ("generate", "aml", "--customers", "20", "--days", "20", "--cases", "1")
    made = run_cli(tmp_path, *generate, "--output", str(tmp_path / "made"), data=False).stdout
    assert " 1 case\n" in made
    assert " 1 cases" not in made


def test_what_is_left_out_of_an_evaluation_is_counted_as_one() -> None:
    evaluation = Evaluation(None, 90, search=False)
    evaluation.run(LabelledCase({"name": "Ada"}, "match"))
    assert "; 1 case was left out." in report(evaluation, 0)
