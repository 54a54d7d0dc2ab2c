"""What commands print for people: pleasant values, and examples of their own product."""

from pathlib import Path

import pytest

from tests.live import run_cli
from vettance.commands import show_table


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
