"""What the store is asked for lists of alerts and cases."""

from collections.abc import Sequence, Set
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.case import NO_PRIORITY, Alert, Case
from vettance.db.engine import Statement, in_list, scoped
from vettance.db.tables import (
    AML_ALERT,
    AML_CASE,
    TABLES,
    Table,
)
from vettance.ids import first_id

#: By what the store keeps count of them.
_ALERTS_COUNTED_BY: Final = frozenset({"state", "severity", "typology", "rule_id"})


_CASES_COUNTED_BY: Final = frozenset({"state", "severity", "assignee"})


class RowFilter(NamedTuple):
    """Which alerts or cases are wanted: column and value pairs, all of which must hold, and a span of time.

    The span is `[since_ms, until_ms)` of when they were made. A page begins after the id `after`.
    """

    columns: tuple[tuple[str, Any], ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None
    after: str | None = None

    def count_alerts(self, tenant: str) -> Statement:
        """How many alerts."""
        return self._count(AML_ALERT, "alerts", _ALERTS_COUNTED_BY, "created_at_ms", tenant)

    def alerts(self, tenant: str, limit: int, offset: int, *, descending: bool) -> Statement:
        """A page of alerts, by when they were made."""
        return self._page(AML_ALERT, Alert, "alr", "created_at_ms", tenant, limit, offset, descending)

    def alerts_by_priority(
        self, tenant: str, limit: int, offset: int, beyond: tuple[int, str] | None, *, descending: bool
    ) -> Statement:
        """A page of alerts by their priority, beyond one (priority, id); the unknown count as the highest."""
        where, args = self._where("created_at_ms")
        order, sign = ("DESC", "<") if descending else ("ASC", ">")
        if beyond is not None:
            where, args, offset = f"{where} AND (priority, id) {sign} (?, ?)", [*args, *beyond], 0
        columns = ", ".join(Alert.__struct_fields__)
        text = (
            f"SELECT {columns} FROM aml_alert WHERE {where} "
            f"ORDER BY priority {order}, id {order} LIMIT ? OFFSET ?"
        )
        return scoped(AML_ALERT, tenant, text, (*args, limit, offset))

    def count_cases(self, tenant: str) -> Statement:
        """How many cases."""
        return self._count(AML_CASE, "cases", _CASES_COUNTED_BY, "opened_at_ms", tenant)

    def cases(self, tenant: str, limit: int, offset: int, *, descending: bool) -> Statement:
        """A page of cases, by when they were opened."""
        return self._page(AML_CASE, Case, "cas", "opened_at_ms", tenant, limit, offset, descending)

    def _count(self, table: Table, number: str, kept_by: Set[str], moment: str, tenant: str) -> Statement:
        """Add up what the store keeps count of; where it does not, count the rows."""
        where, args = self._where(moment)
        # An empty text means NULL.
        chosen = {column if value != "" else "" for column, value in self.columns if value is not None}
        total = "COUNT(*)"
        if (self.since_ms, self.until_ms) == (None, None) and chosen <= kept_by:
            table, total = TABLES[f"{table}_count"], f"CAST(COALESCE(SUM({number}), 0) AS BIGINT)"
        return scoped(table, tenant, f"SELECT {total} FROM {table} WHERE {where}", args)

    def _page(
        self,
        table: Table,
        kind: type[msgspec.Struct],
        prefix: str,
        moment: str,
        tenant: str,
        limit: int,
        offset: int,
        descending: bool,
    ) -> Statement:
        where, args = self._where(moment)
        order, beyond = ("DESC", "<") if descending else ("ASC", ">")
        if self.since_ms is not None:
            # No id is older than its row.
            where, args = f"{where} AND id >= ?", [*args, first_id(prefix, self.since_ms)]
        if self.after is not None:
            where, args, offset = f"{where} AND id {beyond} ?", [*args, self.after], 0
        columns = ", ".join(kind.__struct_fields__)
        text = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY id {order} LIMIT ? OFFSET ?"
        return scoped(table, tenant, text, (*args, limit, offset))

    def _where(self, moment: str) -> tuple[str, list[Any]]:
        parts, args = ["tenant = ?"], []
        for column, value in self.columns:
            if value is not None:
                parts.append(f"{column} = ?")
                args.append(value)
        for sign, bound in ((">=", self.since_ms), ("<", self.until_ms)):
            if bound is not None:
                parts.append(f"{moment} {sign} ?")
                args.append(bound)
        return " AND ".join(parts), args


def select_case_priorities(tenant: str, cases: Sequence[str]) -> Statement:
    """(case_id, highest priority of its open alerts) of some cases, where one is known."""
    places, args = in_list(cases)
    # Found by the case: of all alerts of a tenant many are open.
    return scoped(
        AML_ALERT,
        tenant,
        f"SELECT case_id, MAX(priority) FROM aml_alert WHERE tenant = ? AND case_id IN ({places}) "
        "AND state || '' = 'OPEN' AND priority < ? GROUP BY case_id",
        (*args, NO_PRIORITY),
    )
