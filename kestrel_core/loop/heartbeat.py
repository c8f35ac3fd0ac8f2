"""Whether the loop's thread still gets on.

It notes here when it begins a pass and when it waits for work; somebody else looks whether a pass ever ends.
A device that never returns, or a deadlock, keeps the thread in one pass for ever, while the rest of the
process goes on answering. How busy the loop is does not matter: only a single pass is measured.
"""

import math
import time
from collections.abc import Callable

LOOK_S = 1.0


class Heartbeat:
    """`limit_s` is what a pass may take: far more than an honest one does, since the engine is lost then."""

    def __init__(self, limit_s: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._num_passes = 0
        self._is_at_work = False
        self._num_seen = 0
        self._looked_at = clock()
        self._spent_s = 0.0  # on the pass that was seen last

    # In the loop's thread

    def begin(self) -> None:
        self._num_passes += 1
        self._is_at_work = True

    def rest(self) -> None:
        """Nothing is there to be done."""
        self._is_at_work = False

    # In the one thread that watches

    def is_stuck(self) -> bool:
        """Whether a pass takes too long. To be called more often than every `LOOK_S`.

        A longer time between two looks counts as that much: the whole process slept, and the loop with it.
        """
        now = self._clock()
        passed_s, self._looked_at = min(now - self._looked_at, LOOK_S), now
        num_passes = self._num_passes
        is_same = self._is_at_work and num_passes == self._num_seen
        self._num_seen = num_passes
        self._spent_s = self._spent_s + passed_s if is_same else 0.0
        return self._spent_s >= self.limit_s
