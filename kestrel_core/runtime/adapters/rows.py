"""Which adapter each token of a step has: from spans to what the text model takes.

Tokens of one adapter are gathered into tiles, which kernels compute one by one. Captured graphs find all of
it at fixed places, with as many tiles as there can be.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kestrel_core.loop.step import Span
from kestrel_core.moondream.lora import AdapterRows, Stacks
from kestrel_core.runtime.staging import Arrays, Field, Staging

Indices = np.ndarray[Any, np.dtype[np.int32]]

SMALL_STEP = 256  # tokens; up to here most adapters have only few of them
NAMES = ("of_token", "order", "tiles")


def has_adapters(spans: Sequence[Span]) -> bool:
    return any(span.sequence.adapter for span in spans)


def of_tokens(spans: Sequence[Span]) -> Indices:
    """The adapter's index of every token, the spans one behind the other."""
    lengths = [span.stop - span.start for span in spans]
    return np.repeat(np.array([span.sequence.adapter for span in spans], np.int32), lengths)


def plain_rows(spans: Sequence[Span], stacks: Stacks | None) -> AdapterRows | None:
    """What the plain text model takes. None: no token has an adapter."""
    if stacks is None or not has_adapters(spans):
        return None
    of_token = torch.from_numpy(of_tokens(spans)).to(stacks.numbers.device)
    return AdapterRows(stacks.blocks, of_token, stacks=stacks)


def tile_size(num_tokens: int) -> int:
    """The most tokens of a tile, in steps of so many tokens."""
    return 16 if num_tokens <= SMALL_STEP else 64


def num_tiles(num_tokens: int, max_adapters: int) -> int:
    """The most tiles there can be: each adapter has at most one that is not full."""
    return -(-num_tokens // tile_size(num_tokens)) + max_adapters


class TiledRows:
    """The adapters of a runtime's steps. Those that are captured have at most `max_tokens` tokens."""

    def __init__(self, stacks: Stacks, max_tokens: int) -> None:
        self._stacks = stacks
        shapes = [(max_tokens,), (max_tokens,), (self._most_tiles(max_tokens), 3)]
        fields: dict[str, Field] = {
            name: (np.int32, shape) for name, shape in zip(NAMES, shapes, strict=True)
        }
        self._staging = Staging([("adapters", fields)], stacks.numbers.device)

    def stage(self, spans: Sequence[Span], num_tokens: int) -> None:
        """Bring the adapters of a step to the fixed places. Tokens behind those of the spans have none."""
        arrays = self._staging.open()
        for name, values in self._lay_out(spans, num_tokens).items():
            arrays[name][: len(values)] = values
        self._staging.send("adapters")

    def staged(self, num_tokens: int) -> AdapterRows:
        """The fixed places, as a step of so many tokens uses them."""
        lengths = (num_tokens, num_tokens, num_tiles(num_tokens, self._stacks.max_adapters))
        placed = {
            name: self._staging.tensors[name][:length] for name, length in zip(NAMES, lengths, strict=True)
        }
        return self.rows(placed, num_tokens)

    def pack(self, spans: Sequence[Span]) -> Arrays:
        """What `rows` takes, once it is sent, for a step that is not captured."""
        return self._lay_out(spans, sum(span.stop - span.start for span in spans))

    def rows(self, tensors: Mapping[str, Tensor], num_tokens: int) -> AdapterRows:
        of_token, order, tiles = (tensors[name] for name in NAMES)
        stacks = self._stacks
        return AdapterRows(stacks.blocks, of_token, order, tiles, tile_size(num_tokens), stacks)

    def _lay_out(self, spans: Sequence[Span], num_tokens: int) -> Arrays:
        size, used = tile_size(num_tokens), of_tokens(spans)
        of_token, order = np.zeros(num_tokens, np.int32), np.zeros(num_tokens, np.int32)
        tiles = np.zeros((num_tiles(num_tokens, self._stacks.max_adapters), 3), np.int32)
        of_token[: len(used)] = used
        without, *counts = np.bincount(used, minlength=1).tolist()
        order[: len(used) - without] = np.argsort(used, kind="stable")[without:]
        made, first = list[tuple[int, int, int]](), 0
        for index, count in enumerate(counts, 1):
            stop = first + count
            made += [(index, at, min(at + size, stop)) for at in range(first, stop, size)]
            first = stop
        if made:
            tiles[: len(made)] = made
        return {"of_token": of_token, "order": order, "tiles": tiles}

    def _most_tiles(self, max_tokens: int) -> int:
        sizes = (min(max_tokens, SMALL_STEP), max_tokens)
        return max(num_tiles(size, self._stacks.max_adapters) for size in sizes)
