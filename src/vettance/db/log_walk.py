"""Builds reads that follow a tenant's log, in its order, at a cost that does not grow with the log."""

from collections.abc import Sequence
from typing import Any, Final

from vettance.db.engine import Statement
from vettance.db.tables import Tables

#: Beyond every place in a log.
END: Final = 2**62


def walk_log(
    tables: Tables,
    tenant: str,
    text: str,
    *,
    first: int = 0,
    last: int = END,
    newest_first: bool = False,
    before: Sequence[Any] = (),
    rest: Sequence[Any] = (),
) -> Statement:
    """Read rows of a tenant between two places in its log, both included.

    `text` has `{places}` where their condition belongs and `{order}` where their order does; `before` and
    `rest` are the arguments that come before and after.

    PostgreSQL takes the condition as a pair. Given `tenant = ?`, it may scan the places of all tenants,
    expecting to find enough of this one soon, or sort all of a tenant's. A pair is estimated by its first
    part alone: `> (tenant, …)` looks like no row of a tenant that sorts last, for which sorting all that is
    left of its log seems cheap. So both ends are included.
    """
    descending = " DESC" if newest_first else ""
    by_tenant = text.format(places="tenant = ? AND seq >= ? AND seq <= ?", order=f"ORDER BY seq{descending}")
    by_pair = text.format(
        places="(tenant, seq) >= (?, ?) AND (tenant, seq) <= (?, ?)",
        order=f"ORDER BY tenant{descending}, seq{descending}",
    )
    embedded = Statement(by_tenant, (*before, tenant, first, last, *rest), tenant=tenant, tables=tables)
    shared = embedded._replace(sql=by_pair, args=(*before, tenant, first, tenant, last, *rest))
    return embedded._replace(postgres=shared)


def walk_newest(tables: Tables, tenant: str, text: str, limit: int, *, table: str = "") -> Statement:
    """Read the newest rows of a tenant's log, newest first; `text` as for `walk_log`.

    `table` names whose `tenant` and `seq` are meant where a text reads several tables.

    As long as nobody has counted a table, PostgreSQL takes a pair to any index that begins with the tenant,
    and sorts all of a tenant's rows; a span of tenants it takes to the one that is in this order.
    """
    of = f"{table}." if table else ""
    by_tenant = text.format(places=f"{of}tenant = ?", order=f"ORDER BY {of}seq DESC")
    by_span = text.format(
        places=f"{of}tenant >= ? AND {of}tenant <= ?", order=f"ORDER BY {of}tenant DESC, {of}seq DESC"
    )
    embedded = Statement(by_tenant, (tenant, limit), tenant=tenant, tables=tables)
    return embedded._replace(postgres=embedded._replace(sql=by_span, args=(tenant, tenant, limit)))
