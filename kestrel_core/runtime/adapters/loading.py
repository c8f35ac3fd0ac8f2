"""Brings adapters to their place among a runtime's `Stacks`, while steps run that use other places.

For a CUDA device an adapter is laid out in pinned memory of the host and then copied on a stream of its own,
so that the copy runs beside the steps and none of them waits for it.
"""

from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

import torch
from torch import Tensor

from kestrel_core.loop import step
from kestrel_core.moondream.lora import Adapter, Stacks

Load = Callable[[step.Adapter], None]

# An adapter is copied in parts of so many numbers, because what a step sends waits for a copy under way.
PART = 4 << 20


def room_for_adapters(stacks: Stacks | None) -> str:
    """In words, for whoever looks at what is in use."""
    if stacks is None:
        return "off"
    num_bytes = stacks.numbers.nbytes + stacks.ranks.nbytes
    return f"{stacks.max_adapters} x rank {stacks.max_rank}, {num_bytes / 2**20:,.0f} MiB"


class AdapterLoading:
    def __init__(self, stacks: Stacks) -> None:
        self.stacks = stacks
        self._copies = PinnedCopies(stacks) if stacks.numbers.is_cuda else None

    def loader(self, index: int) -> Load:
        """See `Runtime.adapter_loader`. For the loop's thread."""
        assert 1 <= index <= self.stacks.max_adapters
        return self._in_place(index) if self._copies is None else self._copies.loader(index)

    def _in_place(self, index: int) -> Load:
        """In memory of the host an adapter is laid out right where it belongs."""

        @torch.inference_mode()
        def load(adapter: step.Adapter) -> None:
            assert isinstance(adapter, Adapter)
            ranks = self.stacks.write(adapter, self.stacks.numbers[index])
            self.stacks.ranks[index] = torch.tensor(ranks, dtype=torch.int32)

        return load


class Piece(NamedTuple):
    """One adapter in pinned memory of the host."""

    numbers: Tensor
    ranks: Tensor


class PinnedCopies:
    """Two pieces, so that one adapter is laid out while another is on its way."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._device = stacks.numbers.device
        self._stream = torch.cuda.Stream(self._device)
        self._pieces = SimpleQueue[Piece]()  # those that no copy reads
        for _ in range(2):
            ranks = torch.zeros(stacks.ranks.shape[1], dtype=torch.int32, pin_memory=True)
            self._pieces.put(Piece(stacks.host_piece(pinned=True), ranks))

    def loader(self, index: int) -> Load:
        with torch.cuda.device(self._device):
            # Steps launched so far may read what lies there, for sequences that ended meanwhile.
            launched = torch.cuda.Event()
            launched.record()

        @torch.inference_mode()
        def load(adapter: step.Adapter) -> None:
            assert isinstance(adapter, Adapter)
            piece = self._pieces.get()  # waits while all are in use
            try:
                piece.ranks.copy_(torch.tensor(self._stacks.write(adapter, piece.numbers)))
                self._copy(piece, index, launched)
            finally:
                self._pieces.put(piece)

        return load

    def _copy(self, piece: Piece, index: int, after: torch.cuda.Event) -> None:
        with torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            self._stream.wait_event(after)
            place = self._stacks.numbers[index]
            for there, here in zip(place.split(PART), piece.numbers.split(PART), strict=True):
                there.copy_(here, non_blocking=True)
            self._stacks.ranks[index].copy_(piece.ranks, non_blocking=True)
            done = torch.cuda.Event()
            done.record()
        done.synchronize()
