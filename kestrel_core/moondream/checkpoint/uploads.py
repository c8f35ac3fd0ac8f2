"""Tensors of a mapped file to a device, several at a time.

One thread that copies out of a mapped file brings a few GB/s to a GPU, because the driver passes every piece
through a small buffer of its own. Here each of several threads fills pinned buffers, and sends one while it
fills the other.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

PART_BYTES = 32 << 20
AHEAD = 4  # pieces of work for each thread that are begun before the first is waited for

Job = TypeVar("Job")
Done = TypeVar("Done")


class Upload:
    """What one thread copies with."""

    def __init__(self, device: torch.device, part_bytes: int = PART_BYTES) -> None:
        on_cuda = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if on_cuda else None
        self._parts = [torch.empty(part_bytes, dtype=torch.uint8, pin_memory=on_cuda) for _ in range(2)]
        self._sent = [torch.cuda.Event() for _ in self._parts] if on_cuda else []
        self._current = 0

    def on_stream(self) -> AbstractContextManager[object]:
        """All that a tensor needs is launched on a stream of this thread's own."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def copy(self, out: Tensor, source: Tensor) -> None:
        """`source` is on the host. What is not laid out as `out` is converted on the way, without buffers."""
        if out.dtype != source.dtype or not source.is_contiguous() or not out.is_contiguous():
            out.copy_(source)
            return
        there, here = (tensor.flatten().view(torch.uint8) for tensor in (out, source))
        size = len(self._parts[0])
        for start in range(0, len(here), size):
            self._send(there[start : start + size], here[start : start + size])

    def _send(self, there: Tensor, here: Tensor) -> None:
        self._current = 1 - self._current
        part = self._parts[self._current][: len(here)]
        if self._sent:
            self._sent[self._current].synchronize()
        np.copyto(part.numpy(), here.numpy())  # not torch's copy, which would use all cores in each thread
        there.copy_(part, non_blocking=True)
        if self._sent:
            self._sent[self._current].record()

    def finish(self) -> None:
        """Wait until all is there."""
        if self._stream is not None:
            self._stream.synchronize()


def side_by_side(
    do: Callable[[Upload, Job], Done], jobs: Iterable[Job], device: torch.device, num_threads: int
) -> Iterator[Done]:
    """`do` every job, in so many threads, and yield the results in order."""
    uploads = SimpleQueue[Upload]()
    for _ in range(num_threads):
        uploads.put(Upload(device))

    def one(job: Job) -> Done:
        upload = uploads.get()
        try:
            with torch.no_grad(), upload.on_stream():
                done = do(upload, job)
            upload.finish()  # whoever takes the result may use it on any stream
            return done
        finally:
            uploads.put(upload)

    waiting: list[Future[Done]] = []
    with ThreadPoolExecutor(num_threads, "kestrel-weights") as threads:
        for job in jobs:
            waiting.append(threads.submit(one, job))
            if len(waiting) > AHEAD * num_threads:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()
