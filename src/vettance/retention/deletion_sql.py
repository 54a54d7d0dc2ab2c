"""What is removed from the store with a tenant."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vettance.db.engine import EVERYBODY, OF_TENANT, Row, Statement, everyone, in_list, scoped
from vettance.db.tables import (
    ATTEMPT,
    CATALOG,
    DECISION,
    DELIVERY,
    EVENT,
    FAILING_WORK,
    INTEREST,
    SUBSCRIPTION,
    TENANT,
    TERM,
    table_of,
)
from vettance.retention.sql import LOOKED_AT, STEP


class TenantTable(NamedTuple):
    """A table with rows of tenants, its primary key, and whether an index leads to those of one."""

    name: str
    keys: tuple[str, ...]
    is_led: bool


def select_tables_of_tenants() -> Statement:
    """(table, column of its primary key, whether an index leads to the rows of a tenant) of every such table.

    As the schema has it: each table with a column `tenant`.
    """
    return everyone(
        CATALOG,
        "SELECT tables.name, columns.name, EXISTS (SELECT 1 FROM pragma_index_list(tables.name) AS led "
        "JOIN pragma_index_info(led.name) AS part ON part.seqno = 0 AND part.name = 'tenant' "
        "WHERE led.partial = 0) FROM sqlite_master AS tables "
        "JOIN pragma_table_info(tables.name) AS columns ON columns.pk > 0 WHERE tables.type = 'table' "
        "AND EXISTS (SELECT 1 FROM pragma_table_info(tables.name) AS one WHERE one.name = 'tenant') "
        "ORDER BY tables.name, columns.pk",
    )._replace(
        postgres=everyone(
            CATALOG,
            "SELECT pg_class.relname::text, pg_attribute.attname::text, "
            "EXISTS (SELECT 1 FROM pg_index AS led JOIN pg_attribute AS first "
            "ON first.attrelid = led.indrelid AND first.attnum = led.indkey[0] "
            "WHERE led.indrelid = pg_class.oid AND led.indpred IS NULL AND first.attname = 'tenant') "
            "FROM pg_class "
            "JOIN pg_index ON pg_index.indrelid = pg_class.oid AND pg_index.indisprimary "
            "CROSS JOIN LATERAL unnest(pg_index.indkey::int2[]) WITH ORDINALITY AS part (number, place) "
            "JOIN pg_attribute ON pg_attribute.attrelid = pg_class.oid AND pg_attribute.attnum = part.number "
            "WHERE pg_class.relkind IN ('r', 'p') AND NOT pg_class.relispartition "
            "AND pg_class.relnamespace = 'public'::regnamespace AND EXISTS ("
            "SELECT 1 FROM pg_attribute AS one WHERE one.attrelid = pg_class.oid AND one.attname = 'tenant' "
            "AND NOT one.attisdropped) ORDER BY 1, part.place",
        )
    )


def count_of_tenant(tenant: str, table: str) -> Statement:
    """How many rows of a table are a tenant's."""
    return scoped(table_of(table), tenant, f"SELECT COUNT(*) FROM {table} WHERE tenant = ?")


def select_next_rows(table: TenantTable, after: Sequence[Any]) -> Statement:
    """(whose, keys) of the next rows of a table behind the keys `after`, whosesoever they are."""
    keys = ", ".join(table.keys)
    behind = f"WHERE ({keys}) > ({', '.join('?' * len(after))}) " if after else ""
    return everyone(
        table_of(table.name),
        f"SELECT tenant, {keys} FROM {table.name} {behind}ORDER BY {keys} LIMIT {LOOKED_AT}",
        after,
    )


def remove_keys(tenant: str, table: TenantTable, keys: Sequence[Any]) -> Statement:
    """Remove a row of a tenant by its keys."""
    is_it = " AND ".join(f"{key} = ?" for key in table.keys)
    return scoped(
        table_of(table.name), tenant, f"DELETE FROM {table.name} WHERE tenant = ? AND {is_it}", keys
    )


def remove_of_tenant(tenant: str, table: TenantTable, limit: int) -> Statement:
    """Remove some rows of a tenant from a table."""
    place, keys = table_of(table.name), ", ".join(table.keys)
    some = f"FROM {table.name} WHERE tenant = ? LIMIT {limit}"
    removal = f"DELETE FROM {table.name} WHERE {OF_TENANT} AND"
    # By where they are: where PostgreSQL has not counted the rows of a tenant, it may compare each with each.
    # A place in one partition may be taken in another, by a row of the tenant at most, which goes as well.
    by_place = scoped(place, tenant, f"{removal} ctid = ANY(ARRAY(SELECT ctid {some}))", (tenant,))
    by_keys = scoped(place, tenant, f"{removal} ({keys}) IN (SELECT {keys} {some})", (tenant,))
    return by_keys._replace(postgres=by_place)


def select_log_of(tenant: str, limit: int) -> Statement:
    """(seq, id) of the oldest events in the log of a tenant."""
    return scoped(
        DECISION, tenant, "SELECT seq, id FROM decision WHERE tenant = ? ORDER BY seq LIMIT ?", (limit,)
    )


def remove_deliveries_of(tenant: str) -> list[Statement]:
    """Remove some deliveries of a tenant with their attempts; the last statement tells how many."""
    # In the order of an index that begins with the tenant.
    some = f"SELECT seq FROM delivery WHERE tenant = ? ORDER BY subscription, seq LIMIT {STEP}"
    return [
        scoped(ATTEMPT.reading(DELIVERY), tenant, f"DELETE FROM attempt WHERE delivery IN ({some})"),
        scoped(DELIVERY, tenant, f"DELETE FROM delivery WHERE {OF_TENANT} AND seq IN ({some})", (tenant,)),
    ]


def remove_terms_of(tenant: str, ids: Sequence[int]) -> Statement:
    """Remove some terms of a tenant."""
    places, args = in_list(ids)
    return scoped(TERM, tenant, f"DELETE FROM term WHERE {OF_TENANT} AND id IN ({places})", args)


#: Tables that processes read on from the newest place they know, and whose newest row names a snapshot.
PLACED: Final = ("event", "decision", "aml_event", "delivery")


def select_columns(table: str) -> Statement:
    """(column, whether it must have a value) of the texts of a table, where its places could be given again.

    PostgreSQL gives each number once, so there are none.
    """
    return Statement(
        "SELECT name, \"notnull\" FROM pragma_table_info(?) WHERE type IN ('TEXT', 'BLOB') "
        "AND name NOT IN ('id', 'tenant')",
        (table,),
        postgres=Statement("SELECT '', 0 WHERE ?::text IS NULL", (table,), tables=CATALOG),
        tables=CATALOG,
    )


def empty_newest(tenant: str, table: str, columns: Sequence[Row]) -> list[Statement]:
    """Have the newest row of a table hold nothing but its place and id, if it is the tenant's.

    The embedded store would give the place again, which others have read past.
    """
    texts = "".join(f", {name} = {chr(39) * 2 if needed else 'NULL'}" for name, needed in columns)
    newest = f"(SELECT MAX(seq) FROM {table})"
    # Without the sign before it, the place would lead through every row before the newest.
    earlier = f"tenant = '' AND +seq < {newest}"
    if table == "event":
        # No index leads to the rows of a tenant; the decision is left behind under the same id.
        left = "SELECT id FROM decision WHERE tenant = '' AND +seq < (SELECT MAX(seq) FROM decision)"
        removal = everyone(EVENT.reading(DECISION), f"DELETE FROM event WHERE {earlier} AND id IN ({left})")
    else:
        removal = everyone(table_of(table), f"DELETE FROM {table} WHERE {earlier}")
    statements = [removal]
    if table == "delivery":
        mine = f"SELECT seq FROM delivery WHERE tenant = ? AND seq = {newest}"
        statements.append(
            scoped(ATTEMPT.reading(DELIVERY), tenant, f"DELETE FROM attempt WHERE delivery IN ({mine})")
        )
    changed = f"UPDATE {table} SET tenant = ''{texts} WHERE tenant = ? AND seq = {newest}"
    return [*statements, scoped(table_of(table), tenant, changed)._replace(tenant=EVERYBODY)]


def end_subscriptions(tenant: str) -> list[Statement]:
    """Remove the subscriptions of a tenant; nothing is delivered for it any more."""
    return [
        scoped(table, tenant, f"DELETE FROM {table} WHERE tenant = ?") for table in (INTEREST, SUBSCRIPTION)
    ]


def remove_failing_of(tenant: str) -> Statement:
    """Forget what has failed for a tenant."""
    return everyone(FAILING_WORK, "DELETE FROM failing_work WHERE subject LIKE ?", (f"%{tenant}%",))


def remove_tenant(tenant: str) -> Statement:
    """Remove the tenant itself."""
    return Statement("DELETE FROM tenant WHERE id = ?", (tenant,), tenant=tenant, tables=TENANT)
