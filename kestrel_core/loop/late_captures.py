"""When the loop does what the start of its runtime left for later: where nobody waits for it.

Such a piece holds the device for some tenths of a second, which the next request would feel. So while nothing
is computed it waits until nobody has asked for a while, and goes on until somebody does.
"""

from collections.abc import Callable

from kestrel_core.loop.step import Runtime

QUIET_S = 0.5  # without a request, after which none is expected soon


class LateCaptures:
    """Belongs to the loop's thread."""

    def __init__(self, runtime: Runtime, clock: Callable[[], float]) -> None:
        self._runtime = runtime
        self._clock = clock
        self._asked_s = clock()
        self._is_done = False

    def between_steps(self) -> None:
        if not self._is_done:
            self._asked_s = self._clock()
            self._runtime.capture_more(idle=False)

    def while_idle(self, num_open: int, wait_s: float | None) -> float | None:
        """Do a piece if nobody has asked for long enough, and say how long to wait then, `wait_s` at most."""
        if self._is_done:
            return wait_s
        if num_open:  # being prepared
            self._asked_s = self._clock()
            return wait_s
        quiet_s = self._clock() - self._asked_s
        if quiet_s >= QUIET_S:
            self._is_done = not self._runtime.capture_more(idle=True)
            return wait_s if self._is_done else 0.0
        return QUIET_S - quiet_s if wait_s is None else min(wait_s, QUIET_S - quiet_s)
