"""CUDA graphs: work captured once and replayed, all of it in one pool of memory.

Graphs of a pool must not run at the same time, and each writes where others wrote before: so what shall
outlive a replay goes into tensors of the caller's, made before.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

Work = Callable[[], None]


class Graphs:
    def __init__(self, device: torch.device) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)  # one for all: every stream comes with workspaces of its own

    def capture(self, work: Work) -> Work:
        """Has `work` done by a replay from now on. Raises if it waits for the device anywhere."""
        stream = self._stream
        stream.wait_stream(torch.cuda.current_stream())
        # Twice beforehand: kernels are compiled and libraries take their workspaces; and a wait is found
        # where an error is only an error, while in a capture it would spoil the stream.
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
    """Make an error of what has the host wait for the device."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says once that it does not find everything
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def bucket_sizes(max_size: int) -> list[int]:
    """The sizes that batches are padded to: powers of two while small, then by eights, then by sixteens."""
    sizes = [1, 2, 4, *range(8, 64, 8), *range(64, max_size, 16)]
    return [size for size in sizes if size < max_size] + [max_size]
