"""How many requests of each caller are with the servers at once; its others wait here, in order.

A request that waits here costs the memory of its body, which `memory` counts. Handed on, it would be
converted, copied and prepared at once, together with hundreds like it, while answers to others need the
processor; and an engine's queue that one caller has filled refuses its next request, which here would only
wait.
"""

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from kestrel_core.protocol.errors import DeadlinePassed

# In a server's lane: those that it decodes, as many that it prepares meanwhile, and some on their way.
IN_PREPARATION = 2
ON_THE_WAY = 16


def width(max_batch_size: int) -> int:
    return IN_PREPARATION * max_batch_size + ON_THE_WAY


class Lane:
    """Of one caller."""

    def __init__(self) -> None:
        self.num_inside = 0
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []  # by priority, then by arrival


class Lanes:
    """Owns who is inside and who waits. Callers of whom nobody is here are forgotten."""

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width  # of each lane at the moment
        self._lanes: dict[str, Lane] = {}
        self._arrivals = count()
        self.tell: Callable[[int], None] = lambda more: None  # by how much `num_waiting` changes

    @property
    def is_empty(self) -> bool:
        return not self._lanes

    @property
    def num_waiting(self) -> int:
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def has_room(self, caller: str) -> bool:
        return caller not in self._lanes or self._lanes[caller].num_inside < self._width()

    async def enter(self, caller: str, priority: int, timeout_s: float | None) -> None:
        """At once, unless the caller's lane is full."""
        lane = self._lanes.setdefault(caller, Lane())
        if lane.num_inside < self._width():
            lane.num_inside += 1
            return
        turn = asyncio.get_running_loop().create_future()
        place = priority, next(self._arrivals), turn
        heappush(lane.waiting, place)
        self.tell(1)
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if place in lane.waiting:
                lane.waiting.remove(place)
                heapify(lane.waiting)
            else:  # its turn came in the same moment
                self.leave(caller)
            if isinstance(error, TimeoutError):
                raise DeadlinePassed(
                    f"the request waited {timeout_s:g} s for others of its caller; ask fewer at once"
                ) from None
            raise
        finally:
            self.tell(-1)

    def leave(self, caller: str) -> None:
        lane = self._lanes[caller]
        lane.num_inside -= 1
        while lane.waiting and lane.num_inside < self._width():
            *_, turn = heappop(lane.waiting)
            lane.num_inside += 1
            if not turn.cancelled():  # otherwise it is about to leave
                turn.set_result(None)
        if not lane.num_inside:
            del self._lanes[caller]
