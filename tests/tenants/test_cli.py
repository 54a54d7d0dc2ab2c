"""The commands for tenants and keys, before the server starts and while it runs."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import Service, run_cli


def test_a_tenant_and_a_key_can_be_made_before_the_server_starts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = run_cli(data, "tenant", "create", "Corner Shop", "--aml", "--json")
    assert set(made) == {"tenantId", "name", "aml"}
    assert re.fullmatch(r"ten_[0-9a-f]{32}", made["tenantId"])
    assert made["name"] == "Corner Shop"
    assert made["aml"] is True
    key = run_cli(data, "key", "create", "--tenant", made["tenantId"], "--json")
    assert set(key) == {"keyId", "apiKey"}
    assert re.fullmatch(r"vtc_test_[0-9A-Za-z]{32}", key["apiKey"])
    assert run_cli(data, "tenant", "list", "--json")[0]["tenantId"] == made["tenantId"]
    listed = run_cli(data, "key", "list", "--tenant", made["tenantId"], "--json")
    assert listed[0]["keyId"] == key["keyId"]
    assert key["apiKey"] not in json.dumps(listed)


def test_production_issues_live_keys_and_needs_a_secret(tmp_path: Path) -> None:
    env = {"VETTANCE_ENV": "production"}
    tenant_id = run_cli(tmp_path, "tenant", "create", "Bank", "--json")["tenantId"]
    refused = run_cli(tmp_path, "key", "create", "--tenant", tenant_id, ok=False, env=env)
    assert refused.returncode != 0
    assert "VETTANCE_SECRET" in refused.stderr
    env["VETTANCE_SECRET"] = "ab" * 32
    key = run_cli(tmp_path, "key", "create", "--tenant", tenant_id, "--json", env=env)["apiKey"]
    assert key.startswith("vtc_live_")


def test_the_data_folder_and_the_secret_are_private(tmp_path: Path) -> None:
    data = tmp_path / "deep" / "data"
    tenant_id = run_cli(data, "tenant", "create", "Shop", "--json")["tenantId"]
    run_cli(data, "key", "create", "--tenant", tenant_id, "--json")
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "secret.key").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "arguments",
    [
        ("tenant", "create", "  "),
        ("tenant", "create", "x" * 201),
        ("tenant", "set", "ten_unknown", "--quota", "5"),
        ("tenant", "set", "ten_unknown"),
        ("key", "create", "--tenant", "ten_unknown"),
        ("key", "revoke", "key_unknown"),
        ("key", "rotate", "key_unknown"),
        ("key", "list", "--tenant", "ten_unknown"),
        ("tenant", "create"),
        ("tenant", "set", "ten_unknown", "--aml", "maybe"),
        ("key", "create", "--nonsense", "ten_unknown"),
        ("key", "create", "--tenant"),
        ("nonsense",),
    ],
)
def test_a_fault_is_one_clear_line_and_a_non_zero_exit(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run_cli(tmp_path, *arguments, ok=False)
    assert done.returncode != 0
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_the_data_folder_may_be_named_by_the_environment(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vettance.cli", "tenant", "create", "Shop", "--json"],
        env={**os.environ, "VETTANCE_DATA": str(tmp_path / "here")},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["name"] == "Shop"
    assert (tmp_path / "here" / "vettance.db").exists()


def test_a_running_server_sees_new_changed_and_revoked_keys_within_seconds(service: Service) -> None:
    tenant_id = service.cli("tenant", "create", "Late", "--json")["tenantId"]
    made = service.cli("key", "create", "--tenant", tenant_id, "--json")
    key = made["apiKey"]
    service.wait_for(lambda: service.get("/api/v1/lists", key=key).status == 200)
    service.cli("tenant", "set", tenant_id, "--quota", "77", "--throttle", "55")
    service.wait_for(lambda: service.get("/api/v1/lists", key=key).headers["x-quota-limit"] == "77")
    assert service.get("/api/v1/lists", key=key).headers["x-ratelimit-limit"] == "55"
    rotated = service.cli("key", "rotate", made["keyId"], "--json")
    service.wait_for(lambda: service.get("/api/v1/lists", key=key).status == 401)
    assert service.get("/api/v1/lists", key=rotated["apiKey"]).status == 200
    service.cli("key", "revoke", rotated["keyId"])
    service.wait_for(lambda: service.get("/api/v1/lists", key=rotated["apiKey"]).status == 401)


def test_keys_have_names_and_a_tenant_is_shown_with_those_that_work(tmp_path: Path) -> None:
    tenant = run_cli(tmp_path, "tenant", "create", "Shop", "--json")["tenantId"]
    make = ("key", "create", "--tenant", tenant, "--json", "--name")
    checkout, old = (run_cli(tmp_path, *make, name)["keyId"] for name in ("checkout", "old"))
    run_cli(tmp_path, "key", "revoke", old, "--json")
    rotated = run_cli(tmp_path, "key", "rotate", checkout, "--json")["keyId"]
    shown = run_cli(tmp_path, "tenant", "show", tenant, "--json")
    assert (shown["name"], shown["throttle"], shown["aml"]) == ("Shop", 300, False)
    assert [(key["keyId"], key["name"], key["lastUsedAt"]) for key in shown["keys"]] == [
        (rotated, "checkout", None)
    ]
    text = run_cli(tmp_path, "tenant", "show", tenant).stdout
    assert "throttle       300" in text
    assert rotated in text
    assert old not in text
