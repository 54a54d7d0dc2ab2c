"""What the store remembers of the models that order alerts, and what they are made of and applied to."""

from typing import Final

import msgspec

from vettance.aml.case import NO_PRIORITY
from vettance.db.engine import Row, Statement, everyone, in_pieces, insert, scoped
from vettance.db.tables import (
    ALERT_MODEL,
    ALERT_MODEL_SETTING,
    AML_ALERT,
    AML_ALERT_COUNT,
    AML_ALERT_EVENT,
    AML_EVENT,
    Insert,
)
from vettance.learning.alert_values import OrderedAlert

#: Models of a tenant that are kept.
KEPT: Final = 5
_SETTING: Final = (
    "tenant, is_on, champion, previous, trained_matches, trained_at_ms, wanted, failure, ordered_by"
)
_INSERT: Final = Insert(ALERT_MODEL, "tenant, version, digest, body, card, created_at_ms")
_SAVE: Final = Insert(
    ALERT_MODEL_SETTING,
    _SETTING,
    key="tenant",
    sets=", ".join(f"{name.strip()} = excluded.{name.strip()}" for name in _SETTING.split(",")[1:]),
)
_SEEN: Final = ", ".join(f"alert.{name}" for name in OrderedAlert._fields[:-1])
#: The record of the first event of an alert; ids grow with time.
_SELECT_SEEN: Final = (
    f"SELECT {_SEEN}, (SELECT event.record FROM aml_event AS event WHERE event.id = "
    "(SELECT MIN(behind.event) FROM aml_alert_event AS behind "
    "WHERE behind.tenant = alert.tenant AND behind.alert = alert.id)) FROM aml_alert AS alert "
    "WHERE alert.tenant = ? AND "
)
_SEEN_TABLES: Final = AML_ALERT.reading(AML_ALERT_EVENT, AML_EVENT)


class AlertModelSetting(msgspec.Struct, frozen=True):
    """How a tenant's alerts are ordered.

    `champion` is the version that orders them and `previous` the one before it; None stands for no order.
    `trained_matches` is how many alerts had been confirmed when a model was last trained; `wanted` asks for
    another one, `failure` says why the last training gave none. `ordered_by` is the version by which all open
    alerts were ordered last.
    """

    tenant: str
    is_on: bool = True
    champion: int | None = None
    previous: int | None = None
    trained_matches: int = 0
    trained_at_ms: int = 0
    wanted: bool = False
    failure: str | None = None
    ordered_by: int = 0

    @property
    def serving(self) -> int:
        """The version by which alerts are to be ordered; 0 is none."""
        return (self.champion or 0) if self.is_on else 0


def save_alert_setting(one: AlertModelSetting) -> Statement:
    """Store how a tenant's alerts are ordered."""
    values = msgspec.structs.astuple(one)[1:]
    return insert(_SAVE, one.tenant, [int(each) if isinstance(each, bool) else each for each in values])


def demand_alert_setting(one: AlertModelSetting) -> list[Statement]:
    """Demand that nobody has changed how a tenant's alerts are ordered; `Lost` when somebody has.

    Nothing is demanded where nothing was set yet.
    """
    if one == AlertModelSetting(one.tenant):
        return []
    champion, previous = (-1 if value is None else value for value in (one.champion, one.previous))
    known = int(one.is_on), int(one.wanted), one.trained_at_ms, one.ordered_by, champion, previous
    return [
        scoped(
            ALERT_MODEL_SETTING,
            one.tenant,
            "UPDATE alert_model_setting SET tenant = ? WHERE tenant = ? AND is_on = ? AND wanted = ? "
            "AND trained_at_ms = ? AND ordered_by = ? AND COALESCE(champion, -1) = ? "
            "AND COALESCE(previous, -1) = ?",
            (one.tenant, *known),
            rows=1,
        )
    ]


def alert_setting_of(row: Row) -> AlertModelSetting:
    """Make a setting of a row."""
    tenant, is_on, champion, previous, matches, at_ms, wanted, failure, ordered_by = row
    return AlertModelSetting(
        tenant, bool(is_on), champion, previous, matches, at_ms, bool(wanted), failure, ordered_by
    )


def select_alert_setting(tenant: str) -> Statement:
    """How a tenant's alerts are ordered; no row where no model was trained or asked for."""
    return scoped(ALERT_MODEL_SETTING, tenant, f"SELECT {_SETTING} FROM alert_model_setting WHERE tenant = ?")


def select_alert_settings() -> Statement:
    """The same of all tenants."""
    return everyone(ALERT_MODEL_SETTING, f"SELECT {_SETTING} FROM alert_model_setting ORDER BY tenant")


def insert_alert_model(
    tenant: str, version: int, digest: str, body: str, card: str, now_ms: int
) -> Statement:
    """Store a model; `Clash` when another process stored that version first."""
    return insert(_INSERT, tenant, (version, digest, body, card, now_ms))


def select_alert_models(tenant: str) -> Statement:
    """(version, card, created_at_ms) of the models that order a tenant's alerts, newest first."""
    return scoped(
        ALERT_MODEL,
        tenant,
        "SELECT version, card, created_at_ms FROM alert_model WHERE tenant = ? ORDER BY version DESC",
    )


def select_alert_model(tenant: str, version: int) -> Statement:
    """(digest, body) of one model."""
    return scoped(
        ALERT_MODEL,
        tenant,
        "SELECT digest, body FROM alert_model WHERE tenant = ? AND version = ?",
        (version,),
    )


def forget_older_alert_models(
    tenant: str, oldest: int, champion: int | None, previous: int | None
) -> Statement:
    """Remove the models before a version, but those that serve or served last."""
    return scoped(
        ALERT_MODEL,
        tenant,
        "DELETE FROM alert_model WHERE tenant = ? AND version < ? AND version NOT IN (?, ?)",
        (oldest, -1 if champion is None else champion, -1 if previous is None else previous),
    )


# --- what officers said ---


def select_matches() -> Statement:
    """(tenant, how many alerts were confirmed) of all tenants that have some."""
    return everyone(
        AML_ALERT_COUNT,
        "SELECT tenant, CAST(SUM(alerts) AS BIGINT) FROM aml_alert_count "
        "WHERE state = 'CLOSED' AND resolution = 'TRUE_MATCH' GROUP BY tenant ORDER BY tenant",
    )


def select_ends(tenant: str) -> Statement:
    """(rule_id, typology, resolution, how many) of a tenant's closed alerts."""
    return scoped(
        AML_ALERT_COUNT,
        tenant,
        "SELECT rule_id, typology, resolution, CAST(SUM(alerts) AS BIGINT) FROM aml_alert_count "
        "WHERE tenant = ? AND state = 'CLOSED' GROUP BY rule_id, typology, resolution",
    )


def select_customer_past(tenant: str, customer: str, before: str, limit: int) -> Statement:
    """(typology, created_at_ms, resolution, resolved_at_ms) of a customer's alerts before one."""
    return scoped(
        AML_ALERT,
        tenant,
        "SELECT typology, created_at_ms, resolution, resolved_at_ms FROM aml_alert "
        "WHERE tenant = ? AND customer = ? AND id < ? ORDER BY id DESC LIMIT ?",
        (customer, before, limit),
    )


# --- alerts ---


def select_nth_newest(tenant: str, number: int) -> Statement:
    """(id,) of the alert that so many are newer than; no row where there are not so many."""
    return scoped(
        AML_ALERT,
        tenant,
        "SELECT id FROM aml_alert WHERE tenant = ? ORDER BY id DESC LIMIT 1 OFFSET ?",
        (number,),
    )


def select_seen(tenant: str, after: str, limit: int) -> Statement:
    """A `OrderedAlert` of each alert after an id, in the order in which they were raised."""
    text = _SELECT_SEEN + "alert.id > ? ORDER BY alert.id LIMIT ?"
    return in_pieces(scoped(_SEEN_TABLES, tenant, text, (after, limit)))


def select_open_seen(tenant: str, after: str, limit: int) -> Statement:
    """The same of the open ones."""
    text = _SELECT_SEEN + "alert.state = 'OPEN' AND alert.id > ? ORDER BY alert.id LIMIT ?"
    return in_pieces(scoped(_SEEN_TABLES, tenant, text, (after, limit)))


def select_unordered(tenant: str, limit: int) -> Statement:
    """The same of open ones whose priority is unknown."""
    text = _SELECT_SEEN + "alert.state = 'OPEN' AND alert.priority = ? ORDER BY alert.id LIMIT ?"
    return in_pieces(scoped(_SEEN_TABLES, tenant, text, (NO_PRIORITY, limit)))


def set_priority(tenant: str, alert_id: str, priority: int) -> Statement:
    """Give an open alert its priority; nothing happens where it was closed meanwhile."""
    found = scoped(
        AML_ALERT,
        tenant,
        "UPDATE aml_alert SET priority = ? WHERE tenant = ? AND id = ? AND state = 'OPEN'",
        (priority, alert_id),
    )
    return found._replace(args=(priority, tenant, alert_id))
