"""The deadlines of requests, earliest first. Belongs to the loop's thread."""

import heapq
from collections.abc import Iterator
from itertools import count

from kestrel_core.loop.inbox import Ticket


class Deadlines:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Ticket]] = []  # the number decides between equal times
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at_s: float, ticket: Ticket) -> None:
        heapq.heappush(self._heap, (at_s, next(self._numbers), ticket))

    def wait_s(self, now_s: float) -> float | None:
        """How long it is to the first one; None if there is none."""
        return self._heap[0][0] - now_s if self._heap else None

    def take_passed(self, now_s: float) -> Iterator[Ticket]:
        while self._heap and self._heap[0][0] <= now_s:
            yield heapq.heappop(self._heap)[2]

    def drop_ended(self, num_open: int) -> None:
        """Forget requests that have ended, once they are the most of all."""
        if len(self._heap) > 2 * num_open + 64:
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapq.heapify(self._heap)
