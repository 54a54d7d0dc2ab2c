"""What the store remembers of the drift of models, measured once a week, and what it is measured by."""

from typing import Final

import msgspec

from vettance.clock import DAY_MS
from vettance.db.engine import Statement, everyone, in_pieces, insert, scoped
from vettance.db.log_walk import walk_log
from vettance.db.tables import DECISION, MODEL, MODEL_DRIFT, MODEL_SETTING, Insert
from vettance.learning.drift import WARNED_MIN, MeasuredDrift

#: How long a measurement is kept: half a year of weeks.
_KEPT_MS: Final = 182 * DAY_MS
_INSERT: Final = Insert(MODEL_DRIFT, "tenant, measured_at_ms, version, rows_measured, largest, drift")


def select_records(tenant: str, before: int, limit: int) -> Statement:
    """(place, id, record) of the newest decisions before a place, newest first."""
    text = "SELECT seq, id, record FROM decision WHERE {places} {order} LIMIT ?"
    return in_pieces(walk_log(DECISION, tenant, text, last=before - 1, newest_first=True, rest=(limit,)))


def insert_drift(tenant: str, found: MeasuredDrift) -> Statement:
    """Keep a measurement."""
    values = msgspec.json.encode([[one.name, one.psi] for one in found.values]).decode()
    return insert(_INSERT, tenant, (found.measured_at_ms, found.version, found.rows, found.largest, values))


def forget_older_drifts(tenant: str, now_ms: int) -> Statement:
    """Remove measurements that are older than half a year."""
    return scoped(
        MODEL_DRIFT,
        tenant,
        "DELETE FROM model_drift WHERE tenant = ? AND measured_at_ms < ?",
        (now_ms - _KEPT_MS,),
    )


def select_drifts(tenant: str, limit: int) -> Statement:
    """(measured_at_ms, version, rows, largest, drift) of the newest measurements."""
    return scoped(
        MODEL_DRIFT,
        tenant,
        "SELECT measured_at_ms, version, rows_measured, largest, drift FROM model_drift WHERE tenant = ? "
        "ORDER BY measured_at_ms DESC LIMIT ?",
        (limit,),
    )


def count_models() -> Statement:
    """(how many, when the oldest was made, the lowest average precision) of the models in service."""
    return everyone(
        MODEL.reading(MODEL_SETTING),
        "SELECT COUNT(*), MIN(model.created_at_ms), MIN(model.average_precision) FROM model_setting "
        "JOIN model ON model.tenant = model_setting.tenant AND model.version = model_setting.champion "
        "WHERE model_setting.mode <> 'off'",
    )


_LATEST: Final = (
    "FROM model_drift AS one JOIN model_setting ON model_setting.tenant = one.tenant AND "
    "model_setting.champion = one.version WHERE model_setting.mode <> 'off' AND one.measured_at_ms = "
    "(SELECT MAX(measured_at_ms) FROM model_drift WHERE tenant = one.tenant)"
)


def count_drifts() -> Statement:
    """(the largest index, how many tenants' models drift) by the newest measurement of each."""
    return everyone(
        MODEL_DRIFT.reading(MODEL_SETTING),
        f"SELECT MAX(one.largest), SUM(CASE WHEN one.largest >= ? THEN 1 ELSE 0 END) {_LATEST}",
        (WARNED_MIN,),
    )


def select_drifting(limit: int) -> Statement:
    """(tenant, largest index) of those whose model drifts, the most first."""
    return everyone(
        MODEL_DRIFT.reading(MODEL_SETTING),
        f"SELECT one.tenant, one.largest {_LATEST} AND one.largest >= ? "
        "ORDER BY one.largest DESC, one.tenant LIMIT ?",
        (WARNED_MIN, limit),
    )


def select_untrained(limit: int, last: str) -> Statement:
    """(tenant, why) of those whose last training gave no model; reasons that end so come last."""
    return everyone(
        MODEL_SETTING,
        "SELECT tenant, failure FROM model_setting WHERE failure IS NOT NULL "
        "ORDER BY CASE WHEN failure LIKE ? THEN 1 ELSE 0 END, tenant LIMIT ?",
        (f"%{last}", limit),
    )
