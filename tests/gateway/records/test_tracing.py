"""Spans of a visit: the caller's trace goes on through the gateway to whoever answers."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gateway_server import Running, failing, running

from kestrel_core.protocol.errors import EngineFailed
from kestrel_gateway.records import tracing

export = pytest.importorskip("opentelemetry.sdk.trace.export")
in_memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
sdk = pytest.importorskip("opentelemetry.sdk.trace")

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = f"00-{TRACE}-{SPAN}-01"
PICTURE = "iVBORw0KGgo="
Traced = tuple[Running, Callable[[], list[Any]]]


@pytest.fixture
def traced() -> Iterator[Traced]:
    from kestrel_gateway.records.spans import Spans

    exporter, provider = in_memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    with running(observers=[Spans(provider)]) as gateway:

        def spans() -> list[Any]:
            while gateway.house.drain.num_open:  # an answer is read a moment before its visit has ended
                time.sleep(0.001)
            return list(exporter.get_finished_spans())

        yield gateway, spans
    provider.shutdown()


def hexed(context: Any) -> tuple[str, str]:
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_the_callers_trace_goes_on_to_the_server_that_answers(traced: Traced) -> None:
    gateway, spans = traced
    gateway.post("/v1/query", {"question": "?"}, traceparent=CALLER, tracestate="vendor=1")
    model, http = spans()
    assert hexed(http.parent) == (TRACE, SPAN)
    assert http.context.trace_state["vendor"] == "1"
    assert hexed(model.parent) == hexed(http.context)
    trace, span = hexed(model.context)
    assert trace == TRACE
    assert gateway.upstream.asked[0].traceparent == f"00-{trace}-{span}-01"


@pytest.mark.parametrize("given", ["", "00-0-0-01", CALLER.upper(), f"00-{'0' * 32}-{SPAN}-01", "x" * 9000])
def test_a_malformed_parent_begins_a_trace_of_its_own(traced: Traced, given: str) -> None:
    gateway, spans = traced
    gateway.post("/v1/query", {"question": "?"}, traceparent=given)
    _, http = spans()
    assert http.parent is None
    assert gateway.upstream.asked[0].traceparent.split("-")[1] == hexed(http.context)[0]


def test_spans_have_the_names_and_attributes_of_the_conventions(traced: Traced) -> None:
    gateway, spans = traced
    settings = {"temperature": 0.5, "max_tokens": 9, "seed": 7}
    gateway.post("/v1/query", {"question": "?", "settings": settings}, x_request_id="mine")
    model, http = spans()
    assert (http.name, http.kind.name) == ("POST /v1/query", "SERVER")
    assert (model.name, model.kind.name) == ("query moondream", "CLIENT")
    expected = {
        "http.request.method": "POST",
        "http.route": "/v1/query",
        "http.response.status_code": 200,
        "url.path": "/v1/query",
        "url.scheme": "http",
        "kestrel.request_id": "mine",
    }
    assert dict(http.attributes) == expected
    expected = {
        "gen_ai.operation.name": "query",
        "gen_ai.provider.name": "kestrel",
        "gen_ai.request.model": "moondream",
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": 7,
        "gen_ai.response.id": "mine",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 740,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 730,
    }
    assert {name: model.attributes[name] for name in expected} == expected


def test_no_prompt_picture_or_answer_is_traced(traced: Traced) -> None:
    gateway, spans = traced
    body = {"question": "SECRET", "image_url": PICTURE, "settings": {"stop": ["SECRET"]}}
    gateway.post("/v1/query?a=SECRET", body)
    gateway.events("/v1/query", {**body, "stream": True})
    written = "".join(span.to_json() for span in spans())
    for secret in ("SECRET", PICTURE, "circle"):
        assert secret not in written


def test_failures_of_ours_are_errors_and_refusals_are_not(traced: Traced) -> None:
    gateway, spans = traced
    gateway.upstream.scripts = [failing(EngineFailed("broken")), failing(EngineFailed("broken"), after=1)]
    gateway.post("/v1/query", {"question": "?"})
    gateway.events("/v1/query", {"question": "?", "stream": True})
    gateway.post("/v1/query", b"{")
    *failed, refused = spans()
    assert [span.status.status_code.name for span in failed] == ["ERROR"] * 4
    assert {span.attributes["error.type"] for span in failed} == {"engine_failed"}
    assert refused.status.status_code.name == "UNSET"
    assert refused.attributes["error.type"] == "invalid_request"


def test_probes_are_not_traced(traced: Traced) -> None:
    gateway, spans = traced
    gateway.get("/readyz")
    gateway.get("/metrics")
    assert spans() == []


@pytest.mark.parametrize(
    ("variables", "is_wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:1"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_switch_it_on(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_wanted: bool
) -> None:
    for name in (*tracing.ENDPOINTS, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    spans = tracing.make_spans()
    assert (spans is not None) == is_wanted
    tracing.send_last(spans)


def test_without_the_packages_there_are_no_traces_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert tracing.make_spans() is None
    assert "kestrel-triton[otel]" in caplog.text


def test_a_callers_trace_is_handed_on_when_we_do_not_trace() -> None:
    with running() as gateway:
        gateway.post("/v1/query", {"question": "?"}, traceparent=CALLER)
    assert gateway.upstream.asked[0].traceparent == CALLER
