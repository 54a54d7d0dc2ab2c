"""Files of rules on the command line: checked, tried, compared and pushed, for people and for scripts."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from vettance.cli import main
from vettance.rules.packs import load_pack, load_pack_text

OWN = """extends: default
rules:
  - {id: webdriver, score: 20}
  - {id: headless-browser, mode: off}
  - id: night
    name: Withdrawal at night
    when: event.kind == "withdrawal" and hour < 5
    score: 40
    reason: NIGHT
    explanation: A withdrawal at night.
    tests:
      - {name: at night, now: 2026-01-31T03:00:00Z, event: {eventName: withdrawal}, fires: true}
      - {name: by day, event: {eventName: withdrawal}, fires: false}
"""
ALONE = OWN.replace("extends: default", "name: Alone").replace(
    "  - {id: webdriver, score: 20}\n  - {id: headless-browser, mode: off}\n", ""
)
BROKEN = ALONE.replace('"withdrawal" and', '"withdrawl" and contry == "GB" and')
PACK = len(load_pack("fraud").rules)
AML = """extends: default
rules:
  - {id: large-sum, score: 25}
"""


class Shop:
    """A tenant with a data folder of its own, a file of rules, and the commands about both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "rules.yaml"
        self.env = {"VETTANCE_DATA": str(folder / "data")}
        self.id = json.loads(self.run("tenant", "create", "Shop", "--aml", "--json").stdout)["tenantId"]

    def run(self, *words: str, exits: int = 0, given: str | None = None) -> Result:
        done = CliRunner().invoke(main, words, env=self.env, input=given)
        assert done.exit_code == exits, done.output
        return done

    def write(self, text: str) -> str:
        self.file.write_text(text, "utf-8")
        return str(self.file)

    def push(self, text: str, *more: str, group: str = "rules", exits: int = 0) -> Result:
        return self.run(group, "push", self.write(text), "--tenant", self.id, *more, exits=exits)

    def pushed(self, text: str, *more: str, group: str = "rules") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.push(text, "--json", *more, group=group).stdout)
        return found

    def pull(self, *more: str, group: str = "rules") -> str:
        return self.run(group, "pull", "--tenant", self.id, *more).stdout

    def versions(self) -> list[int]:
        listed = self.run("rules", "list", "--tenant", self.id, "--json").stdout
        return [row["version"] for row in json.loads(listed)]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_push_shows_what_it_adds_and_changes(shop: Shop) -> None:
    shown = shop.push(OWN).stdout
    assert shown == (
        "Against version 1:\n"
        "  ~ webdriver         score 50 → 20\n"
        "  ~ headless-browser  mode active → off\n"
        "  + night             Withdrawal at night (score 40)\n"
        f"Rules: 1 added, 2 changed, 0 removed, {PACK - 2} as before.\n"
        "Version 2 is in force.\n"
    )
    changed = OWN.replace("hour < 5", "hour < 6 and metadata.amount > 1000").replace(
        "{eventName: withdrawal}, fires: true",
        "{eventName: withdrawal, metadata: {amount: 2000}}, fires: true",
    )
    found = shop.pushed(changed)
    assert (found["version"], found["saved"]) == (3, True)
    (change,) = found["changes"]
    assert (change["kind"], change["rule"], change["fields"]) == ("changed", "night", ["when", "tests"])
    assert change["before"]["when"] == 'event.kind == "withdrawal" and hour < 5'


def test_removing_rules_needs_to_be_said_in_a_script(shop: Shop) -> None:
    refused = shop.push(ALONE, exits=1)
    assert (
        f"Error: this removes {PACK} rules; add --yes if that is meant, or keep the pack's" in refused.stderr
    )
    assert f"Rules: 1 added, 0 changed, {PACK} removed, 0 as before." in refused.stdout
    told = json.loads(shop.push(ALONE, "--json", exits=1).stdout)["error"]
    assert told["message"] == f"this removes {PACK} rules; add --yes if that is meant"
    assert sum(change["kind"] == "removed" for change in told["changes"]) == PACK
    assert shop.versions() == [1]
    assert shop.pushed(ALONE, "--yes")["version"] == 2
    more = ALONE + OWN.partition("rules:\n")[2].replace("id: night", "id: later")
    assert shop.pushed(
        more.replace("  - {id: webdriver, score: 20}\n  - {id: headless-browser, mode: off}\n", "")
    )["saved"]


@pytest.mark.parametrize(("answer", "code", "versions"), [("y\n", 0, [2, 1]), ("n\n", 1, [1])])
def test_removing_rules_asks_at_a_terminal(shop: Shop, answer: str, code: int, versions: list[int]) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    words = ("rules", "push", shop.write(ALONE), "--tenant", shop.id)
    done = subprocess.run(
        [sys.executable, "-m", "vettance.cli", *words],
        stdin=theirs, capture_output=True, timeout=60, check=False, env={**os.environ, **shop.env},
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert f"This removes {PACK} rules. Go on? [y/N]".encode() in done.stderr
    assert shop.versions() == versions


def test_a_dry_run_saves_nothing(shop: Shop) -> None:
    assert shop.push(OWN, "--dry-run").stdout.endswith("Nothing was saved (--dry-run).\n")
    assert shop.push(ALONE, "--dry-run").exit_code == 0
    told = shop.pushed(OWN, "--dry-run")
    assert (told["version"], told["saved"], len(told["changes"])) == (1, False, 3)
    assert shop.versions() == [1]


def test_the_same_document_makes_no_new_version(shop: Shop) -> None:
    assert shop.push(load_pack_text("fraud")).stdout == "Nothing to save: version 1 is the same.\n"
    shop.push(OWN)
    assert shop.push(OWN, "--note", "again").stdout == "Nothing to save: version 2 is the same.\n"
    assert shop.pushed(OWN)["saved"] is False
    assert shop.versions() == [2, 1]
    elsewhere = shop.folder / "elsewhere.yaml"
    elsewhere.write_text(OWN, "utf-8")
    shop.run("rules", "push", str(elsewhere), "--tenant", shop.id)
    assert shop.versions() == [2, 1]


def test_what_was_pushed_is_pulled_and_what_it_came_to_as_well(shop: Shop) -> None:
    shop.push(OWN)
    assert shop.pull() == OWN
    resolved = shop.pull("--resolved")
    assert "extends" not in resolved
    assert len(load_pack("fraud").rules) + 1 == resolved.count("\n- id: ")
    assert shop.pull("--version", "1", "--resolved") == load_pack_text("fraud")
    told = json.loads(shop.pull("--resolved", "--json"))
    assert (told["version"], told["document"]) == (2, resolved)
    assert shop.pushed(resolved)["changes"] == []


def test_aml_rules_are_pushed_alike(shop: Shop) -> None:
    assert shop.push(AML, group="aml").stdout == (
        "Against the default pack:\n"
        "  ~ large-sum  score 10 → 25\n"
        f"Rules: 0 added, 1 changed, 0 removed, {len(load_pack('aml').rules) - 1} as before.\n"
        "Version 1 is in force.\n"
    )
    assert shop.pull(group="aml") == AML
    alone = ALONE.replace('event.kind == "withdrawal" and ', "")
    alone = alone.replace("event: {", "event: {externalEventId: e, ")
    assert "this removes" in shop.push(alone, group="aml", exits=1).stderr
    assert json.loads(shop.run("aml", "test", shop.write(AML), "--rule", "large-sum", "--json").stdout)
    assert shop.run("aml", "pack").stdout == load_pack_text("aml")


def test_a_file_that_is_refused_names_everything_at_once(shop: Shop) -> None:
    done = shop.run("rules", "check", shop.write(BROKEN), exits=1)
    assert done.stdout == ""
    assert (
        done.stderr
        == f"""Error: {shop.file} is refused: 1 fault.

line 5, column 39: rule night: there is no name contry
        when: event.kind == "withdrawl" and contry == "GB" and hour < 5
                                            ^^^^^^
    hint: did you mean country?
""".replace("column 39", "column 41")
    )
    for words in (("check",), ("test",), ("push", "--tenant", shop.id), ("backtest", "--tenant", shop.id)):
        told = json.loads(shop.run("rules", words[0], str(shop.file), *words[1:], "--json", exits=1).stdout)
        assert told["error"]["message"] == f"{shop.file} is refused: 1 fault."
        assert told["error"]["faults"] == [
            {
                "severity": "error",
                "where": "rule night",
                "line": 5,
                "column": 41,
                "message": "there is no name contry",
                "hint": "did you mean country?",
                "saw": None,
            }
        ]


def test_warnings_are_shown_and_refuse_nothing(shop: Shop) -> None:
    always = ALONE.replace("hour < 5", "hour < 5 and hour >= 0").replace("mode", "mode")
    done = shop.run("rules", "check", shop.write(always))
    assert "warning: rule night: hour >= 0 is always true where it is known" in done.stderr
    assert "is good: 1 rule (1 running), 2 tests passed, no aggregates" in done.stdout
    told = json.loads(shop.run("rules", "check", str(shop.file), "--json").stdout)
    assert [fault["severity"] for fault in told["warnings"]] == ["warning"]


def test_a_failing_test_shows_what_its_rule_saw(shop: Shop) -> None:
    failing = shop.write(ALONE.replace("now: 2026-01-31T03:00:00Z, ", ""))
    done = shop.run("rules", "test", failing, exits=1)
    assert done.stdout == (
        "FAIL  night: at night\n"
        "      the rule does not fire, but should; it saw:\n"
        '        event.kind = "withdrawal"\n'
        "        hour = 12\n"
        "pass  night: by day\n"
        "2 tests of 1 rule: 1 failed.\n"
    )
    rows = json.loads(shop.run("rules", "test", failing, "--json", exits=1).stdout)
    assert rows[0]["saw"] == {"event.kind": "withdrawal", "hour": 12}
    assert shop.run("rules", "test", shop.write(OWN)).stdout.endswith(f"tests of {PACK} rules: all passed.\n")


def test_rules_that_are_none_are_counted_so(shop: Shop) -> None:
    done = shop.run("rules", "check", shop.write("name: Empty\nrules: []\n"))
    assert "is good: no rules (0 running), no tests, no aggregates" in done.stdout


def test_wrong_use_ends_otherwise_than_a_refusal(shop: Shop) -> None:
    assert shop.run("rules", "push", "--tenant", shop.id, exits=2)
    assert shop.run("rules", "push", "no-such-file.yaml", "--tenant", shop.id, exits=2)
    assert shop.run("rules", "diff", "--tenant", shop.id, exits=2)
    assert shop.run("rules", "push", shop.write(ALONE), "--tenant", "ten_x", "--yes", exits=1)


def test_a_difference_is_counted_for_people(shop: Shop) -> None:
    shop.push(OWN)
    assert shop.run("rules", "diff", str(shop.file), "--tenant", shop.id).stdout == (
        "No rule is different from version 2.\n"
    )
    shown = shop.run("rules", "diff", "--tenant", shop.id, "--version", "2", "--to", "1").stdout
    assert "  - night             Withdrawal at night (score 40)\n" in shown
    assert shown.endswith(f"Rules: 0 added, 2 changed, 1 removed, {PACK - 2} as before.\n")
