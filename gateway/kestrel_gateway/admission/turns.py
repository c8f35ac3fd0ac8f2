"""A fair order between callers: each turn of the event loop begins one request of each caller.

Whoever sends many requests at once has a queue of its own, and another caller's request does not wait behind
it: a turn of the event loop stays as short as one request of each caller makes it.
"""

import asyncio
from collections import deque


class Turns:
    """Owns who waits. Callers for whom nothing waits are forgotten a turn later."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, caller: str) -> None:
        """At once, unless the caller has had its turn just now, or others of its requests wait."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._next)
        queue = self._waiting.get(caller)
        if queue is None:
            self._waiting[caller] = deque()
            return
        turn = loop.create_future()
        queue.append(turn)
        await turn

    def _next(self) -> None:
        for caller, queue in list(self._waiting.items()):
            while queue and queue[0].done():  # who waited was cancelled
                queue.popleft()
            if queue:
                queue.popleft().set_result(None)
            else:
                del self._waiting[caller]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
