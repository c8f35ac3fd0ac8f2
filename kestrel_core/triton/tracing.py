"""Traces of requests: where each spent its time, as OpenTelemetry's spans. The one module that knows its SDK.

A request's spans are made when it has ended, in the thread that sent its last response, and leave from a
thread of the SDK's own: neither the engine nor `execute` waits for a collector. They are children of the
caller's span. A request that brings no `traceparent` gets a span of its own above them. No span holds any of
its words or its picture.
"""

import threading
import time

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from kestrel_core.loop.inbox import PhaseName, Ticket
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Finished, Request

NAMES: dict[PhaseName, str] = {
    "queue": "queue",
    "image": "image decode",
    "vision": "vision",
    "prefill": "prefill",
    "decode": "decode",
}


class Tracing:
    def __init__(self, model: str, version: str, processor: SpanProcessor | None = None) -> None:
        """`processor` takes the spans; without one they are sent where the OTEL_* variables say."""
        ours = Resource({SERVICE_NAME: "kestrel-engine", SERVICE_VERSION: version})
        self._provider = TracerProvider(
            resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("kestrel_core", version)
        self._model = model

    def record(self, ticket: Ticket, event: Finished | KestrelError) -> None:
        """The spans of a request that has ended with `event`."""
        now_s = time.monotonic()  # the clock of the step loop
        zero_ns = time.time_ns() - round(now_s * 1e9)

        def wall_ns(at_s: float) -> int:
            return zero_ns + round(at_s * 1e9)

        request, own = ticket.request, None
        if request.traceparent:
            parent = TraceContextTextMapPropagator().extract({"traceparent": request.traceparent}, Context())
        else:
            own = self._start(request, event, wall_ns(ticket.arrived_s))
            parent = set_span_in_context(own, Context())
        for name, began_s, ended_s in ticket.phases(now_s):
            span = self._tracer.start_span(NAMES[name], parent, start_time=wall_ns(began_s))
            span.end(wall_ns(ended_s))
        if own is not None:
            own.end(wall_ns(now_s))

    def close(self, within_s: float = 3.0) -> None:
        """Send what waits. A collector that does not answer is not waited for any longer than this."""
        closing = threading.Thread(target=self._provider.shutdown, name="kestrel-traces", daemon=True)
        closing.start()
        closing.join(within_s)

    def _start(self, request: Request, event: Finished | KestrelError, at_ns: int) -> Span:
        name = f"{request.skill} {self._model}"
        attributes = {**self._asked(request), **_came(event)}
        span = self._tracer.start_span(name, Context(), attributes=attributes, start_time=at_ns)
        if isinstance(event, KestrelError):
            span.set_status(StatusCode.ERROR)
        return span

    def _asked(self, request: Request) -> dict[str, AttributeValue]:
        settings = request.settings
        given = {
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "top_k": settings.top_k,
            "seed": settings.seed,
        }
        return {
            "gen_ai.operation.name": request.skill,
            "gen_ai.provider.name": "kestrel",
            "gen_ai.request.model": self._model,
            "gen_ai.response.model": self._model,
            "gen_ai.response.id": request.request_id,
            **{f"gen_ai.request.{name}": value for name, value in given.items() if value is not None},
        }


def _came(event: Finished | KestrelError) -> dict[str, AttributeValue]:
    if isinstance(event, KestrelError):
        return {"error.type": event.reason}
    return {
        "gen_ai.response.finish_reasons": [event.result.finish_reason],
        "gen_ai.usage.input_tokens": event.result.metrics.input_tokens,
        "gen_ai.usage.output_tokens": event.result.metrics.output_tokens,
    }
