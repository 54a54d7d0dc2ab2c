"""Models of a tenant whose rules need approval: who may give a model more to say, and what never waits."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.live import ENGINE
from vettance import clock
from vettance.db.engine import Store
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.errors import Conflict, NotFound
from vettance.ids import IdSource
from vettance.learning.change_models import (
    enter_model,
    find_setting,
    request_training,
    roll_back,
    save_failure,
)
from vettance.learning.model_change import ChangeState, ModelChange, ProposedChange, change_of
from vettance.learning.model_change_sql import select_changes
from vettance.learning.steer_models import OPEN_MAX, ModelSteering
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, StoredModel, insert_model, save_setting
from vettance.ops.sql import count_broken_glass
from vettance.tenants.sql import insert_tenant, update_tenant
from vettance.tenants.tenant import Tenant

TENANT = Tenant(id="ten_1", name="One", rule_approval=True)
ACTIVE = ModelChange(mode=ModelMode.ACTIVE)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """The store of a tenant with three models, whose rules need approval."""
    made: Store
    if ENGINE == "postgres":
        from tests.databases import lasting_database

        made = await PostgresStore.open(lasting_database())
    else:
        made = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await made.migrate()
    models = [StoredModel(number, "d", "features", "{}", "{}", number) for number in (1, 2, 3)]
    setting = ModelSetting(TENANT.id, features="features", champion=1)
    await made.write(
        insert_tenant(TENANT, 1),
        save_setting(setting),
        *(insert_model(TENANT.id, one) for one in models),
    )
    yield made
    await made.close()


def steps(store: Store, actor: str) -> ModelSteering:
    return ModelSteering(store, TENANT.id, actor, IdSource())


async def changes(store: Store) -> list[ProposedChange]:
    return [change_of(row) for row in await store.read(select_changes(TENANT.id, 100))]


@pytest.mark.parametrize("wanted", [ModelChange(champion=2), ACTIVE, ModelChange(may_block=True)])
async def test_what_gives_a_model_more_to_say_waits_for_somebody_else(
    store: Store, wanted: ModelChange
) -> None:
    before = await find_setting(store, TENANT.id)
    found = await steps(store, "ana").change(wanted, "It is better.")
    assert found.setting == before == await find_setting(store, TENANT.id)
    assert found.proposed is not None
    assert (found.proposed.change, found.proposed.author) == (wanted, "ana")
    again = await steps(store, "ana").change(wanted)
    assert again.proposed == found.proposed
    with pytest.raises(Conflict, match="another person"):
        await steps(store, "ana").approve(found.proposed.id)
    approved = await steps(store, "ben").approve(found.proposed.id)
    assert approved.setting == wanted.applied_to(before) == await find_setting(store, TENANT.id)
    (one,) = await changes(store)
    assert (one.state, one.decided_by, one.note) == (ChangeState.APPROVED, "ben", "It is better.")
    for step in (steps(store, "ben").approve, steps(store, "ben").reject):
        with pytest.raises(Conflict, match="approved already"):
            await step(one.id)


async def test_what_takes_a_model_back_never_waits(store: Store) -> None:
    proposed = (await steps(store, "ana").change(ModelChange(champion=2))).proposed
    assert proposed is not None
    await steps(store, "ben").approve(proposed.id)
    for wanted in (
        ModelChange(mode=ModelMode.OFF),
        ModelChange(mode=ModelMode.SHADOW, may_block=False),
        ModelChange(champion=2),
    ):
        assert (await steps(store, "ana").change(wanted)).proposed is None
    assert (await roll_back(store, TENANT.id, 5)).champion == 1


async def test_a_rejected_change_never_takes_effect(store: Store) -> None:
    proposed = (await steps(store, "ana").change(ACTIVE)).proposed
    assert proposed is not None
    assert (await steps(store, "ana").reject(proposed.id)).state is ChangeState.REJECTED
    with pytest.raises(Conflict, match="rejected already"):
        await steps(store, "ben").approve(proposed.id)
    assert (await find_setting(store, TENANT.id)).mode is ModelMode.SHADOW
    with pytest.raises(NotFound):
        await steps(store, "ben").approve("mch_0")


async def test_breaking_the_glass_passes_and_is_kept_and_counted(store: Store) -> None:
    found = await steps(store, "ana").change(ACTIVE, break_glass="An attack is on.")
    assert found.proposed is None
    assert found.setting.mode is ModelMode.ACTIVE
    (one,) = await changes(store)
    assert (one.state, one.broken_glass) == (ChangeState.APPROVED, "An attack is on.")
    assert dict(await store.read(count_broken_glass()))["model"] == 1


async def test_without_the_setting_nothing_waits_and_no_glass_breaks(store: Store) -> None:
    await store.write(update_tenant(msgspec.structs.replace(TENANT, rule_approval=False)))
    wanted = ModelChange(champion=3, mode=ModelMode.ACTIVE, may_block=True)
    found = await steps(store, "ana").change(wanted, break_glass="?")
    assert (found.setting.champion, found.setting.previous) == (3, 1)
    assert await changes(store) == []


async def test_changes_that_wait_are_bounded(store: Store) -> None:
    for number in range(OPEN_MAX):
        await steps(store, f"p{number}").change(ACTIVE)
    with pytest.raises(Conflict, match="wait for approval"):
        await steps(store, "one more").change(ACTIVE)


def trained() -> dict[str, Any]:
    return {"body": "{}", "digest": "d", "card": {"promoted": True}, "isBetter": True}


async def test_a_training_proposes_where_a_model_is_active_and_promotes_in_shadow(store: Store) -> None:
    ids = IdSource()
    setting = await find_setting(store, TENANT.id)
    assert await enter_model(store, setting, trained(), ids, clock.now_ms()) == 4
    assert (await find_setting(store, TENANT.id)).champion == 4
    await steps(store, "ana").change(ACTIVE, break_glass="Now.")
    for version in (5, 6):
        # Ids of two sources in one millisecond have no order.
        at_ms = clock.now_ms() + version
        assert await enter_model(store, setting, trained(), ids, at_ms) == version
    assert (await find_setting(store, TENANT.id)).champion == 4
    newest, older = (await changes(store))[:2]
    assert (newest.state, older.state) == (ChangeState.PROPOSED, ChangeState.REJECTED)
    assert (newest.change.champion, newest.author) == (6, "vettance")
    assert (await steps(store, "ana").approve(newest.id)).setting.champion == 6


async def test_a_training_leaves_what_people_set_meanwhile(store: Store) -> None:
    seen = await find_setting(store, TENANT.id)
    await steps(store, "ana").change(ModelChange(mode=ModelMode.OFF))
    await enter_model(store, seen, trained(), IdSource(), 10)
    assert (await find_setting(store, TENANT.id)).mode is ModelMode.OFF


@pytest.mark.parametrize("is_made", [True, False])
async def test_a_training_that_was_asked_for_meanwhile_is_still_to_be_done(
    store: Store, *, is_made: bool
) -> None:
    async def end(seen: ModelSetting) -> None:
        if is_made:
            await enter_model(store, seen, trained(), IdSource(), 10)
        else:
            await save_failure(store, seen, "too few")

    began = await find_setting(store, TENANT.id)
    await request_training(store, TENANT.id)
    await end(began)
    asked = await find_setting(store, TENANT.id)
    assert asked.wanted
    await end(asked)
    assert not (await find_setting(store, TENANT.id)).wanted
