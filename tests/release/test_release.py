"""One version everywhere, licences that are allowed, and packages that hold what they should."""

import importlib.metadata
import json
import re
import sys
import tomllib
from pathlib import Path
from subprocess import run

import pytest

import vettance
from release.bill import contained
from release.licences import Licence, is_allowed, refusals
from release.locks import pins_of
from tests.shape.source import PROJECT


def _project(path: str) -> dict[str, str]:
    found: dict[str, str] = tomllib.loads((PROJECT / path).read_text("utf-8"))["project"]
    return found


def test_every_part_has_the_same_version() -> None:
    chart = (PROJECT / "deploy" / "helm" / "vettance" / "Chart.yaml").read_text("utf-8")
    versions = {
        "service": _project("pyproject.toml")["version"],
        "python": vettance.__version__,
        "client": _project("clients/python/pyproject.toml")["version"],
        "typescript": json.loads((PROJECT / "clients" / "typescript" / "package.json").read_text())[
            "version"
        ],
        **dict(re.findall(r'^(version|appVersion): "?([^"\n]+)"?$', chart, re.MULTILINE)),
    }
    assert set(versions.values()) == {vettance.__version__}, versions


def test_the_version_has_a_part_of_the_changelog_and_gets_security_fixes() -> None:
    changes = (PROJECT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(
        rf"^## \[{re.escape(vettance.__version__)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE
    )
    minor = vettance.__version__.rpartition(".")[0]
    assert f"| {minor} | yes |" in (PROJECT / "SECURITY.md").read_text("utf-8")


def test_everything_that_the_lock_names_has_an_allowed_licence() -> None:
    names = pins_of(PROJECT / "requirements.lock")
    installed = [
        each
        for each in importlib.metadata.distributions()
        if re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower() in names
    ]
    assert len(installed) > 30
    assert not refusals(installed)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR LGPL-3.0-only", True),
        ("MIT AND BSD-3-Clause", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("(MIT OR GPL-2.0) AND BSD-3-Clause", False),
        (None, False),
    ],
)
def test_a_licence_is_allowed_when_one_of_its_alternatives_is(expression: str | None, allowed: bool) -> None:
    assert is_allowed(Licence("some-package", "1.0", expression)) is allowed


def test_the_bill_names_the_files_of_others_that_the_service_contains() -> None:
    found = {one["name"] for one in contained()}
    assert {"htmx.org", "uplot", "swagger-ui-dist"} <= found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_packages_of_a_release_decide_in_a_clean_environment(tmp_path: Path) -> None:
    done = run(
        [sys.executable, "-m", "release", "--dirty", "--into", tmp_path / "dist"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1_160,
    )
    assert done.returncode == 0, done.stderr
    checks = json.loads((tmp_path / "dist" / "checks.json").read_text())
    assert checks["trial"]["demoDecisions"] > 100
    assert checks["trial"]["firstDecision"] == "approve"
    assert checks["components"]["vettance"] > 40
    assert len(list((tmp_path / "dist").glob("*.whl"))) == 2
