"""Tables of which a step reads a few rows, in the host's memory: the device reads them over the bus."""

import logging
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger("kestrel")


class _Shown:
    """Page-locked bytes as other libraries show theirs: at an address that the device knows."""

    def __init__(self, numbers: Tensor) -> None:
        self._numbers = numbers  # which live as long as the device's view of them
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": tuple(numbers.shape),
            "typestr": "|u1",
            "data": (numbers.data_ptr(), False),
            "version": 3,
        }


def left_on_host(table: Tensor) -> Tensor:
    """The same numbers as a tensor of the same device that takes none of its memory; `table` itself, where
    the device has none of its own, or cannot read the host's.
    """
    if not table.is_cuda:
        return table
    try:
        with torch.cuda.device(table.device):
            numbers = torch.empty(table.shape, dtype=table.dtype, pin_memory=True)
            numbers.copy_(table)
            seen = torch.as_tensor(_Shown(numbers.view(torch.uint8)), device=table.device).view(table.dtype)
            if not torch.equal(seen[-1], table[-1]):
                raise RuntimeError("the device reads other numbers than the host has")
    except (RuntimeError, TypeError) as error:
        log.warning("a table of %d MiB stays on the device: %s", table.nbytes >> 20, error)
        return table
    return seen
