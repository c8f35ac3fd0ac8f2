"""Counters, gauges and histograms as plain values. One thread writes them; anybody may take a snapshot."""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

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

    def quantile(self, share: float) -> float:
        """The upper bound of the bucket that holds it; 0 before the first observation."""
        left = share * self.count
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            left -= count
            if left <= 0:
                return bound if self.count else 0.0
        return float("inf")

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
