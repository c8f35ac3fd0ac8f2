"""Whether somebody still waits for what is being built."""

from collections.abc import Callable
from threading import Event

from kestrel_core.protocol.errors import Cancelled


class Wanted:
    """Progress of long work, which ends at the next word of it once nobody waits any more."""

    def __init__(self, progress: Callable[[int, int], None] | None = None) -> None:
        """`progress` is told the same."""
        self._progress = progress
        self._left = Event()

    def leave(self) -> None:
        self._left.set()

    def __call__(self, done: int, total: int) -> None:
        if self._left.is_set():
            raise Cancelled("nobody waits for this engine any more")
        if self._progress is not None:
            self._progress(done, total)
