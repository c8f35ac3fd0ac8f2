"""What /metrics shows after some requests, and that a public dashboard of vLLM would find its names."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gateway_server import FakeUpstream, Running, endless, failing, running
from prometheus_client.parser import text_string_to_metric_families
from triton_server import until

from kestrel_core.protocol.about import About
from kestrel_core.protocol.errors import Overloaded

promql_parser = pytest.importorskip("promql_parser")
yaml = pytest.importorskip("yaml")

RULES = Path(__file__).parents[3] / "docker/prometheus/rules.yml"
# What the public Grafana dashboards of vLLM read.
OF_VLLM = {
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:e2e_request_latency_seconds_bucket",
    "vllm:request_queue_time_seconds_sum",
    "vllm:request_prefill_time_seconds_sum",
    "vllm:request_decode_time_seconds_sum",
    "vllm:request_prompt_tokens_bucket",
    "vllm:request_generation_tokens_bucket",
    "vllm:request_max_num_generation_tokens_bucket",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:request_inference_time_seconds_bucket",
    "vllm:request_time_per_output_token_seconds_bucket",
    "vllm:num_preemptions_total",
}
QUERIES = (
    'histogram_quantile(0.9, sum by(le) (rate(vllm:e2e_request_latency_seconds_bucket{model_name="m"}[1m])))',
    'rate(vllm:time_to_first_token_seconds_sum{model_name="m"}[1m])',
    'sum by(finished_reason) (increase(vllm:request_success_total{model_name="m"}[1m]))',
    'sum by(le) (increase(vllm:request_prompt_tokens_bucket{model_name="m"}[1m]))',
    'rate(vllm:prefix_cache_hits_total{model_name="m"}[1m]) / rate(vllm:prefix_cache_queries_total[1m])',
    'vllm:num_requests_running{model_name="m"}',
)
WORDS = {"question": "a secret question"}


def samples(gateway: Running) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    status, page, headers = gateway.get("/metrics")
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/plain")
    return read(page)


def read(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(found: dict[tuple[str, tuple[tuple[str, str], ...]], float], name: str, **labels: str) -> float:
    return found[f"kestrel:{name}", tuple(sorted(labels.items()))]


def test_an_answer_is_counted_by_its_tokens_and_times() -> None:
    with running() as gateway:
        gateway.post("/v1/query", WORDS)
        found = samples(gateway)
    model = {"model_name": "moondream"}
    assert value(found, "prompt_tokens_total", **model) == 740
    assert value(found, "prefix_cache_hits_total", **model) == 730
    assert value(found, "generation_tokens_total", **model) == 3
    assert value(found, "request_success_total", finished_reason="stop", **model) == 1
    assert value(found, "time_to_first_token_seconds_sum", **model) == 0.015
    assert value(found, "inter_token_latency_seconds_sum", **model) == pytest.approx(0.0452 / 2)
    assert value(found, "request_queue_time_seconds_bucket", le="0.001", **model) == 1
    assert value(found, "num_requests_running", **model) == 0


def test_requests_are_counted_by_skill_and_path_and_refusals_by_reason() -> None:
    with running() as gateway:
        gateway.upstream.scripts = [failing(Overloaded("full"))]
        gateway.post("/v1/query", WORDS)
        gateway.post("/v1/detect", {"image_url": "iVBORw0KGgo=", "object": "cat"})
        gateway.post("/v1/query", b"{")
        gateway.get("/v1/nothing/a-secret-path")
        found = samples(gateway)
    assert value(found, "requests_total", model_name="moondream", skill="query", outcome="queue_full") == 1
    assert value(found, "requests_total", model_name="moondream", skill="detect", outcome="ok") == 1
    assert value(found, "rejections_total", reason="queue_full") == 1
    assert value(found, "rejections_total", reason="invalid_request") == 1
    assert value(found, "http_requests_total", method="POST", path="/v1/query", status="429") == 1
    assert value(found, "http_requests_total", method="GET", path="other", status="404") == 1
    assert value(found, "request_image_bytes_sum", skill="detect") == 8
    assert value(found, "request_objects_bucket", skill="detect", le="1.0") == 1
    assert "secret" not in str(found)


def test_a_request_under_way_is_seen_and_a_client_that_leaves_is_counted() -> None:
    upstream = FakeUpstream()
    upstream.scripts = [endless]
    with running(upstream) as gateway:
        leaver = gateway.leaver("/v1/query", {**WORDS, "stream": True})
        assert value(samples(gateway), "num_requests_running", model_name="moondream") == 1
        leaver.close()
        assert upstream.answers[0].is_cancelled.wait(60)
        while value(found := samples(gateway), "num_requests_running", model_name="moondream"):
            pass
    assert value(found, "client_disconnects_total", stream="true") == 1
    assert value(found, "request_success_total", model_name="moondream", finished_reason="abort") == 1


def test_requests_that_wait_for_others_of_their_caller_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kestrel_gateway.upstream.replicas.width", lambda max_batch_size: 1)
    upstream = FakeUpstream()
    upstream.scripts = [endless, endless]
    with running(upstream) as gateway:
        gateway.house.upstream.replicas[0].about = About("tiny", "1.0", 2048, ())
        first = gateway.leaver("/v1/query", {**WORDS, "stream": True})
        assert value(samples(gateway), "num_requests_held") == 0
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(gateway.leaver, "/v1/query", {**WORDS, "stream": True})
            until(lambda: value(samples(gateway), "num_requests_held") == 1)
            assert value(samples(gateway), "num_requests_running", model_name="tiny") == 2
            first.close()
            second.result(60).close()
        assert value(samples(gateway), "num_requests_held") == 0


def test_requests_with_adapters_are_counted_by_names_that_the_server_lists() -> None:
    with running() as gateway:
        gateway.house.upstream.replicas[0].about = About("tiny", "1.0", 2048, (), ("french",))
        for adapter in ("french", "french", "a-secret", None):
            gateway.post("/v1/query", WORDS | {"settings": {"adapter": adapter}})
        found = samples(gateway)
    assert value(found, "adapter_requests_total", model_name="tiny", adapter="french", outcome="ok") == 2
    assert value(found, "adapter_requests_total", model_name="tiny", adapter="other", outcome="ok") == 1
    assert "secret" not in str(found)


def test_it_shows_which_upstreams_answer() -> None:
    with running() as gateway:
        assert value(samples(gateway), "upstream_up", upstream="in-process") == 1
        gateway.house.upstream.replicas[0].leave("broken")
        assert value(samples(gateway), "upstream_up", upstream="in-process") == 0


def test_the_names_of_the_public_dashboards_exist_with_our_prefix() -> None:
    with running() as gateway:
        gateway.post("/v1/query", WORDS)
        names = {name for name, _ in samples(gateway)}
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    recorded = {rule["record"] for rule in group["rules"]}
    assert {name.replace("vllm:", "kestrel:") for name in OF_VLLM} == {
        name for name in names | recorded if name.replace("kestrel:", "vllm:") in OF_VLLM
    }
    assert not names & recorded
    for query in QUERIES:
        ours = query.replace("vllm:", "kestrel:")
        promql_parser.parse(ours)
        assert set(re.findall(r"kestrel:\w+", ours)) <= names


def test_any_of_several_workers_answers_for_all(tmp_path: Path) -> None:
    """As the parent starts them: the folder is in their environment before they begin."""
    worker = """
import os, sys
from kestrel_core.protocol.messages import Request, Usage
from kestrel_gateway.records.metrics import Metrics, forget_worker
from kestrel_gateway.records.visits import Visit
metrics = Metrics()
visit = Visit("1", "POST", "/v1/query", observers=(metrics,), model="m", outcome="ok", status=200)
visit.ask(Request("query"))
if sys.argv[1] == "answers":
    visit.finish_reason, visit.usage = "stop", Usage(10, 2, 0, 1.0, 1.0, 1.0, 1.0)
    metrics.ended(visit)
else:
    for pid in sys.argv[2:]:
        forget_worker(int(pid))
    sys.stdout.write(metrics.page("")[0].decode())
"""
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    pids = []
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", worker, "answers"], env=environment)
        assert child.wait(60) == 0
        pids.append(str(child.pid))
    last = [sys.executable, "-c", worker, "shows", *pids]
    page = subprocess.run(last, env=environment, check=True, capture_output=True, text=True).stdout
    assert value(read(page), "prompt_tokens_total", model_name="m") == 20
    assert value(read(page), "num_requests_running", model_name="m") == 1
