"""What the gateway counts, for Prometheus: vLLM's names, with `kestrel:` in place of `vllm:`.

So a public dashboard of vLLM works once its prefix is replaced. Numbers that only the engine knows are on
Triton's own metrics port; docker/prometheus/rules.yml gives those that dashboards ask for the same prefix.

With several worker processes, the process that starts them sets PROMETHEUS_MULTIPROC_DIR to an empty folder
in their environment, before anything here is imported: each worker writes there, and any of them answers for
all. When a worker has ended, `forget_worker` takes what it had under way out of the gauges.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from kestrel_core.protocol.messages import Usage
from kestrel_gateway.records.visits import Visit

PREFIX = "kestrel:"
WORKERS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus-client reads it when it is imported

# vLLM's bounds, with finer ones below for models as small as ours.
UNTIL_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
BETWEEN_TOKENS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80),
)
OF_A_REQUEST = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30),
    *(40, 50, 60, 120, 240, 480, 960, 1920, 7680),
)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
IMAGE_BYTES = tuple(4**power for power in range(5, 14))  # 1 KiB to 64 MiB
NUM_OBJECTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
OTHER = "other"  # what strangers send must not become a label
FINISHED = {"cancelled": "abort"}  # vLLM's word


class Observed(NamedTuple):
    """A histogram of answers. `read` gives what is observed; None is nothing."""

    name: str
    bounds: tuple[float, ...]
    meaning: str
    read: Callable[[Visit, Usage], float | None]


HISTOGRAMS = (
    Observed(
        "time_to_first_token_seconds",
        UNTIL_FIRST_TOKEN,
        "until the first chunk of a stream was here; of an answer in one piece, as the engine measured it",
        lambda visit, usage: visit.ttft_s,
    ),
    Observed(
        "inter_token_latency_seconds",
        BETWEEN_TOKENS,
        "between two tokens: the mean of an answer, once for each answer",
        lambda visit, usage: _token_s(usage),
    ),
    Observed(
        "request_time_per_output_token_seconds",
        BETWEEN_TOKENS,
        "decoding time of an answer for each of its tokens after the first",
        lambda visit, usage: _token_s(usage),
    ),
    Observed(
        "e2e_request_latency_seconds",
        OF_A_REQUEST,
        "from the head of a request to the last byte of its answer",
        lambda visit, usage: visit.latency_s,
    ),
    Observed(
        "request_queue_time_seconds",
        OF_A_REQUEST,
        "in the queue of the engine",
        lambda visit, usage: usage.queue_time_ms / 1000,
    ),
    Observed(
        "request_inference_time_seconds",
        OF_A_REQUEST,
        "of prefill and decoding",
        lambda visit, usage: (usage.prefill_time_ms + usage.decode_time_ms) / 1000,
    ),
    Observed(
        "request_prefill_time_seconds",
        OF_A_REQUEST,
        "of prefill",
        lambda visit, usage: usage.prefill_time_ms / 1000,
    ),
    Observed(
        "request_decode_time_seconds",
        OF_A_REQUEST,
        "of decoding",
        lambda visit, usage: usage.decode_time_ms / 1000,
    ),
    Observed(
        "request_prompt_tokens",
        TOKENS,
        "positions of a prompt, those of its picture included",
        lambda visit, usage: usage.input_tokens,
    ),
    Observed(
        "request_generation_tokens", TOKENS, "tokens of an answer", lambda visit, usage: usage.output_tokens
    ),
    Observed(
        "request_max_num_generation_tokens",
        TOKENS,
        "tokens of the longest answer to a request",
        lambda visit, usage: usage.output_tokens,
    ),
)
COUNTERS: dict[str, tuple[str, Callable[[Usage], int]]] = {
    "prompt_tokens_total": ("positions of prompts", lambda usage: usage.input_tokens),
    "generation_tokens_total": ("tokens of answers", lambda usage: usage.output_tokens),
    "prefix_cache_queries_total": ("positions looked up in the cache", lambda usage: usage.input_tokens),
    "prefix_cache_hits_total": ("positions found there", lambda usage: usage.cached_tokens),
}

M = TypeVar("M", Counter, Gauge, Histogram)


class Metrics:
    """An observer of visits, and the page that shows what it saw."""

    def __init__(self, keeper: Collector | None = None) -> None:
        """A `keeper` adds what it knows to the page."""
        self._keeper = keeper
        self._registry = CollectorRegistry()
        self._by_model: dict[str, _OfModel] = {}
        if not os.environ.get(WORKERS_FOLDER):
            ProcessCollector(registry=self._registry)
            if keeper is not None:
                self._registry.register(keeper)
        make = self._make
        self._running = make(
            Gauge,
            "num_requests_running",
            "requests that were taken and not answered yet, whether they run or wait, in the engine or here",
            "model_name",
            multiprocess_mode="livesum",
        )
        self._held = make(
            Gauge,
            "num_requests_held",
            "requests that wait in the gateway until others of their caller are answered",
            multiprocess_mode="livesum",
        )
        self._upstream_up = make(
            Gauge, "upstream_up", "1: it answers", "upstream", multiprocess_mode="livemostrecent"
        )
        self._success = make(
            Counter, "request_success_total", "answers by their end", "model_name", "finished_reason"
        )
        self._requests = make(
            Counter, "requests_total", "requests sent to the model", "model_name", "skill", "outcome"
        )
        self._adapter_requests = make(
            Counter, "adapter_requests_total", "requests with an adapter", "model_name", "adapter", "outcome"
        )
        self._rejections = make(Counter, "rejections_total", "requests that got an error", "reason")
        self._http = make(Counter, "http_requests_total", "answers of any kind", "method", "path", "status")
        self._disconnects = make(
            Counter, "client_disconnects_total", "clients that left before their answer", "stream"
        )
        self._image_bytes = make(
            Histogram, "request_image_bytes", "of a picture as it came", "skill", buckets=IMAGE_BYTES
        )
        self._objects = make(
            Histogram, "request_objects", "boxes, points or outlines", "skill", buckets=NUM_OBJECTS
        )
        self._histograms = [
            make(Histogram, it.name, it.meaning, "model_name", buckets=it.bounds) for it in HISTOGRAMS
        ]
        self._counters = [
            make(Counter, name, meaning, "model_name") for name, (meaning, _) in COUNTERS.items()
        ]

    def began(self, visit: Visit) -> None:
        pass

    def asked(self, visit: Visit) -> None:
        self._of(visit.model).running.inc()

    def ended(self, visit: Visit) -> None:
        method = visit.method if visit.method in METHODS else OTHER
        self._http.labels(method, visit.route or OTHER, str(visit.status)).inc()
        if visit.outcome == "gone":
            self._disconnects.labels("true" if visit.is_stream else "false").inc()
        elif visit.outcome != "ok":
            self._rejections.labels(visit.outcome).inc()
        if visit.request is not None:
            self._count_request(visit, visit.request.image)

    def note_refusal(self, reason: str) -> None:
        """Of what never became a visit."""
        self._rejections.labels(reason).inc()

    def note_held(self, more: int) -> None:
        self._held.inc(more)

    def note_upstream(self, upstream: str, is_up: bool) -> None:
        self._upstream_up.labels(upstream).set(int(is_up))

    def page(self, accept: str) -> tuple[bytes, str]:
        """The text that Prometheus reads, and its content type."""
        registry = self._registry
        if os.environ.get(WORKERS_FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            if self._keeper is not None:
                registry.register(self._keeper)
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type

    def _count_request(self, visit: Visit, image: Any) -> None:
        model, skill, usage = self._of(visit.model), visit.skill, visit.usage
        model.running.dec()
        self._requests.labels(visit.model, skill, visit.outcome).inc()
        if visit.adapter:
            self._adapter_requests.labels(visit.model, visit.adapter, visit.outcome).inc()
        if isinstance(image, bytes):
            self._image_bytes.labels(skill).observe(len(image))
        if visit.num_objects is not None:
            self._objects.labels(skill).observe(visit.num_objects)
        if usage is None:
            if visit.outcome == "gone":
                self._success.labels(visit.model, "abort").inc()
            return
        reason = FINISHED.get(visit.finish_reason, visit.finish_reason)
        self._success.labels(visit.model, reason).inc()
        for histogram, it in zip(model.histograms, HISTOGRAMS, strict=True):
            if (value := it.read(visit, usage)) is not None:
                histogram.observe(value)
        for counter, (_, read) in zip(model.counters, COUNTERS.values(), strict=True):
            counter.inc(read(usage))

    def _of(self, name: str) -> "_OfModel":
        found = self._by_model.get(name)
        if found is None:
            found = self._by_model[name] = _OfModel(
                self._running.labels(name),
                [histogram.labels(name) for histogram in self._histograms],
                [counter.labels(name) for counter in self._counters],
            )
        return found

    def _make(self, kind: type[M], name: str, meaning: str, *labels: str, **more: Any) -> M:
        return kind(PREFIX + name.removesuffix("_total"), meaning, labels, registry=self._registry, **more)


class _OfModel(NamedTuple):
    """What has only the model as its label: found once, not for each request."""

    running: Gauge
    histograms: list[Histogram]
    counters: list[Counter]


def forget_worker(pid: int) -> None:
    """By the process that started it, once it has ended."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def _token_s(usage: Usage) -> float | None:
    return usage.decode_time_ms / 1000 / (usage.output_tokens - 1) if usage.output_tokens > 1 else None
