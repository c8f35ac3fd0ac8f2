"""The KV tensors. The scheduler decides which page belongs to whom; here they are only written and read.

A cell is one token's place: `page * page_size + offset`. In float8 a cell holds keys and values divided by
their layer's scales, and what is too large for that becomes the largest number there is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.ops.plain import FLOAT8, store_cells


class KVScales(NamedTuple):
    """What a layer's float8 numbers are multiplied by. Powers of two: bfloat16 holds the products exactly."""

    k: float = 1.0
    v: float = 1.0


class KVCache:
    def __init__(
        self,
        config: TextConfig,
        num_pages: int,
        page_size: int,
        device: torch.device,
        dtype: torch.dtype,
        float8: Sequence[KVScales] | None = None,
    ) -> None:
        """Attention computes in `dtype`. `float8`: how each layer is stored; None: as it is computed."""
        self.num_pages = num_pages
        self.page_size = page_size
        self.dtype = dtype
        self.scales = list(float8) if float8 is not None else [KVScales()] * config.n_layers
        shape = (config.n_layers, num_pages * page_size, config.n_kv_heads, config.head_dim)
        stored = dtype if float8 is None else FLOAT8
        self.k = torch.zeros(shape, device=device, dtype=stored)
        self.v = torch.zeros(shape, device=device, dtype=stored)

    @property
    def is_float8(self) -> bool:
        return self.k.dtype == FLOAT8

    def store(self, layer: int, cells: Tensor, k: Tensor, v: Tensor) -> None:
        """k, v: [tokens, kv_heads, head_dim], written at cells [tokens]."""
        scales = self.scales[layer]
        store_cells(self.k[layer], cells, k, scales.k)
        store_cells(self.v[layer], cells, v, scales.v)

    def load(self, layer: int, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values at cells of any shape, as attention computes with them."""
        at, scales = cells.flatten(), self.scales[layer]
        kept = self.k[layer], self.v[layer]
        if self.is_float8:  # as bytes, which every device gathers
            found = (part.view(torch.uint8).index_select(0, at).view(FLOAT8) for part in kept)
            k, v = (part.to(self.dtype) * scale for part, scale in zip(found, scales, strict=True))
        else:
            k, v = (part.index_select(0, at) for part in kept)
        return k.unflatten(0, cells.shape), v.unflatten(0, cells.shape)

    def cells(self, pages: Tensor, length: int) -> Tensor:
        """The cells of positions [0, length) of a sequence with this page table."""
        offsets = torch.arange(self.page_size, device=pages.device)
        return (pages[:, None] * self.page_size + offsets).flatten()[:length]

    @staticmethod
    def bytes_per_cell(config: TextConfig, dtype: torch.dtype) -> int:
        return 2 * config.n_layers * config.n_kv_heads * config.head_dim * dtype.itemsize
