"""How many requests each caller may have open; those it left unfinished keep their places for a while.

Who hangs up again and again, and so makes work for answers that nobody reads, soon has no places left. They
come back one by one, at a pace at which no caller who cancels now and then loses any.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect

from kestrel_gateway.admission.holdings import ByCaller
from kestrel_gateway.errors import ClientGone, TooManyAtOnce

PLACES = 4  # that a request keeps once its caller has hung up on it
UNFINISHED = (ClientGone, ClientDisconnect, asyncio.CancelledError)


class Allowance:
    def __init__(
        self, max_open: int, max_hang_ups_per_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_open = max_open
        self._places_per_s = PLACES * max_hang_ups_per_s  # that come back
        self._clock = clock
        self._open = ByCaller()
        # Places of unfinished requests, and when they were so many.
        self._kept: dict[str, tuple[float, float]] = {}
        self._refused: set[str] = set()  # callers who had no place left when they last asked

    @contextmanager
    def place(self, caller: str, shown_as: str) -> Iterator[None]:
        """For one request, as long as it is open."""
        if (refusal := self._refusal(caller, shown_as)) is not None:
            raise refusal
        with self._open.one_more(caller):
            try:
                yield
            except UNFINISHED:
                kept = min(self._num_kept(caller) + PLACES, self._max_open)
                self._kept[caller] = (kept, self._clock())
                raise

    @property
    def refuses_somebody(self) -> bool:
        return bool(self._refused)

    def refusal_again(self, caller: str, shown_as: str) -> TooManyAtOnce | None:
        """The same for somebody who was refused before, and for nobody else; nothing is counted."""
        return self._refusal(caller, shown_as) if caller in self._refused else None

    def _refusal(self, caller: str, shown_as: str) -> TooManyAtOnce | None:
        kept = self._num_kept(caller)
        if self._open.of(caller) + kept <= self._max_open - 1:
            self._refused.discard(caller)
            return None
        self._refused.add(caller)
        hung_up = " or hung up on so many of late" if kept else ""
        return TooManyAtOnce(
            f"{shown_as} has {self._max_open:,} requests open{hung_up}, which is the limit; wait for answers"
        )

    def _num_kept(self, caller: str) -> float:
        count, since = self._kept.get(caller, (0.0, 0.0))
        left = count - self._places_per_s * (self._clock() - since)
        if left <= 0:
            self._kept.pop(caller, None)
        return max(0.0, left)
