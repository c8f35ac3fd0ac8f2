"""Whether visits are traced, and where the spans go: the standard OTEL_* variables say so, nothing of ours.

Tracing is on if OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set and the extra `otel`
is installed. Spans are sent as OTLP over HTTP, in batches and by a thread of its own.
"""

import logging
import os
import threading
from typing import TYPE_CHECKING

from kestrel_core.protocol.about import own_version

if TYPE_CHECKING:
    from kestrel_gateway.records.spans import Spans

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
SERVICE = "kestrel-gateway"
LAST_SPANS_S = 5.0  # for the spans of the last requests, when the gateway ends

log = logging.getLogger("kestrel.gateway")


def is_wanted() -> bool:
    is_disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_without = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"
    return any(os.environ.get(name) for name in ENDPOINTS) and not is_disabled and not is_without


def make_spans() -> "Spans | None":
    """The observer that traces; None if nobody asked for traces."""
    if not is_wanted():
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from kestrel_gateway.records.spans import Spans
    except ImportError:
        log.warning("no traces: OpenTelemetry is not installed; pip install 'kestrel-triton[otel]'")
        return None
    ours = Resource({SERVICE_NAME: SERVICE, SERVICE_VERSION: own_version()})
    resource = ours.merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)


def send_last(spans: "Spans | None") -> None:
    """What was not sent yet, unless nobody takes it: a collector that hangs must not keep us from ending."""
    if spans is not None:
        sending = threading.Thread(target=spans.provider.shutdown, name="last spans", daemon=True)
        sending.start()
        sending.join(LAST_SPANS_S)
