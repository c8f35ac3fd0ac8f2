"""Who may decode a costly picture now, so that cheap ones never wait for it.

Cheap pictures are decoded as they come. Of the others only a few are decoded at once, which leaves workers
free; the rest waits outside the workers. A picture waits behind those that come later and cost less, but not
for ever: for each second of waiting it is preferred to pictures that cost `PIXELS_PER_S` less.
"""

import heapq
import itertools
import threading

from kestrel_core.loop.inbox import Ticket

CHEAP = 2_000_000  # pixels, which take some 15 ms
PIXELS_PER_S = 10_000_000


class CostlyPictures:
    def __init__(self, max_at_once: int) -> None:
        self._max_at_once = max_at_once
        self._begun: set[Ticket] = set()
        self._waiting: list[tuple[float, int, Ticket]] = []
        self._count = itertools.count()
        self._lock = threading.Lock()

    def may_begin(self, ticket: Ticket, cost: int) -> bool:
        """If not, the request waits until `end` gives it."""
        if cost <= CHEAP:
            return True
        with self._lock:
            if ticket not in self._begun and len(self._begun) >= self._max_at_once:
                place = ticket.order + cost / PIXELS_PER_S
                heapq.heappush(self._waiting, (place, next(self._count), ticket))
                return False
            self._begun.add(ticket)
            return True

    def end(self, ticket: Ticket) -> Ticket | None:
        """The request's picture is decoded, or will not be. Gives one that may begin in its place."""
        with self._lock:
            if ticket not in self._begun:
                return None
            self._begun.remove(ticket)
            while self._waiting:
                _, _, following = heapq.heappop(self._waiting)
                if not following.done:
                    self._begun.add(following)
                    return following
        return None
