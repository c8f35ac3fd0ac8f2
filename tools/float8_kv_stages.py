"""Attention over a KV cache in float8 beside one in bfloat16, a layer at a time.

For those who write kernels: `python tools/float8_kv_stages.py`, which needs a GPU. Decodes of 800
positions by each attention, then the spans of a large step. Keys and values are random. Whether results are
right, `pytest tests/gpu/test_float8_kv.py` says.
"""

import logging
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from decode_rows import CONTEXT, MAX_CONTEXT, PAGE_SIZE, copied, fill, rows_of
from kestrel_core.loop.step import PreparedImage, Running, Span
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.attention.protocol import PagedAttention, SpanRows
from kestrel_core.runtime.kv_cache import KVCache, KVScales
from stages import Work, captured, device_ms

CONFIG = MOONDREAM2.text
DEVICE = torch.device("cuda")
NUM_PAGES = 64 * CONTEXT // PAGE_SIZE + 2
ROWS = (1, 4, 16, 32, 64)
PREFIX, QUESTION = 730, 20
BYTES_PER_US = 4.2e6  # what reading reaches on an H200, of 4.8


def cache_of(float8: bool) -> KVCache:
    scales = [KVScales()] * CONFIG.n_layers if float8 else None
    cache = KVCache(CONFIG, NUM_PAGES, PAGE_SIZE, DEVICE, torch.bfloat16, scales)
    for layer in range(CONFIG.n_layers):
        for kept in (cache.k[layer], cache.v[layer]):
            kept.copy_(torch.randn(kept.shape, device=DEVICE))
    return cache


def queries(count: int) -> torch.Tensor:
    return torch.randn((count, CONFIG.n_heads, CONFIG.head_dim), device=DEVICE).bfloat16()


def decode(attention: PagedAttention, cache: KVCache, num_rows: int) -> Work:
    rows, q = rows_of([CONTEXT] * num_rows, cache), queries(num_rows)
    made, saved = attention.for_decode(rows, captured=True), copied(rows)
    made.plan(rows.indptr.cpu().numpy())
    fill(rows, saved)

    def work() -> None:
        attend = made.begin()
        for layer in range(CONFIG.n_layers):
            attend.read(layer, q)

    return work


def spans(attention: PagedAttention, num_images: int, num_texts: int) -> Work:
    """Pictures, and as many questions behind others."""
    image = PreparedImage("", np.zeros((1, 1, 1, 3), np.uint8), (1, 1))
    made, at = [], 1
    for index in range(num_images + num_texts):
        start, stop = (0, PREFIX) if index < num_images else (PREFIX, PREFIX + QUESTION)
        pages = list(range(at, at + stop // PAGE_SIZE))
        at += len(pages)
        made.append(Span(Running(1, pages), start, stop, None, image if index < num_images else None))
    starts = np.cumsum([0, *(span.stop - span.start for span in made)]).astype(np.int32)
    indptr = np.cumsum([0, *(len(span.sequence.pages) for span in made)]).astype(np.int32)
    last = np.full(len(made), PAGE_SIZE, np.int32)
    tables = torch.arange(1, at, dtype=torch.int32, device=DEVICE)
    cells = torch.zeros(int(starts[-1]), dtype=torch.int64, device=DEVICE)
    attend = attention.for_spans(SpanRows(made, num_images, starts, indptr, last, tables, cells))
    q = queries(len(cells))

    def work() -> None:
        for layer in range(CONFIG.n_layers):
            attend.read(layer, q)  # type: ignore[attr-defined]

    return work


def print_line(name: str, make: Callable[[], Work], floor_bytes: int = 0) -> None:
    try:
        work = make()
        work()  # compiles
        found = 1e3 * device_ms(captured(work, calls=1), seconds=0.1) / CONFIG.n_layers
        floor = f", bytes alone {floor_bytes / BYTES_PER_US:6.1f}" if floor_bytes else ""
        print(f"{name:44} {found:8.1f} us a layer{floor}", flush=True)
    except Exception as error:  # the others still tell something
        print(f"{name:44} {type(error).__name__}: {error}", flush=True)


@torch.inference_mode()
def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    for float8 in (False, True):
        print_kind(cache_of(float8), "float8" if float8 else "bfloat16")
        torch.cuda.empty_cache()


def print_kind(cache: KVCache, kind: str) -> None:
    cell_bytes = 2 * cache.k[0, 0].nbytes
    others = choose_attention(cache, CONFIG, MAX_CONTEXT, "auto")
    ours = choose_attention(cache, CONFIG, MAX_CONTEXT, "auto", "attention")
    for num_rows in ROWS:
        for attention in (others, ours) if num_rows <= 16 else (others,):
            name = f"{kind}, {num_rows} rows, {attention.name}"
            print_line(name, partial(decode, attention, cache, num_rows), num_rows * CONTEXT * cell_bytes)
    for images, texts in ((4, 0), (4, 32), (0, 64)):
        name = f"{kind}, {images} pictures and {texts} questions, {others.name}"
        print_line(name, partial(spans, others, images, texts))


if __name__ == "__main__":
    main()
