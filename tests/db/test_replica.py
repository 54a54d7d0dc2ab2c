"""A real streaming replica: what is read from it, what never is, and that no read fails by it."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.databases import ask
from tests.db.replica_pair import Pair, pair, paused, replayed
from tests.db.rows import add_use, until, use
from tests.servers import programs
from vettance.db.engine import Misuse, Row, Statement, scoped
from vettance.db.postgres import PostgresStore
from vettance.db.replica_link import ReplicaLag, ReplicaLink
from vettance.db.replica_store import ReplicaStore, _primary_until_s
from vettance.db.tables import QUOTA_USE
from vettance.db.write_positions import OwnPositions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(programs() is None, reason="no programs of PostgreSQL here"),
]

LAG_S_MAX = 2.0


def uses(tenant: str) -> Statement:
    return scoped(QUOTA_USE, tenant, "SELECT hour, used FROM quota_use WHERE tenant = ? ORDER BY hour")


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with pair() as made:
        yield made


class Counted(PostgresStore):
    """A primary that counts what is read from it."""

    reads = 0

    async def read(self, statement: Statement) -> list[Row]:
        self.reads += "quota_use" in statement.sql
        return await super().read(statement)


class Reading(NamedTuple):
    primary: Counted
    store: ReplicaStore

    async def of(self, tenant: str) -> tuple[list[Row], str]:
        """Read as a new request does; say which server answered."""
        before = self.primary.reads
        _primary_until_s.set(0.0)
        rows = await self.store.read(uses(tenant))
        return rows, "primary" if self.primary.reads > before else "replica"

    async def change(self, tenant: str, hour: int) -> None:
        """Write as a person does."""
        await self.primary.write(use(tenant, hour))
        await self.store.note_change(tenant)

    def is_used(self) -> bool:
        return self.store.link.fault is None

    def fault(self) -> str:
        return self.store.link.fault or ""


@contextlib.asynccontextmanager
async def reading(servers: Pair, replica: str | None = None) -> AsyncIterator[Reading]:
    async with await Counted.open(servers.primary) as primary:
        link = ReplicaLink(replica or servers.replica, primary.read, lag_s_max=LAG_S_MAX, read_s_max=5.0)
        store = ReplicaStore(primary, link, OwnPositions())
        looking = asyncio.create_task(link.run())
        try:
            yield Reading(primary, store)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await store.close()


async def test_reads_go_to_the_replica_and_rows_of_one_tenant_only_to_that_tenant(servers: Pair) -> None:
    async with reading(servers) as now:
        await until(now.is_used)
        await now.primary.write(use("ten_walls", 1))
        await replayed(servers)
        assert await now.of("ten_walls") == ([(1, 1)], "replica")
        assert await now.of("ten_other") == ([], "replica")
        stolen = uses("ten_walls")._replace(tenant="ten_other")
        assert await now.store.read(stolen) == [], "row level security holds on the replica"
        assert now.store.link.lag_s is not None
        assert now.store.link.lag_s < LAG_S_MAX


async def test_what_somebody_changed_is_seen_by_the_next_read_though_the_replica_is_behind(
    servers: Pair,
) -> None:
    async with reading(servers) as now:
        await until(now.is_used)
        with paused(servers):
            await now.primary.write(use("ten_quiet", 1))
            await now.change("ten_acts", 1)
            assert await now.of("ten_acts") == ([(1, 1)], "primary")
            assert await now.of("ten_quiet") == ([], "replica"), "what nobody changed by hand may lag"
        await replayed(servers)
        assert await now.of("ten_acts") == ([(1, 1)], "replica")
        for hour in range(2, 60):
            await now.change("ten_acts", hour)
            rows, _ = await now.of("ten_acts")
            assert len(rows) == hour


async def test_a_request_that_has_read_from_the_primary_does_not_go_back_in_time(servers: Pair) -> None:
    async with reading(servers) as now:
        await until(now.is_used)
        with paused(servers):
            await now.change("ten_forward", 1)
            assert (await now.of("ten_forward"))[1] == "primary"
            before = now.primary.reads
            await now.store.read(uses("ten_quiet"))
            assert now.primary.reads == before + 1


async def test_a_replica_that_is_too_far_behind_is_not_read_until_it_has_caught_up(servers: Pair) -> None:
    async with reading(servers) as now:
        await until(now.is_used)
        with paused(servers):
            await now.primary.write(use("ten_lag", 1))
            await until(lambda: "behind" in now.fault())
            assert (now.store.link.lag_s or 0) > LAG_S_MAX
            assert await now.of("ten_lag") == ([(1, 1)], "primary")
            assert "behind" in str(await now.store.notice())
        await until(now.is_used)
        assert now.store.link.lag_s == 0
        assert await now.of("ten_lag") == ([(1, 1)], "replica")


async def test_an_idle_primary_is_no_lag(servers: Pair) -> None:
    async with reading(servers) as now:
        await until(now.is_used)
        await asyncio.sleep(LAG_S_MAX + 1)
        assert now.is_used()
        assert now.store.link.lag_s == 0


async def test_a_read_that_recovery_cancels_is_answered_by_the_primary(servers: Pair) -> None:
    ask(servers.replica, "ALTER SYSTEM SET max_standby_streaming_delay = '100ms'")
    ask(servers.replica, "SELECT pg_reload_conf()")
    async with reading(servers) as now:
        await until(now.is_used)
        await now.primary.write(*(use("ten_conflict", hour) for hour in range(5)))
        await replayed(servers)
        slow = scoped(
            QUOTA_USE,
            "ten_conflict",
            "SELECT count(*), max(pg_sleep(1)::text) FROM quota_use WHERE tenant = ?",
        )
        began = asyncio.create_task(now.store.read(slow))
        await asyncio.sleep(0.5)
        before = now.primary.reads
        # The lock on the table is replayed, for which reads of the replica have to go.
        ask(servers.primary, "TRUNCATE quota_use")
        assert await began == [(0, None)]
        assert now.primary.reads == before + 1
        assert now.is_used(), "one statement says nothing against the replica"


async def test_a_statement_for_a_schema_that_is_not_replayed_yet_is_answered_by_the_primary(
    servers: Pair,
) -> None:
    async with reading(servers) as now:
        await until(now.is_used)
        with paused(servers):
            ask(servers.primary, "ALTER TABLE quota_use ADD COLUMN told bigint")
            _primary_until_s.set(0.0)
            new = scoped(QUOTA_USE, "ten_schema", "SELECT told FROM quota_use WHERE tenant = ?")
            assert await now.store.read(new) == []
            _primary_until_s.set(0.0)
            with pytest.raises(Misuse):
                await now.store.read(new._replace(sql=new.sql.replace("told", "untold")))
        ask(servers.primary, "ALTER TABLE quota_use DROP COLUMN told")


async def test_another_database_and_a_primary_are_not_taken_for_the_replica(servers: Pair) -> None:
    async with reading(servers, servers.primary) as now:
        await until(lambda: "takes writes" in now.fault())
        assert (await now.of("ten_walls"))[1] == "primary"
    with pair() as others:
        async with reading(servers, others.replica) as now:
            await until(lambda: "another database" in now.fault())
            assert (await now.of("ten_walls"))[1] == "primary"


def postmaster(home: Path) -> int:
    return int((home / "data" / "postmaster.pid").read_text().split()[0])


async def test_reads_under_way_are_answered_when_the_replica_stops_answering_or_dies() -> None:
    with pair() as servers:
        async with reading(servers) as now:
            await until(now.is_used)
            await now.primary.write(use("ten_gone", 1))
            await replayed(servers)
            answers: list[tuple[list[Row], str]] = []
            slowest = 0.0

            async def read_on() -> None:
                nonlocal slowest
                while True:
                    began = asyncio.get_running_loop().time()
                    answers.append(await asyncio.create_task(now.of("ten_gone")))
                    slowest = max(slowest, asyncio.get_running_loop().time() - began)
                    await asyncio.sleep(0.01)

            readers = [asyncio.create_task(read_on()) for _ in range(4)]
            await until(lambda: len(answers) > 40)
            usual = slowest  # With nothing wrong, on a machine as busy as this one.
            backends = [pid for (pid,) in ask(servers.replica, "SELECT pid FROM pg_stat_activity")]
            for pid in (postmaster(servers.folder), *backends):
                with contextlib.suppress(ProcessLookupError):  # the one that listed them, and has ended
                    os.kill(pid, signal.SIGSTOP)
            try:
                await until(lambda: not now.is_used())
                seen = len(answers)
                await until(lambda: len(answers) > seen + 40)
                assert {server for _, server in answers[-20:]} == {"primary"}
            finally:
                for pid in (*backends, postmaster(servers.folder)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
            await until(now.is_used)
            await until(lambda: answers[-1][1] == "replica")
            os.kill(postmaster(servers.folder), signal.SIGKILL)
            for pid in backends:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await until(lambda: not now.is_used())
            seen = len(answers)
            await until(lambda: len(answers) > seen + 40)
            for reader in readers:
                assert not reader.done(), reader.exception()
                reader.cancel()
            assert {tuple(rows) for rows, _ in answers} == {((1, 1),)}
            assert slowest < 4.0 + 4 * usual


async def test_a_replica_that_was_promoted_is_read_no_more() -> None:
    with pair() as servers:
        async with reading(servers) as now:
            await until(now.is_used)
            await now.primary.write(use("ten_promoted", 1))
            await replayed(servers)
            assert (await now.of("ten_promoted"))[1] == "replica"
            ask(servers.replica, "SELECT pg_promote()")
            await until(lambda: "takes writes" in now.fault())
            await now.primary.write(add_use("ten_promoted", 1))
            assert await now.of("ten_promoted") == ([(1, 2)], "primary")


def test_the_lag_is_measured_by_the_positions_of_the_primary() -> None:
    lag = ReplicaLag()
    assert lag.measure(100, 0.0, 50, 10_000, 4_000) == 6.0, "nothing is known yet but the primary's clock"
    assert lag.measure(100, 1.0, 100, 11_000, 4_000) == 0.0, "nothing is lacking, however long ago it came"
    assert lag.measure(200, 2.0, 100, 12_000, 4_000) == 0.0
    assert lag.measure(300, 3.0, 100, 13_000, 4_000) == 1.0, "what was written by two is lacking"
    assert lag.measure(400, 4.0, 250, 14_000, 4_000) == 1.0, "it has what was written until three"
    assert lag.measure(50, 5.0, 50, 15_000, 4_000) == 0.0, "another primary, whose log is shorter"
