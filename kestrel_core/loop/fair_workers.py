"""Worker threads that tenants take turns in.

Owns what waits for a thread. A tenant that sends hundreds of requests at once has a queue of its own, and the
next request of another tenant is not prepared behind all of them.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kestrel_core.loop.inbox import Ticket

Work = Callable[[Ticket], None]


class FairWorkers:
    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Work, Ticket]]] = {}  # by tenant, whose turn is next first

    def submit(self, work: Work, ticket: Ticket, /) -> None:
        """Raises RuntimeError once they are shut down."""
        with self._lock:
            self._threads.submit(self._do_next)  # in the lock, so that it finds what is added here
            self._waiting.setdefault(ticket.request.tenant, deque()).append((work, ticket))

    def shutdown(self) -> None:
        """All that was submitted is done first."""
        self._threads.shutdown()

    def _do_next(self) -> None:
        with self._lock:
            tenant = next(iter(self._waiting))
            queue = self._waiting.pop(tenant)
            work, ticket = queue.popleft()
            if queue:
                self._waiting[tenant] = queue  # behind the others
        work(ticket)
