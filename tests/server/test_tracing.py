"""Traces reach a collector when they are asked for, and nothing is loaded when they are not."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import started
from tests.server.collector import Collector
from vettance.settings.settings import SettingsError, read_settings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
LOGIN = {"eventName": "user.login", "customer": {"externalId": "c-1", "email": "canary@example.com"}}


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


def test_a_request_is_a_span_with_its_store_calls_inside(tmp_path: Path, collector: Collector) -> None:
    service = started(tmp_path, VETTANCE_TRACES=collector.url)
    parent = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    assert service.post("/api/v1/decisions/evaluate", LOGIN, headers=parent).status == 200
    assert service.get("/api/v1/decisions/evt_canary-in-a-path", headers=parent).status == 404
    assert service.get("/canary-nowhere", headers=parent).status == 404
    assert service.stop() == 0, "what is left is sent before the end"
    mine = [span for span in collector.spans() if span.trace_id.hex() == TRACE]
    named = {span.name: span for span in mine}
    assert {"POST /api/v1/decisions/evaluate", "GET /api/v1/decisions/{id}", "GET no route"} <= set(named)
    decided = named["POST /api/v1/decisions/evaluate"]
    told = {one.key: one.value.string_value or one.value.int_value for one in decided.attributes}
    assert told == {
        "http.request.method": "POST",
        "http.route": "/api/v1/decisions/evaluate",
        "http.response.status_code": 200,
    }
    (write,) = [span for span in mine if span.name == "store write"]
    assert write.parent_span_id == decided.span_id
    assert not any(b"canary" in content for content in collector.raw)


def test_a_collector_that_is_away_disturbs_nobody(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_TRACES="http://127.0.0.1:9")
    assert service.post("/api/v1/decisions/evaluate", LOGIN).status == 200
    assert service.stop() == 0


def test_nothing_of_it_is_loaded_unless_asked_for() -> None:
    program = (
        "import sys, vettance.server.application, vettance.server.cli, vettance.server.deliverer;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="VETTANCE_TRACES"):
        read_settings({"VETTANCE_TRACES": "collector:4318"})
