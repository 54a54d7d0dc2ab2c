"""A process that starts while others work: whatever they change meanwhile, it knows."""

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from vettance.db.engine import Row, Statement
from vettance.db.sqlite import SqliteStore, store_path
from vettance.outbox import MessageType
from vettance.server.application import Service
from vettance.settings.settings import ProcessRole, read_settings
from vettance.tenants import sql as tenants_sql
from vettance.webhooks import sql as webhooks_sql
from vettance.webhooks.webhook import Subscription

TENANT = "ten_a"


class Meddled(SqliteStore):
    """A store in which somebody else subscribes right after a certain read."""

    reads_before = 1

    async def read(self, statement: Statement) -> list[Row]:
        rows = await super().read(statement)
        self.reads_before -= 1
        if self.reads_before == 0:
            now_ms = time.time_ns() // 1_000_000
            subscription = Subscription(
                id="sub_1",
                tenant=TENANT,
                slot="0000",
                url="https://shop.example/hook",
                event_types=(MessageType.EVENT_RISK_EVALUATED,),
                created_at_ms=now_ms,
                updated_at_ms=now_ms,
            )
            await self.write(
                *webhooks_sql.insert_subscription(subscription, b""),
                tenants_sql.note_change(webhooks_sql.AREA, TENANT, subscription.id, now_ms),
            )
        return rows


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """A service sets the garbage collector of its process; the tests have theirs back."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


@pytest.mark.slow
async def test_a_subscription_made_at_any_moment_of_a_start_is_known(tmp_path: Path) -> None:
    moment = 0
    while True:
        moment += 1
        folder = tmp_path / str(moment)
        folder.mkdir()
        settings = msgspec.structs.replace(read_settings({}, data=str(folder)), role=ProcessRole.WEB)
        store = await Meddled.open(store_path(folder), writer="thread")
        await store.migrate()
        store.reads_before = moment
        service = Service(settings, store)
        await service.start()
        if store.reads_before > 0:
            await service.stop()
            break
        await service.refresher.look()
        assert service.evaluator.has_subscription(TENANT), f"made after read {moment}"
        await service.stop()
    assert moment > 10
