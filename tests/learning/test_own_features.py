"""Features of a tenant's own on the command line, and the model in service meanwhile."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.learning.conftest import label, pay
from tests.live import Caller
from vettance.decisions.sql import record_of

OWN = "cents: {value: metadata.amount * 100, family: amount, text: amount in cents}\n"


def decided(learner: Caller) -> Any:
    # An ordinary payment: nobody labels it, and it counts as legitimate in the next training.
    event, _ = pay(learner, 1_001, random.Random(2))
    return learner.get(f"/api/v1/decisions/{event}").json


def steps(learner: Caller, file: Path, text: str, step: str = "push") -> Any:
    file.write_text(text)
    return learner.service.cli("model", "features", step, str(file), "--tenant", learner.id, "--json")


def recorded(learner: Caller, event: str) -> Any:
    """Return what the record of a decision says of its features."""
    rows = learner.service.rows(f"SELECT record FROM decision WHERE id = '{event}'")
    return record_of(rows[0][0])


def awaited(learner: Caller, digest: str) -> str:
    """Have payments decided until the features of a digest are recorded; the last one."""
    found: list[str] = []

    def is_recorded() -> bool:
        found.append(pay(learner, 1_001, random.Random(2))[0])
        record = recorded(learner, found[-1])
        assert record.model is not None, record.feature_set
        assert record.model.error is None, record.feature_set
        return bool(record.feature_set == digest)

    learner.service.wait_for(is_recorded, seconds=20)
    return found[-1]


def test_a_model_is_scored_by_its_own_features_until_another_serves(learner: Caller, tmp_path: Path) -> None:
    cli, file, at = learner.service.cli, tmp_path / "own.yaml", ("--tenant", learner.id, "--json")
    champion = cli("model", "show", *at)["champion"]
    before = cli("model", "features", "show", *at)
    assert champion is not None
    checked = steps(learner, file, OWN, "check")
    assert [one["name"] for one in checked["features"][-1:]] == ["cents"]
    assert cli("model", "features", "show", *at) == before
    pushed = steps(learner, file, OWN)
    assert pushed["featureSet"] == checked["featureSet"]
    event = awaited(learner, pushed["featureSet"])
    model = learner.get(f"/api/v1/decisions/{event}").json["outputs"]["model"]
    assert model["version"] == champion
    assert model["contributions"]

    # Nearly all that it was made from is left out, and one has another meaning under its name.
    left_out = "".join(f"{one['name']}: null\n" for one in before["features"] if one["name"] != "hour")
    changed = steps(learner, file, left_out.replace("amount: null", "amount: 0 - metadata.amount"))
    assert [one["name"] for one in changed["features"]] == ["hour", "amount"]
    event = awaited(learner, f"{changed['featureSet']}+{before['featureSet']}")
    assert len(recorded(learner, event).features) > len(before["features"])
    again = learner.get(f"/api/v1/decisions/{event}").json["outputs"]["model"]
    assert again["version"] == champion
    odds = again["base"] + sum(one["effect"] for one in again["contributions"])
    assert 1 / (1 + math.exp(-odds)) == pytest.approx(again["probability"], abs=1e-6)
    assert {one["feature"] for one in again["contributions"]} & {
        one["feature"] for one in model["contributions"]
    }
    amounts = [one["value"] for one in again["contributions"] if one["feature"] == "amount"]
    assert amounts
    assert all(value > 0 for value in amounts)
    assert cli("model", "show", *at)["champion"] == champion
    drift = cli("model", "drift", *at)
    assert "amount" in [one["name"] for one in drift]

    draw = random.Random(5)
    for number in range(620):
        event, fraud = pay(learner, number, draw)
        if fraud or number % 3 == 0:
            label(learner, event, fraud=fraud)
    # So few features make no better model: it serves because somebody says so.
    cli("model", "train", "--wait", *at)
    made = max(one["version"] for one in cli("model", "list", *at))
    assert made > champion
    cli("model", "promote", str(made), *at)
    assert cli("model", "card", str(made), *at)["card"]["featureSet"] == changed["featureSet"]
    assert awaited_again(learner, made)
    awaited(learner, changed["featureSet"])

    cli("model", "promote", str(champion), *at)
    assert awaited_again(learner, champion)
    awaited(learner, f"{changed['featureSet']}+{before['featureSet']}")

    first = pushed["version"] - 1
    back = cli("model", "features", "rollback", "--to", str(first), *at)
    assert (back["featureSet"], back["version"]) == (before["featureSet"], first + 3)
    awaited(learner, before["featureSet"])
    versions = cli("model", "features", "versions", *at)
    assert [one["version"] for one in versions[:4]] == [first + 3, first + 2, first + 1, first]
    assert versions[0]["rollbackOf"] == first
    assert versions[-1]["author"] == "vettance"
    assert [(one["kind"], one["name"]) for one in versions[2]["changes"]] == [("added", "cents")]


def awaited_again(learner: Caller, champion: int) -> bool:
    """Have payments decided until a model serves again."""

    def is_serving() -> bool:
        model = decided(learner)["outputs"]["model"]
        return model is not None and "error" not in model and model["version"] == champion

    learner.service.wait_for(is_serving, seconds=20)
    return True


def test_own_features_are_checked_as_rules_are(learner: Caller, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("a: metadata.amount >\nb: huor + 1\nc: model.score + 1\nd: hour\n")
    for step in ("check", "push"):
        wrong = learner.service.cli("model", "features", step, str(file), "--tenant", learner.id, ok=False)
        assert wrong.returncode == 1
        for word in (
            "line 1, column 20: a: ",
            "line 2, column 4: b: there is no name huor",
            "did you mean hour?",
            "line 3, column 4: c: a feature does not read what the model says",
        ):
            assert word in wrong.stderr
        assert ": d: " not in wrong.stderr
