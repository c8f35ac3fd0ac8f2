"""Rows of a decode over random pages, for `decode_stages` and what belongs to it."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.runtime.attention.protocol import DecodeRows
from kestrel_core.runtime.kv_cache import KVCache

PAGE_SIZE = 10
CONTEXT = 800
MAX_CONTEXT = 2048


def rows_of(lengths: Sequence[int], cache: KVCache) -> DecodeRows:
    """Rows of these lengths on random pages."""
    counts = [-(-length // PAGE_SIZE) for length in lengths]
    device = cache.k.device
    pages = 1 + torch.randperm(cache.num_pages - 1, device=device)[: sum(counts)]
    indices = torch.zeros(max(len(lengths) * MAX_CONTEXT // PAGE_SIZE, sum(counts)), device=device)
    indices[: len(pages)] = pages
    indptr = torch.tensor(np.concatenate(([0], np.cumsum(counts))), device=device)
    last = torch.tensor([(length - 1) % PAGE_SIZE + 1 for length in lengths], device=device)
    ends = indices[indptr[1:] - 1].long()
    cells = ends * PAGE_SIZE + last - 1
    return DecodeRows(cells, indptr.int(), indices.int(), last.int())


def copied(rows: DecodeRows) -> DecodeRows:
    parts = rows.cells, rows.indptr, rows.indices, rows.last_page_len
    return DecodeRows(*(part.clone() for part in parts))


def fill(rows: DecodeRows, other: DecodeRows) -> None:
    for mine, new in zip(
        (rows.cells, rows.indptr, rows.indices, rows.last_page_len),
        (other.cells, other.indptr, other.indices, other.last_page_len),
        strict=True,
    ):
        mine[: len(new)] = new


def filled_cache(config: TextConfig, num_pages: int, device: torch.device, dtype: torch.dtype) -> KVCache:
    cache = KVCache(config, num_pages, PAGE_SIZE, device, dtype)
    for layer in range(len(cache.k)):
        cache.k[layer].normal_()
        cache.v[layer].normal_()
    return cache


def difference(ours: Tensor, expected: Tensor) -> float:
    """The largest, in parts of the largest number."""
    return float((ours.float() - expected).abs().max() / expected.abs().max().clamp(min=1e-6))
