"""What Prometheus reads: every name there is, and histograms that are histograms."""

import re
from urllib.request import urlopen

import pytest
from triton_server import Served, picture, until

from kestrel_core.loop.metrics import COUNTERS, GAUGES, HISTOGRAMS

pytestmark = pytest.mark.triton


def test_every_metric_is_exported_and_adds_up(server: Served) -> None:
    before = server.metrics().get('kestrel_requests_total{engine="0",outcome="length",skill="caption"}', 0)
    for number in range(3):
        server.ask(SKILL="caption", IMAGE=picture(100 + number), TEMPERATURE=0.0, MAX_TOKENS=3)
    asked = 'kestrel_requests_total{engine="0",outcome="length",skill="caption"}'
    now = until(lambda: found if (found := server.metrics()).get(asked, 0) >= before + 3 else None)
    names = {line.partition("{")[0] for line in now if line.startswith("kestrel_")}
    histograms = [name for name, _ in (*HISTOGRAMS.values(), ("request_seconds", ""))]
    assert names == {
        *(f"kestrel_{name}" for name, _ in (*GAUGES.values(), *COUNTERS.values())),
        *(f"kestrel_{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")),
        "kestrel_engine_info",
        "kestrel_lost_observations_total",
        "kestrel_requests_total",
        "kestrel_refusals_total",
    }
    assert server.metric("kestrel_images_encoded_total") >= 3
    assert server.metric("kestrel_vision_encode_seconds_total") > 0
    assert server.metric("kestrel_output_tokens_total") >= 9


def test_a_histogram_is_cumulative_and_ends_with_its_count(server: Served) -> None:
    server.ask(SKILL="query", QUESTION="when?", TEMPERATURE=0.0, MAX_TOKENS=5)
    until(lambda: server.metric("kestrel_ttft_seconds_count") > 0)
    now = server.metrics()
    found = {
        m[1]: n for line, n in now.items() if (m := re.match(r'kestrel_ttft_seconds_bucket.*le="(.*)"', line))
    }
    assert "+Inf" in found
    buckets = [found[bound] for bound in sorted(found, key=lambda bound: float(bound.replace("+Inf", "inf")))]
    assert buckets == sorted(buckets) and len(buckets) == 15
    assert buckets[-1] == now['kestrel_ttft_seconds_count{engine="0"}']


def test_histograms_have_the_type_of_histograms(server: Served) -> None:
    server.ask(SKILL="caption", IMAGE=picture(7), TEMPERATURE=0.0, MAX_TOKENS=3)
    until(lambda: server.metric("kestrel_request_seconds_count") > 0)
    with urlopen(f"http://127.0.0.1:{server.metrics_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    kinds = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE kestrel_"))
    names = [f"kestrel_{name}" for name, _ in (*HISTOGRAMS.values(), ("request_seconds", ""))]
    assert {kinds[name] for name in names} == {"histogram"}
    assert {kind for name, kind in kinds.items() if name not in names} == {"counter", "gauge"}


def test_the_info_says_what_the_engine_runs_on(server: Served) -> None:
    until(lambda: server.metric("kestrel_engine_info") == 1)
    [line] = [line for line in server.metrics() if line.startswith("kestrel_engine_info")]
    assert 'engine="0"' in line and 'version="' in line
