"""How much of something each caller has at the moment: requests, calls, bytes."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MAX_SHARE = 0.75  # of what there is for all, that one caller may have


class ByCaller:
    """Callers who have nothing are forgotten."""

    def __init__(self) -> None:
        self.total = 0
        self._counts = Counter[str]()

    def of(self, caller: str) -> int:
        return self._counts[caller]

    def add(self, caller: str, count: int) -> None:
        self.total += count
        self._counts[caller] += count
        if not self._counts[caller]:
            del self._counts[caller]

    @contextmanager
    def one_more(self, caller: str) -> Iterator[None]:
        self.add(caller, 1)
        try:
            yield
        finally:
            self.add(caller, -1)
