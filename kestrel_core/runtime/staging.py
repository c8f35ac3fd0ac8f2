"""Many small arrays as one: packed into one pinned host buffer and sent to the device in one copy.

Nothing here waits for the device, but for a copy out of the very buffer that is to be written again.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

Arrays = dict[str, np.ndarray[Any, Any]]
Field = tuple[type[np.generic], tuple[int, ...]]

DTYPES = {np.uint8: torch.uint8, np.int32: torch.int32, np.int64: torch.int64, np.float32: torch.float32}
ALIGNMENT = 16


class Packing:
    """Where each array lies in the buffer."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = dict(fields)
        self.offsets: dict[str, int] = {}
        self.num_bytes = 0
        for name, (kind, shape) in fields.items():
            self.offsets[name] = self.num_bytes
            self.num_bytes += -(-prod(shape) * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT

    def tensors(self, buffer: Tensor) -> dict[str, Tensor]:
        """The arrays as views of a byte buffer, on whatever device that is."""
        views = {}
        for name, (kind, shape) in self._fields.items():
            start, size = self.offsets[name], prod(shape) * np.dtype(kind).itemsize
            views[name] = buffer[start : start + size].view(DTYPES[kind]).view(shape)
        return views

    def host_buffer(self, pinned: bool) -> tuple[Tensor, Arrays]:
        buffer = torch.empty(self.num_bytes, dtype=torch.uint8, pin_memory=pinned)
        return buffer, {name: view.numpy() for name, view in self.tensors(buffer).items()}


def send(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    """Arrays of any size, for once. The host buffer is the allocator's again when its copy is done."""
    packing = Packing({name: (array.dtype.type, array.shape) for name, array in arrays.items()})
    host, places = packing.host_buffer(pinned=device.type == "cuda")
    for name, array in arrays.items():
        places[name][...] = array
    return packing.tensors(host.to(device, non_blocking=True))


class Staging:
    """Arrays that keep their place on the device, as captured graphs need it, and are sent step by step."""

    def __init__(self, fields: Mapping[str, Field], device: torch.device, num_buffers: int = 2) -> None:
        self._packing = Packing(fields)
        self._on_cuda = device.type == "cuda"
        self._buffer = torch.zeros(self._packing.num_bytes, dtype=torch.uint8, device=device)
        self.tensors = self._packing.tensors(self._buffer)
        self._hosts = [self._packing.host_buffer(pinned=self._on_cuda) for _ in range(num_buffers)]
        for buffer, _ in self._hosts:
            buffer.zero_()  # what a step leaves as it is must be sound too
        self._copied = [torch.cuda.Event() for _ in self._hosts] if self._on_cuda else []
        self._current = 0

    def open(self) -> Arrays:
        """What to write the next step's values into. It holds those of an earlier one."""
        self._current = (self._current + 1) % len(self._hosts)
        if self._on_cuda:
            self._copied[self._current].synchronize()
        return self._hosts[self._current][1]

    def send(self, upto: str, count: int) -> None:
        """The arrays before `upto`, and the first `count` entries of that one, which has one dimension."""
        stop = self._packing.offsets[upto] + count * self.tensors[upto].itemsize
        self._buffer[:stop].copy_(self._hosts[self._current][0][:stop], non_blocking=True)
        if self._on_cuda:
            self._copied[self._current].record()
