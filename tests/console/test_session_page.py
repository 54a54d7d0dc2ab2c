"""The moments of a session's page are those by which its events count."""

from typing import Any

import pytest

from tests.console.conftest import SignIn
from tests.live import Caller
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


def test_times_say_their_zone_and_their_day_where_there_are_several(tenant: Caller, people: SignIn) -> None:
    analyst = people("analyst")
    profile = {"name": "Ann", "theme": "dark", "timeZone": "Asia/Tokyo"}
    assert analyst.submit("/console/profile", "/console/profile", **profile).status == 303
    for session, second in (("one-day", "2026-11-20T10:30:00Z"), ("two-days", "2026-11-21T10:30:00Z")):
        for at in ("2026-11-20T10:00:00Z", second):
            event = {"eventName": "page.viewed", "sessionId": session, "occurredAt": at}
            assert tenant.post("/api/v1/events", event).status == 201
    short, long = (analyst.get(f"/console/sessions/{one}") for one in ("one-day", "two-days"))
    assert "When (Asia/Tokyo)" in short.words
    assert ">19:30:00.000</time>" in short.text
    assert ">20 Nov 2026, 19:00:00.000</time>" in long.text
    assert ">21 Nov 2026, 19:30:00.000</time>" in long.text
    assert ">20 Nov 2026, 19:00</text>" in long.text
