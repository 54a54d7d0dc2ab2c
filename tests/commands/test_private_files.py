"""What holds tenants' data is its owner's alone from the start, whatever the shell allows."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import Caller, Service, run_cli, started


@pytest.fixture
def open_shell() -> Iterator[None]:
    """A shell that lets everybody read and write what is made in it."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """The files and folders below one that others may read, write or enter; links and locks aside."""
    return [
        f"{path.relative_to(folder)} {stat.filemode(path.stat().st_mode)}"
        for path in (folder, *sorted(folder.rglob("*")))
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ]


@pytest.fixture
def worked(open_shell: None, tmp_path: Path) -> Iterator[Service]:
    service = started(tmp_path / "data")
    tenant = Caller(service, service.tenant_id, service.api_key)
    for number in range(3):
        event = {"eventName": "user.login", "customer": {"externalId": f"c{number}"}}
        assert tenant.post("/api/v1/events", event).status == 201
    yield service
    if service.process is not None:
        service.stop(9)


def test_what_the_service_writes_is_private(worked: Service) -> None:
    assert (worked.data / "admitted").exists()
    assert open_to_others(worked.data) == []
    assert worked.stop() == 0
    assert list((worked.data / "memory").rglob("*.memory"))
    assert open_to_others(worked.data) == []


def test_what_commands_write_is_private(worked: Service, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir(mode=0o700)
    own = tmp_path / "own.csv"
    own.write_text("id,name\n1,Jane Example\n")
    bad = tmp_path / "bad.ndjson"
    bad.write_text('{"eventName": 1}\n')
    tenant = worked.tenant_id
    worked.cli("export", "events", "--tenant", tenant, "--output", str(made / "events.csv"))
    worked.cli("rules", "pull", "--tenant", tenant, "--output", str(made / "rules.yaml"))
    rules = str(made / "rules.yaml")
    worked.cli("rules", "backtest", rules, "--tenant", tenant, "--output", str(made / "changed.ndjson"))
    refused = str(made / "refused.ndjson")
    worked.cli("import", str(bad), "--tenant", tenant, "--errors", refused, ok=False)
    worked.cli("watchlist", "import", "--source", "csv", "--tenant", tenant, str(own))
    if "VETTANCE_DATABASE_URL" not in worked.env:
        worked.cli("backup", str(made / "backup"), "--with-secret")
        run_cli(tmp_path / "restored", "restore", str(made / "backup"), env=worked.env)
        assert open_to_others(tmp_path / "restored") == []
    assert (made / "refused.ndjson").exists()
    assert open_to_others(made) == []
    assert open_to_others(worked.data) == []


def test_a_file_is_private_before_anything_stands_in_it(worked: Service, tmp_path: Path) -> None:
    """Also for others who look while it is written: its draft is never open."""
    made = tmp_path / "made"
    made.mkdir()
    command = [sys.executable, "-m", "vettance.cli", "export", "events", "--tenant", worked.tenant_id]
    command += ["--output", str(made / "events.csv"), "--data", str(worked.data)]
    seen: set[str] = set()
    with subprocess.Popen(command, env={**os.environ, **worked.env}) as running:
        while running.poll() is None:
            for path in made.iterdir():
                try:
                    seen.add(stat.filemode(path.stat().st_mode))
                except FileNotFoundError:
                    continue
    assert running.returncode == 0
    assert seen == {"-rw-------"}
