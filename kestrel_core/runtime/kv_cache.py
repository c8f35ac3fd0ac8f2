"""The KV tensors. The scheduler decides which page belongs to whom; here they are only written and read.

A cell is one token's place: `page * page_size + offset`.
"""

import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig


class KVCache:
    def __init__(
        self, config: TextConfig, num_pages: int, page_size: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.num_pages = num_pages
        self.page_size = page_size
        shape = (config.n_layers, num_pages * page_size, config.n_kv_heads, config.head_dim)
        self.k = torch.zeros(shape, device=device, dtype=dtype)
        self.v = torch.zeros(shape, device=device, dtype=dtype)

    def store(self, layer: int, cells: Tensor, k: Tensor, v: Tensor) -> None:
        """k, v: [tokens, kv_heads, head_dim], written at cells [tokens]."""
        self.k[layer].index_copy_(0, cells, k)
        self.v[layer].index_copy_(0, cells, v)

    def cells(self, pages: Tensor, length: int) -> Tensor:
        """The cells of positions [0, length) of a sequence with this page table."""
        offsets = torch.arange(self.page_size, device=pages.device)
        return (pages[:, None] * self.page_size + offsets).flatten()[:length]

    @staticmethod
    def bytes_per_cell(config: TextConfig, dtype: torch.dtype) -> int:
        return 2 * config.n_layers * config.n_kv_heads * config.head_dim * dtype.itemsize
