"""The life of a version: who may take which step, and that there is always exactly one in force."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.live import ENGINE, Caller, Service
from vettance.db.engine import Store
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.errors import Conflict, NotFound
from vettance.ids import IdSource
from vettance.rules.sql import DECIDING, RuleSets
from vettance.rules.version import VersionState, VersionStep, version_of
from vettance.rules.versioning import NewRules, Versioning
from vettance.tenants.sql import insert_tenant, update_tenant
from vettance.tenants.tenant import Tenant

TENANT = Tenant(id="ten_1", name="One", rule_approval=True)

RULES = """extends: default
rules:
  - {id: webdriver, score: SCORE}
"""


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[list[Store]]:
    """The store of a tenant whose rules need approval, as two processes have it."""
    made: list[Store]
    if ENGINE == "postgres":
        from tests.databases import lasting_database

        url = lasting_database()
        made = [await PostgresStore.open(url), await PostgresStore.open(url)]
    else:
        made = [await SqliteStore.open(tmp_path / "vettance.db", writer="thread")]
    await made[0].migrate()
    await made[0].write(
        insert_tenant(TENANT, 1), DECIDING.insert(TENANT.id, 1, "first", "The default pack.", 1)
    )
    yield [made[0], made[-1]]
    for store in made:
        await store.close()


def steps(store: Store, actor: str, sets: RuleSets = DECIDING) -> Versioning:
    return Versioning(store, sets, TENANT.id, actor, IdSource())


async def versions(store: Store) -> dict[int, Any]:
    return {row[0]: version_of(row) for row in await store.read(DECIDING.select_versions(TENANT.id))}


async def test_a_version_needs_another_than_its_author_and_then_comes_into_force(stores: list[Store]) -> None:
    ana, ben = steps(stores[0], "ana"), steps(stores[1], "ben")
    made = await ana.propose_new(NewRules("second", None), "Try")
    assert (made.version, made.state) == (2, VersionState.PROPOSED)
    for refused, reason in (
        (ana.activate(2), "approval_needed"),
        (ana.approve(2), "second_person_needed"),
        (ben.roll_back(2), "never_active"),
    ):
        with pytest.raises(Conflict) as told:
            await refused
        assert told.value.details["reason"] == reason
    approved = await ben.approve(2)
    assert approved.approved_by == "ben"
    assert (await ana.activate(2)).state is VersionState.ACTIVE
    found = await versions(stores[0])
    assert [found[number].state for number in (1, 2)] == [VersionState.RETIRED, VersionState.ACTIVE]
    for refused, said in (
        (ana.roll_back(2), "Version 2 is active; its rules are in force already."),
        (ana.activate(1), "Version 1 is retired; a rollback to it takes its rules back into force."),
        (
            ana.propose(1, None),
            "Version 1 is retired; only one that is draft or proposed can take this step.",
        ),  # type: ignore[arg-type]
        (
            ana.reject(1, ""),
            "Version 1 is retired; only one that is draft, proposed or approved can take this",
        ),
    ):
        with pytest.raises(Conflict, match=said) as told:
            await refused
        assert told.value.details["reason"] == "wrong_state"
    back = await ana.roll_back()
    assert (back.version, back.origin, back.state) == (3, 1, VersionState.ACTIVE)
    document = await stores[0].read(DECIDING.select_active(TENANT.id))
    assert document[0][:2] == (3, "first")
    with pytest.raises(Conflict):
        await ana.reject(2, "too late")
    noted = await stores[0].read(DECIDING.select_steps(TENANT.id))
    assert [(row[1], row[2], row[3]) for row in reversed(noted)] == [
        (2, "proposed", "ana"),
        (2, "approved", "ben"),
        (2, "activated", "ana"),
        (3, "rolled_back", "ana"),
    ]


async def test_an_approval_of_ones_own_counts_only_while_none_is_needed(stores: list[Store]) -> None:
    store = stores[0]
    ana = steps(store, "ana")
    await store.write(update_tenant(msgspec.structs.replace(TENANT, rule_approval=False)))
    await ana.propose_new(NewRules("second", None), "")
    await ana.approve(2)
    await store.write(update_tenant(TENANT))
    with pytest.raises(Conflict) as told:
        await ana.activate(2)
    assert told.value.details["reason"] == "approval_needed"
    shouted = await ana.activate(2, break_glass="The site is down")
    assert (shouted.state, shouted.broken_glass) == (VersionState.ACTIVE, "The site is down")
    last = (await store.read(DECIDING.select_steps(TENANT.id)))[0]
    assert (last[2], last[4]) == (VersionStep.BROKE_GLASS, "The site is down")


async def test_what_its_author_approved_another_can_approve_once_that_is_needed(stores: list[Store]) -> None:
    ana, ben = steps(stores[0], "ana"), steps(stores[1], "ben")
    await stores[0].write(update_tenant(msgspec.structs.replace(TENANT, rule_approval=False)))
    await ana.propose_new(NewRules("second", None), "")
    await ana.approve(2)
    with pytest.raises(Conflict) as told:
        await ben.approve(2)
    assert told.value.details["reason"] == "wrong_state"
    await stores[0].write(update_tenant(TENANT))
    assert (await ben.approve(2)).approved_by == "ben"
    assert (await ana.activate(2)).state is VersionState.ACTIVE


async def test_whatever_two_processes_do_at_once_one_version_is_in_force_and_approved(
    stores: list[Store],
) -> None:
    people = [
        steps(store, name) for store, name in zip(stores * 2, ("ana", "ben", "cem", "dee"), strict=True)
    ]
    refusals = 0

    async def one(number: int) -> None:
        nonlocal refusals
        chance = random.Random(number)
        for _ in range(12):
            who, version = chance.choice(people), chance.randint(1, 8)
            acts = (
                lambda who=who: who.propose_new(NewRules(f"by {number}", None), ""),
                lambda who=who, version=version: who.approve(version),
                lambda who=who, version=version: who.activate(version),
                lambda who=who, version=version: who.reject(version, "no"),
                lambda who=who: who.roll_back(),
            )
            try:
                await chance.choices(acts, (3, 3, 4, 1, 1))[0]()
            except (Conflict, NotFound):
                refusals += 1
            found = await versions(stores[0])
            active = [one for one in found.values() if one.state is VersionState.ACTIVE]
            assert len(active) == 1
            first = active[0].version == 1 or active[0].origin is not None
            assert first or active[0].approved_by not in (None, active[0].author)

    await asyncio.gather(*map(one, range(6)))
    assert refusals
    assert len(await versions(stores[0])) > 3


def write(folder: Path, score: int) -> str:
    file = folder / f"rules-{score}.yaml"
    file.write_text(RULES.replace("SCORE", str(score)), "utf-8")
    return str(file)


def version_that_decides(caller: Caller) -> str:
    answer = caller.post("/api/v1/decisions/evaluate", {"eventName": "login"})
    version: str = answer.json["ruleVersion"]["version"]
    return version


def test_the_commands_take_a_version_through_its_life_and_a_service_follows(
    service: Service, tmp_path: Path
) -> None:
    caller = Caller(service, *service.new_tenant("Steer"))
    mine = ("--tenant", caller.id, "--json")
    service.cli("tenant", "set", caller.id, "--rule-approval", "on")
    pushed = service.cli("rules", "push", write(tmp_path, 20), *mine)
    assert (pushed["version"], pushed["state"], pushed["saved"]) == (2, "proposed", True)
    proposed = service.cli("rules", "propose", write(tmp_path, 30), "--note", "Try", "--by", "ana", *mine)
    assert (proposed["version"], proposed["state"], proposed["note"]) == (3, "proposed", "Try")
    early = service.cli("rules", "activate", "3", *mine, ok=False)
    assert early.returncode == 1
    assert "approval" in early.stderr
    own = service.cli("rules", "approve", "3", "--by", "ana", *mine, ok=False)
    assert own.returncode == 1
    assert service.cli("rules", "approve", "3", "--by", "ben", *mine)["approvedBy"] == "cli:ben"
    assert version_that_decides(caller) == "1"
    assert service.cli("rules", "activate", "3", *mine)["state"] == "active"
    service.wait_for(lambda: version_that_decides(caller) == "3")
    assert service.cli("rules", "reject", "2", "--note", "not now", *mine)["state"] == "rejected"
    late = service.cli("rules", "rollback", "--over", "2", *mine, ok=False)
    assert (late.returncode, service.cli("rules", "rollback", "--over", "x", *mine, ok=False).returncode) == (
        1,
        2,
    )
    back = service.cli("rules", "rollback", "--over", "3", *mine)
    assert (back["version"], back["rollbackOf"]) == (4, 1)
    service.wait_for(lambda: version_that_decides(caller) == "4")
    pushed = service.cli(
        "rules", "push", write(tmp_path, 40), "--break-glass", "An attack runs", "--yes", *mine
    )
    assert (pushed["version"], pushed["breakGlass"]) == (5, "An attack runs")
    service.wait_for(lambda: any("rules_break_glass" in line for line in service.log))
    states = {one["version"]: one["state"] for one in service.cli("rules", "list", *mine)}
    assert states == {1: "retired", 2: "rejected", 3: "retired", 4: "retired", 5: "active"}
    said = [(one["version"], one["step"]) for one in service.cli("rules", "log", *mine)]
    assert said[0] == (5, "broke_glass")
    assert said[-1] == (2, "proposed")
    draft = tmp_path / "draft.yaml"
    draft.write_text("rules: [{id: x}]", "utf-8")
    saved = service.cli("rules", "propose", str(draft), "--draft", *mine)
    assert saved["state"] == "draft"
    assert saved["faults"]


def test_rules_of_money_laundering_live_the_same_life(service: Service, tmp_path: Path) -> None:
    tenant_id, _ = service.new_tenant("Steer AML")
    mine = ("--tenant", tenant_id, "--json")
    file = tmp_path / "aml.yaml"
    file.write_text("extends: default\nrules:\n  - {id: large-sum, score: 25}\n", "utf-8")
    # The pack that decided until now becomes the first version.
    assert service.cli("aml", "propose", str(file), *mine)["version"] == 2
    assert service.cli("aml", "approve", "2", *mine)["state"] == "approved"
    assert service.cli("aml", "activate", "2", *mine)["state"] == "active"
    assert service.cli("aml", "rollback", *mine)["rollbackOf"] == 1


def test_a_service_that_is_killed_comes_back_with_the_version_that_was_in_force(
    own_service: Service, tmp_path: Path
) -> None:
    caller = Caller(own_service, own_service.tenant_id, own_service.api_key)
    mine = ("--tenant", caller.id, "--json")
    own_service.cli("rules", "push", write(tmp_path, 20), *mine)
    own_service.cli("rules", "propose", write(tmp_path, 30), *mine)
    own_service.stop(signal.SIGKILL)
    own_service.start()
    assert version_that_decides(caller) == "2", "what is only proposed decides nothing"
