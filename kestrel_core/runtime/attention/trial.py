"""An attention that reads float8, tried out beside SDPA: libraries do not promise it for every head."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from kestrel_core.loop.step import PreparedImage, Running, Span
from kestrel_core.moondream.config import TextConfig
from kestrel_core.runtime.attention.protocol import DecodeRows, PagedAttention, SpanRows
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.kv_cache import KVCache, KVScales

LENGTH = 153  # positions of the sequence that is read
SPAN_TOKENS = (5, 40, 150)  # FlashInfer has tiles of 16, 64 and 128 queries
ALLOWED = 0.02  # of the RMS: roundings to 16 bits come to less than 0.01, and wrong numbers to about 1


class Trial:
    """A cache of one layer with random numbers, and an attention over it."""

    def __init__(
        self, make: Callable[[KVCache, TextConfig], PagedAttention], like: KVCache, config: TextConfig
    ) -> None:
        config, num_pages = replace(config, n_layers=1), -(-LENGTH // like.page_size)
        device, scales = like.k.device, [KVScales(k=0.5, v=2.0)]
        self._cache = KVCache(config, num_pages + 1, like.page_size, device, like.dtype, scales)
        self._heads, self._kv_heads = (
            (count, config.head_dim) for count in (config.n_heads, config.n_kv_heads)
        )
        self._random = torch.Generator().manual_seed(0)
        everywhere = torch.arange(len(self._cache.k[0]), device=device)
        self._cache.store(0, everywhere, *(self._randn(len(everywhere), *self._kv_heads) for _ in range(2)))
        self._pages = 1 + torch.randperm(num_pages, generator=self._random).to(device)
        self._attention, self._sdpa = make(self._cache, config), PagedSdpaAttention(self._cache, LENGTH)

    def decodes(self) -> bool:
        q, pages = self._randn(1, *self._heads), self._pages.to(torch.int32)
        ends = np.array((0, len(pages)), np.int32)
        buffers = torch.from_numpy(ends).to(pages.device), pages.clone(), pages[:1] * 0 + self._last
        rows = DecodeRows(pages[:1].long(), *buffers)
        found = []
        for attention in (self._attention, self._sdpa):
            decode = attention.for_decode(rows, captured=False)
            decode.plan(ends)
            rows.indptr.copy_(torch.from_numpy(ends))  # plans write here too, and not all of that is right
            rows.last_page_len.fill_(self._last)
            found.append(decode.begin().read(0, q))
        return _near(*found)

    def prefills(self) -> bool:
        """Causal ones of all lengths, and one in which all see each other."""
        spans = [(count, 0) for count in SPAN_TOKENS] + [(LENGTH, 1)]
        return all(self._prefills(*span) for span in spans)

    def _prefills(self, count: int, num_images: int) -> bool:
        image = PreparedImage("trial", np.zeros((1, 1, 1, 3), np.uint8), (1, 1)) if num_images else None
        span = Span(Running(0, self._pages.tolist()), LENGTH - count, LENGTH, None, image)
        cells = self._cache.cells(self._pages, LENGTH)[-count:]
        starts, indptr = np.array((0, count), np.int32), np.array((0, len(self._pages)), np.int32)
        last = np.array([self._last], np.int32)
        rows = SpanRows([span], num_images, starts, indptr, last, self._pages.to(torch.int32), cells)
        q, k, v = (self._randn(count, *shape) for shape in (self._heads, self._kv_heads, self._kv_heads))
        return _near(*(of.for_spans(rows)(0, q, k, v) for of in (self._attention, self._sdpa)))

    @property
    def _last(self) -> int:
        return (LENGTH - 1) % self._cache.page_size + 1

    def _randn(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self._random).to(self._cache.k.device, self._cache.dtype)


def _near(found: Tensor, expected: Tensor) -> bool:
    found, expected = found.float(), expected.float()
    off = (found - expected).square().mean().sqrt() / expected.square().mean().sqrt()
    return bool(off < ALLOWED)
