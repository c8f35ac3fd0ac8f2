"""What a runtime asks of an attention over pages, and how it describes the rows of a step to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.loop.step import Span
from kestrel_core.moondream.text import Attend
from kestrel_core.runtime.kv_cache import KVCache

Ints = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class DecodeRows:
    """Rows of one position each, in buffers that keep their place. Those behind the last are padding."""

    cells: Tensor  # [rows], where this step's keys and values go
    indptr: Tensor  # [rows + 1], int32 like all below: where each row's pages begin in `indices`
    indices: Tensor  # the rows' page tables, end to end
    last_page_len: Tensor  # [rows]: cells in use of each row's last page

    def first(self, count: int) -> "DecodeRows":
        return DecodeRows(
            self.cells[:count], self.indptr[: count + 1], self.indices, self.last_page_len[:count]
        )


@dataclass(frozen=True, slots=True)
class SpanRows:
    """Spans of any length, those of images first, packed token by token."""

    spans: list[Span]
    num_images: int  # the first spans, which are image prefixes
    starts: Ints  # [spans + 1]: each span's first token
    indptr: Ints  # [spans + 1]
    last_page_len: Ints  # [spans]; these three are on the host
    indices: Tensor
    cells: Tensor  # [tokens]


@dataclass(frozen=True, slots=True)
class CachedAttend:
    """An `OpenAttend`. `read` follows when the keys and values are stored, by the call or by a kernel."""

    kv_cache: KVCache
    new_cells: Tensor
    read: Callable[[int, Tensor], Tensor]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.kv_cache.store(layer, self.new_cells, k, v)
        return self.read(layer, q)

    def cells(self, layer: int) -> tuple[Tensor, Tensor, Tensor, float, float]:
        kept = self.kv_cache
        return kept.k[layer], kept.v[layer], self.new_cells, *kept.scales[layer]


def beside_images(rows: CachedAttend, image_cells: Tensor, num_images: int) -> CachedAttend:
    """Attention of image prefixes, each of which sees all of itself and nothing else, and then of rows."""
    kv_cache, num_tokens = rows.kv_cache, len(image_cells)

    def by_image(tokens: Tensor) -> Tensor:
        heads: Tensor = tokens.unflatten(0, (num_images, -1)).transpose(1, 2)
        return heads

    def read(layer: int, q: Tensor) -> Tensor:
        k, v = kv_cache.load(layer, image_cells)
        seen = F.scaled_dot_product_attention(
            by_image(q[:num_tokens]), by_image(k), by_image(v), enable_gqa=q.shape[1] != k.shape[1]
        )
        return torch.cat((seen.transpose(1, 2).flatten(0, 1), rows.read(layer, q[num_tokens:])))

    return CachedAttend(kv_cache, torch.cat((image_cells, rows.new_cells)), read)


class DecodeAttention(Protocol):
    """Attention of decodes in batches of one size."""

    def plan(self, indptr: Ints) -> None:
        """On the host, before a step. The rows will have this `indptr`."""
        ...

    def begin(self) -> CachedAttend:
        """On the device, as part of a graph: prepare what all layers of a step share."""
        ...


class PagedAttention(Protocol):
    name: str
    max_captured: int  # the most rows of a decode that can be captured into a graph

    def for_decode(self, rows: DecodeRows, captured: bool) -> DecodeAttention: ...

    def for_spans(self, rows: SpanRows) -> Attend: ...
