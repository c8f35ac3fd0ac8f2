"""Attention over pages with plain torch: gather the keys, mask, SDPA. The specification of faster ones."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.loop.step import Span
from kestrel_core.moondream.text import Attend
from kestrel_core.runtime.attention.protocol import CachedAttend, DecodeRows, Ints, SpanRows
from kestrel_core.runtime.kv_cache import KVCache

MAX_GATHERED_BYTES = 2**30  # that a captured decode may gather as keys and values of a layer


class SdpaAttention:
    """An `Attend` for one step."""

    def __init__(
        self,
        kv_cache: KVCache,
        spans: Sequence[Span],
        starts: Sequence[int],
        cells: Sequence[Tensor],
        last_layer: int | None = None,
    ) -> None:
        """`starts`: each span's first token. `cells`: of its sequence up to its end, the keys it may see.

        `last_layer`: where spans without a readout are not computed, since nobody reads what they get there.
        """
        self._kv_cache = kv_cache
        self._last_layer = last_layer
        self._new_cells = torch.cat([known[span.start :] for span, known in zip(spans, cells, strict=True)])
        masks = [self._mask(span) for span in spans]
        self._spans = list(zip(spans, starts, cells, masks, strict=True))

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self._kv_cache.store(layer, self._new_cells, k, v)
        out = torch.empty_like(q)
        for span, start, cells, mask in self._spans:
            if layer == self._last_layer and span.readout is None:
                continue
            rows = slice(start, start + span.stop - span.start)
            is_whole = span.start == 0 and not self._kv_cache.is_float8  # then all that it sees is at hand
            keys, values = (k[rows], v[rows]) if is_whole else self._kv_cache.load(layer, cells)
            out[rows] = F.scaled_dot_product_attention(
                q[rows].transpose(0, 1)[None],  # [1, heads, tokens, head_dim]
                keys.transpose(0, 1)[None],
                values.transpose(0, 1)[None],
                attn_mask=mask,
                enable_gqa=q.shape[1] != k.shape[1],
            )[0].transpose(0, 1)
        return out

    def _mask(self, span: Span) -> Tensor | None:
        """[tokens, keys], True where a key may be seen; None if all may be seen."""
        if span.image is not None or span.stop - span.start == 1:
            return None
        device = self._new_cells.device
        keys = torch.arange(span.stop, device=device)
        return keys <= torch.arange(span.start, span.stop, device=device)[:, None]


class PagedSdpaAttention:
    """What serves where FlashInfer cannot: gathers keys and values, and needs nothing but torch."""

    name = "sdpa"

    def __init__(self, kv_cache: KVCache, max_context: int) -> None:
        self._kv_cache = kv_cache
        self._max_pages = -(-max_context // kv_cache.page_size)
        # In a graph the keys of every row are gathered at full length, so a batch must not be too large.
        cell_bytes = 2 * kv_cache.k[0, 0].numel() * kv_cache.dtype.itemsize
        row_bytes = self._max_pages * kv_cache.page_size * cell_bytes
        self.max_captured = MAX_GATHERED_BYTES // row_bytes

    def for_decode(self, rows: DecodeRows, captured: bool) -> "PagedSdpaDecode":
        return PagedSdpaDecode(self._kv_cache, rows, self._max_pages if captured else None)

    def for_spans(self, rows: SpanRows) -> Attend:
        ends = rows.indptr.tolist()
        cells = [
            self._kv_cache.cells(rows.indices[first:last], span.stop)
            for span, first, last in zip(rows.spans, ends, ends[1:], strict=False)
        ]
        return SdpaAttention(self._kv_cache, rows.spans, rows.starts.tolist()[:-1], cells)


class PagedSdpaDecode:
    def __init__(self, kv_cache: KVCache, rows: DecodeRows, max_pages: int | None) -> None:
        """`max_pages`: gather so many for every row, so that shapes never change. None: as the step needs."""
        self._kv_cache = kv_cache
        self._rows = rows
        self._max_pages = max_pages
        self._num_pages = max_pages or 1

    def plan(self, indptr: Ints) -> None:
        if self._max_pages is None:
            self._num_pages = int((indptr[1:] - indptr[:-1]).max())

    def begin(self) -> CachedAttend:
        rows, page_size = self._rows, self._kv_cache.page_size
        device, first, counts = rows.indptr.device, rows.indptr[:-1], rows.indptr.diff()
        at = (first[:, None] + torch.arange(self._num_pages, device=device)).clamp(max=len(rows.indices) - 1)
        offsets = torch.arange(page_size, device=device)
        cells = (rows.indices[at].long()[..., None] * page_size + offsets).flatten(1)  # [rows, keys]
        lengths = (counts - 1) * page_size + rows.last_page_len
        seen = torch.arange(cells.shape[1], device=device) < lengths[:, None]
        # Values that are not seen are multiplied by 0, so they must be numbers. Those on page 0 always are.
        cells = torch.where(seen, cells, 0)
        mask = seen[:, None, None]

        def read(layer: int, q: Tensor) -> Tensor:
            k, v = self._kv_cache.load(layer, cells)
            return F.scaled_dot_product_attention(
                q[:, :, None],  # [rows, heads, 1, head_dim]
                k.transpose(1, 2),
                v.transpose(1, 2),
                attn_mask=mask,
                enable_gqa=q.shape[1] != k.shape[2],
            )[:, :, 0]

        return CachedAttend(self._kv_cache, rows.cells, read)
