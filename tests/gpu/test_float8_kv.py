"""The KV cache in float8 on the device: every attention beside SDPA over the same rounded numbers in float32,
and whole runtimes beside the plain one.
"""

import copy
import importlib.util
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cuda_tensors import CUDA, assert_near, randn
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core import build
from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.step import PreparedImage, Running, Span
from kestrel_core.moondream.config import MOONDREAM2, TextConfig
from kestrel_core.moondream.fast_text import FastText, make_rotary_tables
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import Cells, Fused, Heads, TauWeights
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.attention.protocol import DecodeRows, PagedAttention, SpanRows
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVCache, KVScales
from kestrel_core.runtime.torch_runtime import TorchRuntime

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9),
        reason="float8 begins with compute capability 8.9",
    ),
]

CONFIG = replace(MOONDREAM2.text, n_layers=2)
PAGE_SIZE = 10
SCALES = KVScales(0.5, 2.0)
KINDS = {"flashinfer": ("required", "off"), "sdpa": ("off", "off"), "ours": ("off", "attention")}


def make(kind: str, config: TextConfig = CONFIG, scales: KVScales = SCALES) -> KVCache:
    if kind == "flashinfer" and importlib.util.find_spec("flashinfer") is None:
        pytest.skip("FlashInfer is not installed here")
    cache = KVCache(config, 1000, PAGE_SIZE, CUDA, torch.bfloat16, [scales] * config.n_layers)
    everywhere = torch.arange(len(cache.k[0]), device=CUDA)
    for layer in range(config.n_layers):
        shape = (len(everywhere), config.n_kv_heads, config.head_dim)
        k, v = (randn(*shape, seed=2 * layer + part, dtype=torch.bfloat16) for part in (0, 1))
        cache.store(layer, everywhere, k, v)
    return cache


def chosen(kind: str, cache: KVCache, config: TextConfig) -> PagedAttention:
    attention = choose_attention(cache, config, 1024, *KINDS[kind])
    assert attention.name == {"ours": "ours and sdpa"}.get(kind, kind)
    return attention


def expected(cache: KVCache, layer: int, q: Tensor, cells: Tensor, mask: Tensor | None) -> Tensor:
    k, v = (part.float().transpose(0, 1)[None] for part in cache.load(layer, cells))
    wide = q.float().transpose(0, 1)[None]
    out = F.scaled_dot_product_attention(wide, k, v, attn_mask=mask, enable_gqa=wide.shape[1] != k.shape[1])
    return out[0].transpose(0, 1).to(q.dtype)


@torch.inference_mode()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kv_heads", [32, 8])
@pytest.mark.parametrize("scales", [KVScales(), SCALES])
@pytest.mark.parametrize("lengths", [[800], [1, 10, 11, 730, 731, 999], [60] * 40])
def test_decodes(kind: str, kv_heads: int, scales: KVScales, lengths: list[int]) -> None:
    config = replace(CONFIG, n_kv_heads=kv_heads)
    cache = make(kind, config, scales)
    counts = [-(-length // PAGE_SIZE) for length in lengths]
    ends = np.array([0, *np.cumsum(counts)], np.int32)
    pages = 1 + torch.randperm(999, device=CUDA)[: ends[-1]].to(torch.int32)
    last = torch.tensor([(length - 1) % PAGE_SIZE + 1 for length in lengths], dtype=torch.int32, device=CUDA)
    cells = [
        cache.cells(pages[first:end].long(), length)
        for first, end, length in zip(ends, ends[1:], lengths, strict=False)
    ]
    indptr = torch.from_numpy(ends).to(CUDA)
    rows = DecodeRows(torch.stack([row[-1] for row in cells]), indptr, pages, last)
    decode = chosen(kind, cache, config).for_decode(rows, captured=True)
    kept = indptr.clone(), last.clone()
    decode.plan(ends)
    indptr.copy_(kept[0])
    last.copy_(kept[1])
    q = randn(len(lengths), config.n_heads, 64, seed=9, dtype=torch.bfloat16)
    attend = decode.begin()
    for layer in range(2):
        right = torch.cat([expected(cache, layer, q[i : i + 1], row, None) for i, row in enumerate(cells)])
        assert_near(attend.read(layer, q), right, 0.01)


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["flashinfer", "sdpa"])
@pytest.mark.parametrize(
    "spans", [[(0, 730, True), (730, 750, False), (5, 9, False)], [(0, 200, False)] * 3 + [(300, 301, False)]]
)
def test_spans(kind: str, spans: list[tuple[int, int, bool]]) -> None:
    cache, made, cells, masks, at = make(kind), [], [], [], 1
    for start, stop, is_image in spans:
        pages = list(range(at, at + -(-stop // PAGE_SIZE)))
        at += len(pages)
        image = PreparedImage("", np.zeros((1, 1, 1, 3), np.uint8), (1, 1)) if is_image else None
        made.append(Span(Running(1, pages), start, stop, None, image))
        cells.append(cache.cells(torch.tensor(pages, device=CUDA), stop))
        seen = torch.arange(stop, device=CUDA) <= torch.arange(start, stop, device=CUDA)[:, None]
        masks.append(None if is_image else seen)
    counts, lengths = [len(span.sequence.pages) for span in made], [stop - start for start, stop, _ in spans]
    rows = SpanRows(
        made,
        sum(is_image for *_, is_image in spans),
        np.array([0, *np.cumsum(lengths)], np.int32),
        np.array([0, *np.cumsum(counts)], np.int32),
        np.array([(stop - 1) % PAGE_SIZE + 1 for _, stop, _ in spans], np.int32),
        torch.arange(1, at, dtype=torch.int32, device=CUDA),
        torch.cat([known[start:] for known, (start, _, _) in zip(cells, spans, strict=True)]),
    )
    attention = chosen(kind, cache, CONFIG)
    q, k, v = (randn(sum(lengths), 32, 64, seed=seed, dtype=torch.bfloat16) for seed in (7, 8, 9))
    ours = attention.for_spans(rows)(1, q, k, v)
    right = [
        expected(cache, 1, part, known, mask)
        for part, known, mask in zip(q.split(lengths), cells, masks, strict=True)
    ]
    assert_near(ours, torch.cat(right), 0.01)


@torch.inference_mode()
@pytest.mark.parametrize("tau", [False, True])
@pytest.mark.parametrize("count", [1, 7, 300])
def test_the_kernel_writes_what_is_stored_otherwise(kernels: Fused, tau: bool, count: int) -> None:
    heads, qkv_dim = Heads(32, 32, 64), 96 * 64
    tables, cells = make_rotary_tables(CONFIG, CUDA), torch.randperm(400, device=CUDA)[:count]
    packed, positions = randn(count, qkv_dim + 64, dtype=torch.bfloat16), torch.arange(count, device=CUDA)
    packed[0] *= 1e4  # is cut off
    matrix = 0.01 * randn(64, qkv_dim, seed=1, dtype=torch.bfloat16)
    weights = TauWeights(matrix, randn(32, seed=2, dtype=torch.bfloat16)) if tau else None
    made = []
    for ops in (kernels, plain):
        kept = (torch.zeros(400, 32, 64, device=CUDA).to(plain.FLOAT8) for _ in range(2))
        made.append(ops.rotate(packed, positions, tables, heads, weights, Cells(*kept, cells, 0.5, 2.0), 64))
    for ours, right in zip(made[0][1:3], made[1][1:3], strict=True):
        assert ours.float().abs().max() == 448
        assert (ours.float() == right.float()).float().mean() > 0.99  # a rounding before may differ
        assert_near(ours.float(), right.float(), 0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("generation", [2, 3])
def test_a_storm_gives_what_the_plain_runtime_gives(kernels: Fused, kind: str, generation: int) -> None:
    config = tiny_config(generation, dim=128, n_heads=2, n_kv_heads=2)
    make(kind)  # skips
    model = tiny_model(config, seed=2, dtype=torch.bfloat16).cuda()
    fast, pictures = copy.deepcopy(model), Pictures(config, model.text.wte)
    flashinfer, decode_kernels = KINDS[kind]
    float8 = [KVScales()] * config.text.n_layers
    ours = CudaRuntime(
        fast,
        NUM_PAGES,
        5,
        6,
        64,
        pictures,  # type: ignore[arg-type]
        forward=FastText(fast.text, kernels),
        flashinfer=flashinfer,
        decode_kernels=decode_kernels,
        graphs=Graphs(CUDA),
        kv_float8=float8,
    )
    ours.warm_up(32)
    theirs = TorchRuntime(model, NUM_PAGES, 5, kv_float8=float8)
    theirs.encode_image = pictures  # type: ignore[assignment]
    storm = Storm(config, ours, theirs, seed=6, max_batch=6, overlaps=True)
    storm.run(60)
    sound = [(mine, other) for _, mine, other in storm.pairs if other.finite]
    assert sound and all(mine.finite for mine, _ in sound)
    same = [
        (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size) for mine, other in sound
    ]
    assert sum(same) >= 0.75 * len(same)


def test_a_full_size_engine_has_twice_the_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "free_bytes", lambda device: 12 * 2**30)
    pages = {}
    for kv_dtype in ("auto", "fp8"):
        config = RuntimeConfig(
            model="moondream2", weights="random", max_batch_size=4, kv_dtype=kv_dtype, kv_cache_tokens=10**9
        )
        engine = assemble_engine(open_model(config), config)
        pages[engine.in_use()["kv_dtype"]] = engine.runtime.num_pages
        engine.close()
        engine.runtime.close()
        del engine
    assert pages["float8"] == pytest.approx(2 * pages["bfloat16"], rel=0.1)
