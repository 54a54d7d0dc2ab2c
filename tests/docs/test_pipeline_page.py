"""The workflow of `docs/howto/rules-in-a-pipeline.md`: its steps are run against a real service."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.live import Caller, Service
from tests.reviews.conftest import RULES, decided
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import read_ruleset

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs/howto/rules-in-a-pipeline.md").read_text("utf-8")
(WORKFLOW,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
JOBS: dict[str, Any] = yaml.safe_load(WORKFLOW)["jobs"]


def steps(job: str) -> list[tuple[str, str]]:
    """The shell steps of a job but the installation, by their names."""
    found = [(one["name"], one["run"]) for one in JOBS[job]["steps"] if "run" in one]
    assert found[0] == ("Install", "pip install vettance")
    return found[1:]


def run(script: str, folder: Path, service: Service, key: str) -> Any:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VETTANCE_")}
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    command = commands / "vettance"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vettance.cli "$@"\n')
    command.chmod(0o755)
    environment |= {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "VETTANCE_URL": service.base_url,
        "VETTANCE_API_KEY": key,
        "GITHUB_SHA": "0123abcd",
    }
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def tenant(service: Service) -> Caller:
    tenant_id, _ = service.new_tenant("Pipeline page")
    made = service.cli(
        "key", "create", "--tenant", tenant_id, "--scope", "rules", "--scope", "decide", "--json"
    )
    caller = Caller(service, tenant_id, made["apiKey"])
    service.wait_for(lambda: caller.get("/api/v1/rulesets").status == 200)
    for _ in range(100):
        decided(caller, 5)
    return caller


def test_a_key_and_an_address_are_all_that_it_needs() -> None:
    for job in JOBS.values():
        assert set(job["env"]) == {"VETTANCE_URL", "VETTANCE_API_KEY"}
        assert all("uses" in one or "run" in one for one in job["steps"])
    assert [job["if"] for job in JOBS.values()] == [
        "github.event_name == 'pull_request'",
        "github.event_name == 'push'",
    ]


def test_a_change_is_checked_and_then_put_into_force(tenant: Caller, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    for name, script in (*steps("check"), *steps("release")):
        done = run(script, tmp_path, tenant.service, tenant.key)
        assert done.returncode == 0, (name, done.stdout, done.stderr)
    newest = tenant.get("/api/v1/rulesets").json["data"][0]
    assert (newest["state"], newest["note"]) == ("active", "0123abcd")


@pytest.mark.parametrize(
    ("change", "name", "code"),
    [
        (("score: 60", "score: 600"), "Check the rules, and run their tests", 1),
        (("amount > 100", "amount > 1"), "Check the rules, and run their tests", 1),
        (("score: 60\n    reason: LARGE", "score: 90\n    reason: LARGE"), "", 0),
    ],
)
def test_what_is_wrong_stops_the_first_step_that_sees_it(
    tenant: Caller, tmp_path: Path, change: tuple[str, str], name: str, code: int
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.replace(*change))
    for step, script in steps("check"):
        done = run(script, tmp_path, tenant.service, tenant.key)
        if done.returncode:
            assert (step, done.returncode) == (name, code), done.stderr
            return
    assert code == 0


def test_a_backtest_that_stops_too_many_fails_the_check(tenant: Caller, tmp_path: Path) -> None:
    rules = RULES.replace("amount > 100", "amount > 3").replace(
        "amount: 2}}, fires: false", "amount: 1}}, fires: false"
    )
    (tmp_path / "rules.yaml").write_text(rules)
    ended = {name: run(script, tmp_path, tenant.service, tenant.key) for name, script in steps("check")}
    tried = ended["Try them on the last 30 days"]
    assert tried.returncode == 1, tried.stderr
    assert "not met: all.reviewed <= 0.05" in tried.stdout
    assert ended["Check the rules, and run their tests"].returncode == 0


def test_the_readme_counts_the_rules_of_the_pack() -> None:
    words = {"a hundred": 100, "a hundred and fifty": 150}
    (said,) = re.findall(r"More than ([a-z ]+?) documented", (PROJECT / "README.md").read_text("utf-8"))
    count = len(read_ruleset(load_pack_text("fraud")).rules)
    assert words[said] < count <= words[said] + 50
