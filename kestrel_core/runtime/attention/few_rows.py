"""Attention of few rows by a kernel of our own, and of more rows and of spans by another attention.

Steps of few rows need no plan of the host, and one launch in each layer instead of two.
"""

import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.ops.protocol import FEW_ROWS
from kestrel_core.moondream.text import Attend
from kestrel_core.runtime.attention.page_kernels import Merging, PartTable, Pieces, attend, plan_parts
from kestrel_core.runtime.attention.protocol import (
    CachedAttend,
    DecodeAttention,
    DecodeRows,
    Ints,
    PagedAttention,
    SpanRows,
)
from kestrel_core.runtime.kv_cache import KVCache

PROGRAMS = 512  # that should share the work: about four for each multiprocessor of an H100 or H200
MAX_PARTS = 16
BLOCK_NUMBERS = 4096  # of a block of keys; two blocks are held in registers, and two of values


def cut(num_rows: int, config: TextConfig) -> Pieces:
    parts = 1
    while parts < MAX_PARTS and 2 * parts * num_rows * config.n_heads <= PROGRAMS:
        parts *= 2
    wide = 1 << (config.head_dim - 1).bit_length()
    block = max(16, BLOCK_NUMBERS // wide)
    return Pieces(parts, block, warps=2)


class FewRowsAttention:
    def __init__(
        self,
        kv_cache: KVCache,
        config: TextConfig,
        max_context: int,
        others: PagedAttention,
        early: bool = False,
    ) -> None:
        """`others` has the steps of more rows. `early`: as `ops.early_launch` says."""
        self.name = f"ours and {others.name}"
        self.max_captured = others.max_captured
        self._kv_cache = kv_cache
        self._config = config
        self._max_context = max_context
        self._others = others
        self._early = early

    def for_decode(self, rows: DecodeRows, captured: bool) -> DecodeAttention:
        if len(rows.cells) > FEW_ROWS:  # FlashInfer's two launches are short beside the reading
            return self._others.for_decode(rows, captured)
        pieces = cut(len(rows.cells), self._config)
        return FewRowsDecode(self._kv_cache, self._config, self._max_context, rows, pieces, self._early)

    def for_spans(self, rows: SpanRows) -> Attend:
        return self._others.for_spans(rows)

    def try_out(self) -> None:
        """Compute one position on page 0: the kernels are compiled here, or it fails."""
        config, like = self._config, self._kv_cache.k
        q, new = (
            torch.zeros((1, heads, config.head_dim), dtype=self._kv_cache.dtype, device=like.device)
            for heads in (config.n_heads, config.n_kv_heads)
        )
        zero = torch.zeros(1, dtype=torch.int32, device=like.device)
        rows = DecodeRows(zero.long(), torch.arange(2, dtype=torch.int32, device=like.device), zero, zero + 1)
        self.for_decode(rows, captured=False).begin()(0, q, new, new)
        if like.is_cuda:
            torch.cuda.synchronize(like.device)


class FewRowsDecode:
    def __init__(
        self,
        kv_cache: KVCache,
        config: TextConfig,
        max_context: int,
        rows: DecodeRows,
        pieces: Pieces,
        early: bool = False,
    ) -> None:
        """With `early`, another launch must lie between `begin` and the first read, as a block's first do."""
        self._kv_cache = kv_cache
        self._rows = rows
        self._pieces = pieces
        self._early = early
        count, device = len(rows.cells), kv_cache.k.device
        self._table = PartTable.empty(count, max_context, pieces, device)
        self._merging = Merging.empty(count, config.n_heads, config.head_dim, pieces.parts, device)

    def plan(self, indptr: Ints) -> None:
        """The device plans for itself."""

    def begin(self) -> CachedAttend:
        rows, table = self._rows, self._table
        plan_parts(
            rows.indptr, rows.indices, rows.last_page_len, self._kv_cache.page_size, table, self._pieces.block
        )
        return CachedAttend(self._kv_cache, rows.cells, self._read)

    def _read(self, layer: int, q: Tensor) -> Tensor:
        k, v = self._kv_cache.k[layer], self._kv_cache.v[layer]
        scales = self._kv_cache.scales[layer]
        return attend(q, k, v, scales, self._table, self._merging, self._pieces, self._early)
