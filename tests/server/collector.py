"""The far end of traces: a collector that keeps what it gets."""

import gzip
import http.server
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


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
