from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tiny import tiny_config
from torch import Tensor

from kestrel_core.loop.step import Kind, Readout, Running, Span
from kestrel_core.runtime.attention.sdpa import SdpaAttention
from kestrel_core.runtime.kv_cache import KVCache

TEXT = tiny_config(3).text
LAST = TEXT.n_layers - 1
PAGES = [7, 2, 5, 1]
LENGTH, PAGE_SIZE = 11, 3
TOKEN = Readout(Kind.TOKEN)


def attention(cache: KVCache, *spans: Span, last_layer: int | None = None) -> SdpaAttention:
    starts = [span.start - spans[0].start for span in spans]
    cells = [cache.cells(torch.tensor(PAGES), span.stop) for span in spans]
    return SdpaAttention(cache, spans, starts, cells, last_layer)


def span(start: int, stop: int, readout: Readout | None = None) -> Span:
    return Span(Running(1, PAGES), start, stop, (0,) * (stop - start), None, readout)


def make_cache() -> KVCache:
    return KVCache(TEXT, 9, PAGE_SIZE, torch.device("cpu"), torch.float32)


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    shapes = [(LENGTH, heads, TEXT.head_dim) for heads in (TEXT.n_heads, TEXT.n_kv_heads, TEXT.n_kv_heads)]
    q, k, v = (torch.randn(shape) for shape in shapes)
    return q, k, v


def test_keys_at_hand_are_those_that_later_spans_find_in_the_cache() -> None:
    q, k, v = drawn()
    whole = attention(make_cache(), span(0, LENGTH))(LAST, q, k, v)
    cache, pieces = make_cache(), []
    for start, stop in [(0, 4), (4, 10), (10, LENGTH)]:
        rows = slice(start, stop)
        pieces.append(attention(cache, span(start, stop))(LAST, q[rows], k[rows], v[rows]))
    torch.testing.assert_close(torch.cat(pieces), whole, atol=1e-6, rtol=1e-5)


def test_in_the_last_layer_only_spans_with_a_readout_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = drawn()
    spans = [span(0, 6), span(6, LENGTH, TOKEN)]
    expected = attention(make_cache(), *spans)
    cache = make_cache()
    ours = attention(cache, *spans, last_layer=LAST)
    torch.testing.assert_close(ours(LAST - 1, q, k, v), expected(LAST - 1, q, k, v))
    assert torch.equal(ours(LAST, q, k, v)[6:], expected(LAST, q, k, v)[6:])
    kept, _ = cache.load(LAST, cache.cells(torch.tensor(PAGES), LENGTH))
    assert torch.equal(kept, k), "what others will see is kept all the same"
    computed: list[int] = []
    plain = F.scaled_dot_product_attention

    def counting(q: Tensor, *given: Tensor, **options: Any) -> Tensor:
        computed.append(q.shape[2])
        return plain(q, *given, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counting)
    ours(LAST, q, k, v)
    assert computed == [LENGTH - 6]
