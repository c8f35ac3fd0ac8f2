"""Sums up judged choices: how many differ from the reference's, by how much, and whether that is accepted."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from kestrel_tools.bench.results import percentile
from kestrel_tools.reference import Judged

from .record import Recorded

KINDS = ("token", "grounded", "object", "coord", "size")
UNITS = ("logits", "spreads", "roundings")
MAX_LISTED = 10
SHARES = (("median", 0.5), ("P99", 0.99), ("P99.9", 0.999), ("largest", 1.0))
BOUNDS = tuple(10.0**power for power in range(-6, 2))  # of the histogram, in logits


class Different(NamedTuple):
    """A choice the reference would not have made, and its gap in all units."""

    recorded: Recorded
    choice: Judged
    logits: float
    spreads: float
    roundings: float

    def to_json(self) -> dict[str, Any]:
        told = {name: getattr(self.recorded, name) for name in ("picture", "number", "skill", "arguments")}
        chosen = {name: getattr(self.choice, name) for name in ("kind", "chosen", "best")}
        return {**told, **chosen, **{unit: getattr(self, unit) for unit in UNITS}}


class Verdict:
    def __init__(self, rounding: float, near: float, num_expected: int) -> None:
        """`rounding`: half a step of the engine's dtype at 1. `near` of them explain a difference."""
        self._rounding = rounding
        self._near = near
        self._num_expected = num_expected
        self._num_pictures = self._num_redrawn = self._num_requests = 0
        self._num_choices: Counter[str] = Counter()
        self._different: list[Different] = []
        self._noise: list[float] = []  # roundings
        self._failed: list[str] = []

    def add_picture(self, redrawn: bool) -> None:
        self._num_pictures += 1
        self._num_redrawn += redrawn

    def add(self, recorded: Recorded, choices: Sequence[Judged]) -> None:
        self._num_requests += 1
        if recorded.error is not None:
            self._failed.append(f"{recorded}: {recorded.error}")
        for choice in choices:
            self._num_choices[choice.kind] += 1
            rounding = self._rounding * choice.largest
            if choice.noise is not None:
                self._noise.append(choice.noise / rounding)
            if choice.gap != 0:  # also where it is NaN, which proves nothing
                units = choice.gap, choice.gap / choice.spread, choice.gap / rounding
                self._different.append(Different(recorded, choice, *units))

    @property
    def passed(self) -> bool:
        complete = self._num_pictures == self._num_expected and not self._failed
        return complete and not any(map(self._far, self._different))

    def document(self) -> dict[str, Any]:
        worst = sorted(self._different, key=lambda one: -one.roundings)[:MAX_LISTED]
        return {
            "passed": self.passed,
            "near": self._near,
            "num_pictures": self._num_pictures,
            "num_expected": self._num_expected,
            "num_redrawn": self._num_redrawn,
            "num_requests": self._num_requests,
            "choices": [self._row(kind, [kind]) for kind in KINDS] + [self._row("all", KINDS)],
            "histogram": self._histogram(),
            "noise": {name: percentile(self._noise, share) for name, share in SHARES}
            if self._noise
            else None,
            "worst": [one.to_json() for one in worst],
            "failed": self._failed,
        }

    def _far(self, one: Different) -> bool:
        return not one.roundings <= self._near

    def _row(self, name: str, kinds: Sequence[str]) -> dict[str, Any]:
        different = [one for one in self._different if one.choice.kind in kinds]
        num = sum(self._num_choices[kind] for kind in kinds)
        counts = {"choices": num, "equal": num - len(different), "different": len(different)}
        far = sum(map(self._far, different))
        return {"kind": name, **counts, "far": far, **{unit: _gaps(different, unit) for unit in UNITS}}

    def _histogram(self) -> dict[str, int]:
        names = [*(f"<= {bound:g}" for bound in BOUNDS), "more"]
        return {
            name: sum(sum(one.logits > bound for bound in BOUNDS) == at for one in self._different)
            for at, name in enumerate(names)
        }


def _gaps(different: Sequence[Different], unit: str) -> dict[str, float] | None:
    gaps = [getattr(one, unit) for one in different]
    return {"median": median(gaps), "largest": max(gaps)} if gaps else None
