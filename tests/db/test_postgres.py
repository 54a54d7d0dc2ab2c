"""What only PostgreSQL has: walls between tenants, many processes, partitions, a server that goes away."""

import asyncio
import contextlib
import datetime
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.databases import ask, database, url_of
from tests.db.lines import lines_to
from tests.db.rows import STEPS, all_uses, decided, expect_batch_like_model, use
from vettance.aml import sql as aml_sql
from vettance.aml.screening import sql as screening_sql
from vettance.db import postgres, postgres_link, postgres_schema
from vettance.db.dialect import form_of
from vettance.db.engine import Clash, Misuse, Statement, StoreDown, everyone, scoped
from vettance.db.migrate import SchemaRefused, migrate, migrations
from vettance.db.postgres import PostgresStore
from vettance.db.postgres_analyze import ROWS_MIN, count, select_grown
from vettance.db.postgres_batch import TURN
from vettance.db.tables import EVENT, QUOTA_USE, TABLES, table_of
from vettance.lists import sql as lists_sql
from vettance.lists.entry import EntryType, ListEntry, ListType
from vettance.retention.deletion_sql import TenantTable, remove_of_tenant
from vettance.terms import sql as terms_sql
from vettance.websdk import sql as websdk_sql

#: Texts in B-tree keys: ids, codes and digests of ours; values of lists and own ids of entities, which their
#: doors bound; and what `bounded_key` makes of anything.
#: Columns whose texts may be longer than an index row holds.
LONG = {name: table.long for name, table in TABLES.items() if table.long}
KEYS: Final = {
    "aml_alert.case_id",
    "aml_alert.id",
    "aml_alert.origin",
    "aml_alert.rule_id",
    "aml_alert.severity",
    "aml_alert.state",
    "aml_alert.tenant",
    "aml_alert.typology",
    "aml_alert_count.origin",
    "aml_alert_count.resolution",
    "aml_alert_count.rule_id",
    "aml_alert_count.severity",
    "aml_alert_count.state",
    "aml_alert_count.tenant",
    "aml_alert_count.typology",
    "aml_alert_entity.alert",
    "aml_alert_entity.entity",
    "aml_alert_entity.role",
    "aml_alert_entity.tenant",
    "aml_alert_event.alert",
    "aml_alert_event.event",
    "aml_alert_event.tenant",
    "aml_case.assignee",
    "aml_case.id",
    "aml_case.severity",
    "aml_case.state",
    "aml_case.tenant",
    "aml_case_count.assignee",
    "aml_case_count.severity",
    "aml_case_count.state",
    "aml_case_count.tenant",
    "aml_case_entry.case_id",
    "aml_event.id",
    "aml_event.tenant",
    "aml_list_set.id",
    "aml_rescreening.list_set",
    "aml_rescreening.tenant",
    "aml_case_entry.tenant",
    "aml_rule_count.measure",
    "aml_rule_count.rule",
    "aml_rule_count.tenant",
    "aml_rule_counted.tenant",
    "aml_rule_last_hit.rule",
    "aml_rule_last_hit.tenant",
    "aml_ruleset.tenant",
    "aml_screening.id",
    "aml_screening.tenant",
    "aml_screening_setting.tenant",
    "aml_setting.tenant",
    "aml_subject.external_id",
    "aml_subject.list_set",
    "aml_subject.role",
    "aml_subject.tenant",
    "answer.key",
    "answer.path",
    "answer.tenant",
    "api_key.id",
    "audit_entry.id",
    "audit_entry.tenant",
    "audit_head.tenant",
    "audit_part.entry",
    "audit_part.name",
    "audit_part.tenant",
    "change.area",
    "change.tenant",
    "chunk.tenant",
    "chunk_column.name",
    "console_session.digest",
    "console_session.id",
    "console_session.user_id",
    "decision.id",
    "decision.tenant",
    "delivery.id",
    "delivery.lease",
    "delivery.subscription",
    "delivery.tenant",
    "entry_link.digest",
    "entry_link.user_id",
    "event.id",
    "event.tenant",
    "failing_work.subject",
    "failing_work.work",
    "feedback.id",
    "feedback.target",
    "feedback.tenant",
    "import_mark.digest",
    "import_mark.tenant",
    "import_run.id",
    "import_run.tenant",
    "interest.subscription",
    "interest.tenant",
    "interest.type",
    "job.id",
    "job.import_id",
    "job.tenant",
    "known_address.address_digest",
    "known_address.user_id",
    "label.event",
    "label.id",
    "label.tenant",
    "list_count.tenant",
    "list_entry.id",
    "list_entry.list_type",
    "list_entry.tenant",
    "list_entry.type",
    "list_entry.value",
    "message.id",
    "message.tenant",
    "quota_use.tenant",
    "recovery_code.digest",
    "recovery_code.user_id",
    "review.check_state",
    "review.claimed_by",
    "review.customer",
    "review.decision",
    "review.email",
    "review.state",
    "review.tenant",
    "review_bulk.id",
    "review_bulk.tenant",
    "review_bulk_piece.bulk",
    "review_bulk_piece.tenant",
    "review_count.state",
    "review_count.tenant",
    "rollup.code",
    "rollup.tenant",
    "roster.kind",
    "roster.tenant",
    "backtest.id",
    "backtest.tenant",
    "rule_count.measure",
    "rule_count.rule",
    "rule_count.tenant",
    "rule_counted.tenant",
    "rule_last_hit.rule",
    "rule_last_hit.tenant",
    "rule_step.id",
    "rule_step.tenant",
    "ruleset.tenant",
    "sign_in_failure.subject",
    "alert_model.tenant",
    "alert_model_setting.tenant",
    "feature_version.tenant",
    "model.tenant",
    "model_change.id",
    "model_change.tenant",
    "model_drift.tenant",
    "model_setting.tenant",
    "snooze.id",
    "snooze.kind",
    "snooze.tenant",
    "signal_batch.tenant",
    "stream_consumer.name",
    "stream_consumer.tenant",
    "stream_message.consumer",
    "stream_message.tenant",
    "subscription.id",
    "subscription.slot",
    "subscription.tenant",
    "tenant.id",
    "term.tenant",
    "token_key.kid",
    "user_account.email",
    "user_account.id",
    "user_account.oidc_issuer",
    "user_account.oidc_subject",
    "user_membership.tenant",
    "user_membership.user_id",
    "watchlist_index.id",
    "watchlist_index.tenant",
    "watchlist_version.source",
    "watchlist_version.tenant",
    "watchlist_version.version",
}


def tables_of(url: str) -> dict[str, set[str]]:
    """Every table with its columns, partitions apart."""
    found: dict[str, set[str]] = {}
    for table, column in ask(
        url,
        "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
        "WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace "
        "AND attnum > 0 AND NOT attisdropped",
    ):
        found.setdefault(table, set()).add(column)
    return found


def test_both_engines_have_the_same_tables_with_the_same_columns(url: str, path: Path) -> None:
    migrate(path)
    with contextlib.closing(sqlite3.connect(path)) as file:
        names = file.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        embedded = {
            name: {row[1] for row in file.execute(f"PRAGMA table_info({name})")}
            for (name,) in names.fetchall()
            if not name.startswith(("term_search", "id_search"))
        }
    # What the embedded store looks for by a text, this one looks for by its digest.
    digests = {table: {f"{name}_digest" for name in names} for table, names in LONG.items()}
    shared = {
        name: set(columns) - digests.get(name, set())
        for name, columns in tables_of(url).items()
        if not name.endswith("_search")
    }
    # Whoever adds a migration adds one to each of db/schema/sqlite and db/schema/postgres.
    assert shared == embedded


async def test_texts_are_found_by_the_index_before_postgresql_has_counted_them(
    shared: PostgresStore, emptied: str
) -> None:
    numbered = [terms_sql.Term(number, f"cus_{number:05}", 1) for number in range(3_000)]
    await shared.write(*terms_sql.insert_terms("ten_a", numbered))
    asked = terms_sql.select_terms("ten_a", ["cus_00007", "nobody", "cus_02999"])
    assert await shared.read(asked) == [(7, "cus_00007", 1), (2_999, "cus_02999", 1)]
    assert asked.postgres is not None
    plan = ask(emptied, f"EXPLAIN {form_of(asked.postgres).text}", *asked.postgres.args)
    (condition,) = [row[0] for row in plan if "Index Cond" in row[0]]
    assert "tenant" in condition
    assert "value" in condition


@pytest.mark.parametrize(
    "asked",
    [
        aml_sql.select_event("ten_a", "tx-1"),
        aml_sql.select_open_case("ten_a", "c-1"),
        aml_sql.select_customer_alerts("ten_a", "c-1", 0),
        screening_sql.select_history("ten_a", "c-1", "", ["e"]),
        websdk_sql.select_batch("ten_a", "session", "batch"),
    ],
    ids=["event", "case", "alerts", "history", "batch"],
)
async def test_long_texts_are_found_by_their_digests(
    shared: PostgresStore, emptied: str, asked: Statement
) -> None:
    ask(
        emptied,
        "INSERT INTO aml_alert (id, tenant, case_id, customer, origin, typology, rule_id, severity, summary, "
        "figures, state, events, created_at_ms, last_at_ms) SELECT 'alt_' || n, 'ten_a', 'cas', 'c-' || n, "
        "'rule', 'T', 'r', 'LOW', '', '', 'OPEN', 1, 0, 0 FROM generate_series(2, 2000) AS n",
    )
    ask(emptied, "ANALYZE aml_alert")
    real = asked.postgres or asked
    plan = ask(f"{emptied}?enable_seqscan=off", f"EXPLAIN {form_of(real).text}", *real.args)
    assert any("Index Cond" in row[0] and "_digest = " in row[0] for row in plan), plan
    assert await shared.read(asked) == []


NEW_ENTRY: Final = ListEntry(
    id="lst_new",
    tenant="ten_a",
    type=EntryType.DEVICE,
    value="new",
    list_type=ListType.BLOCK,
    reason=None,
    expires_at_ms=None,
    created_at_ms=2,
    updated_at_ms=2,
)


@pytest.mark.parametrize(
    "removal",
    [
        lists_sql.insert_entry(NEW_ENTRY, 100_000)[1],
        remove_of_tenant("ten_a", TenantTable("list_entry", ("id",), is_led=True), 500),
        remove_of_tenant("ten_a", TenantTable("audit_part", ("tenant", "entry", "name"), is_led=True), 500),
    ],
    ids=["expired entries", "entries of a tenant", "rows with keys of several columns"],
)
async def test_rows_to_be_removed_are_found_by_their_places_before_postgresql_has_counted_them(
    shared: PostgresStore, emptied: str, removal: Statement
) -> None:
    for text in (
        "INSERT INTO list_entry (id, tenant, type, value, list_type, expires_at_ms, created_at_ms, "
        "updated_at_ms) SELECT 'lst_' || n, 'ten_a', 'DEVICE', n, 'block', 1, 1, 1 "
        "FROM generate_series(1, 9000) AS n",
        "INSERT INTO audit_part (tenant, entry, name, salt, content) "
        "SELECT 'ten_a', 'aud_' || n, 'actor', '', '' FROM generate_series(1, 9000) AS n",
    ):
        ask(emptied, text)
    assert removal.postgres is not None
    plan = [row[0] for row in ask(emptied, f"EXPLAIN {form_of(removal.postgres).text}", *removal.args)]
    assert any("Tid Scan" in line for line in plan), plan
    assert not any("Join" in line for line in plan), plan
    assert await shared.write(removal) in ([100], [500])


def test_every_text_in_a_key_is_known_to_be_bounded(url: str) -> None:
    """What is new in `KEYS` is ours, or bounded where it comes in; anything else belongs in `LONG`."""
    rows = ask(
        url,
        "SELECT tab.relname, att.attname FROM pg_index AS ind JOIN pg_class AS tab ON tab.oid = ind.indrelid "
        "JOIN pg_class AS own ON own.oid = ind.indexrelid JOIN pg_am ON pg_am.oid = own.relam "
        "JOIN pg_attribute AS att ON att.attrelid = tab.oid AND att.attnum = ANY (ind.indkey::int2[]) "
        "WHERE tab.relnamespace = 'public'::regnamespace AND NOT tab.relispartition AND amname = 'btree' "
        "AND att.atttypid = 'text'::regtype",
    )
    indexed = {f"{table}.{column}" for table, column in rows}
    assert sorted(indexed - KEYS) == []
    assert sorted(KEYS - indexed) == []
    assert not indexed & {f"{table}.{column}" for table, columns in LONG.items() for column in columns}


async def test_tables_and_partitions_that_have_grown_are_counted(shared: PostgresStore, emptied: str) -> None:
    ask(emptied, "ANALYZE")
    uses = [use("ten_a", hour) for hour in range(ROWS_MIN)]
    await shared.write(*uses, *[one for number in range(ROWS_MIN) for one in decided(f"evt_{number}")])

    async def grown() -> set[str]:
        # A connection tells what it has written within a second.
        await shared.write(use("ten_b", 10_000 + len(seen)))
        seen.append(names := {name for (name,) in await shared.read(select_grown())})
        return names

    seen: list[set[str]] = []
    expected = {"quota_use", "event_rest", "decision_rest", "delivery"}
    async with asyncio.timeout(10):
        while (names := await grown()) != expected:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.1)
    await count(emptied, sorted(names))
    assert await grown() == set()
    counted = ask(emptied, "SELECT reltuples::int FROM pg_class WHERE relname = 'event_rest'")
    assert counted == [(ROWS_MIN,)]


async def test_a_query_without_a_tenant_sees_nothing(shared: PostgresStore, emptied: str) -> None:
    guarded = [name for name, columns in tables_of(emptied).items() if "tenant" in columns]
    assert len(guarded) > 25
    walls = ask(
        emptied, "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity ORDER BY relname"
    )
    assert {*guarded, "tenant", "attempt", "chunk_column"} <= {name for (name,) in walls}
    await shared.write(*decided("evt_1"), use("ten_a", 1), use("ten_b", 1))
    for table in guarded:
        assert await shared.read(Statement(f"SELECT * FROM {table}")) == []
    everything = await shared.read(everyone(QUOTA_USE, "SELECT tenant FROM quota_use ORDER BY tenant"))
    assert everything == [("ten_a",), ("ten_b",)]


async def test_a_query_that_forgot_its_condition_sees_its_own_tenant_only(shared: PostgresStore) -> None:
    await shared.write(use("ten_a", 1), use("ten_b", 2))
    forgetful = Statement("SELECT tenant, hour FROM quota_use", tenant="ten_a")
    assert await shared.read(forgetful) == [("ten_a", 1)]
    # One connection answers them all: it shows what the query of the moment is about.
    assert await shared.read(forgetful._replace(tenant="ten_b")) == [("ten_b", 2)]
    assert await shared.read(forgetful._replace(tenant="ten_b", bytes_max=9)) == [("ten_b", 2)]
    with pytest.raises(Misuse):
        await shared.read(Statement("SELECT no_such_column FROM quota_use", tenant="ten_a"))
    assert await shared.read(forgetful._replace(tenant="ten_b")) == [("ten_b", 2)]
    assert await shared.read(Statement("SELECT tenant, hour FROM quota_use")) == []
    assert await shared.write(Statement("UPDATE quota_use SET used = 9", tenant="ten_a")) == [1]
    assert await shared.read(all_uses()) == [("ten_a", 1, 9), ("ten_b", 2, 1)]


async def test_a_row_of_another_tenant_cannot_be_written(shared: PostgresStore) -> None:
    foreign = Statement("INSERT INTO quota_use (tenant, hour, used) VALUES ('ten_b', 1, 1)", tenant="ten_a")
    with pytest.raises(Misuse, match="row-level security"):
        await shared.write(foreign)
    with pytest.raises(Misuse, match="row-level security"):
        await shared.write(Statement("INSERT INTO quota_use (tenant, hour, used) VALUES (?, 1, 1)", ("a",)))
    assert await shared.read(all_uses()) == []


async def test_whoever_owns_the_tables_is_walled_in_too(url: str) -> None:
    owner = f"vettance_owner_{secrets.token_hex(4)}"
    with database() as made:
        ask(made, f"CREATE ROLE {owner} LOGIN")
        ask(made, f"ALTER DATABASE {made.rpartition('/')[2]} OWNER TO {owner}")
        ask(made, f"ALTER SCHEMA public OWNER TO {owner}")
        plain = made.replace("postgres@", f"{owner}@")
        async with await PostgresStore.open(plain) as store:
            await store.migrate()
            await store.write(use("ten_a", 1), use("ten_b", 2))
            assert await store.read(Statement("SELECT * FROM quota_use")) == []
            assert len(await store.read(all_uses())) == 2
        assert ask(made, "SELECT tableowner FROM pg_tables WHERE tablename = 'event'") == [(owner,)]
    ask(url, f"DROP ROLE {owner}")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=st.lists(STEPS, min_size=1, max_size=25))
def test_a_batch_equals_its_writes_one_after_the_other(url: str, writes: list[list[tuple[str, int]]]) -> None:
    async def run() -> None:
        async with await PostgresStore.open(url) as store:
            await store.write(everyone(QUOTA_USE, "DELETE FROM quota_use"))
            await expect_batch_like_model(store, writes)

    asyncio.run(run())


async def test_who_has_read_up_to_a_place_has_missed_none(emptied: str) -> None:
    """Two processes write, a third follows the log by its places."""
    async with (
        await PostgresStore.open(emptied) as one,
        await PostgresStore.open(emptied) as two,
        await PostgresStore.open(emptied) as reader,
    ):
        seen: list[str] = []
        done = asyncio.Event()

        async def follow() -> None:
            after = 0
            while True:
                last = done.is_set()
                rows = await reader.read(
                    everyone(EVENT, "SELECT seq, id FROM event WHERE seq > ? ORDER BY seq", (after,))
                )
                seen.extend(row[1] for row in rows)
                after = rows[-1][0] if rows else after
                if last:
                    return
                await asyncio.sleep(0)

        following = asyncio.create_task(follow())
        for start in range(0, 600, 60):
            await asyncio.gather(
                *(one.write(*decided(f"evt_a{number:04}")) for number in range(start, start + 60)),
                *(two.write(*decided(f"evt_b{number:04}")) for number in range(start, start + 60)),
            )
        done.set()
        await following
        assert len(seen) == len(set(seen)) == 1200
        own = [event for event in seen if event.startswith("evt_a")]
        assert own == sorted(own)


async def test_of_several_processes_exactly_one_takes_a_piece_of_work(emptied: str) -> None:
    async with await PostgresStore.open(emptied) as one, await PostgresStore.open(emptied) as two:
        await one.write(*(use("ten_a", hour, 0) for hour in range(100)))
        claims = [
            scoped(
                QUOTA_USE,
                "ten_a",
                "UPDATE quota_use SET used = 1 WHERE tenant = ? AND hour = ? AND used = 0",
                (hour,),
                1,
            )
            for hour in range(100)
        ]
        outcomes = await asyncio.gather(
            *(store.write(claim) for claim in claims for store in (one, two)), return_exceptions=True
        )
        assert sum(isinstance(outcome, list) for outcome in outcomes) == 100
        assert all(used == 1 for _, _, used in await two.read(all_uses()))


async def test_a_server_that_ends_all_connections_is_found_again(shared: PostgresStore, emptied: str) -> None:
    await shared.write(use("ten_a", 1))
    await shared.read(all_uses())
    name = emptied.rpartition("/")[2]
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = $1 AND pid <> pg_backend_pid()"
    )
    await asyncio.to_thread(ask, emptied, ended, name)
    outcomes = await asyncio.gather(
        shared.write(use("ten_a", 2)), shared.read(all_uses()), return_exceptions=True
    )
    assert {type(outcome) for outcome in outcomes} <= {list, StoreDown}
    async with asyncio.timeout(5):
        while True:
            with contextlib.suppress(StoreDown):
                await shared.write(use("ten_a", 3))
                break
            await asyncio.sleep(0.02)
    assert (await shared.read(all_uses()))[0] == ("ten_a", 1, 1)
    assert shared.healthy()


async def test_a_database_that_is_not_there_is_said_in_one_line() -> None:
    with pytest.raises(StoreDown, match="database does not exist"):
        await PostgresStore.open(url_of("vettance_test_nowhere"))
    with pytest.raises(StoreDown, match="cannot be reached"):
        await PostgresStore.open("postgresql://postgres@127.0.0.1:9/x")


async def test_a_process_that_stops_in_the_middle_holds_the_others_up_for_a_moment_only(
    shared: PostgresStore, emptied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_link, "HOLD_MS_MAX", 200)
    stopped = await postgres_link.connect(emptied, statement_s_max=5, writes=True)
    await stopped.execute(f"BEGIN; SELECT pg_advisory_xact_lock({TURN})")
    async with asyncio.timeout(5):
        assert await shared.write(use("ten_a", 1)) == [1]
    with pytest.raises(postgres_link.ERRORS):
        await stopped.execute("COMMIT")
    stopped.terminate()


async def test_what_nobody_follows_is_written_out_of_turn(shared: PostgresStore, emptied: str) -> None:
    texts = [terms_sql.Term(number, f"text {number}", 1) for number in range(1, 100)]
    holder = await postgres_link.connect(emptied, statement_s_max=10, writes=True)
    await holder.execute(f"BEGIN; SELECT pg_advisory_xact_lock({TURN})")
    async with asyncio.timeout(5):
        await shared.write(*terms_sql.insert_terms("ten_a", texts), *terms_sql.insert_term_search(texts))
        await shared.write(*terms_sql.insert_id_search([(1, "evt_0123456789abcdef")]))
    with pytest.raises(Clash):
        await shared.write(*terms_sql.insert_terms("ten_a", texts[:1]))
    # What comes behind a write that takes a turn waits with it: writes keep their order.
    used = asyncio.create_task(shared.write(use("ten_a", 1)))
    await asyncio.sleep(0)
    found = asyncio.create_task(shared.write(*terms_sql.insert_id_search([(2, "evt_00000000000000ff")])))
    done, _ = await asyncio.wait({used, found}, timeout=0.3)
    assert not done
    await holder.execute("COMMIT")
    await postgres_link.part(holder)
    assert await used == [1]
    await found
    assert len(await shared.read(terms_sql.select_terms("ten_a", [term.value for term in texts]))) == 99


@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
async def test_what_is_undone_for_the_sake_of_another_is_done_again(
    shared: PostgresStore, emptied: str, writes: bool
) -> None:
    await shared.write(use("ten_a", 1))
    # It wants a first table and then a second one; somebody has the second and wants the first.
    steps = (
        [everyone(QUOTA_USE, "UPDATE quota_use SET used = used + 1"), everyone(EVENT, "DELETE FROM event")]
        if writes
        else [everyone(QUOTA_USE.reading(EVENT), "SELECT used FROM quota_use LEFT JOIN event ON used = seq")]
    )
    somebody = await postgres_link.connect(emptied, statement_s_max=10, writes=True, plain=True)
    await somebody.execute("SET deadlock_timeout = '20s'; BEGIN; LOCK TABLE event")
    task = asyncio.create_task(shared.write(*steps) if writes else shared.read(steps[0]))
    waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'event'::regclass AND NOT granted"
    async with asyncio.timeout(10):
        while await somebody.fetchval(waiting) == 0:  # noqa: ASYNC110 - the server does not tell
            await asyncio.sleep(0.01)
        await somebody.execute("LOCK TABLE quota_use; COMMIT")
        assert await task == ([1, 0] if writes else [(1,)])
    await postgres_link.part(somebody)
    assert await shared.read(all_uses()) == [("ten_a", 1, 2 if writes else 1)]


async def test_a_turn_in_which_a_query_failed_is_not_said_to_be_kept(shared: PostgresStore) -> None:
    async def take_one() -> None:
        async with shared.turn() as turn:
            await turn.begin(["ten_a"])
            await turn.write([[use("ten_a", 1)]])
            with pytest.raises(Misuse):
                await turn.read(everyone(QUOTA_USE, "SELECT nothing FROM quota_use"))

    with pytest.raises(StoreDown):
        await take_one()
    async with shared.turn() as turn:
        await turn.begin(["ten_a"])
        await turn.write([[use("ten_a", 2)]])
    assert await shared.read(all_uses()) == [("ten_a", 2, 1)]


async def test_a_line_that_ends_after_a_query_was_refused_hides_nothing_of_the_refusal(emptied: str) -> None:
    async with lines_to(emptied) as lines, await PostgresStore.open(lines.url) as store:
        lines.ending_at = b"ROLLBACK"
        with pytest.raises(Misuse, match='"nothing" does not exist'):
            await store.read(everyone(QUOTA_USE, "SELECT nothing FROM quota_use"))
        assert await store.read(all_uses()) == []


async def test_a_query_that_takes_too_long_is_ended_and_frees_its_connection(emptied: str) -> None:
    async with await PostgresStore.open(emptied, read_s_max=0.2) as store:
        for _ in range(6):
            with pytest.raises(StoreDown, match="longer than"):
                await store.read(Statement("SELECT pg_sleep(60)"))
        assert await store.read(Statement("SELECT 1")) == [(1,)]


@pytest.mark.parametrize(("seconds", "said"), [((0.7,), "took too long"), ((0.3,) * 4, "longer than 0.4 s")])
async def test_a_write_that_takes_too_long_says_so_and_what_to_do(
    emptied: str, monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, ...], said: str
) -> None:
    monkeypatch.setattr(postgres, "BATCH_S_MAX", 0.4)
    monkeypatch.setattr(postgres, "BATCH_OVER_S", 0.2)
    async with await PostgresStore.open(emptied) as store:
        sleep = "UPDATE quota_use SET used = used FROM (SELECT pg_sleep(?)) AS slept"
        with pytest.raises(StoreDown, match=said) as failed:
            await store.write(*(everyone(QUOTA_USE, sleep, (one,)) for one in seconds))
        assert "look, and try again" in failed.value.full
        async with asyncio.timeout(5):
            while not store.healthy():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.02)


async def test_months_have_partitions_ahead_and_lose_them_when_they_are_empty(
    shared: PostgresStore, emptied: str
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    month = postgres_schema.month_of(now, 0)
    old = datetime.datetime(2020, 5, 1, tzinfo=datetime.UTC)
    bounds = [postgres_schema.bound("evt", one) for one in (old, postgres_schema.month_of(old, 1))]
    for table in ("event", "decision"):
        await asyncio.to_thread(
            ask,
            emptied,
            f"CREATE TABLE {table}_2020_05 PARTITION OF {table} "
            f"FOR VALUES FROM ('{bounds[0]}') TO ('{bounds[1]}')",
        )
    ids = [postgres_schema.bound("evt", month) + "7" + "0" * 19, bounds[0] + "7" + "0" * 19, "evt_zzz"]
    for event_id in ids:
        await shared.write(*decided(event_id))
    where = "SELECT tableoid::regclass::text FROM event ORDER BY seq"
    places = [place for (place,) in await asyncio.to_thread(ask, emptied, where)]
    assert places == [f"event_{month:%Y_%m}", "event_2020_05", "event_rest"]
    # Somebody reads for long, for whom no change to a month that holds something has to wait.
    reader = await postgres_link.connect(emptied, statement_s_max=10, writes=True, plain=True)
    await reader.execute("SET idle_in_transaction_session_timeout = 0")
    await reader.execute("BEGIN; LOCK TABLE event, decision IN ACCESS SHARE MODE")
    async with asyncio.timeout(10):
        await postgres_schema.tend(emptied)
    await postgres_link.part(reader)
    assert len(await shared.read(everyone(EVENT, "SELECT id FROM event"))) == 3
    for table in ("event", "decision"):
        await shared.write(everyone(table_of(table), f"DELETE FROM {table} WHERE id = ?", (ids[1],)))
    await postgres_schema.tend(emptied)
    listed = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'event'::regclass ORDER BY 1"
    ahead = [f"event_{postgres_schema.month_of(now, later):%Y_%m}" for later in range(3)]
    assert [name for (name,) in await asyncio.to_thread(ask, emptied, listed)] == [*ahead, "event_rest"]


@pytest.fixture
def empty() -> Iterator[str]:
    with database() as made:
        yield made


async def test_several_processes_may_migrate_at_once(empty: str) -> None:
    newest = len(migrations(postgres_schema.FOLDER))
    assert await postgres_schema.check(empty) != []
    assert await asyncio.gather(*(postgres_schema.migrate(empty) for _ in range(3))) == [newest] * 3
    assert await postgres_schema.check(empty) == []
    await asyncio.to_thread(ask, empty, "UPDATE schema_version SET digest = 'other' WHERE version = 1")
    with pytest.raises(SchemaRefused, match="was changed"):
        await postgres_schema.migrate(empty)
