"""Attention over pages with plain torch: gather the keys, mask, SDPA. The reference for every faster one."""

import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.runtime.batch import Batch
from kestrel_core.runtime.kv_cache import KVCache


class SdpaAttention:
    """An `Attend` for one step."""

    def __init__(self, kv_cache: KVCache, batch: Batch) -> None:
        self._kv_cache = kv_cache
        self._batch = batch
        self._masks = [self._mask(index) for index in range(len(batch.spans))]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self._kv_cache.store(layer, self._batch.new_cells, k, v)
        keys, values = self._kv_cache.k[layer], self._kv_cache.v[layer]
        out = torch.empty_like(q)
        for span, start, cells, mask in zip(
            self._batch.spans, self._batch.starts, self._batch.cells, self._masks, strict=True
        ):
            rows = slice(start, start + span.stop - span.start)
            out[rows] = F.scaled_dot_product_attention(
                q[rows].transpose(0, 1)[None],  # [1, heads, tokens, head_dim]
                keys[cells].transpose(0, 1)[None],
                values[cells].transpose(0, 1)[None],
                attn_mask=mask,
                enable_gqa=q.shape[1] != k.shape[1],
            )[0].transpose(0, 1)
        return out

    def _mask(self, index: int) -> Tensor | None:
        """[tokens, keys], True where a key may be seen; None where all may."""
        span = self._batch.spans[index]
        if span.image is not None or span.stop - span.start == 1:
            return None
        device = self._batch.positions.device
        keys = torch.arange(span.stop, device=device)
        return keys <= torch.arange(span.start, span.stop, device=device)[:, None]
