"""Traces: the spans of a request, under its caller's or its own; and a real server that sends them."""

import logging
import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from fakes import FakeEngine, Heard
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from otlp_collector import Collector
from triton_server import picture, served

from kestrel_client import Client
from kestrel_core.protocol.about import About
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.triton.model import open_tracing
from kestrel_core.triton.tracing import Tracing

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PHASES = ["queue", "image decode", "queue", "vision", "prefill", "decode"]
ASKED = Request("query", {"question": "why?"}, b"cat", Settings(0.0, max_tokens=3, seed=7), "r-1")


def answered(request: Request = ASKED) -> Heard:
    engine = FakeEngine()
    engine.runtime.took_s["cat"] = 0.25
    heard = engine.submit(request)
    for delay_s in (0.5, 0.5, 0.5):
        engine.workers.run()
        engine.step()
        engine.clock.now_s += delay_s
    engine.run_until_idle()
    return heard


def spans_of(heard: Heard) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    tracing = Tracing("moondream-tiny", "1.0", SimpleSpanProcessor(exporter))
    assert heard.ticket is not None
    tracing.record(heard.ticket, heard.end)
    tracing.close()
    return list(exporter.get_finished_spans())


def test_without_a_caller_s_span_a_request_has_one_of_its_own() -> None:
    *phases, own = spans_of(answered())
    assert own.name == "query moondream-tiny" and own.parent is None
    assert all(span.parent == own.context for span in phases)
    assert own.attributes is not None
    assert dict(own.attributes) == {
        "gen_ai.operation.name": "query",
        "gen_ai.provider.name": "kestrel",
        "gen_ai.request.model": "moondream-tiny",
        "gen_ai.response.model": "moondream-tiny",
        "gen_ai.response.id": "r-1",
        "gen_ai.request.max_tokens": 3,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 13,
        "gen_ai.usage.output_tokens": 3,
    }


def test_phases_follow_on_one_another() -> None:
    *phases, own = spans_of(answered())
    assert [span.name for span in phases] == PHASES
    assert phases[0].start_time == own.start_time
    assert all(one.end_time == other.start_time for one, other in pairwise(phases))


@pytest.mark.parametrize(("flags", "count"), [("01", 5), ("00", 0)])
def test_the_caller_s_span_is_the_parent_and_says_whether_to_record(flags: str, count: int) -> None:
    caller = f"00-{TRACE}-{PARENT}-{flags}"
    spans = spans_of(
        answered(Request("caption", {}, b"dog", Settings(0.0, max_tokens=3), traceparent=caller))
    )
    assert len(spans) == count
    for span in spans:
        assert span.context is not None and span.parent is not None
        assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)


def test_an_error_is_told_by_its_reason_and_no_span_holds_a_word() -> None:
    *phases, own = spans_of(answered(Request("query", {"question": "Bruno?"}, b"damaged")))
    assert own.status.status_code is StatusCode.ERROR and own.attributes is not None
    assert own.attributes["error.type"] == "image_decode_failed"
    assert not any("Bruno" in span.to_json() or "damaged" in span.to_json() for span in (*phases, own))


@pytest.mark.parametrize(
    ("variables", "is_on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_it_is_off_unless_a_collector_is_named(
    variables: dict[str, str], is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    tracing = open_tracing(About("m", "1", 9, ()))
    assert (tracing is not None) == is_on
    if tracing is not None:
        tracing.close()


def test_a_server_without_opentelemetry_says_so_and_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "kestrel_core.triton.tracing", None)
    with caplog.at_level(logging.WARNING, "kestrel"):
        assert open_tracing(About("m", "1", 9, ())) is None
    assert "OpenTelemetry is not installed" in caplog.text


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.mark.triton
def test_a_server_sends_the_spans_of_its_requests_before_it_ends(
    collector: Collector, model: Path, tmp_path: Path
) -> None:
    with served(
        tmp_path / "log",
        KESTREL_MODEL_PATH=str(model),
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_SERVICE_NAME="birds",
        OTEL_BSP_SCHEDULE_DELAY="3600000",  # so all of them are sent at the end
    ) as server:
        inputs = {"SKILL": "caption", "IMAGE": picture(1), "MAX_TOKENS": 4, "TEMPERATURE": 0.0}
        [alone] = server.ask(request_id="alone", **inputs)
        with Client(f"127.0.0.1:{server.grpc_port}") as client:
            caller = f"00-{TRACE}-{PARENT}-01"
            client.caption(picture(2), max_tokens=4, temperature=0.0, traceparent=caller)
    [own] = [span for span in collector.spans if not span.parent_span_id]
    ours = [span for span in collector.spans if span.parent_span_id == own.span_id]
    theirs = [span for span in collector.spans if span.parent_span_id.hex() == PARENT]
    assert collector.services == {"birds"} and own.name == f"caption {model.name}"
    for spans in (ours, theirs):
        assert [span.name for span in sorted(spans, key=lambda span: span.start_time_unix_nano)] == PHASES
    assert all(span.trace_id.hex() == TRACE for span in theirs)
    spent_ms = sum(span.end_time_unix_nano - span.start_time_unix_nano for span in ours) / 1e6
    measures = alone["metrics"]
    assert spent_ms == pytest.approx(measures["ttft_ms"] + measures["decode_time_ms"], abs=0.1)
