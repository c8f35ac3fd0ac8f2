"""Which attention serves this device, and what a runtime asks of one."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.text import Attend
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.step import Span

log = logging.getLogger("kestrel")

Ints = np.ndarray[Any, np.dtype[np.int32]]


@dataclass(frozen=True, slots=True)
class DecodeRows:
    """One position of each of some sequences, in buffers that keep their place. Rows are padded."""

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
    num_images: int  # so many spans at the front are images'
    starts: Ints  # [spans + 1]: each span's first token
    indptr: Ints  # [spans + 1]
    last_page_len: Ints  # [spans]; these three on the host
    indices: Tensor
    cells: Tensor  # [tokens]


@dataclass(frozen=True, slots=True)
class CachedAttend:
    """An `OpenAttend`: `read` comes after the step's keys and values are stored, by us or by a kernel."""

    kv_cache: KVCache
    new_cells: Tensor
    read: Callable[[int, Tensor], Tensor]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.kv_cache.store(layer, self.new_cells, k, v)
        return self.read(layer, q)

    def cells(self, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        return self.kv_cache.k[layer], self.kv_cache.v[layer], self.new_cells


def beside_images(rows: CachedAttend, image_cells: Tensor, num_images: int) -> CachedAttend:
    """For so many image prefixes, which see themselves alone and in both directions, and then the rows."""
    kv_cache, num_tokens = rows.kv_cache, len(image_cells)

    def by_image(tokens: Tensor) -> Tensor:
        heads: Tensor = tokens.unflatten(0, (num_images, -1)).transpose(1, 2)
        return heads

    def read(layer: int, q: Tensor) -> Tensor:
        k, v = (cache[layer].index_select(0, image_cells) for cache in (kv_cache.k, kv_cache.v))
        seen = F.scaled_dot_product_attention(
            by_image(q[:num_tokens]), by_image(k), by_image(v), enable_gqa=q.shape[1] != k.shape[1]
        )
        return torch.cat((seen.transpose(1, 2).flatten(0, 1), rows.read(layer, q[num_tokens:])))

    return CachedAttend(kv_cache, torch.cat((image_cells, rows.new_cells)), read)


class DecodeAttention(Protocol):
    """Attention of decodes in batches of one size."""

    def plan(self, indptr: Ints) -> None:
        """On the host, before a step; `indptr` is what will be in the rows'."""
        ...

    def begin(self) -> CachedAttend:
        """On the device, and so in a graph: what all layers of a step share."""
        ...


class Attention(Protocol):
    max_captured: int  # rows of a decode that may be captured into a graph

    def for_decode(self, rows: DecodeRows, captured: bool) -> DecodeAttention: ...

    def for_spans(self, rows: SpanRows) -> Attend: ...


def pick_attention(kv_cache: KVCache, config: TextConfig, max_context: int, flashinfer: str) -> Attention:
    """FlashInfer's where it is there and can do it; else SDPA's, and a warning that says what it costs."""
    reason = _reason_against_flashinfer(kv_cache, config, flashinfer)
    if reason is None:
        try:
            from kestrel_core.runtime.flashinfer_attention import FlashInferAttention

            attention = FlashInferAttention(kv_cache, config)
            attention.try_out()
            return attention
        except Exception as error:  # not installed, or no compiler for its kernels
            reason = f"{type(error).__name__}: {error}"
    if kv_cache.k.is_cuda:
        log.warning(
            "serving without FlashInfer (%s): attention copies every sequence's keys and values in each "
            "layer, several times the memory traffic of a decode step, and mixed steps go span by span",
            reason,
        )
    from kestrel_core.runtime.sdpa_attention import PagedSdpaAttention

    return PagedSdpaAttention(kv_cache, max_context)


def _reason_against_flashinfer(kv_cache: KVCache, config: TextConfig, flashinfer: str) -> str | None:
    if flashinfer == "off":
        return "it is switched off"
    if not kv_cache.k.is_cuda:
        return "it needs a CUDA device"
    if kv_cache.k.dtype not in (torch.bfloat16, torch.float16):
        return f"it needs 16-bit weights, and these are {kv_cache.k.dtype}"
    if config.head_dim not in (64, 128, 256):
        return f"it has no kernels for heads of {config.head_dim}"
    return None
