"""The order in which torch is asked to capture, with a torch that only takes notes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from kestrel_core.runtime import graphs
from kestrel_core.runtime.graphs import Graphs

POOL = (0, 7)


class Notes(list[str]):
    def note(self, what: str, *with_: Any) -> None:
        self.append(" ".join((what, *map(str, with_))))


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """What a capture does, in place of doing it."""
    noted = Notes()

    class Stream:
        def __init__(self, name: object) -> None:
            self.name = "current" if name == "current" else "capturing"

        def wait_stream(self, other: "Stream") -> None:
            noted.note(self.name, "waits for", other.name)

    class CUDAGraph:
        def capture_begin(self, pool: object, capture_error_mode: str) -> None:
            noted.note("begin", pool, capture_error_mode)

        def capture_end(self) -> None:
            noted.note("end")

        def replay(self) -> None:
            noted.note("replay")

    @contextmanager
    def graph(graph: CUDAGraph, pool: object, stream: Stream, capture_error_mode: str) -> Iterator[None]:
        noted.note("graph", pool, capture_error_mode)
        yield

    @contextmanager
    def no_waiting() -> Iterator[None]:
        noted.note("no waiting")
        yield

    @contextmanager
    def on_stream(stream: Stream) -> Iterator[None]:
        yield

    cuda = torch.cuda
    monkeypatch.setattr(cuda, "Stream", Stream)
    monkeypatch.setattr(cuda, "CUDAGraph", CUDAGraph)
    monkeypatch.setattr(cuda, "graph", graph)
    monkeypatch.setattr(cuda, "stream", on_stream)
    monkeypatch.setattr(cuda, "graph_pool_handle", lambda: POOL)
    monkeypatch.setattr(cuda, "current_stream", lambda: Stream("current"))
    monkeypatch.setattr(cuda, "current_device", lambda: 0)
    monkeypatch.setattr(graphs, "no_waiting", no_waiting)
    for name, what in (
        ("_cuda_beginAllocateCurrentThreadToPool", "allocate from"),
        ("_cuda_endAllocateToPool", "no longer from"),
        ("_cuda_releasePool", "release"),
    ):
        monkeypatch.setattr(torch._C, name, lambda device, pool, what=what: noted.note(what, pool), False)
    return noted


SLOW = [
    "capturing waits for current",
    *("work", "no waiting", "work"),
    "current waits for capturing",
    f"graph {POOL} thread_local",
    "work",
]
QUICK = [
    "capturing waits for current",
    *(f"allocate from {POOL}", "work", f"no longer from {POOL}", f"release {POOL}"),
    *(f"begin {POOL} thread_local", "work", "end"),
    "current waits for capturing",
]


def test_the_work_runs_twice_before_it_is_captured(notes: Notes) -> None:
    made = Graphs(torch.device("cuda"))
    for _ in range(2):
        notes.clear()
        made.capture(lambda: notes.note("work"))
        assert notes == SLOW


def test_a_quick_start_has_all_but_the_first_run_in_the_memory_of_the_graphs(notes: Notes) -> None:
    made = Graphs(torch.device("cuda"), lazy=True)
    made.capture(lambda: notes.note("work"))
    assert notes == SLOW
    for _ in range(2):
        notes.clear()
        replay = made.capture(lambda: notes.note("work"))
        assert notes == QUICK
    notes.clear()
    replay()
    assert notes == ["replay"]


def test_a_capture_that_fails_is_ended(notes: Notes) -> None:
    made, runs = Graphs(torch.device("cuda"), lazy=True), iter(range(9))

    def work() -> None:
        if next(runs) == 4:  # three for the first, then one alone and one captured
            raise RuntimeError("there is a wait in it")

    made.capture(work)
    with pytest.raises(RuntimeError, match="there is a wait in it"):
        made.capture(work)
    assert notes[-2:] == ["end", "current waits for capturing"]
