"""Several processes watch one tenant's money: each event is answered as one process alone would have done."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tests.databases import absence, ask, database
from vettance import clock
from vettance.aml import aml_snapshot, sql
from vettance.aml.aml_event import payload_digest, read_taken_aml_event
from vettance.aml.assemble import assemble
from vettance.aml.log_position import LogMatch, LogPosition
from vettance.aml.screening.screen import Screener
from vettance.aml.turns.serialized import TRIES
from vettance.db.engine import Misuse, Statement, Store, StoreDown
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore, store_path
from vettance.errors import Conflict, Unavailable
from vettance.generate.aml_stream import Watch, aml_events
from vettance.ids import IdSource
from vettance.lists.rule_additions import RuleAdditions
from vettance.rules.packs import load_pack_text
from vettance.tenants.sql import note_change
from vettance.tenants.tenant import Tenant
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.watchlists.refresh import IndexKeeper
from vettance.wire.payload import encode

TENANT = "ten_bank"
NOW_MS = 1_770_000_000_000
START_MS = NOW_MS - 30 * 86_400_000

Body = dict[str, Any]


class Process:
    """All of AML as one process has it: a store and a memory of its own."""

    def __init__(self, store: Store, folder: Path, turns: PostgresStore | None = None) -> None:
        self.store = store
        ids = IdSource()
        screener = Screener(store, ids, IndexKeeper(store, folder))
        self.aml = assemble(store, MemoryVelocity(), ids, folder, screener, turns=turns)

    async def post(self, body: Body, tenant: str = TENANT) -> sql.StoredEvent:
        sent = encode(body)
        event = read_taken_aml_event(body, NOW_MS)
        return await self.aml.monitor.take(tenant, event, payload_digest(body), sent)

    async def insist(self, body: Body) -> sql.StoredEvent:
        """Post an event as a client does who wants it watched: until it is."""
        for _ in range(100):
            try:
                return await self.post(body)
            except (Unavailable, StoreDown):
                await asyncio.sleep(0.02)
        raise AssertionError("refused for too long")


def money(count: int, seed: int = 7) -> list[Body]:
    """Bodies of invented money in order of time, with every typology planted."""
    return [body for _, body in aml_events(Watch(6, 12, seed, START_MS, cases=1))][:count]


def names() -> Any:
    """A reader of answers that gives each alert a number in place of its id, by when it was first told."""
    numbers: dict[str, int] = {}

    def read(stored: sql.StoredEvent) -> tuple[Any, ...]:
        alerts = msgspec.json.decode(stored.alerts)
        told = [
            (numbers.setdefault(one["id"], len(numbers)), one["severity"], one["ruleId"], one["summary"])
            for one in alerts
        ]
        return stored.external_id, stored.status, *told

    return read


async def alone(folder: Path, bodies: list[Body]) -> tuple[list[Any], list[Any]]:
    """Return what one process on the embedded store answers, and its cases."""
    async with await SqliteStore.open(store_path(folder / "alone"), writer="thread") as store:
        await store.migrate()
        process, read = Process(store, folder / "alone"), names()
        answers = [read(await process.post(body)) for body in bodies]
        return answers, await cases(store)


async def cases(store: Store) -> list[Any]:
    text = "SELECT customer, state, severity, alerts FROM aml_case WHERE tenant = ? ORDER BY customer"
    return await store.read(Statement(text, (TENANT,), None, TENANT))


async def in_order(store: Store, bodies: list[Body]) -> tuple[list[Body], list[sql.StoredEvent]]:
    """Return the bodies in the order in which they stand in the log, and what was answered to each."""
    rows = await store.read(sql.select_log(TENANT, 0, 0, 100_000))
    by_name = {body["externalEventId"]: body for body in bodies}
    stored = [
        sql.stored_of((await store.read(sql.select_event(TENANT, external_id)))[0])
        for _, _, external_id, *_ in rows
    ]
    return [by_name[row[2]] for row in rows], stored


@pytest.fixture
async def stores() -> AsyncIterator[list[PostgresStore]]:
    """Three connections of three processes to one database."""
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        opened = [await PostgresStore.open(url) for _ in range(3)]
        await opened[0].migrate()
        yield opened
        for store in opened:
            await store.close()


@pytest.fixture
def crew(stores: list[PostgresStore], tmp_path: Path) -> list[Process]:
    return [Process(store, tmp_path / "crew", store) for store in stores]


async def test_events_spread_over_processes_are_answered_as_by_one(
    crew: list[Process], tmp_path: Path
) -> None:
    bodies, read = money(240), names()
    answers = [read(await crew[number % 3].post(body)) for number, body in enumerate(bodies)]
    expected, cases_expected = await alone(tmp_path, bodies)
    assert sum(answer[1] == "ALERTED" for answer in answers) > 5
    assert answers == expected
    assert await cases(crew[0].store) == cases_expected


async def test_events_at_the_same_moment_are_answered_in_the_order_of_the_log(
    crew: list[Process], tmp_path: Path
) -> None:
    bodies, read = money(240), names()
    queue = iter(enumerate(bodies))

    async def client() -> None:
        for number, body in queue:
            await crew[number % 3].post(body)

    await asyncio.gather(*(client() for _ in range(30)))
    ordered, stored = await in_order(crew[0].store, bodies)
    assert len(ordered) == len(bodies)
    expected, cases_expected = await alone(tmp_path, ordered)
    assert [read(one) for one in stored] == expected
    assert await cases(crew[0].store) == cases_expected


async def test_connections_that_break_in_a_turn_lose_and_double_nothing(
    crew: list[Process], tmp_path: Path, stores: list[PostgresStore]
) -> None:
    bodies, read = money(240), names()
    queue, told = iter(enumerate(bodies)), {}

    async def client() -> None:
        for number, body in queue:
            told[body["externalEventId"]] = await crew[number % 3].insist(body)
            if number % 80 == 40:
                text = (
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                await asyncio.to_thread(ask, stores[0]._url, text)

    await asyncio.gather(*(client() for _ in range(12)))
    ordered, stored = await in_order(crew[0].store, bodies)
    assert len(ordered) == len(bodies)
    assert [told[one.external_id] for one in stored] == stored
    expected, cases_expected = await alone(tmp_path, ordered)
    assert [read(one) for one in stored] == expected
    assert await cases(crew[0].store) == cases_expected


async def test_an_event_sent_to_all_processes_at_once_is_watched_once(crew: list[Process]) -> None:
    for body in money(20):
        stored = await asyncio.gather(*(process.post(body) for process in crew for _ in range(3)))
        assert len(set(stored)) == 1


async def test_an_event_that_clashes_takes_no_other_event_of_its_turn_along(
    crew: list[Process], tmp_path: Path, stores: list[PostgresStore]
) -> None:
    bodies, read = money(90), names()
    for body in bodies[:60]:
        await crew[0].post(body)
    await crew[0].post(bodies[0], "ten_other")
    # An id that is in the log, and that the process has never heard of.
    named = f"UPDATE aml_event SET external_id = 'taken' WHERE external_id = '{bodies[5]['externalEventId']}'"
    await asyncio.to_thread(ask, stores[0]._url, named)
    clashing = {**bodies[80], "externalEventId": "taken"}
    told = await asyncio.gather(
        *(crew[0].post(body) for body in (*bodies[60:80], clashing, *bodies[81:])),
        *(crew[0].post(body, "ten_other") for body in bodies[1:21]),
        return_exceptions=True,
    )
    assert isinstance(told.pop(20), Conflict)
    assert all(isinstance(answer, sql.StoredEvent) for answer in told)
    # Those before it and those of the other tenant were written in one turn, the same one.
    before = [body["externalEventId"] for body in bodies[1:21] + bodies[60:80]]
    turns = (
        "SELECT DISTINCT xmin::text FROM aml_event "
        "WHERE external_id = ANY ($1) AND (tenant <> $2 OR external_id <> ALL ($3))"
    )
    earlier = [body["externalEventId"] for body in bodies[:60]]
    assert len(await asyncio.to_thread(ask, stores[0]._url, turns, before, TENANT, earlier)) == 1
    ordered, stored = await in_order(crew[0].store, [*bodies, {**bodies[5], "externalEventId": "taken"}])
    assert len(ordered) == len(bodies) - 1
    expected, cases_expected = await alone(tmp_path, ordered)
    assert [read(one) for one in stored] == expected
    assert await cases(crew[0].store) == cases_expected


async def test_an_event_that_cannot_be_stored_takes_no_other_event_of_its_turn_along(
    crew: list[Process], tmp_path: Path
) -> None:
    bodies, read = money(90), names()
    for body in bodies[:30]:
        await crew[0].post(body)
    # PostgreSQL takes no such character in a text; the door lets none through.
    broken = {**bodies[30], "externalEventId": "no\x00thing"}
    told = await asyncio.gather(
        *(crew[0].post(body) for body in (*bodies[31:60], broken, *bodies[60:])), return_exceptions=True
    )
    assert isinstance(told.pop(29), Misuse)
    assert all(isinstance(answer, sql.StoredEvent) for answer in told)
    ordered, stored = await in_order(crew[0].store, bodies)
    assert [read(one) for one in stored] == (await alone(tmp_path, ordered))[0]


async def test_rules_in_force_in_one_process_are_in_force_for_the_next_event_of_all(
    crew: list[Process],
) -> None:
    bodies = iter(money(9))
    for process in crew:
        await process.post(next(bodies))
    document = load_pack_text("aml") + "\n# another version\n"
    await crew[0].store.write(
        sql.RULE_SETS.insert(TENANT, 2, document, "", NOW_MS), note_change(sql.AREA, TENANT, "rules", NOW_MS)
    )
    for process in reversed(crew):
        await process.post(next(bodies))
        assert process.aml.monitor.rules[TENANT].version == 2


async def test_a_snapshot_of_one_process_holds_what_the_others_watched(
    crew: list[Process], tmp_path: Path, stores: list[PostgresStore]
) -> None:
    bodies, read = money(240), names()
    answers = [read(await crew[number % 2].post(body)) for number, body in enumerate(bodies[:150])]
    await crew[0].aml.preserver.save(TENANT)
    late = Process(stores[2], tmp_path / "crew", stores[2])
    assert await late.aml.rebuilder.start() == 0  # All of the log is in the snapshot.
    answers += [read(await late.post(body)) for body in bodies[150:]]
    assert answers == (await alone(tmp_path, bodies))[0]


async def test_a_start_reads_the_snapshot_and_what_was_watched_between_it_and_the_end(
    crew: list[Process], tmp_path: Path, stores: list[PostgresStore]
) -> None:
    bodies, read = money(240), names()
    answers = [read(await crew[number % 2].post(body)) for number, body in enumerate(bodies[:100])]
    await crew[0].aml.preserver.save(TENANT)
    # Neither process writes another snapshot: they were killed.
    answers += [read(await crew[number % 2].post(body)) for number, body in enumerate(bodies[100:160])]
    late = Process(stores[2], tmp_path / "crew", stores[2])
    assert await late.aml.rebuilder.start() == 60
    answers += [read(await late.post(body)) for body in bodies[160:]]
    assert answers == (await alone(tmp_path, bodies))[0]


async def test_a_snapshot_of_an_older_algorithm_is_refused_and_the_log_is_read(
    crew: list[Process], tmp_path: Path, stores: list[PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies, read = money(200), names()
    answers = [read(await crew[0].post(body)) for body in bodies[:150]]
    with monkeypatch.context() as before:
        before.setattr(aml_snapshot, "VERSION", aml_snapshot.VERSION - 1)
        await crew[0].aml.preserver.save(TENANT)
    late = Process(stores[2], tmp_path / "crew", stores[2])
    assert await late.aml.rebuilder.start() == 150
    answers += [read(await late.post(body)) for body in bodies[150:]]
    assert answers == (await alone(tmp_path, bodies))[0]


async def test_a_snapshot_of_another_log_is_refused(crew: list[Process], tmp_path: Path) -> None:
    """A database was restored to a moment before the snapshot, and went on from there."""
    bodies, others = money(150), money(200, seed=8)
    for body in bodies:
        await crew[0].post(body)
    await crew[0].aml.preserver.save(TENANT)
    with database() as url:
        async with await PostgresStore.open(url) as restored:
            await restored.migrate()
            elsewhere = Process(restored, tmp_path / "elsewhere", restored)
            read = names()
            answers = [read(await elsewhere.post(body)) for body in others[:160]]
            late = Process(restored, tmp_path / "crew", restored)
            assert await late.aml.rebuilder.start() == 160
            answers += [read(await late.post(body)) for body in others[160:]]
    assert answers == (await alone(tmp_path, others))[0]


async def test_a_memory_that_is_astray_and_one_of_a_new_tenant_are_filled_from_the_snapshot(
    crew: list[Process], tmp_path: Path, stores: list[PostgresStore]
) -> None:
    bodies, read = money(240), names()
    answers = [read(await crew[0].post(body)) for body in bodies[:150]]
    await crew[0].aml.preserver.save(TENANT)
    answers += [read(await crew[0].post(body)) for body in bodies[150:180]]
    # What the snapshot holds cannot have come from the log any more.
    text = "DELETE FROM aml_event WHERE seq <= (SELECT MIN(seq) FROM aml_event) + 120"
    await asyncio.to_thread(ask, stores[0]._url, text)
    crew[0].aml.monitor.astray.add(TENANT)
    answers += [read(await crew[0].post(body)) for body in bodies[180:210]]
    answers += [read(await crew[1].post(body)) for body in bodies[210:]]
    assert answers == (await alone(tmp_path, bodies))[0]
    again = crew[1].aml.monitor
    assert not again.astray
    assert again._memory.known[TENANT].may_hold(bodies[0]["externalEventId"])


async def test_a_process_that_watches_nothing_keeps_up_with_the_others(crew: list[Process]) -> None:
    bodies = money(230)
    for process in crew:
        await process.post(bodies.pop())
    for body in bodies:
        await crew[0].post(body)
    await crew[1].aml.rebuilder.follow()
    newest = await crew[0].store.read(sql.select_last_event())
    assert crew[1].aml.monitor.places[TENANT].reached == newest[0][0]


def test_a_place_knows_what_it_has_met() -> None:
    place = LogPosition(10, 0)
    assert place.meet(9, "evt_old") is LogMatch.KNOWN
    assert place.meet(12, "evt_other") is LogMatch.NEW
    place.ahead.extend(["evt_mine", "evt_mine_too"])
    assert place.meet(12, "evt_other") is LogMatch.KNOWN
    assert place.meet(15, "evt_mine") is LogMatch.KNOWN
    assert place.meet(16, "evt_other_too") is LogMatch.BROKEN
    assert place.reached == 16


PUTS_ON_LIST = """
name: x
rules:
  - id: puts
    name: Puts
    score: 30
    reason: PUTS
    explanation: The device is put on a list.
    when: reference == "puts"
    adds: {list: block, type: DEVICE, for: 1h}
    tests:
      - {name: there, event: {eventName: x, externalEventId: a, reference: puts}, fires: true}
      - {name: elsewhere, event: {eventName: x, externalEventId: a}, fires: false}
"""


class OutrunTurns:
    """Turns before whose writes somebody else replaces the entry of a device on a list, each time."""

    def __init__(self, turns: PostgresStore, url: str, times: int) -> None:
        self._turns, self._url, self.left, self.done = turns, url, times, 0

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Any]:
        async with self._turns.turn() as turn:
            write = turn.write

            async def outrun(writes: Sequence[Sequence[Statement]]) -> None:
                if self.left and any("list_entry" in str(one) for some in writes for one in some):
                    self.left -= 1
                    self.done += 1
                    text = (
                        "INSERT INTO list_entry (tenant, id, type, value, list_type, expires_at_ms, "
                        "created_at_ms, updated_at_ms) VALUES ($1, $2, 'DEVICE', 'fp-1', 'block', $3, 1, 1)"
                    )
                    gone, entry_id = "DELETE FROM list_entry WHERE tenant = $1", f"lst_{self.done}"
                    await asyncio.to_thread(ask, self._url, gone, TENANT)
                    ends_ms = clock.now_ms() + 60_000 + self.done
                    await asyncio.to_thread(ask, self._url, text, TENANT, entry_id, ends_ms)
                await write(writes)

            turn.write = outrun
            yield turn


@pytest.mark.parametrize(("times", "became"), [(1, "extended"), (100, "contended")])
async def test_an_event_is_watched_anew_though_others_change_the_list_that_its_rules_add_to(
    stores: list[PostgresStore], tmp_path: Path, times: int, became: str
) -> None:
    outrun = OutrunTurns(stores[0], stores[0]._url, times)
    process = Process(stores[0], tmp_path / "crew", cast(PostgresStore, outrun))
    tenant = Tenant(id=TENANT, name="Bank")
    process.aml.monitor.additions = RuleAdditions({}, IdSource(), lambda _: tenant, clock.now_ms)
    await stores[0].write(
        sql.RULE_SETS.insert(TENANT, 2, PUTS_ON_LIST, "", NOW_MS),
        note_change(sql.AREA, TENANT, "rules", NOW_MS),
    )
    body = {"eventName": "x", "externalEventId": "a", "reference": "puts", "device": {"fingerprint": "fp-1"}}
    event = read_taken_aml_event(body, clock.now_ms())
    stored = await process.aml.monitor.take(TENANT, event, payload_digest(body), encode(body))
    assert stored.external_id == "a"
    assert outrun.done == min(times, 2 * (TRIES - 1))  # each time with the others of a turn, then alone
    records = await stores[0].read(Statement("SELECT record FROM aml_event", (), None, TENANT))
    assert [sql.record_of(row[0]).list_additions[0][3] for row in records] == [became]
