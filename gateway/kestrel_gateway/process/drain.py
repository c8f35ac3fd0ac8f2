"""Ending without losing anything: not ready at once, closed to new requests later, over with the last one."""

import time
from collections.abc import Callable

from kestrel_core.protocol.errors import ShuttingDown

LEAVING = 0.8  # of the time for which requests are still taken


class Drain:
    """Owns how many requests are open, and since when the gateway is ending."""

    def __init__(
        self, drain_s: float, exit_timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.num_open = 0
        self._drain_s = drain_s
        self._exit_timeout_s = exit_timeout_s
        self._clock = clock
        self._since: float | None = None

    def begin(self) -> None:
        if self._since is None:
            self._since = self._clock()

    @property
    def is_draining(self) -> bool:
        return self._since is not None

    @property
    def is_leaving(self) -> bool:
        """A little before requests are refused: whose connection ends now finds another server first."""
        return self._since is not None and self._clock() >= self._since + LEAVING * self._drain_s

    @property
    def is_closed(self) -> bool:
        return self._since is not None and self._clock() >= self._since + self._drain_s

    @property
    def is_over(self) -> bool:
        """All have been answered, or have had all the time there is."""
        if self._since is None or not self.is_closed:
            return False
        return self.num_open == 0 or self._clock() >= self._since + self._drain_s + self._exit_timeout_s

    def check(self) -> None:
        if self.is_closed:
            raise ShuttingDown("this server is ending; ask again, another one will answer")
