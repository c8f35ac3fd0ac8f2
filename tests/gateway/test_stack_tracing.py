"""One trace through gateway and engine, as a collector gets it from the two processes."""

import base64
import json
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("tritonclient")

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PHASES = {"queue", "image decode", "vision", "prefill", "decode"}


def is_ready(url: str) -> bool:
    """From then on the gateway knows which model it has."""
    try:
        with urlopen(f"{url}/readyz", timeout=5):
            return True
    except URLError:
        return False


@pytest.mark.triton
def test_a_callers_trace_goes_through_gateway_and_engine(tmp_path: Path) -> None:
    from otlp_collector import Collector
    from triton_server import picture, served, until

    collector = Collector()
    try:
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with served(tmp_path / "log", "--demo", gateway=True, **where) as server:
            body = {"image_url": base64.b64encode(picture(1)).decode(), "settings": {"max_tokens": 4}}
            headers = {"Content-Type": "application/json", "traceparent": f"00-{TRACE}-{CALLER}-01"}
            url = f"http://127.0.0.1:{server.port}"
            until(lambda: is_ready(url))
            ask = Request(f"{url}/v1/caption", json.dumps(body).encode(), headers)
            with urlopen(ask, timeout=60) as answer:
                assert answer.status == 200
    finally:
        collector.close()
    ours = [span for span in collector.spans if span.trace_id.hex() == TRACE]
    [http] = [span for span in ours if span.parent_span_id.hex() == CALLER]
    [model] = [span for span in ours if span.parent_span_id == http.span_id]
    phases = [span for span in ours if span.parent_span_id == model.span_id]
    assert (http.name, model.name) == ("POST /v1/caption", "caption moondream-tiny")
    assert {span.name for span in phases} == PHASES
    assert len(ours) == 2 + len(phases)
    assert {collector.service_of[span.span_id] for span in (http, model)} == {"kestrel-gateway"}
    assert {collector.service_of[span.span_id] for span in phases} == {"kestrel-engine"}
