"""Deliveries arrive, are tried again exactly when promised, and survive the death of their worker."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import structlog

from tests.webhooks.names import name_server
from tests.webhooks.office import QUICK, TENANT, Office
from tests.webhooks.receivers import receiving
from vettance.db.engine import Misuse, Statement, StoreDown, in_list
from vettance.db.tables import CHANGE, DELIVERY, SUBSCRIPTION
from vettance.outbox import MessageType
from vettance.telemetry.meters import Meters
from vettance.tenants.sql import note_change
from vettance.tenants.vault import Vault
from vettance.webhooks import deliver, delivery_queue, resolve, sql
from vettance.webhooks.attempt_results import AttemptRecorder, AttemptResult
from vettance.webhooks.retry_policy import RetryPolicy
from vettance.webhooks.sql import Secrets
from vettance.webhooks.subscription_queue import LIMIT_START, SubscriptionQueue
from vettance.webhooks.webhook import AttemptFailure, AttemptOutcome, verify


async def test_a_message_reaches_every_subscription_that_wants_its_type_and_no_other(office: Office) -> None:
    async with receiving() as one, receiving() as two, receiving() as other:
        first = await office.subscribe(one.url, MessageType.BLOCKLIST_ENTRY_ADDED)
        await office.subscribe(two.url)
        await office.subscribe(other.url, MessageType.EVENT_RISK_EVALUATED)
        await office.subscribe(other.url, tenant="ten_" + "2" * 32)
        office.begin()
        await office.tell(b'{"id":"lst_7"}')
        (got,), (also,) = await one.wait_for(1), await two.wait_for(1)
        await office.until(("delivered", 1), ("delivered", 1))
        assert not other.received
    assert got.id != also.id
    assert got.body == also.body
    assert got.json["eventType"] == "BLOCKLIST_ENTRY_ADDED"
    assert got.json["data"] == {"id": "lst_7"}
    assert got.path == "/hook"
    verify(office.secrets[first.id], got.headers, got.body, int(time.time()))


async def test_a_failed_delivery_is_claimed_once_for_each_attempt_and_never_asked_for_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed: list[int] = []
    asked: list[str] = []
    claim, select_lane = delivery_queue.claim, delivery_queue.select_lane

    def counted_claim(numbers: Sequence[int], *rest: Any) -> Statement:
        claimed.extend(numbers)
        return claim(numbers, *rest)

    def counted_select(subscription: str, *rest: Any) -> Statement:
        asked.append(subscription)
        return select_lane(subscription, *rest)

    monkeypatch.setattr(delivery_queue, "claim", counted_claim)
    monkeypatch.setattr(delivery_queue, "select_lane", counted_select)
    async with receiving(lambda _n, _r: 503) as receiver:
        await office.subscribe(receiver.url)
        office.begin()
        await office.tell()
        await office.until(("exhausted", 6))
    assert claimed == [1] * 6
    assert len(asked) <= 1  # By the start, if it came after the message.


async def test_attempts_that_failed_are_recorded_together_and_one_that_arrived_at_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    settle = AttemptRecorder._settle

    async def counted(self: AttemptRecorder, batch: list[AttemptResult]) -> list[AttemptResult]:
        batches.append(len(batch))
        return await settle(self, batch)

    monkeypatch.setattr(AttemptRecorder, "_settle", counted)
    over: list[AttemptResult] = []
    recorder = AttemptRecorder(office.store, RetryPolicy(), Meters(), lambda one, _due: over.append(one))
    recording = asyncio.create_task(recorder.run())

    async def note(*failures: AttemptFailure | None) -> None:
        for failure in failures:
            recorder.note(ended(failure))
            await asyncio.sleep(0)

    await note(*[AttemptFailure.REFUSED] * 50)
    async with asyncio.timeout(10):
        while len(over) < 50:  # noqa: ASYNC110 - short and bounded
            await asyncio.sleep(0.01)
    assert len(batches) <= 2
    await note(AttemptFailure.REFUSED, None)
    async with asyncio.timeout(10):
        while len(over) < 52:  # noqa: ASYNC110 - short and bounded
            await asyncio.sleep(0.001)
    assert batches[-1] == 2
    await note(*[AttemptFailure.REFUSED] * 3)
    recorder.end()
    await asyncio.wait_for(recording, 10)
    assert len(over) == 55


async def test_recording_ends_without_a_word_when_there_is_nothing_to_record(office: Office) -> None:
    recorder = AttemptRecorder(office.store, RetryPolicy(), Meters(), lambda _one, _due: None)
    with structlog.testing.capture_logs() as said:
        recording = asyncio.create_task(recorder.run())
        recorder.end()
        await asyncio.wait_for(recording, 10)
    assert not said


def ended(failure: AttemptFailure | None) -> AttemptResult:
    one = delivery_queue.ClaimedDelivery(
        1,
        "dlv_1",
        TENANT,
        "whs_1",
        "type",
        0,
        0,
        b"{}",
        "http://127.0.0.1/",
        Secrets(b"", None, None, None),
    )
    outcome = AttemptOutcome(0 if failure else 200, failure, b"", 1, 2, 1)
    return AttemptResult(SubscriptionQueue(TENANT, "whs_1"), one, "w0", outcome)


@pytest.mark.parametrize("turns", range(6))
async def test_recording_ends_when_it_is_cancelled_at_any_turn_of_the_loop_around_an_arrival(
    office: Office, turns: int
) -> None:
    """`asyncio.wait_for` of Python 3.11 forgets a cancellation that comes with what it waits for."""
    recorder = AttemptRecorder(office.store, RetryPolicy(), Meters(), lambda _one, _due: None)
    recording = asyncio.create_task(recorder.run())
    recorder.note(ended(AttemptFailure.REFUSED))
    await asyncio.sleep(0.005)  # It gathers what fails.
    recorder.note(ended(None))
    for _ in range(turns):
        await asyncio.sleep(0)
    recording.cancel()
    done, _ = await asyncio.wait([recording], timeout=5)
    assert done
    assert recording.cancelled()


async def test_nothing_is_stored_where_nobody_listens(office: Office) -> None:
    await office.tell()
    assert await office.states() == []


async def test_a_failed_delivery_is_tried_six_times_with_the_same_bytes_and_then_exhausted(
    office: Office,
) -> None:
    async with receiving(lambda _n, _r: 503) as receiver:
        await office.subscribe(receiver.url)
        office.begin()
        await office.tell()
        await office.until(("exhausted", 6))
        assert len(receiver.received) == 6
        assert len({(one.body, one.id) for one in receiver.received}) == 1
        assert [one.headers["x-webhook-attempt"] for one in receiver.received] == list("123456")
        for gap, promised in zip(receiver.gaps_ms(receiver.received[0].id), QUICK.delays_ms, strict=True):
            assert promised <= gap <= promised + 250
    attempts = await office.store.read(sql.select_attempts([1]))
    assert [(row[1], row[4], row[5], row[6]) for row in attempts] == [
        (number, 503, "status", b"ok") for number in range(1, 7)
    ]


@pytest.mark.slow
async def test_the_delays_are_those_of_the_specification(office: Office) -> None:
    assert RetryPolicy().delays_ms == (1000, 2000, 4000, 8000, 16000)
    async with receiving(lambda _n, _r: 500) as receiver:
        await office.subscribe(receiver.url)
        office.begin(RetryPolicy())
        await office.tell()
        await office.until(("exhausted", 6), seconds=40)
        gaps = receiver.gaps_ms(receiver.received[0].id)
    assert all(
        0 <= gap - promised <= 250
        for gap, promised in zip(gaps, (1000, 2000, 4000, 8000, 16000), strict=True)
    ), gaps


async def test_retries_keep_their_moment_across_a_restart_in_the_middle(office: Office) -> None:
    async with receiving(lambda number, _r: 500 if number < 2 else 200) as receiver:
        await office.subscribe(receiver.url)
        policy = RetryPolicy(delays_ms=(400, 600, 70, 80, 90), attempt_s_max=1.0)
        office.begin(policy)
        await office.tell()
        await receiver.wait_for(1)
        await office.end()
        office.begin(policy)
        await receiver.wait_for(2)
        await asyncio.sleep(0.1)
        await office.crash()
        office.begin(policy)
        await office.until(("delivered", 3))
        first, second = receiver.gaps_ms(receiver.received[0].id)
    assert 400 <= first <= 650
    assert 600 <= second <= 850


async def test_an_attempt_cut_off_by_a_crash_does_not_count_and_is_made_again(office: Office) -> None:
    async with receiving(lambda number, _r: 5.0 if number == 0 else 200) as receiver:
        await office.subscribe(receiver.url)
        office.begin(RetryPolicy(attempt_s_max=10))
        await office.tell()
        await receiver.wait_for_arrival()
        await office.crash()
        assert await office.states() == [("pending", 0)]
        office.begin()
        await office.until(("delivered", 1))
        assert [one.headers["x-webhook-attempt"] for one in receiver.received] == ["1", "1"]
        assert len({one.id for one in receiver.received}) == 1


async def test_a_stop_waits_for_what_is_under_way_and_settles_it(office: Office) -> None:
    async with receiving(lambda _n, _r: 0.4) as receiver:
        await office.subscribe(receiver.url)
        office.begin()
        await office.tell()
        await receiver.wait_for_arrival()
        await office.end()
        assert await office.states() == [("delivered", 1)]
        assert len(receiver.received) == 1


async def test_a_receiver_that_hangs_holds_up_nobody_else(office: Office) -> None:
    async with receiving(lambda _n, _r: 30.0) as hanging, receiving() as healthy:
        await office.subscribe(hanging.url, MessageType.BLOCKLIST_ENTRY_ADDED)
        await office.subscribe(healthy.url, MessageType.BLOCKLIST_ENTRY_REMOVED)
        office.begin(RetryPolicy())
        for _ in range(200):
            await office.tell(kind=MessageType.BLOCKLIST_ENTRY_ADDED)
        await asyncio.sleep(0.2)
        started = time.monotonic()
        await office.tell(kind=MessageType.BLOCKLIST_ENTRY_REMOVED)
        await healthy.wait_for(1)
        assert time.monotonic() - started < 1
        assert len(hanging.received) <= LIMIT_START, "a lane of its own, with a cap"
        await office.crash()


async def test_two_workers_never_send_the_same_attempt(office: Office) -> None:
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        office.begin(alone=False)
        office.begin(alone=False)
        for _ in range(100):
            await office.tell()
        await office.until(*[("delivered", 1)] * 100)
        assert len(receiver.received) == 100
        assert len({one.id for one in receiver.received}) == 100


async def test_a_settlement_without_its_lease_changes_nothing(office: Office) -> None:
    async with receiving(lambda _n, _r: 0.3) as receiver:
        await office.subscribe(receiver.url)
        office.begin()
        await office.tell()
        await receiver.wait_for_arrival()
        await office.store.write(sql.Statement("UPDATE delivery SET lease = 'wanother'"))
        await receiver.wait_for(1)
        await asyncio.sleep(0.2)
        assert await office.states() == [("pending", 0)]
        assert await office.store.read(sql.select_attempts([1])) == []


@pytest.mark.parametrize("lost", [{1}, {3}, {2, 5}, {1, 2, 3, 4, 5}], ids=str)
async def test_attempts_that_end_together_are_recorded_but_for_those_whose_lease_is_lost(
    lost: set[int], office: Office
) -> None:
    async with receiving(lambda _n, _r: 3.0) as receiver:
        await office.subscribe(receiver.url)
        office.begin(RetryPolicy(attempt_s_max=20.0))
        for _ in range(5):
            await office.tell()
        await receiver.wait_for_arrival(5)
        numbers, args = in_list(sorted(lost))
        await office.store.write(
            sql.Statement(f"UPDATE delivery SET lease = 'wanother' WHERE seq IN ({numbers})", args)
        )
        await receiver.wait_for(5)
        expected = [("pending", 0) if seq in lost else ("delivered", 1) for seq in range(1, 6)]
        await office.until(*expected)
        await asyncio.sleep(0.5)
        assert await office.states() == expected
        attempts = await office.store.read(sql.select_attempts(range(1, 6)))
        assert sorted(row[0] for row in attempts) == sorted({1, 2, 3, 4, 5} - lost)


async def test_health_is_of_the_last_attempt_though_one_before_lost_its_lease(office: Office) -> None:
    made = await office.subscribe("http://127.0.0.1:9/hook")
    for _ in range(4):
        await office.tell()
    now_ms = time.time_ns() // 1_000_000
    await office.store.write(delivery_queue.claim([2, 3, 4], "w0", now_ms, 60_000, 60_000))
    recorder = AttemptRecorder(office.store, RetryPolicy(), Meters(), lambda _one, _due: None)
    for seq in range(1, 5):  # The lease of the first is not held, and the last one arrives.
        sent = ended(AttemptFailure.REFUSED if seq < 4 else None)
        one = sent.one._replace(seq=seq, subscription=made.id)
        times = msgspec.structs.replace(sent.outcome, ended_at_ms=now_ms + seq)
        recorder.note(sent._replace(one=one, outcome=times))
    recorder.end()
    await asyncio.wait_for(recorder.run(), 10)
    health = sql.subscription_of((await office.store.read(sql.select_subscription(TENANT, made.id)))[0])
    assert health.last_triggered_at_ms == health.last_success_at_ms == now_ms + 4
    assert health.failures_in_a_row == 0


async def test_nothing_is_sent_once_the_subscription_is_gone(office: Office) -> None:
    async with receiving(lambda _n, _r: 500) as receiver:
        made = await office.subscribe(receiver.url)
        office.begin(RetryPolicy(delays_ms=(400,) * 5))
        await office.tell()
        await office.until(("pending", 1))
        await office.store.write(
            *sql.delete_subscription(TENANT, made.id),
            sql.scoped(
                CHANGE,
                TENANT,
                "INSERT INTO change (tenant, area, subject, at_ms) VALUES (?, ?, ?, 0)",
                (sql.AREA, made.id),
            ),
        )
        await office.until(("canceled", 1))
        await asyncio.sleep(0.5)
        assert len(receiver.received) == 1


async def test_old_deliveries_are_forgotten_with_their_attempts_but_never_the_newest(office: Office) -> None:
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        office.begin()
        for _ in range(5):
            await office.tell()
        await office.until(*[("delivered", 1)] * 5)
    first = (await office.store.read(delivery_queue.select_first_delivery()))[0][0]
    assert (await office.store.write(*delivery_queue.forget(first, 0, 100)))[1] == 0
    assert await office.store.write(*delivery_queue.forget(first, 2**53, 3)) == [3, 3, 3]
    assert await office.store.write(*delivery_queue.forget(first + 3, 2**53, 100)) == [1, 1, 1]
    assert await office.store.write(*delivery_queue.forget(first + 4, 2**53, 100)) == [0, 0, 0]
    assert await office.states() == [("delivered", 1)]


async def test_what_no_worker_has_in_mind_is_found(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "_SWEEP_S", 0.1)
    monkeypatch.setattr(deliver, "_OVERDUE_MS", 100)
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        office.begin(alone=False)
        await office.tell()
        await office.until(("delivered", 1))
        await office.store.write(
            sql.Statement("UPDATE delivery SET state = 'pending', attempts = 0, due_at_ms = 1"),
        )
        await receiver.wait_for(2)


async def test_health_tells_of_the_last_attempts(office: Office) -> None:
    async with receiving(lambda number, _r: 200 if number == 1 else 500) as receiver:
        made = await office.subscribe(receiver.url)
        office.begin(RetryPolicy(delays_ms=(20, 20)))
        await office.tell()
        await office.until(("delivered", 2))
        await office.tell()
        await office.until(("delivered", 2), ("exhausted", 3))
        async with asyncio.timeout(5):
            while True:
                row = (await office.store.read(sql.select_subscription(TENANT, made.id)))[0]
                health = sql.subscription_of(row)
                if health.failures_in_a_row == 3:
                    break
                await asyncio.sleep(0.01)
    assert health.last_error == "status 500"
    assert health.last_success_at_ms is not None
    assert health.last_failure_at_ms == health.last_triggered_at_ms


async def test_a_claim_that_the_store_left_in_doubt_is_given_back_and_made_again(office: Office) -> None:
    """The far end of the store fails between the claim and its answer, as a stalled disk does."""
    read, failures = office.store.read, iter(range(1))

    async def fail_once(statement: sql.Statement) -> list[sql.Row]:
        if "body" in statement.sql and next(failures, None) is not None:
            raise StoreDown("stalled")
        return await read(statement)

    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        office.store.read = fail_once  # type: ignore[method-assign]
        office.begin()
        await office.tell()
        await office.until(("delivered", 1), seconds=5)
        assert len(receiver.received) == 1
    assert next(failures, None) is None


async def test_old_deliveries_are_forgotten_when_they_are_kept_for_a_time_only(office: Office) -> None:
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        office.begin(keep_ms=3_600_000)
        for _ in range(3):
            await office.tell()
        await office.until(*[("delivered", 1)] * 3)
        await office.end()
        office.begin(keep_ms=1)
        # The newest row stays, so that its number is never given again.
        await office.until(("delivered", 1))
    assert len(await office.store.read(sql.select_attempts([1, 2, 3]))) == 1


async def test_a_secret_that_does_not_open_costs_no_attempt_and_is_said_once(office: Office) -> None:
    async with receiving() as receiver:
        made = await office.subscribe(receiver.url)
        office.vault = Vault(b"w" * 32)
        with structlog.testing.capture_logs() as said:
            patient = msgspec.structs.replace(QUICK, attempt_s_max=20.0)  # Machines that test stall.
            office.begin(patient)
            for _ in range(3):
                await office.tell()
            free = sql.everyone(DELIVERY, "SELECT count(*) FROM delivery WHERE lease IS NULL")
            async with asyncio.timeout(10):
                while not said or (await office.store.read(free))[0][0] < 3:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert await office.states() == [("pending", 0)] * 3
            assert await office.store.read(sql.select_attempts([1, 2, 3])) == []
            await office.tell()
            # Another secret, which it can open, lets them go at once.
            sealed = sql.seal(office.vault, office.secrets[made.id], TENANT, made.id)
            change = note_change(sql.AREA, TENANT, made.id, 0)
            again = sql.everyone(
                SUBSCRIPTION, "UPDATE subscription SET secret = ? WHERE id = ?", (sealed, made.id)
            )
            await office.store.write(again, change)
            await office.until(*[("delivered", 1)] * 4)
        assert [one["event"] for one in said].count("webhook_secret_sealed") == 1
        assert {one.headers["x-webhook-attempt"] for one in receiver.received} == {"1"}


async def test_what_was_put_off_goes_when_a_worker_starts_that_can_sign_it(office: Office) -> None:
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        rightly, office.vault = office.vault, Vault(b"w" * 32)
        with structlog.testing.capture_logs() as said:
            office.begin()
            await office.tell()
            async with asyncio.timeout(10):
                while not said:  # noqa: ASYNC110 - short and bounded
                    await asyncio.sleep(0.01)
            await office.end()
        office.vault = rightly
        office.begin(alone=False)
        await office.until(("delivered", 1))


async def test_names_that_nobody_answers_for_hold_up_no_other_tenant(office: Office) -> None:
    with name_server() as server:
        async with receiving() as healthy:
            for number in range(300):
                await office.subscribe(f"http://silent-{number}.example.com/", tenant="ten_" + "2" * 32)
            await office.subscribe(f"http://healthy.example.com:{healthy.port}/hook")
            office.begin(RetryPolicy(), name_servers=[server.address])
            for _ in range(10):
                await office.tell(tenant="ten_" + "2" * 32)
            await asyncio.sleep(0.3)
            for _ in range(20):
                await office.tell()
            await healthy.wait_for(20, seconds=3)
            await office.crash()


async def test_a_name_that_nobody_answers_for_is_logged_as_such(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "RESOLVE_S_MAX", 0.2)
    with name_server() as server:
        await office.subscribe("http://silent.example.com/")
        office.begin(RetryPolicy(delays_ms=(10,), attempt_s_max=0.1), name_servers=[server.address])
        await office.tell()
        await office.until(("exhausted", 2))
    attempts = await office.store.read(sql.select_attempts([1]))
    assert [row[5] for row in attempts] == ["dns", "dns"]


def count_writes(office: Office) -> list[int]:
    """Have every write of the store counted from now on."""
    write, count = office.store.write, [0]

    async def counted(*statements: sql.Statement) -> list[int]:
        count[0] += 1
        return await write(*statements)

    office.store.write = counted  # type: ignore[method-assign]
    return count


async def writes_within(seconds: float, count: list[int]) -> int:
    """Return how many writes come in a while, of those that `count_writes` counts."""
    before = count[0]
    await asyncio.sleep(seconds)
    return count[0] - before


async def test_a_queue_that_is_held_writes_nothing_until_its_moment(office: Office) -> None:
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        office.vault = Vault(b"w" * 32)
        with structlog.testing.capture_logs() as said:
            office.begin(RetryPolicy())
            for _ in range(20):
                await office.tell()
            async with asyncio.timeout(10):
                while not said:  # noqa: ASYNC110 - short and bounded
                    await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        count = count_writes(office)
        await asyncio.sleep(1.0)
        assert count == [0]


async def test_a_queue_that_is_held_goes_on_when_its_moment_has_come(office: Office) -> None:
    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        rightly, wrong = office.vault, Vault(b"w" * 32)
        office.vault = wrong
        deliverer = office.begin(RetryPolicy(fault_pause_ms=300))
        await office.tell()
        await asyncio.sleep(0.2)
        deliverer._vault = rightly
        await office.until(("delivered", 1), seconds=2)


def test_nothing_waits_longer_than_the_longest_delay_or_pause_and_what_clocks_differ() -> None:
    assert RetryPolicy().ahead_ms_max == 65_000
    assert RetryPolicy(delays_ms=(1000, 90_000)).ahead_ms_max == 95_000


async def test_what_waits_for_a_subscription_that_was_removed_without_a_worker_is_canceled(
    office: Office,
) -> None:
    made = await office.subscribe("http://127.0.0.1:9/")
    await office.tell()
    await office.store.write(*sql.delete_subscription(TENANT, made.id))
    office.begin()
    await office.until(("canceled", 0))
    count = count_writes(office)
    await asyncio.sleep(0.3)
    assert count == [0]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE delivery SET attempts = 'x' WHERE tenant <> ?",
        "UPDATE delivery SET due_at_ms = 'x' WHERE tenant <> ?",
        "UPDATE delivery SET type = x'ff' WHERE tenant <> ?",
        "UPDATE subscription SET url = 'no url' WHERE tenant <> ?",
        "UPDATE subscription SET url = x'ff' WHERE tenant <> ?",
        "UPDATE subscription SET secret = '' WHERE tenant <> ?",
        "UPDATE subscription SET old_until_ms = 'x', old_secret = 'x' WHERE tenant <> ?",
    ],
)
async def test_a_damaged_row_of_one_tenant_holds_up_no_other_and_ends_no_loop(
    office: Office, damage: str
) -> None:
    async with receiving() as receiver, receiving() as other:
        await office.subscribe(other.url, tenant="ten_" + "2" * 32)
        await office.subscribe(receiver.url)
        for _ in range(3):
            await office.tell(tenant="ten_" + "2" * 32)
            await office.tell()
        await office.store.write(sql.scoped(DELIVERY.reading(SUBSCRIPTION), TENANT, damage))
        with structlog.testing.capture_logs():
            office.begin()
            await office.until(*[("delivered", 1)] * 3)
            await office.tell(tenant="ten_" + "2" * 32)
            await office.tell()
            await office.until(*[("delivered", 1)] * 4)
            count = count_writes(office)
            # A damaged row has as many attempts as any other; how long those take is up to the machine.
            async with asyncio.timeout(20):
                while await writes_within(0.3, count) >= 15:
                    pass  # What is tried again and again would never come to rest.


async def test_a_claim_that_the_store_refuses_for_one_delivery_is_made_for_the_others(
    office: Office,
) -> None:
    """The far end of the store cannot read one row, as with a damaged page."""
    read = office.store.read

    async def refuse(statement: sql.Statement) -> list[sql.Row]:
        if "url" in statement.sql and 7 in statement.args:
            raise Misuse("a page is damaged")
        return await read(statement)

    async with receiving() as receiver:
        await office.subscribe(receiver.url)
        office.store.read = refuse  # type: ignore[method-assign]
        for _ in range(20):
            await office.tell()
        with structlog.testing.capture_logs() as said:
            office.begin()
            await office.until(*[("delivered", 1)] * 6, ("pending", 0), *[("delivered", 1)] * 13)
        assert {one["of"] for one in said if one["event"] == "work_failed"} == {f"{TENANT}:7"}
