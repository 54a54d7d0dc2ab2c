"""Features of a tenant's own on the command line, and the model in service meanwhile."""

import random
from pathlib import Path
from typing import Any

from tests.learning.conftest import pay
from tests.live import Caller

OWN = "cents: {value: metadata.amount * 100, family: amount, text: amount in cents}\n"


def decided(learner: Caller) -> Any:
    event, _ = pay(learner, 1_000, random.Random(2))
    return learner.get(f"/api/v1/decisions/{event}").json


def steps(learner: Caller, file: Path, text: str, step: str = "push") -> Any:
    file.write_text(text)
    return learner.service.cli("model", "features", step, str(file), "--tenant", learner.id, "--json")


def test_a_model_serves_on_beside_own_features_and_ends_without_its_own(
    learner: Caller, tmp_path: Path
) -> None:
    cli, file = learner.service.cli, tmp_path / "own.yaml"
    champion = cli("model", "show", "--tenant", learner.id, "--json")["champion"]
    before = cli("model", "features", "show", "--tenant", learner.id, "--json")
    assert champion is not None
    checked = steps(learner, file, OWN, "check")
    assert [one["name"] for one in checked["features"][-1:]] == ["cents"]
    assert cli("model", "features", "show", "--tenant", learner.id, "--json") == before
    assert steps(learner, file, OWN) == checked

    def is_recorded() -> bool:
        rows = learner.service.rows(
            f"SELECT features FROM model_setting WHERE tenant = '{learner.id}' AND features LIKE '%cents%'"
        )
        said = decided(learner)["outputs"]["model"]
        return bool(rows) and said is not None and "error" not in said

    learner.service.wait_for(is_recorded, seconds=20)
    assert cli("model", "show", "--tenant", learner.id, "--json")["champion"] == champion
    learner.service.wait_for(lambda: bool(decided(learner)["outputs"]["model"]["contributions"]), seconds=20)

    steps(learner, file, "amount: null\n")
    assert cli("model", "show", "--tenant", learner.id, "--json")["champion"] is None
    refused = cli("model", "promote", str(champion), "--tenant", learner.id, ok=False)
    assert refused.returncode == 1
    assert "other features" in refused.stderr

    assert steps(learner, file, "{}") == before
    cli("model", "promote", str(champion), "--tenant", learner.id, "--json")
    learner.service.wait_for(lambda: decided(learner)["outputs"]["model"] is not None, seconds=20)


def test_own_features_are_checked_as_rules_are(learner: Caller, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("a: metadata.amount >\nb: nosuch + 1\nc: model.score + 1\nd: hour\n")
    for step in ("check", "push"):
        wrong = learner.service.cli("model", "features", step, str(file), "--tenant", learner.id, ok=False)
        assert wrong.returncode == 1
        for word in ("a: ", "b: ", "nosuch", "c: a feature does not read what the model says"):
            assert word in wrong.stderr
        assert "d: " not in wrong.stderr
