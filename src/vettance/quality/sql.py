"""What the store remembers of the quality of rules: counts by hour and day, and how far logs are counted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from vettance.db.engine import OF_TENANT, Statement, everyone, in_list, in_pieces, insert, scoped
from vettance.db.log_walk import walk_log, walk_newest
from vettance.db.tables import DECISION, EVENT, LABEL, RULE_COUNT, RULE_COUNTED, RULE_LAST_HIT, Insert, Table
from vettance.quality.counted_spans import CountedPart
from vettance.quality.rule_counts import DAY_S, HOUR_S, HOURS_KEPT_S, OVERLAP, Counts

_ROWS: Final = 500  # Of one insert.
#: So many hours or days are named one by one: 22 years of days.
_STARTS_MAX: Final = 8_192
_DECIDED: Final = (
    "seq, id, occurred_at_ms, record, "
    "CASE WHEN decision.decision <> 'ALLOW' THEN (SELECT sent FROM event WHERE event.id = decision.id) END "
    "FROM decision WHERE "
)
#: What the measures of pairs begin with, and the first text behind all that do.
_PAIRS: Final = (OVERLAP, OVERLAP[:-1] + chr(ord(OVERLAP[-1]) + 1))
_PAIR: Final = " AND measure >= ? AND measure < ?"
_NO_PAIR: Final = " AND (measure < ? OR measure >= ?)"


def _either(column: str, values: Sequence[str]) -> tuple[str, list[str]]:
    """Return a condition that a column has one of some values, with its arguments; none of no values."""
    places, wanted = in_list(values)
    return (f" AND {column} IN ({places})" if values else ""), wanted


def _started(width_s: int, first_s: int, end_s: int, rules: Sequence[str]) -> tuple[str, list[str | int]]:
    """Return the condition that counts are of a span, with its arguments; with `rules`, of those only.

    The key has a rule behind its start: with every start named, those of one rule are found without passing
    those of all others.
    """
    if not rules:
        return "AND start_s >= ? AND start_s < ?", [first_s, end_s]
    names, wanted = in_list(rules)
    every = range(first_s + -first_s % width_s, end_s, width_s)
    if len(every) > _STARTS_MAX:
        return f"AND start_s >= ? AND start_s < ? AND rule IN ({names})", [first_s, end_s, *wanted]
    starts, span = in_list(every)
    return f"AND start_s IN ({starts}) AND rule IN ({names})", [*span, *wanted]


class RuleCountTables:
    """The tables that the quality of one kind of rules is counted in; those of every kind look alike."""

    def __init__(self, counts: Table, counted: Table, last_hits: Table) -> None:
        self._counts = counts
        self._counted = counted
        self._last_hits = last_hits
        self._add = Insert(
            counts,
            "tenant, width_s, start_s, rule, measure, amount",
            key="tenant, width_s, start_s, rule, measure",
            adds="amount",
        )
        self._begin = Insert(counted, "tenant, decision_seq, label_seq, swept_s", key="tenant")
        self._last = Insert(
            last_hits,
            "tenant, rule, at_ms",
            key="tenant, rule",
            sets=f"at_ms = CASE WHEN excluded.at_ms > {last_hits}.at_ms THEN excluded.at_ms "
            f"ELSE {last_hits}.at_ms END",
        )

    def begin(self, tenant: str) -> Statement:
        """Begin to count the logs of a tenant, unless that was begun."""
        return insert(self._begin, tenant, (0, 0, 0))

    def select_counted(self, tenant: str) -> Statement:
        """(decision, label, swept): how far the logs are counted, and when hours were removed."""
        text = f"SELECT decision_seq, label_seq, swept_s FROM {self._counted} WHERE tenant = ?"
        return scoped(self._counted, tenant, text)

    def move_decisions(self, tenant: str, before: int, after: int) -> Statement:
        """Have decisions be counted up to a place; `Lost` when another process has counted them."""
        return self._move(tenant, "decision_seq", before, after)

    def move_labels(self, tenant: str, before: int, after: int) -> Statement:
        """The same of labels."""
        return self._move(tenant, "label_seq", before, after)

    def _move(self, tenant: str, column: str, before: int, after: int) -> Statement:
        # What `scoped` builds begins with its tenant; an update that sets it to itself keeps that order.
        return scoped(
            self._counted,
            tenant,
            f"UPDATE {self._counted} SET tenant = ?, {column} = ? WHERE tenant = ? AND {column} = ?",
            (after, tenant, before),
            rows=1,
        )

    def add(self, tenant: str, counts: Counts) -> Iterator[Statement]:
        """Add numbers to those that are there."""
        rows = sorted(counts.items())
        for start in range(0, len(rows), _ROWS):
            args: list[str | int | float] = []
            for key, amount in rows[start : start + _ROWS]:
                args += (tenant, *key, amount)
            yield insert(self._add, tenant, args[1:])

    def note_last_hits(self, tenant: str, last: Mapping[str, int]) -> Iterator[Statement]:
        """Remember when rules fired last."""
        for rule, at_ms in sorted(last.items()):
            yield insert(self._last, tenant, (rule, at_ms))

    def sweep(self, tenant: str, now_s: int) -> tuple[Statement, Statement]:
        """Remove hours that are older than they are kept."""
        return (
            scoped(
                self._counts,
                tenant,
                f"DELETE FROM {self._counts} WHERE tenant = ? AND width_s = ? AND start_s < ?",
                (HOUR_S, now_s - HOURS_KEPT_S),
            ),
            scoped(
                self._counted,
                tenant,
                f"UPDATE {self._counted} SET tenant = ?, swept_s = ? WHERE tenant = ?",
                (now_s, tenant),
            ),
        )

    def select_counts(
        self,
        tenant: str,
        parts: Sequence[CountedPart],
        measures: Sequence[str] = (),
        rules: Sequence[str] = (),
    ) -> Statement:
        """(rule, measure, amount) added up over parts of time, but not how often rules met.

        With `measures` or `rules` of those only.
        """
        where, wanted = _either("measure", measures) if measures else (_NO_PAIR, list(_PAIRS))
        return self._added_up(tenant, parts, rules, where, wanted)

    def select_overlaps(
        self, tenant: str, parts: Sequence[CountedPart], rules: Sequence[str], *, limit: int
    ) -> Statement:
        """(rule, measure, amount) of the rules that each of some met most often, so many for each.

        Most counts are of pairs of rules; those that nobody is shown stay in the
        store.
        """
        ranked = "ROW_NUMBER() OVER (PARTITION BY rule ORDER BY SUM(amount) DESC, measure)"
        found = self._added_up(tenant, parts, rules, _PAIR, _PAIRS, f", {ranked} AS place")
        text = f"SELECT rule, measure, amount FROM ({found.sql}) AS ranked WHERE place <= ?"
        return found._replace(sql=text, args=(*found.args, limit))

    def _added_up(
        self,
        tenant: str,
        parts: Sequence[CountedPart],
        rules: Sequence[str],
        where: str,
        wanted: Sequence[str],
        column: str = "",
    ) -> Statement:
        each: list[str] = []
        args: list[str | int] = []
        for width_s, first_s, end_s, is_added in parts:
            when, span = _started(width_s, first_s, end_s, rules)
            amount = "amount" if is_added else "-amount AS amount"
            counted = f"SELECT rule, measure, {amount} FROM {self._counts} WHERE tenant = ? AND width_s = ? "
            each.append(counted + when + where)
            args += (tenant, width_s, *span, *wanted)
        return Statement(
            f"SELECT rule, measure, SUM(amount) AS amount{column} FROM ("
            + " UNION ALL ".join(each)
            + ") AS part GROUP BY rule, measure HAVING SUM(part.amount) <> 0",
            args,
            tenant=tenant,
            tables=self._counts,
        )

    def select_days(
        self, tenant: str, measures: Sequence[str], from_s: int, to_s: int, rules: Sequence[str] = ()
    ) -> Statement:
        """(rule, day, amount) of some measures; with `rules` of those only."""
        when, span = _started(DAY_S, from_s, to_s, rules)
        where, wanted = _either("measure", measures)
        return scoped(
            self._counts,
            tenant,
            f"SELECT rule, start_s, amount FROM {self._counts} "
            f"WHERE tenant = ? AND width_s = {DAY_S} {when}{where}",
            (*span, *wanted),
        )

    def select_last_hits(self, tenant: str) -> Statement:
        """(rule, moment) of when rules fired last."""
        text = f"SELECT rule, at_ms FROM {self._last_hits} WHERE tenant = ?"
        return scoped(self._last_hits, tenant, text)


#: The counts of fraud rules.
DECIDED_COUNTS: Final = RuleCountTables(RULE_COUNT, RULE_COUNTED, RULE_LAST_HIT)


def select_decided(tenant: str, after: int, limit: int) -> Statement:
    """(place, id, moment, record, body if it was held) of the next decisions of the log."""
    text = f"SELECT {_DECIDED}{{places}} {{order}} LIMIT ?"
    tables = DECISION.reading(EVENT)
    return in_pieces(walk_log(tables, tenant, text, first=after + 1, rest=(limit,)))


def select_labels(tenant: str, after: int, limit: int) -> Statement:
    """(place, event, fraud, weight) of the next changes that labels have made."""
    return scoped(
        LABEL,
        tenant,
        "SELECT seq, event, fraud, weight FROM label WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?",
        (after, limit),
    )


def select_labelled(tenant: str, events: Sequence[str]) -> Statement:
    """The same of some decisions, as `select_decided` has them."""
    places, args = in_list(events)
    text = f"SELECT {_DECIDED}{OF_TENANT} AND id IN ({places})"
    return in_pieces(scoped(DECISION.reading(EVENT), tenant, text, args))


def select_ends() -> Statement:
    """(decision, label) places in the logs of all tenants where these end now."""
    return everyone(
        DECISION.reading(LABEL),
        "SELECT (SELECT COALESCE(MAX(seq), 0) FROM decision), (SELECT COALESCE(MAX(seq), 0) FROM label)",
    )


def select_busy(decided: int, labelled: int) -> Statement:
    """(tenant, decision, label) of tenants that have something new behind places in the logs of all."""
    new = "SELECT tenant, seq FROM {} WHERE seq > ? ORDER BY seq LIMIT 10000"
    return everyone(
        DECISION.reading(LABEL),
        f"SELECT tenant, MAX(seq), 0 FROM ({new.format(DECISION)}) AS decided GROUP BY tenant "
        f"UNION ALL SELECT tenant, 0, MAX(seq) FROM ({new.format(LABEL)}) AS given GROUP BY tenant",
        (decided, labelled),
    )


def select_newest_decision(tenant: str) -> Statement:
    """(place,) of the newest decision of a tenant; null where there is none."""
    return scoped(DECISION, tenant, "SELECT MAX(seq) FROM decision WHERE tenant = ?")


def select_newest_records(tenant: str, limit: int) -> Statement:
    """(id, record) of the newest decisions of a tenant, newest first."""
    text = "SELECT id, record FROM decision WHERE {places} {order} LIMIT ?"
    return in_pieces(walk_newest(DECISION, tenant, text, limit))
