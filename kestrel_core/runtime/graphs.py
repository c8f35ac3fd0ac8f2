"""CUDA graphs: work captured once and replayed, all of it in one pool of memory.

The graphs of a pool must not run at the same time, and each overwrites what others wrote there. So results
that have to outlive a replay go into tensors which the caller made before the capture.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from kestrel_core.protocol.errors import EngineFailed

Work = Callable[[], None]


class Graphs:
    def __init__(self, device: torch.device, required: bool = False, urgent: bool = False) -> None:
        """Urgent: thread blocks of these graphs go first where those of other graphs wait too."""
        self._required = required
        self._pool = torch.cuda.graph_pool_handle()
        # One for all: every stream comes with workspaces of its own. Captured kernels keep its priority.
        self._stream = torch.cuda.Stream(device, priority=-1 if urgent else 0)

    @classmethod
    def wanted(cls, device: torch.device, choice: str, urgent: bool = False) -> "Graphs | None":
        """`choice`: auto, off or required."""
        return None if choice == "off" else cls(device, choice == "required", urgent)

    def refuse_if_required(self, error: Exception) -> None:
        """For a caller that would go on without graphs because of `error`."""
        if self._required:
            raise EngineFailed(f"CUDA graphs are required, and a capture failed: {error}") from error

    def capture(self, work: Work) -> Work:
        """The replay that does `work`. Raises if the work waits for the device anywhere."""
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
        replay: Work = graph.replay
        return replay


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
