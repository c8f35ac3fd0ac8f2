"""Many small arrays as one: packed into one pinned host buffer and sent to the device in one copy.

Nothing here waits for the device, except for a copy out of the very buffer that is to be written again.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

Arrays = dict[str, np.ndarray[Any, Any]]
Field = tuple[type[np.generic], tuple[int, ...]]
View = TypeVar("View")

DTYPES = {np.uint8: torch.uint8, np.int32: torch.int32, np.int64: torch.int64, np.float32: torch.float32}
ALIGNMENT = 16


class Packing:
    """Where each array lies in a buffer of bytes."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = dict(fields)
        self.offsets: dict[str, int] = {}
        self.num_bytes = 0
        for name, (kind, shape) in fields.items():
            self.offsets[name] = self.num_bytes
            self.num_bytes += -(-prod(shape) * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT

    def tensors(self, buffer: Tensor) -> dict[str, Tensor]:
        """The arrays as views of a buffer, on whatever device it is."""
        views = {}
        for name, (kind, shape) in self._fields.items():
            start, size = self.offsets[name], prod(shape) * np.dtype(kind).itemsize
            views[name] = buffer[start : start + size].view(DTYPES[kind]).view(shape)
        return views

    def arrays(self, buffer: Tensor) -> Arrays:
        """The same for a buffer on the host."""
        return {name: view.numpy() for name, view in self.tensors(buffer).items()}


def send(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    """Arrays of any size, once. The allocator reuses the host buffer when its copy is done."""
    packing = Packing({name: (array.dtype.type, array.shape) for name, array in arrays.items()})
    host = torch.empty(packing.num_bytes, dtype=torch.uint8, pin_memory=device.type == "cuda")
    places = packing.arrays(host)
    for name, array in arrays.items():
        places[name][...] = array
    return packing.tensors(host.to(device, non_blocking=True))


class PinnedBuffers(Generic[View]):
    """Two host buffers of bytes, used alternately: one is written while the device still reads the other.

    view = buffers.open()       # waits until the device has read what was last sent from this buffer
    view[...] = ...
    out.copy_(buffers.current, non_blocking=True)
    buffers.sent()
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device, view: Callable[[Tensor], View]) -> None:
        """`view`: what a buffer is written through."""
        on_cuda = device.type == "cuda"
        # Zeros, since a step sends all of a buffer and may not have written to all of it.
        self._buffers = [torch.zeros(shape, dtype=torch.uint8, pin_memory=on_cuda) for _ in range(2)]
        self._views = [view(buffer) for buffer in self._buffers]
        self._read = [torch.cuda.Event() for _ in self._buffers] if on_cuda else []
        self._current = 0

    @property
    def current(self) -> Tensor:
        return self._buffers[self._current]

    def open(self) -> View:
        """The other buffer, which becomes the current one. It holds what was written two times ago."""
        self._current = 1 - self._current
        if self._read:
            self._read[self._current].synchronize()
        return self._views[self._current]

    def sent(self) -> None:
        """All copies out of the current buffer are launched."""
        if self._read:
            self._read[self._current].record()


class Staging:
    """Arrays that keep their place on the device, as captured graphs need it, and are sent step by step.

    They come in named groups, which lie in the buffer in the order given. A step sends the first of them.
    """

    def __init__(self, groups: Sequence[tuple[str, Mapping[str, Field]]], device: torch.device) -> None:
        packing = Packing({name: field for _, fields in groups for name, field in fields.items()})
        self._buffer = torch.zeros(packing.num_bytes, dtype=torch.uint8, device=device)
        self._hosts = PinnedBuffers((packing.num_bytes,), device, packing.arrays)
        self.tensors = packing.tensors(self._buffer)
        self._starts: dict[str, int] = {}  # of each group, and below where it stops
        self._stops: dict[str, int] = {}
        self._itemsize: dict[str, int] = {}
        for group, fields in groups:
            first, last = next(iter(fields)), list(fields)[-1]
            self._starts[group] = packing.offsets[first]
            self._stops[group] = packing.offsets[last] + self.tensors[last].nbytes
            self._itemsize[group] = self.tensors[first].itemsize

    def open(self) -> Arrays:
        """What the next step's values are written into. It holds those of an earlier step."""
        return self._hosts.open()

    def send(self, last: str, count: int | None = None) -> None:
        """The groups up to `last`; with `count`, only the first entries of that one, which is one array."""
        stop = self._stops[last]
        if count is not None:
            stop = self._starts[last] + count * self._itemsize[last]
        self._buffer[:stop].copy_(self._hosts.current[:stop], non_blocking=True)
        self._hosts.sent()
