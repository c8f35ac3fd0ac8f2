"""Captures that a quick start leaves for later. Until then a size is padded to the next one that is captured.

They are done one by one, in the loop's thread: in idle moments all of them, and between steps only those that
a step has missed, so seldom that running streams hardly feel it.
"""

import logging
from collections.abc import Callable, Hashable
from time import perf_counter

from kestrel_core.runtime.graphs import Work

log = logging.getLogger("kestrel")

BETWEEN_STEPS = 1 / 20  # of the time goes into captures at most, while requests run


class PutOff:
    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._captures: dict[Hashable, Work] = {}
        self._missed: dict[Hashable, None] = {}  # in the order in which they were
        self._next_s = 0.0  # when there may be one between steps again

    def __len__(self) -> int:
        return len(self._captures)

    def __contains__(self, size: Hashable) -> bool:
        return size in self._captures

    def add(self, size: Hashable, capture: Work) -> None:
        self._captures[size] = capture

    def miss(self, size: Hashable) -> None:
        """A step would have used this size."""
        if size in self._captures:
            self._missed[size] = None

    def clear(self) -> None:
        self._captures.clear()
        self._missed.clear()

    def do_one(self, idle: bool) -> bool:
        """Whether a capture was done. If one fails, the others are given up, and sizes stay padded.

        A size counts as put off until its capture has ended: other threads ask how many there are.
        """
        began_s = self._clock() if self._captures else 0.0
        if not self._captures or (not idle and (not self._missed or began_s < self._next_s)):
            return False
        size = next(iter(self._missed or self._captures))
        self._missed.pop(size, None)
        try:
            self._captures[size]()
        except Exception as error:
            log.warning(
                "%d of the sizes left for later are not captured, and stay padded to larger ones: %s",
                len(self._captures),
                error,
            )
            self.clear()
        self._captures.pop(size, None)
        ended_s = self._clock()
        self._next_s = ended_s + (ended_s - began_s) / BETWEEN_STEPS
        return True
