"""CUDA graphs: work captured once and replayed, all of it in one pool of memory.

The graphs of a pool must not run at the same time, and each overwrites what others wrote there. So results
that have to outlive a replay go into tensors which the caller made before the capture.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from kestrel_core.protocol.errors import EngineFailed

Work = Callable[[], None]


class Graphs:
    lazy = False  # whether most sizes are left for later

    def __init__(self, device: torch.device, required: bool = False, lazy: bool = False) -> None:
        self.lazy = lazy
        self._required = required
        self._pool = torch.cuda.graph_pool_handle()
        self._first: torch.cuda.CUDAGraph | None = None  # it keeps the pool alive
        # One for all: every stream comes with workspaces of its own.
        self._stream = torch.cuda.Stream(device)

    @classmethod
    def wanted(cls, device: torch.device, choice: str) -> "Graphs | None":
        """`choice`: auto, lazy, off or required."""
        return None if choice == "off" else cls(device, choice == "required", choice == "lazy")

    def refuse_if_required(self, error: Exception) -> None:
        """For a caller that would go on without graphs because of `error`."""
        if self._required:
            raise EngineFailed(f"CUDA graphs are required, and a capture failed: {error}") from error

    def capture(self, work: Work) -> Work:
        """The replay that does `work`. Raises if the work waits for the device anywhere."""
        if self.lazy and self._first is not None:
            return self._capture_quickly(work)
        stream = self._stream
        stream.wait_stream(torch.cuda.current_stream())
        # The work runs twice before it is captured. The first run compiles kernels and lets libraries take
        # their workspaces. The second finds waits, which during a capture would spoil the stream.
        with torch.cuda.stream(stream):
            work()
            with no_waiting():
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            work()
        self._first = self._first or graph
        replay: Work = graph.replay
        return replay

    def _capture_quickly(self, work: Work) -> Work:
        """The same while an engine serves, or other threads prepare for it.

        The work runs once before it is captured, in the pool's own memory, so that nothing grows. Unlike
        `torch.cuda.graph` this neither waits for the device nor empties the allocators' caches, which the
        next steps need. Waits are not looked for: that setting is one for all threads, and work of this kind
        was captured before.
        """
        stream, graph = self._stream, torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                with allocating_from(self._pool):
                    work()
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    work()
                finally:
                    graph.capture_end()
        finally:  # also if it fails: the next step uses the same memory as the run before the capture
            torch.cuda.current_stream().wait_stream(stream)
        replay: Work = graph.replay
        return replay


@contextmanager
def allocating_from(pool: Any) -> Iterator[None]:
    """What this thread allocates comes from the pool of graphs, of which there must be one already.

    As `torch.cuda.use_mem_pool`, which takes pools of another kind; torch's own compiler does the same.
    """
    device = torch.cuda.current_device()
    torch._C._cuda_beginAllocateCurrentThreadToPool(device, pool)
    try:
        yield
    finally:
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)


@contextmanager
def no_waiting() -> Iterator[None]:
    """Raise an error wherever the host waits for the device."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns once that it does not find every wait
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def bucket_sizes(max_size: int) -> list[int]:
    """The sizes that batches are padded to: powers of two while small, then by eights, then by sixteens."""
    sizes = [1, 2, 4, *range(8, 64, 8), *range(64, max_size, 16)]
    return [size for size in sizes if size < max_size] + [max_size]
