"""Spans of a visit: one for HTTP, and inside it one for the request to the model.

They continue the caller's trace, and the server that answers continues the inner one. Names and attributes
are OpenTelemetry's for HTTP servers and for generative AI. No prompt, picture or answer is in them.
"""

from typing import NamedTuple

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from kestrel_core.protocol.messages import Request
from kestrel_core.protocol.names import shown
from kestrel_gateway.records.metrics import METHODS
from kestrel_gateway.records.visits import Visit

MAX_PATH = 200
OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "chat",
    "/v1/completions": "text_completion",
}  # others: the skill
Value = str | int | float | bool | list[str] | None


class Traced(NamedTuple):
    http: Span
    model: Span | None = None


class Spans:
    """An observer of visits."""

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self._tracer = provider.get_tracer("kestrel_gateway")
        self._propagator = TraceContextTextMapPropagator()
        self._open: dict[int, Traced] = {}  # by the visit's identity, while it lasts

    def began(self, visit: Visit) -> None:
        if visit.is_probe:
            return
        caller = self._propagator.extract(
            {"traceparent": visit.traceparent, "tracestate": visit.tracestate} if visit.traceparent else {}
        )
        method = visit.method if visit.method in METHODS else "HTTP"
        span = self._tracer.start_span(method, caller, SpanKind.SERVER)
        self._open[id(visit)] = Traced(span)

    def asked(self, visit: Visit) -> None:
        outer = self._open[id(visit)].http
        name = f"{operation(visit)} {visit.model}"
        span = self._tracer.start_span(name, set_span_in_context(outer), SpanKind.CLIENT)
        self._open[id(visit)] = Traced(outer, span)
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, set_span_in_context(span))
        visit.traceparent = carrier["traceparent"]

    def ended(self, visit: Visit) -> None:
        traced = self._open.pop(id(visit), None)
        if traced is None:
            return
        is_failed = visit.status >= 500 or (visit.status == 200 and visit.outcome != "ok")
        if traced.model is not None and visit.request is not None:
            _end(traced.model, model_attributes(visit, visit.request), is_failed)
        if visit.route:
            traced.http.update_name(f"{visit.method} {visit.route}")
        _end(traced.http, http_attributes(visit), is_failed)


def operation(visit: Visit) -> str:
    return OPERATIONS.get(visit.path, visit.skill)


def http_attributes(visit: Visit) -> dict[str, Value]:
    return {
        "http.request.method": visit.method if visit.method in METHODS else "_OTHER",
        "http.route": visit.route or None,
        "http.response.status_code": visit.status,
        "url.path": shown(visit.path, MAX_PATH),
        "url.scheme": "http",
        "error.type": _error(visit),
        "kestrel.request_id": visit.request_id,
        "kestrel.key": visit.key or None,
    }


def model_attributes(visit: Visit, request: Request) -> dict[str, Value]:
    settings, usage = request.settings, visit.usage
    address, _, port = visit.upstream.rpartition(":")
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": operation(visit),
        "gen_ai.provider.name": "kestrel",
        "gen_ai.request.model": visit.model,
        "gen_ai.request.max_tokens": settings.max_tokens,
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.top_p": settings.top_p,
        "gen_ai.request.top_k": settings.top_k,
        "gen_ai.request.seed": settings.seed,
        "gen_ai.response.id": visit.request_id,
        "server.address": address or None,
        "server.port": int(port) if address and port.isdecimal() else None,
        "error.type": _error(visit),
        "kestrel.skill": visit.skill,
        "kestrel.stream": visit.is_stream,
    }
    if usage is not None:
        attributes |= {
            "gen_ai.response.model": visit.model,
            "gen_ai.response.finish_reasons": [visit.finish_reason],
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        }
    return attributes


def _error(visit: Visit) -> str | None:
    return None if visit.outcome == "ok" else visit.outcome


def _end(span: Span, attributes: dict[str, Value], is_failed: bool) -> None:
    if span.is_recording():
        span.set_attributes({name: value for name, value in attributes.items() if value is not None})
        if is_failed:
            span.set_status(Status(StatusCode.ERROR))
    span.end()
