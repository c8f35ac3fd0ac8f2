"""A collector of traces for tests: takes OTLP over HTTP, and keeps what it is sent."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.service_of: dict[bytes, str] = {}  # by the span's id
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                outer.take(ExportTraceServiceRequest.FromString(data))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, sent: ExportTraceServiceRequest) -> None:
        for resource in sent.resource_spans:
            named = {item.key: item.value.string_value for item in resource.resource.attributes}
            spans = [span for scope in resource.scope_spans for span in scope.spans]
            self.services.add(named["service.name"])
            self.service_of |= dict.fromkeys((span.span_id for span in spans), named["service.name"])
            self.spans += spans

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
