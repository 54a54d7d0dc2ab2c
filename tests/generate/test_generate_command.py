"""`vettance generate fraud` as somebody types it."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from vettance.generate.cli import generate


def run(*arguments: str) -> Result:
    return CliRunner().invoke(generate, ["fraud", *arguments])


def test_events_and_truth_agree_line_for_line(tmp_path: Path) -> None:
    result = run("--customers", "60", "--days", "6", "--fraud-share", "0.1", "--json", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    summary = msgspec.json.decode(result.stdout)
    events = (tmp_path / "events.ndjson").read_bytes().splitlines()
    truth = [msgspec.json.decode(line) for line in (tmp_path / "truth.ndjson").read_bytes().splitlines()]
    assert len(events) == len(truth) == summary["events"]
    for number, (event, row) in enumerate(zip(events, truth, strict=True), start=1):
        assert row["line"] == number
        assert msgspec.json.decode(event)["metadata"]["reference"] == row["reference"]
        assert (row["label"] == "FRAUD") == (row["case"] != "")
    assert summary["fraud"] == sum(row["label"] == "FRAUD" for row in truth)
    for scenario, cases in summary["cases"].items():
        assert len({row["case"] for row in truth if row["scenario"] == scenario}) == cases


def test_the_same_options_write_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert (
            run("--customers", "20", "--days", "3", "--seed", "5", "--out", str(tmp_path / name)).exit_code
            == 0
        )
    for file in ("events.ndjson", "truth.ndjson"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_the_first_day_is_the_one_asked_for(tmp_path: Path) -> None:
    result = run(
        "--customers", "40", "--days", "1", "--start", "2025-06-01", "--json", "--out", str(tmp_path)
    )
    assert msgspec.json.decode(result.stdout)["first"].startswith("2025-06-01T")


def test_the_summary_for_people_names_files_and_scenarios(tmp_path: Path) -> None:
    result = run("--customers", "80", "--days", "8", "--fraud-share", "0.2", "--out", str(tmp_path))
    assert "of them are fraud" in result.stdout
    assert "account_takeover" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--customers", "0"),
        ("--start", "soon"),
        ("--weight", "nonsense=1"),
        ("--weight", "bot"),
        ("--weight", "bot=-1"),
        ("--fraud-share", "2"),
        ("--roaming", "1"),
        ("--start", "9999-12-31T00:00:00Z", "--days", "30"),
    ],
)
def test_a_bad_option_is_a_clear_usage_error(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = run("--customers", "5", "--days", "1", "--out", str(tmp_path), *arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run("--customers", "5", "--days", "1", "--out", str(tmp_path / "file" / "below"))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: cannot write to ")
    assert len(result.stderr.splitlines()) == 1
