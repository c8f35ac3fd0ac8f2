"""Stand-ins for adapters: what they are, where their names lead, and what a device keeps of them."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kestrel_core.loop.step import Adapter
from kestrel_core.protocol.errors import BadAdapter, UnknownAdapter


class FakeAdapter(NamedTuple):
    identity: str


class FakeThreads:
    """In place of threads: does what it was given when a test says so."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()
        self.is_shut_down = False

    def submit(self, work: Callable[[], None], /) -> None:
        if self.is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.waiting.append(work)

    def run(self, count: int | None = None) -> None:
        for _ in range(len(self.waiting) if count is None else min(count, len(self.waiting))):
            self.waiting.popleft()()

    def shutdown(self, wait: bool) -> None:
        self.is_shut_down = True
        self.waiting.clear()


@dataclass(eq=False)
class FakeSource:
    """Names lead to adapters of this identity, unless `names` says another. "far/..." has to be fetched."""

    names: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    gates: dict[str, threading.Event] = field(default_factory=dict)  # a name waits until its gate is set

    def is_local(self, name: str) -> bool:
        return not name.startswith("far/")

    def resolve(self, name: str) -> Adapter:
        self.asked.append(name)
        if name in self.gates:
            assert self.gates[name].wait(60), "the source was never released"
        if name == "unknown":
            raise UnknownAdapter('adapter "unknown" is not known')
        if name == "bad":
            raise BadAdapter("the rank of the adapter is 99, and 32 is the most")
        if name == "unheard of":
            raise ZeroDivisionError
        return FakeAdapter(self.names.get(name, name))


class FakePlaces:
    """The adapters on a fake device, by index. Loads wait for a gate and fail as a test wishes."""

    def __init__(self, max_adapters: int = 0) -> None:
        self.max_adapters = max_adapters
        self.failing: set[str] = set()  # by identity: their loads raise
        self.gate = threading.Event()
        self.gate.set()
        self.began = threading.Event()  # a load runs
        self.loaded: list[tuple[int, str]] = []
        self._held: dict[int, str] = {}

    def loader(self, index: int) -> Callable[[Adapter], None]:
        assert 1 <= index <= self.max_adapters
        self._held.pop(index, None)  # from now on no launch may use it

        def put(adapter: Adapter) -> None:
            self.began.set()
            assert self.gate.wait(60), "the device was never released"
            if adapter.identity in self.failing:
                raise RuntimeError("no memory for the adapter")
            self._held[index] = adapter.identity
            self.loaded.append((index, adapter.identity))

        return put

    def identity(self, index: int) -> str | None:
        """What is there; empty for index 0. None: nothing, or only a part."""
        return self._held.get(index) if index else ""
