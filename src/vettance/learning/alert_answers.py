"""What commands and pages show of the models that order AML alerts."""

from typing import Any

import msgspec

from vettance.learning.alert_sql import AlertModelSetting
from vettance.wire.payload import timestamp


def alert_setting_out(setting: AlertModelSetting) -> dict[str, Any]:
    """Write how alerts are ordered, for scripts."""
    return {
        "tenantId": setting.tenant,
        "on": setting.is_on,
        "champion": setting.champion,
        "previous": setting.previous,
        "trainedAt": timestamp(setting.trained_at_ms) if setting.trained_at_ms else None,
        "failure": setting.failure,
    }


def alert_model_out(
    setting: AlertModelSetting, version: int, card: str, created_at_ms: int
) -> dict[str, Any]:
    """Write a model that orders alerts, with the figures of its card that lists show."""
    members = msgspec.json.decode(card)
    return {
        "version": version,
        "state": "champion" if version == setting.champion else "challenger",
        "createdAt": timestamp(created_at_ms),
        "alerts": members.get("rows"),
        "confirmed": members.get("frauds"),
        "averagePrecision": members.get("averagePrecision"),
        "before": members.get("averagePrecisionBefore"),
    }
