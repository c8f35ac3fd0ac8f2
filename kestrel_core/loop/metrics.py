"""Counters, gauges and histograms as plain values. One thread writes each; any thread may take a snapshot."""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# Observations of one histogram that wait for the exporter. It comes four times a second, and no histogram
# gets more than one a step or a request, so a full buffer means that the exporter hangs or there is none.
MAX_UNEXPORTED = 4096


class Histogram:
    """Observations by bucket, the last bucket without a bound, and those that were not exported yet.

    One thread observes and one exports. While `MAX_UNEXPORTED` wait, each new one displaces the oldest.
    """

    __slots__ = ("bounds", "counts", "num_lost", "sum", "unexported")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.unexported: deque[float] = deque(maxlen=MAX_UNEXPORTED)
        self.num_lost = 0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        self.num_lost += len(self.unexported) == MAX_UNEXPORTED
        self.unexported.append(value)

    def take_unexported(self) -> Iterator[float]:
        """Those that are there now: what comes meanwhile is for the next time."""
        for _ in range(len(self.unexported)):
            yield self.unexported.popleft()

    @property
    def count(self) -> int:
        return sum(self.counts)

    def snapshot(self) -> dict[str, Any]:
        return {
            "bounds": list(self.bounds),
            "counts": list(self.counts),
            "sum": self.sum,
            "count": self.count,
        }


@dataclass
class Metrics:
    """Names as they are exported, without the leading `kestrel_`."""

    requests: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))  # skill, outcome
    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    prefix_hits: int = 0
    prefix_misses: int = 0
    adapter_loads: int = 0
    adapter_load_failures: int = 0
    ttft_s: Histogram = field(default_factory=Histogram)
    inter_token_s: Histogram = field(default_factory=Histogram)
    queue_s: Histogram = field(default_factory=Histogram)
    image_decode_s: Histogram = field(default_factory=Histogram)
    adapter_load_s: Histogram = field(default_factory=Histogram)
    request_s: dict[str, Histogram] = field(default_factory=lambda: defaultdict(Histogram))  # by skill

    def snapshot(self) -> dict[str, Any]:
        return {
            "requests": {f"{skill}/{outcome}": n for (skill, outcome), n in list(self.requests.items())},
            "request_s": {skill: kept.snapshot() for skill, kept in list(self.request_s.items())},
            **{
                name: value.snapshot() if isinstance(value, Histogram) else value
                for name, value in vars(self).items()
                if isinstance(value, int | Histogram)
            },
        }


class Series(NamedTuple):
    """One time series that Prometheus reads."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    labels: tuple[tuple[str, str], ...]
    value: float | Histogram


GAUGES = {
    "open": ("open_requests", "requests that have not had their last response"),
    "queued": ("queued_requests", "requests that wait, those that are being prepared among them"),
    "queued_bytes": ("queued_bytes", "bytes of the pictures of waiting requests, as they came in"),
    "prepared_bytes": ("prepared_bytes", "bytes of the pictures of waiting requests, decoded"),
    "running": ("running_requests", "requests that are being answered"),
    "pages_free": ("pages_free", "pages of the KV cache that hold nothing"),
    "pages_cached": ("pages_cached", "pages of the KV cache kept for equal beginnings"),
    "pages_used": ("pages_used", "pages of the KV cache that running requests need"),
    "adapter_slots": ("adapter_slots", "adapters that the device has room for"),
    "adapters_resident": ("adapters_resident", "adapters that are on the device"),
    "adapter_waiting": ("adapter_waiting_requests", "requests whose adapter is not on the device yet"),
}
COUNTERS = {
    "steps": ("steps_total", "steps of the engine"),
    "prompt_tokens": ("prompt_tokens_total", "positions of prompts, pictures included"),
    "cached_tokens": ("cached_tokens_total", "positions of prompts that were in the KV cache already"),
    "output_tokens": ("output_tokens_total", "tokens of answers"),
    "prefix_hits": ("prefix_hits_total", "requests whose beginning was in the KV cache"),
    "prefix_misses": ("prefix_misses_total", "requests whose beginning was not"),
    "preemptions": ("preemptions_total", "requests put back to make room for others"),
    "images_encoded": ("images_encoded_total", "pictures that went through the vision encoder"),
    "vision_encode_s": ("vision_encode_seconds_total", "seconds of the vision encoder"),
    "adapter_loads": ("adapter_loads_total", "adapters that were put on the device"),
    "adapter_load_failures": ("adapter_load_failures_total", "adapters that could not be put there"),
    "adapter_evictions": ("adapter_evictions_total", "adapters that made room for others"),
}
HISTOGRAMS = {
    "ttft_s": ("ttft_seconds", "from arrival to the first token"),
    "inter_token_s": (
        "inter_token_seconds",
        "between two tokens of an answer: one observation a step, the longest of its answers",
    ),
    "queue_s": ("queue_seconds", "from arrival to the first step"),
    "image_decode_s": ("image_decode_seconds", "to decode a picture and cut its crops"),
    "adapter_load_s": ("adapter_load_seconds", "to put an adapter on the device"),
}
INFO = "kestrel_engine_info"
LOST = "kestrel_lost_observations_total"


def exported(snapshot: Mapping[str, Any], metrics: Metrics) -> Iterator[Series]:
    """All that Prometheus reads. `snapshot` is the engine's, with what its server adds: `open`, `refused` (by
    code) and `info` (labels that say what runs here).
    """
    info = tuple(sorted(snapshot["info"].items()))
    yield Series(INFO, "gauge", "1; the labels say what the engine runs on", info, 1)
    for key, (name, meaning) in GAUGES.items():
        yield Series(f"kestrel_{name}", "gauge", meaning, (), snapshot[key])
    for key, (name, meaning) in COUNTERS.items():
        yield Series(f"kestrel_{name}", "counter", meaning, (), snapshot[key])
    for key, number in snapshot["requests"].items():
        skill, _, outcome = key.rpartition("/")  # the name of a skill may have a slash
        labels = (("skill", skill), ("outcome", outcome))
        yield Series("kestrel_requests_total", "counter", "requests that have ended", labels, number)
    for code, number in snapshot["refused"].items():
        meaning = "requests that were not taken in"
        yield Series("kestrel_refusals_total", "counter", meaning, (("code", code),), number)
    histograms = [
        Series(f"kestrel_{name}", "histogram", f"seconds {meaning}", (), getattr(metrics, key))
        for key, (name, meaning) in HISTOGRAMS.items()
    ]
    for skill, kept in list(metrics.request_s.items()):
        meaning = "seconds from arrival to the end"
        histograms.append(Series("kestrel_request_seconds", "histogram", meaning, (("skill", skill),), kept))
    yield from histograms
    lost = sum(series.value.num_lost for series in histograms if isinstance(series.value, Histogram))
    yield Series(
        LOST, "counter", "observations that no histogram shows: exporting them was too slow", (), lost
    )


def totals(snapshot: Mapping[str, Any]) -> dict[str, float]:
    """What a server would export without labels: counters, and of histograms the sum and the count."""
    counted = {f"kestrel_{name}": snapshot[key] for key, (name, _) in COUNTERS.items()}
    for key, (name, _) in HISTOGRAMS.items():
        counted |= {f"kestrel_{name}_{part}": snapshot[key][part] for part in ("sum", "count")}
    return counted


class Metric(Protocol):
    """A counter, gauge or histogram of the server. Each call is a round trip to it."""

    def increment(self, by: float) -> None: ...

    def set(self, value: float) -> None: ...

    def observe(self, value: float) -> None: ...


class Exporter:
    """Tells the server what has changed since the last time. `make` is called once for each series."""

    def __init__(self, make: Callable[[Series], Metric]) -> None:
        self._make = make
        self._metrics: dict[tuple[object, ...], Metric] = {}
        self._told: dict[tuple[object, ...], float] = {}

    def forget(self) -> None:
        """Release the metrics."""
        self._metrics.clear()

    def tell(self, series: Series) -> None:
        key = series.name, series.labels
        if key not in self._metrics:
            self._metrics[key] = self._make(series)
        metric, value, before = self._metrics[key], series.value, self._told.get(key, 0)
        if isinstance(value, Histogram):
            for observed in value.take_unexported():
                metric.observe(observed)
            return
        if series.kind == "gauge" and value != before:
            metric.set(value)
        elif series.kind == "counter" and value > before:  # a negative increment would hang Triton
            metric.increment(value - before)
        self._told[key] = value
