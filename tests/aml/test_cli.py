"""`vettance aml`: settings, and rule versions that can be listed, compared and fetched."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vettance.aml.cli import aml
from vettance.ops.tenant_cli import tenant
from vettance.rules.packs import load_pack_text

RULES = """
name: Own
actions: {LOOK: Look at it.}
rules:
  - id: large
    name: Large
    when: large_sum
    score: 70
    reason: LARGE
    explanation: It is large.
    action: LOOK
    tests:
      - {name: large, event: {eventName: x, metadata: {amount: 10000}}, fires: true}
      - {name: small, event: {eventName: x, metadata: {amount: 10}}, fires: false}
"""


def run(folder: Path, *arguments: str, ok: bool = True) -> Any:
    """Run a command in this process; returns the parsed output of --json, else the text."""
    group = {"tenant": tenant, "aml": aml}[arguments[0]]
    done = CliRunner().invoke(group, [*arguments[1:], "--data", str(folder)])
    assert (done.exit_code == 0) == ok, done.output
    return json.loads(done.output) if "--json" in arguments else done.output


@pytest.fixture
def bank(tmp_path: Path) -> str:
    found: str = run(tmp_path, "tenant", "create", "Bank", "--aml", "--json")["tenantId"]
    return found


def test_settings_are_shown_and_changed_one_by_one(tmp_path: Path, bank: str) -> None:
    def settings(*changes: str) -> dict[str, Any]:
        found: dict[str, Any] = run(tmp_path, "aml", "set", "--tenant", bank, *changes, "--json")
        return found

    off = {"tenantId": bank, "fourEyes": False, "inlineScreening": False}
    assert settings() == off
    assert settings("--four-eyes", "on") == off | {"fourEyes": True}
    assert settings("--inline-screening", "on") == off | {"fourEyes": True, "inlineScreening": True}
    assert settings("--four-eyes", "off") == off | {"inlineScreening": True}
    assert settings() == off | {"inlineScreening": True}


def test_versions_are_listed_compared_and_fetched(tmp_path: Path, bank: str) -> None:
    def own(*arguments: str, ok: bool = True) -> Any:
        return run(tmp_path, "aml", *arguments, "--tenant", bank, ok=ok)

    assert own("list", "--json") == []
    assert own("pull") == load_pack_text("aml")
    assert own("pull", "--json") == {"tenantId": bank, "version": None, "document": load_pack_text("aml")}
    file, old = tmp_path / "aml.yaml", tmp_path / "old.yaml"
    file.write_text(RULES, "utf-8")
    assert own("push", str(file), "--note", "First", "--yes", "--json")["version"] == 1
    assert own("diff", str(file), "--json") == []
    file.write_text(RULES.replace("score: 70", "score: 80"), "utf-8")
    changes = own("diff", str(file), "--json")
    assert "large" in json.dumps(changes)
    assert own("push", str(file), "--note", "Second", "--json")["version"] == 2
    assert [(row["version"], row["note"]) for row in own("list", "--json")] == [(2, "Second"), (1, "First")]
    assert own("diff", "--version", "1", "--to", "2", "--json") == changes
    own("pull", "--version", "1", "--output", str(old))
    assert old.read_text("utf-8") == RULES
    assert own("pull", "--json")["version"] == 2
    told = own("pull", "--version", "1", "--output", str(old), "--json")
    assert told == {"tenantId": bank, "version": 1, "output": str(old)}
    assert "no such version" in own("pull", "--version", "9", ok=False)
    assert "not both" in own("diff", str(file), "--to", "1", ok=False)
