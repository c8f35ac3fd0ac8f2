"""Our attention of few rows against SDPA over the same pages, interpreted where there is no GPU."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model

from kestrel_core.moondream.config import MOONDREAM2, TextConfig
from kestrel_core.runtime.attention import choose
from kestrel_core.runtime.attention.protocol import DecodeRows
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.kv_cache import KVCache, KVScales
from kestrel_core.runtime.torch_runtime import TorchRuntime

pytestmark = [
    pytest.mark.skipif(
        find_spec("triton") is None or torch.cuda.is_available(),
        reason="needs the kernel language, and no GPU",
    ),
    # The interpreter's own: it reads how often a loop runs from an array, and takes the exponent of nothing.
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),
]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def few_rows() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.runtime.attention import few_rows

        yield few_rows


def shape(n_heads: int, n_kv_heads: int, head_dim: int) -> TextConfig:
    dim = n_heads * head_dim
    return replace(MOONDREAM2.text, n_layers=2, dim=dim, n_heads=n_heads, n_kv_heads=n_kv_heads)


def filled_cache(config: TextConfig, num_pages: int, page_size: int, float8: bool = False) -> KVCache:
    scales = [KVScales(0.5, 2.0), KVScales()] if float8 else None
    cache = KVCache(config, num_pages, page_size, CPU, torch.float32, scales)
    for kept in (cache.k, cache.v):
        kept.copy_(torch.randn(kept.shape))
        kept[:, 0] = 0.0
    return cache


def rows_of(lengths: list[int], page_size: int, num_pages: int) -> DecodeRows:
    """Rows of these lengths on random pages, in buffers with something else behind them."""
    counts = [-(-length // page_size) for length in lengths]
    indptr = torch.tensor([0, *np.cumsum(counts)], dtype=torch.int32)
    indices = 1 + torch.randperm(num_pages - 1)[: sum(counts) + 3]
    last = torch.tensor([(length - 1) % page_size + 1 for length in lengths], dtype=torch.int32)
    return DecodeRows(torch.zeros(len(lengths)).long(), indptr, indices.to(torch.int32), last)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "page_size", "lengths"),
    [
        (3, 3, 16, 5, [1]),
        (1, 1, 64, 10, [163]),
        (2, 1, 24, 7, [1, 130, 33, 32, 64]),
        (2, 2, 8, 10, [97, 31, 1, 65, 66, 2]),
    ],
)
@pytest.mark.parametrize("float8", [False, True])
@pytest.mark.parametrize("pieces", [None, (4, 16, 1), (1, 16, 1), (16, 64, 2)])
def test_rows_of_all_lengths(
    few_rows: ModuleType,
    heads: int,
    kv_heads: int,
    head_dim: int,
    page_size: int,
    lengths: list[int],
    pieces: tuple[int, int, int] | None,
    float8: bool,
) -> None:
    torch.manual_seed(len(lengths))
    config = shape(heads, kv_heads, head_dim)
    num_pages = 8 + sum(-(-length // page_size) for length in lengths)
    cache = filled_cache(config, num_pages, page_size, float8)
    cut = few_rows.cut(len(lengths), config) if pieces is None else few_rows.Pieces(*pieces)
    rows = rows_of(lengths, page_size, num_pages)
    ours = few_rows.FewRowsDecode(cache, config, max(lengths) + 40, rows, cut)
    theirs = PagedSdpaAttention(cache, max(lengths) + 40).for_decode(rows, captured=True)
    for _ in range(2):  # the second step must find nothing that the first one left
        for layer in range(config.n_layers):
            q = torch.randn(len(lengths), heads, head_dim)
            expected = theirs.begin().read(layer, q)
            torch.testing.assert_close(ours.begin().read(layer, q), expected, atol=1e-5, rtol=1e-5)
        other = rows_of([max(1, length - 30) for length in lengths], page_size, num_pages)
        rows.indptr.copy_(other.indptr)
        rows.indices[: len(other.indices)] = other.indices[: len(rows.indices)]
        rows.last_page_len.copy_(other.last_page_len)


def test_more_rows_are_left_to_the_other_attention(few_rows: ModuleType) -> None:
    config = shape(2, 2, 16)
    cache = filled_cache(config, 40, 5)
    attention = few_rows.FewRowsAttention(cache, config, 64, PagedSdpaAttention(cache, 64))
    attention.try_out()
    assert attention.name == "ours and sdpa" and attention.max_captured > 1000
    kinds = [
        type(attention.for_decode(rows_of([1] * count, 5, 40), captured=True)).__name__ for count in (16, 17)
    ]
    assert kinds == ["FewRowsDecode", "PagedSdpaDecode"]


@pytest.mark.parametrize("heads", [1, 16, 32])
def test_the_work_is_cut_for_the_number_of_rows(few_rows: ModuleType, heads: int) -> None:
    config = shape(heads, heads, 64)
    parts = [few_rows.cut(rows, config).parts for rows in range(1, 17)]
    assert parts == sorted(parts, reverse=True) and parts[0] > 1
    assert all(part & (part - 1) == 0 for part in parts)


def test_it_is_chosen_where_it_runs(
    few_rows: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = shape(2, 2, 16)
    cache = filled_cache(config, 40, 5)
    sdpa = PagedSdpaAttention(cache, 64)
    assert choose.choose_attention(cache, config, 64, "off", "attention").name == "sdpa"  # on a CPU
    on_cuda: Any = SimpleNamespace(k=SimpleNamespace(is_cuda=True, device=torch.device("cuda")))
    monkeypatch.setattr(choose, "_choose_for_many", lambda *_: sdpa)
    assert choose.choose_attention(on_cuda, config, 64, "auto", "off") is sdpa
    monkeypatch.setattr(few_rows.FewRowsAttention, "try_out", lambda self: None)
    assert choose.choose_attention(on_cuda, config, 64, "auto", "attention").name == "ours and sdpa"

    def fail(self: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(few_rows.FewRowsAttention, "try_out", fail)
    assert choose.choose_attention(on_cuda, config, 64, "auto", "attention") is sdpa
    assert "RuntimeError: no compiler" in caplog.text


@pytest.mark.parametrize("overlaps", [True, False])
def test_a_storm_gives_what_sdpa_gives(few_rows: ModuleType, overlaps: bool) -> None:
    model = tiny_model(tiny_config(2, n_kv_heads=2), seed=4)
    pictures = Pictures(model.config, model.text.wte)
    ours = CudaRuntime(model, NUM_PAGES, 5, 3, 64, pictures)  # type: ignore[arg-type]
    attention = few_rows.FewRowsAttention(ours._kv_cache, model.config.text, 64, ours._attention)
    ours._attention = attention
    ours._buckets = [ours._make_bucket(bucket.num_images, bucket.size) for bucket in ours._buckets]
    assert {type(bucket.attention).__name__ for bucket in ours._buckets} >= {"FewRowsDecode"}
    theirs = TorchRuntime(model, NUM_PAGES, 5)
    theirs.encode_image = pictures  # type: ignore[assignment]
    storm = Storm(model.config, ours, theirs, seed=12, max_batch=3, overlaps=overlaps)
    storm.run(12)
    assert len(storm.pairs) > 10
    for span, mine, other in storm.pairs:
        assert mine.finite == other.finite
        if mine.finite:
            assert (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size), span
