"""`vettance user`: people, their roles and links."""

import os
import subprocess

import pytest

from tests.forked_commands import run_command
from tests.live import Service

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def tenant_id(service: Service) -> str:
    return str(service.cli("tenant", "create", "People", "--json")["tenantId"])


def test_a_user_is_made_with_roles_and_a_link(service: Service, tenant_id: str) -> None:
    made = service.cli(
        *("user", "create", "Ada@Example.com", "--tenant", tenant_id, "--role", "lead", "--role", "analyst"),
        "--json",
    )
    assert made["email"] == "ada@example.com"
    assert made["link"].startswith("/console/enter/")
    again = service.cli("user", "link", "ADA@example.com", "--json")
    assert again["link"] != made["link"]
    [row] = service.cli("user", "list", "--tenant", tenant_id, "--json")
    assert row["userId"] == made["userId"]
    assert row["memberships"] == [{"tenantId": tenant_id, "roles": ["analyst", "lead"]}]
    assert "ada@example.com" in service.cli("user", "list").stdout
    failed = service.cli(
        "user", "create", "ada@EXAMPLE.com", "--tenant", tenant_id, "--role", "lead", ok=False
    )
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)


def test_a_password_comes_by_standard_input(service: Service, tenant_id: str) -> None:
    def create(email: str, password: str) -> subprocess.CompletedProcess[str]:
        arguments = ("user", "create", email, "--tenant", tenant_id, "--role", "admin", "--password-stdin")
        command = (*arguments, "--json", "--data", str(service.data))
        return run_command(command, {**os.environ, **service.env}, timeout_s=60, typed=password)

    assert create("bob@example.com", PASSWORD + "\n").returncode == 0
    failed = create("eve@example.com", "short\n")
    assert failed.returncode == 1
    assert "12 to 256" in failed.stderr


def test_roles_are_replaced_and_removed_and_users_disabled(service: Service, tenant_id: str) -> None:
    other = service.cli("tenant", "create", "Other people", "--json")["tenantId"]
    service.cli("user", "create", "cy@example.com", "--tenant", tenant_id, "--role", "viewer", "--json")
    changed = service.cli("user", "set", "cy@example.com", "--tenant", other, "--role", "editor", "--json")
    assert {part["tenantId"]: part["roles"] for part in changed["memberships"]} == {
        tenant_id: ["viewer"],
        other: ["editor"],
    }
    changed = service.cli("user", "set", "cy@example.com", "--tenant", tenant_id, "--role", "lead", "--json")
    assert {"tenantId": tenant_id, "roles": ["lead"]} in changed["memberships"]
    changed = service.cli(
        "user", "set", "cy@example.com", "--tenant", tenant_id, "--remove", "--disabled", "on", "--json"
    )
    assert (changed["disabled"], len(changed["memberships"])) == (True, 1)
    assert "is disabled" in service.cli("user", "link", "cy@example.com", ok=False).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("user", "create", "no e-mail", "--tenant", "T", "--role", "lead"),
        ("user", "create", "x@example.com", "--tenant", "ten_0", "--role", "lead"),
        ("user", "create", "x@example.com", "--tenant", "T"),
        ("user", "create", "x@example.com", "--tenant", "T", "--role", "king"),
        ("user", "set", "nobody@example.com", "--disabled", "on"),
        ("user", "set", "nobody@example.com", "--role", "lead"),
        ("user", "set", "nobody@example.com"),
        ("user", "link", "nobody@example.com"),
    ],
)
def test_faults_are_one_line(service: Service, tenant_id: str, arguments: tuple[str, ...]) -> None:
    failed = service.cli(*(tenant_id if word == "T" else word for word in arguments), ok=False)
    assert failed.returncode in (1, 2)
    assert failed.stderr.count("\n") == 1
    assert "Traceback" not in failed.stderr
