"""Where the time of a start goes: part after part, each marked at its end."""

from collections.abc import Callable
from time import perf_counter


class Timeline:
    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._last_s = clock()
        self.parts: dict[str, float] = {}  # seconds, in the order in which they were first marked

    def mark(self, part: str) -> None:
        """All since the last mark belongs to `part`, which may have had a share before."""
        now_s = self._clock()
        self.parts[part] = self.parts.get(part, 0.0) + now_s - self._last_s
        self._last_s = now_s

    @property
    def total_s(self) -> float:
        return sum(self.parts.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {spent_s:.1f}" for part, spent_s in self.parts.items() if spent_s >= 0.05)
        return f"{self.total_s:.1f} s: {parts}" if parts else f"{self.total_s:.1f} s"
