"""Stand-ins for what prepares requests: workers that run when a test says so, and pictures that are names."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.step import PreparedImage
from kestrel_core.protocol.errors import BadImage


class FakeWorkers:
    """In place of worker threads: prepares requests with a picture when a test says so, the others now."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()
        self.is_shut_down = False

    def submit(self, work: Callable[[Ticket], None], ticket: Ticket, /) -> None:
        if self.is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if ticket.request.image is None:
            work(ticket)
        else:
            self.waiting.append(lambda: work(ticket))

    def run(self, count: int | None = None) -> None:
        for _ in range(len(self.waiting) if count is None else min(count, len(self.waiting))):
            self.waiting.popleft()()

    def shutdown(self) -> None:
        self.is_shut_down = True
        self.run()


class Pixels(NamedTuple):
    """In place of an array."""

    nbytes: int


def fake_prepare(
    source: object, may_decode: Callable[[str, int], bool], salt: str = ""
) -> PreparedImage | None:
    """The key of a picture is the picture itself, and decoded it takes 100 bytes for each of its own.

    Some are no pictures, and some are costly. Nothing is remembered. Keys are not salted, so that only the
    root parts salts.
    """
    assert isinstance(source, bytes)
    if not may_decode(source.decode(), 1_000_000 * len(source) if b"costly" in source else 0):
        return None
    if source == b"damaged":
        raise BadImage("the image is damaged")
    if source == b"unheard of":
        raise ZeroDivisionError
    return PreparedImage(source.decode(), None, (1, 1), Pixels(100 * len(source)))
