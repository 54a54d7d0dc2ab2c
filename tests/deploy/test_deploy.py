"""What is shipped for running the service is well formed, and names nothing that does not exist."""

import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from vettance.cli import COMMANDS
from vettance.ops.gauges import GAUGES
from vettance.server.cli import serve
from vettance.settings.settings import SETTINGS
from vettance.telemetry.meter_table import METERS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "vettance"
FILES = [path for path in sorted(DEPLOY.rglob("*")) if path.is_file()]

METRICS = {gauge.name: gauge.label for gauge in GAUGES.values()}
for meter in METERS:
    METRICS[meter.name] = meter.label
    if meter.bounds:
        METRICS |= {f"{meter.name}_{part}": meter.label for part in ("bucket", "sum", "count")}


def parsed(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text("utf-8"))


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(DEPLOY)) for path in FILES])
def test_files_without_templates_are_well_formed(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.endswith("\n")
    assert "\t" not in text
    if path.suffix == ".json":
        json.loads(text)
    elif path.suffix in (".yaml", ".yml") and "templates" not in path.parts:
        assert yaml.safe_load(text)


def test_every_setting_that_is_set_exists() -> None:
    known = {one.variable for one in SETTINGS} | {"VETTANCE_DATABASE_URL", "VETTANCE_REDIS_URL"}
    for path in FILES:
        named = set(re.findall(r"VETTANCE_[A-Z_]+[A-Z]", path.read_text("utf-8")))
        assert named - {"VETTANCE_KEEP"} <= known, path


def expressions() -> list[tuple[str, str]]:
    found = []
    dashboard = json.loads((DEPLOY / "grafana" / "vettance.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        found += [(panel["title"], target["expr"]) for target in panel.get("targets", ())]
    for group in parsed("prometheus/alerts.yaml")["groups"]:
        found += [(rule["alert"], rule["expr"]) for rule in group["rules"]]
    return found


@pytest.mark.parametrize(("title", "expression"), expressions())
def test_a_panel_or_alert_asks_for_metrics_and_labels_that_exist(title: str, expression: str) -> None:
    assert expression.count("(") == expression.count(")")
    for name, labels in re.findall(r"(vettance_\w+)(?:\{([^}]*)\})?", expression):
        assert name in METRICS, title
        asked = {part.partition("=")[0].strip("!~ ") for part in labels.split(",") if part}
        assert asked <= {"job", METRICS[name]}, title
    for group in re.findall(r"by \(([^)]*)\)", expression):
        assert {part.strip() for part in group.split(",")} <= {"le", *METRICS.values()} - {""}, title


def test_every_metric_can_be_seen_on_the_dashboard() -> None:
    text = (DEPLOY / "grafana" / "vettance.json").read_text("utf-8")
    shown = set(re.findall(r"vettance_\w+", text))
    bases = {re.sub("_(bucket|sum|count)$", "", name) for name in shown} | shown
    hidden = {meter.name for meter in METERS} | {gauge.name for gauge in GAUGES.values()}
    assert hidden - bases <= {"vettance_build_info", "vettance_watchlist_entities"}


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    panels = json.loads((DEPLOY / "grafana" / "vettance.json").read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        assert place["x"] + place["w"] <= 24
        mine = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not mine & cells
        cells |= mine


def test_every_alert_says_the_mend_and_how_urgent_it_is() -> None:
    (group,) = parsed("prometheus/alerts.yaml")["groups"]
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert set(rule["annotations"]) == {"summary", "mend"}
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])


ALERT_TESTS = Path(__file__).parent / "alerts_test.yaml"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here (Debian: prometheus)")
@pytest.mark.parametrize("command", [("test", ALERT_TESTS), ("check", DEPLOY / "prometheus" / "alerts.yaml")])
def test_prometheus_takes_the_alerts_and_fires_them_when_it_should(command: tuple[str, Path]) -> None:
    done = subprocess.run(
        ["promtool", command[0], "rules", command[1]], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried_silent_and_firing() -> None:
    tried = {
        (one["alertname"], bool(one.get("exp_alerts")))
        for case in yaml.safe_load(ALERT_TESTS.read_text("utf-8"))["tests"]
        for one in case["alert_rule_test"]
    }
    (group,) = parsed("prometheus/alerts.yaml")["groups"]
    assert tried == {(rule["alert"], fires) for rule in group["rules"] for fires in (True, False)}


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text("utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def test_the_image_copies_what_exists_and_is_let_through() -> None:
    allowed = {
        line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[0] == "!"
    }
    for name, rest in instructions():
        if name == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert source in allowed, source


def test_the_image_runs_as_nobody_in_particular_and_a_command_that_exists() -> None:
    steps = instructions()
    last = dict(steps)
    assert last["USER"].split(":")[0].isdigit()
    assert int(last["USER"].split(":")[0]) >= 10_000
    assert json.loads(last["ENTRYPOINT"]) == ["vettance"]
    arguments = json.loads(last["CMD"])
    assert arguments[0] in COMMANDS
    assert serve.make_context("serve", arguments[1:]).params["port"] == 8080
    check = json.loads(last["HEALTHCHECK"].partition("CMD")[2])
    compile(check[2], "healthcheck", "exec")
    assert "/readyz" in check[2]


def test_compose_runs_it_without_rights_beside_its_stores() -> None:
    compose = parsed("compose.yaml")
    service = compose["services"]["vettance"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["environment"]["VETTANCE_ENV"] == "production"
    for name in service["depends_on"]:
        assert "healthcheck" in compose["services"][name]
    for one in compose["services"].values():
        for port in one.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "nothing is published beyond this machine"
    assert compose["networks"]["back"] == {"internal": True}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_the_units_hold(tmp_path: Path) -> None:
    for path in (DEPLOY / "systemd").iterdir():
        text = path.read_text("utf-8")
        assert "/opt/vettance/bin/vettance" in text or path.suffix == ".timer"
        (tmp_path / path.name).write_text(text.replace("/opt/vettance/bin/vettance", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_hardens_what_the_service_does_not_need() -> None:
    unit = (DEPLOY / "systemd" / "vettance.service").read_text("utf-8").splitlines()
    wanted = {
        *("NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes"),
        *("PrivateTmp=yes", "PrivateDevices=yes", "UMask=0077", "SystemCallFilter=@system-service"),
        *("StateDirectoryMode=0700", "KillMode=mixed"),
        *("Restart=on-failure", "StartLimitIntervalSec=0", "OOMPolicy=continue"),
    }
    assert wanted <= set(unit)


def calls_of(name: str) -> set[str]:
    """The system calls of a set (`@name`), those of the sets in it included, or a call itself."""
    if not name.startswith("@"):
        return {name}
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, timeout=60, check=True
    )
    words = [line.strip() for line in told.stdout.splitlines()[1:] if not line.strip().startswith("#")]
    return {call for word in words if word for call in calls_of(word)}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_the_unit_lets_what_works_behind_decisions_give_way() -> None:
    allowed: set[str] = set()
    for line in (DEPLOY / "systemd" / "vettance.service").read_text("utf-8").splitlines():
        name, _, value = line.partition("=")
        if name == "SystemCallFilter":
            named = {call for word in value.removeprefix("~").split() for call in calls_of(word)}
            allowed = allowed - named if value.startswith("~") else allowed | named
    assert {"setpriority", "sched_setscheduler"} <= allowed
    assert {"read", "execve"} <= allowed
    assert not {"setrlimit", "chroot", "setuid"} & allowed


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of calls are those of x86-64")
def test_what_searches_lists_does_so_where_it_may_not_give_way() -> None:
    refusing = [sys.executable, str(Path(__file__).parent / "refusing_calls.py"), "141,144"]
    done = subprocess.run(
        [*refusing, sys.executable, "-P", "-m", "vettance.watchlists.worker", "5", "50", "-", "search"],
        input=b"",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"\0\0\0\1\0"  # Of no list, nobody can be searched.


def test_the_chart_asks_for_values_that_exist() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    templates = sorted((CHART / "templates").iterdir())
    helpers = set(re.findall(r'define "([\w.]+)"', (CHART / "templates" / "_helpers.tpl").read_text("utf-8")))
    used: set[str] = set()
    for path in templates:
        text = path.read_text("utf-8")
        assert text.count("{{") == len(re.findall(r"{{.*?}}", text))
        opened = len(re.findall(r"{{-? *(?:if|range|with|define)\b", text))
        assert opened == len(re.findall(r"{{-? *end\b", text)), path.name
        assert set(re.findall(r'include "([\w.]+)"', text)) <= helpers
        for name in re.findall(r"\.Values\.([\w.]+)", text):
            found: Any = values
            for part in name.split("."):
                assert part in found, f"{path.name}: {name}"
                found = found[part]
            used.add(name.partition(".")[0])
    assert used == set(values), "a value that nothing uses misleads"


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert found
    assert chart["appVersion"] == found[1]
