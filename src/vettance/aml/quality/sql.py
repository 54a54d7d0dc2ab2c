"""What the quality of AML rules asks of the log of events, of alerts and of the timelines of cases."""

from collections.abc import Sequence
from typing import Final

from vettance.db.engine import Statement, everyone, in_list, in_pieces, scoped
from vettance.db.log_walk import walk_newest
from vettance.db.tables import (
    AML_ALERT,
    AML_CASE_ENTRY,
    AML_EVENT,
    AML_RULE_COUNT,
    AML_RULE_COUNTED,
    AML_RULE_LAST_HIT,
)
from vettance.quality.sql import RuleCountTables

_ALERTS: Final = 500  # Of one read.
#: The counts of AML rules.
WATCHED_COUNTS: Final = RuleCountTables(AML_RULE_COUNT, AML_RULE_COUNTED, AML_RULE_LAST_HIT)


def select_watched(tenant: str, after: int, limit: int) -> Statement:
    """(place, moment, record, alerts as answered) of the next events of the log."""
    text = (
        "SELECT seq, occurred_at_ms, record, alerts FROM aml_event "
        "WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
    )
    return in_pieces(scoped(AML_EVENT, tenant, text, (after, limit)))


def select_alerts_of_rules(tenant: str, alerts: Sequence[str]) -> Statement:
    """(id, rule_id, resolution, case_id) of those of some alerts that rules raised."""
    places, args = in_list(alerts)
    # Left to themselves, both engines go through all alerts of the tenant. The plus keeps SQLite from its
    # index; PostgreSQL looks up one id after the other.
    return Statement(
        "SELECT id, rule_id, resolution, case_id FROM aml_alert "
        f"WHERE +tenant = ? AND origin = 'rule' AND id IN ({places})",
        (tenant, *args),
        tenant=tenant,
        tables=AML_ALERT,
        postgres=Statement(
            "SELECT alert.id, alert.rule_id, alert.resolution, alert.case_id "
            "FROM unnest(?::TEXT[]) AS wanted (id) "
            "CROSS JOIN LATERAL (SELECT id, rule_id, resolution, case_id, origin FROM aml_alert "
            "WHERE aml_alert.tenant = ? AND aml_alert.id = wanted.id LIMIT 1) AS alert "
            "WHERE alert.origin = 'rule'",
            (list(alerts), tenant),
            tenant=tenant,
            tables=AML_ALERT,
        ),
    )


def select_case_steps(tenant: str, after: int, limit: int) -> Statement:
    """(place, case, moment, kind) of the next lines of timelines that tell of alerts or of an end."""
    return scoped(
        AML_CASE_ENTRY,
        tenant,
        "SELECT seq, case_id, at_ms, kind FROM aml_case_entry "
        "WHERE tenant = ? AND seq > ? AND kind IN ('ALERTED', 'RESOLVED') ORDER BY seq LIMIT ?",
        (after, limit),
    )


def select_raised(tenant: str, cases: Sequence[str], span: tuple[int, int], after: str) -> Statement:
    """(id, case, rule, raised, raised, resolution, figures) of alerts of rules in some cases, by when raised.

    `span` are the first and the last moment (Unix milliseconds); it goes on behind an id.
    """
    return _select_alerts(tenant, cases, "created_at_ms", span, after)


def select_resolved(tenant: str, cases: Sequence[str], span: tuple[int, int], after: str) -> Statement:
    """(id, case, rule, raised, resolved, resolution, figures) of them, by when they were resolved."""
    return _select_alerts(tenant, cases, "resolved_at_ms", span, after)


def _select_alerts(
    tenant: str, cases: Sequence[str], moment: str, span: tuple[int, int], after: str
) -> Statement:
    places, args = in_list(cases)
    return in_pieces(
        scoped(
            AML_ALERT,
            tenant,
            f"SELECT id, case_id, rule_id, created_at_ms, {moment}, resolution, figures FROM aml_alert "
            f"WHERE tenant = ? AND case_id IN ({places}) AND {moment} >= ? AND {moment} <= ? "
            # By their ids SQLite would go through all alerts of the tenant.
            f"AND origin = 'rule' AND id || '' > ? ORDER BY id || '' LIMIT {_ALERTS}",
            (*args, *span, after),
        )
    )


def select_ends() -> Statement:
    """(event, line of a timeline): the places where the logs of all tenants end now."""
    return everyone(
        AML_EVENT.reading(AML_CASE_ENTRY),
        "SELECT (SELECT COALESCE(MAX(seq), 0) FROM aml_event), "
        "(SELECT COALESCE(MAX(seq), 0) FROM aml_case_entry)",
    )


def select_busy(watched: int, told: int) -> Statement:
    """(tenant, event, line) of tenants that have something new behind places in the logs of all."""
    new = "SELECT tenant, seq FROM {} WHERE seq > ? ORDER BY seq LIMIT 10000"
    return everyone(
        AML_EVENT.reading(AML_CASE_ENTRY),
        f"SELECT tenant, MAX(seq), 0 FROM ({new.format(AML_EVENT)}) AS watched GROUP BY tenant "
        f"UNION ALL SELECT tenant, 0, MAX(seq) FROM ({new.format(AML_CASE_ENTRY)}) AS told GROUP BY tenant",
        (watched, told),
    )


def select_newest_event(tenant: str) -> Statement:
    """(place,) of the newest event of a tenant; null where there is none."""
    return scoped(AML_EVENT, tenant, "SELECT MAX(seq) FROM aml_event WHERE tenant = ?")


def select_newest_records(tenant: str, limit: int) -> Statement:
    """(record,) of the newest events of a tenant."""
    text = "SELECT record FROM aml_event WHERE {places} {order} LIMIT ?"
    return in_pieces(walk_newest(AML_EVENT, tenant, text, limit))
