"""Counters, gauges and histograms as plain values. One thread writes them; anybody may take a snapshot."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Histogram:
    """Observations by bucket: at most so many seconds, the last bucket open."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

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
    ttft_s: Histogram = field(default_factory=Histogram)
    inter_token_s: Histogram = field(default_factory=Histogram)
    queue_s: Histogram = field(default_factory=Histogram)
    image_decode_s: Histogram = field(default_factory=Histogram)
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
    """One line of what Prometheus reads."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    labels: tuple[tuple[str, str], ...]
    value: float


GAUGES = {
    "open": ("open_requests", "requests that have not had their last response"),
    "queued": ("queued_requests", "requests that wait, those whose pictures are being decoded among them"),
    "queued_bytes": ("queued_bytes", "bytes of pictures that wait"),
    "running": ("running_requests", "requests that are being answered"),
    "pages_free": ("pages_free", "pages of the KV cache that hold nothing"),
    "pages_cached": ("pages_cached", "pages of the KV cache kept for equal beginnings"),
    "pages_used": ("pages_used", "pages of the KV cache that running requests need"),
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
}
HISTOGRAMS = {
    "ttft_s": ("ttft_seconds", "from arrival to the first token"),
    "inter_token_s": ("inter_token_seconds", "between two tokens of an answer"),
    "queue_s": ("queue_seconds", "from arrival to the first step"),
    "image_decode_s": ("image_decode_seconds", "to decode a picture and cut its crops"),
}


def exported(snapshot: Mapping[str, Any]) -> Iterator[Series]:
    """A snapshot of the engine, with `open` and `refused` (by code) of its server, as Prometheus reads it.

    Histograms are the counters they consist of, cumulative by `le`: exact, and as cheap for a million
    observations as for one.
    """
    for key, (name, meaning) in GAUGES.items():
        yield Series(f"kestrel_{name}", "gauge", meaning, (), snapshot[key])
    for key, (name, meaning) in COUNTERS.items():
        yield Series(f"kestrel_{name}", "counter", meaning, (), snapshot[key])
    for key, number in snapshot["requests"].items():
        skill, _, outcome = key.rpartition("/")  # a skill may be called anything
        labels = (("skill", skill), ("outcome", outcome))
        yield Series("kestrel_requests_total", "counter", "requests that have ended", labels, number)
    for code, number in snapshot["refused"].items():
        meaning = "requests that were not taken in"
        yield Series("kestrel_refusals_total", "counter", meaning, (("code", code),), number)
    for key, (name, meaning) in HISTOGRAMS.items():
        yield from _buckets(f"kestrel_{name}", meaning, (), snapshot[key])
    for skill, kept in snapshot["request_s"].items():
        yield from _buckets("kestrel_request_seconds", "from arrival to the end", (("skill", skill),), kept)


def _buckets(
    name: str, meaning: str, labels: tuple[tuple[str, str], ...], kept: Mapping[str, Any]
) -> Iterator[Series]:
    total = 0
    for bound, number in zip((*kept["bounds"], "+Inf"), kept["counts"], strict=True):
        total += number
        yield Series(f"{name}_bucket", "counter", meaning, (*labels, ("le", str(bound))), total)
    yield Series(f"{name}_sum", "counter", meaning, labels, kept["sum"])
    yield Series(f"{name}_count", "counter", meaning, labels, total)


class Metric(Protocol):
    """A counter or gauge at the far side, where each call is a round trip."""

    def increment(self, by: float) -> None: ...

    def set(self, value: float) -> None: ...


class Exporter:
    """Tells the far side what has changed since the last time; `make` is asked once for each series."""

    def __init__(self, make: Callable[[Series], Metric]) -> None:
        self._make = make
        self._metrics: dict[tuple[object, ...], Metric] = {}
        self._told: dict[tuple[object, ...], float] = {}

    def tell(self, series: Series) -> None:
        key = series.name, series.labels
        if key not in self._metrics:
            self._metrics[key] = self._make(series)
        before = self._told.get(key, 0)
        if series.kind == "gauge" and series.value != before:
            self._metrics[key].set(series.value)
        elif series.kind == "counter" and series.value > before:  # Triton does not survive a negative one
            self._metrics[key].increment(series.value - before)
        self._told[key] = series.value
