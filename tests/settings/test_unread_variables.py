"""A variable that looks like a setting and is none is named, with what may be meant; nothing is refused."""

import json
import re
from pathlib import Path

import pytest

from tests.live import run_cli, started
from vettance.settings.settings import SETTINGS
from vettance.settings.unread_variables import find_unread

SOURCES = Path(__file__).parents[2] / "src" / "vettance"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("VETTANCE_DATABSE_URL", "Is VETTANCE_DATABASE_URL meant?"),
        ("VETTANCE_SECERT", "Is VETTANCE_SECRET meant?"),
        ("VETTANCE_data", "Is VETTANCE_DATA meant?"),
        ("VETTANCE_KEEP_EVENT", "Is VETTANCE_KEEP_EVENTS meant?"),
        ("VETTANCE_API_KEYS", "Is VETTANCE_API_KEY meant?"),
        ("VETTANCE_PORT", "It is an option: `vettance serve --port`."),
        ("VETTANCE_WORKERS", "It is an option: `vettance serve --workers`."),
        ("VETTANCE_FLAVOUR", "docs/settings.md has all settings."),
        ("VETTANCE_", "docs/settings.md has all settings."),
    ],
)
def test_what_may_be_meant_is_said(name: str, hint: str) -> None:
    [found] = find_unread({name: "canary", "HOME": "/", "VETTANCE_ENV": "staging"})
    assert (found.name, found.hint) == (name, hint)


def test_what_anything_reads_is_known() -> None:
    sources = "".join(path.read_text("utf-8") for path in SOURCES.rglob("*.py"))
    read = set(re.findall(r"VETTANCE_[A-Z_]*[A-Z]\b", sources)) | {row.variable for row in SETTINGS}
    assert "VETTANCE_BOARD" in read
    consume = {f"VETTANCE_CONSUME_{name}" for name in ("FROM", "TO", "DEAD")}
    assert not find_unread(dict.fromkeys(read | consume | {"VETTANCE_TEST_POSTGRES", "OTHER"}, "x"))


def test_what_kubernetes_adds_for_a_service_of_this_name_is_not_ours() -> None:
    address = "tcp://10.0.0.1:8080"
    added = {
        "VETTANCE_SERVICE_HOST": "10.0.0.1",
        "VETTANCE_SERVICE_PORT": "8080",
        "VETTANCE_SERVICE_PORT_HTTP": "8080",
        "VETTANCE_PORT": address,
        "VETTANCE_PORT_8080_TCP": address,
        "VETTANCE_PORT_8080_TCP_PROTO": "tcp",
        "VETTANCE_WORKER_SERVICE_HOST": "10.0.0.2",
        "VETTANCE_WORKER_PORT": address,
        "VETTANCE_WORKER_PORT_8080_TCP_ADDR": "10.0.0.2",
    }
    assert not find_unread(added)


def test_a_name_that_is_no_text_can_be_shown() -> None:
    assert [found.name for found in find_unread({"VETTANCE_\udcff\n": ""})] == [r"VETTANCE_\udcff\n"]


def test_a_server_warns_once_and_starts(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_SECERT="canary")
    service.stop()
    said = [line for line in service.log if "VETTANCE_SECERT" in line]
    assert said == ["WARNING: nothing reads VETTANCE_SECERT. Is VETTANCE_SECRET meant?\n"]
    assert "canary" not in "".join(service.log)


def test_settings_that_are_refused_for_want_of_it_are_refused_with_the_warning(tmp_path: Path) -> None:
    env = {"VETTANCE_DATABSE_URL": "canary", "VETTANCE_DATABASE_READ_URL": "postgresql://h/x"}
    done = run_cli(tmp_path, "serve", "--port", "0", ok=False, env=env)
    assert done.returncode == 1
    warned, refused = done.stderr.splitlines()
    assert warned == "WARNING: nothing reads VETTANCE_DATABSE_URL. Is VETTANCE_DATABASE_URL meant?"
    assert refused.startswith("Error: VETTANCE_DATABASE_READ_URL needs")
    found = json.loads(run_cli(tmp_path, "doctor", "--json", ok=False, env=env).stdout)["findings"]
    assert [(one["check"], one["level"]) for one in found] == [("settings", "fault"), ("settings", "warning")]
    assert found[1]["found"] == "nothing reads VETTANCE_DATABSE_URL"


def test_the_doctor_warns(tmp_path: Path) -> None:
    done = run_cli(tmp_path, "doctor", "--json", ok=False, env={"VETTANCE_PORT": "9"})
    [found] = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "settings"]
    assert found["level"] == "warning"
    assert found["mend"] == "It is an option: `vettance serve --port`. Rename or unset it."
