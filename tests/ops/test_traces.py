"""Traces reach a collector when they are asked for, and nothing is loaded when they are not."""

import gzip
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from live import started
from vettance.settings import SettingsError, read_settings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
LOGIN = {"eventName": "user.login", "customer": {"externalId": "c-1", "email": "canary@example.com"}}


class Collector:
    """The far end: takes spans as an OpenTelemetry collector does."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    content = gzip.decompress(content)
                collector.raw.append(content)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Span]:
        return [
            span
            for content in self.raw
            for resource in ExportTraceServiceRequest.FromString(content).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


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
        "import sys, vettance.app, vettance.serve, vettance.webhooks.worker;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="VETTANCE_TRACES"):
        read_settings({"VETTANCE_TRACES": "collector:4318"})
