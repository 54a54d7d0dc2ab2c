"""The moments of a session's page are those by which its events count."""

from typing import Any

import pytest

from vettance.console.session_page import own_moment

RECEIVED = {"receivedAt": "2026-11-20T10:00:00.000Z"}
RECEIVED_MS = 1_795_168_800_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("event", "at_ms"),
    [
        ({}, RECEIVED_MS),
        ({"occurredAt": "2026-11-20T09:00:00"}, RECEIVED_MS - HOUR_MS),
        ({"occurredAt": "2026-11-20T09:00:00+01:00"}, RECEIVED_MS - 2 * HOUR_MS),
        ({"occurredAt": RECEIVED_MS // 1000 - 3600}, RECEIVED_MS - HOUR_MS),
        ({"metadata": {"occurredAt": "2026-11-20T09:00:00Z"}}, RECEIVED_MS - HOUR_MS),
        ({"metadata": {"occurred_at": "2026-11-20T09:00:00Z"}}, RECEIVED_MS - HOUR_MS),
        ({"occurredAt": "then", "metadata": {"occurredAt": [1]}}, RECEIVED_MS),
        ({"occurredAt": 1e300, "metadata": "none"}, RECEIVED_MS),
    ],
)
def test_the_moment_of_an_event_is_the_one_it_names(
    event: dict[str, Any], at_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert own_moment({**event, **RECEIVED}) == at_ms
