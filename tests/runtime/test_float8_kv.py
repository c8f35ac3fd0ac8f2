"""The KV cache in float8: what is stored, by which scales, where, and what an engine does with it."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model

from kestrel_core import build
from kestrel_core.build import LoadedModel, assemble_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.plain import FLOAT8
from kestrel_core.moondream.scales import (
    FILE,
    InputScales,
    measure_scales,
    read_scales,
    sample_pictures,
    sample_prompts,
)
from kestrel_core.runtime import quantising
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.kv_cache import KVCache, KVScales
from kestrel_core.runtime.quantising import kv_scales, stores_float8
from kestrel_core.runtime.torch_runtime import TorchRuntime
from kestrel_core.skills.spec import Language

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def cache_of(*scales: KVScales, dtype: torch.dtype = torch.float32) -> KVCache:
    return KVCache(replace(tiny_config(2).text, n_layers=len(scales)), 4, 3, CPU, dtype, scales)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_stored_is_rounded_by_the_layers_scales(dtype: torch.dtype) -> None:
    cache = cache_of(KVScales(), KVScales(k=4.0, v=0.25), dtype=dtype)
    cells = torch.tensor([7, 2, 3])
    k, v = 30 * torch.randn(2, 3, *cache.k.shape[2:]).to(dtype)
    for layer, scales in enumerate(cache.scales):
        cache.store(layer, cells, k, v)
        for kept, new, scale in zip(cache.load(layer, cells), (k, v), scales, strict=True):
            exact = (new.float() / scale).clamp(-448, 448).to(FLOAT8).float() * scale
            assert kept.dtype == dtype and torch.equal(kept.float(), exact)
    assert not cache.k.float()[:, [0, 1, 4, 5, 6]].any()


def test_large_numbers_are_cut_off_and_none_stay_none() -> None:
    cache, cells = cache_of(KVScales(k=2.0)), torch.tensor([1])
    new = torch.full((1, *cache.k.shape[2:]), 1e9)
    cache.store(0, cells, new, new * torch.nan)
    k, v = cache.load(0, cells)
    assert (k == 896).all() and v.isnan().all()


def test_cells_of_any_shape_are_loaded() -> None:
    for cache in (cache_of(KVScales()), KVCache(tiny_config(2).text, 4, 3, CPU, torch.float32)):
        cells = torch.tensor([[1, 2, 2], [5, 0, 11]])
        cache.store(0, cells[0, :2], *torch.randn(2, 2, *cache.k.shape[2:]))
        for kept, found in zip((cache.k, cache.v), cache.load(0, cells), strict=True):
            assert torch.equal(found, kept[0].float()[cells])


def test_a_cell_takes_half_of_the_bytes() -> None:
    wide, narrow = (KVCache.bytes_per_cell(MOONDREAM2.text, dtype) for dtype in (torch.bfloat16, FLOAT8))
    assert wide == 2 * narrow
    cache = cache_of(KVScales())
    assert cache.k.nbytes + cache.v.nbytes == 12 * KVCache.bytes_per_cell(
        replace(tiny_config(2).text, n_layers=1), FLOAT8
    )


@pytest.mark.parametrize(
    ("largest", "scale"), [(0.0, 1), (0.5, 1), (30, 1), (112, 1), (113, 2), (1000, 16), (0.4, 2**-8)]
)
def test_scales_are_powers_of_two_that_leave_a_margin(largest: float, scale: float) -> None:
    measured = InputScales("", 1, {"text.blocks.0.attn.k": largest, "text.blocks.0.attn.v": 3.0})
    assert kv_scales(2, measured) == [KVScales(scale, 1.0), KVScales()]
    assert 4 * largest / scale <= 448


def test_the_largest_keys_and_values_are_measured_and_kept_in_the_file(tmp_path: Path) -> None:
    config = tiny_config(3)
    network = tiny_model(config)
    for block in network.text.blocks:
        block.attn.qkv.weight.data *= 300
    scales = measure_scales(network, sample_pictures(config.vision)[:2], sample_prompts(config))
    scales.write(tmp_path / FILE)
    again = read_scales(tmp_path / FILE, network)
    assert again == scales
    for layer in range(config.text.n_layers):
        found = again.largest_kv(layer)
        assert found is not None and min(found) > 0
    assert any(scale != KVScales() for scale in kv_scales(config.text.n_layers, again))
    document = json.loads((tmp_path / FILE).read_text())  # of a version that measured none
    document["largest"] = {k: v for k, v in document["largest"].items() if not k.endswith((".k", ".v"))}
    (tmp_path / FILE).write_text(json.dumps(document))
    older = read_scales(tmp_path / FILE, network)
    assert set(kv_scales(config.text.n_layers, older)) == {KVScales()}


@pytest.mark.parametrize(
    ("capability", "dtype", "reason"),
    [
        ((9, 0), torch.bfloat16, None),
        ((8, 9), torch.float16, None),
        ((8, 6), torch.bfloat16, "compute capability is 8.6"),
        ((9, 0), torch.float32, "dtype is float32"),
        (None, torch.float32, None),  # a CPU
    ],
)
def test_where_it_can_be_had(
    capability: tuple[int, int] | None,
    dtype: torch.dtype,
    reason: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(quantising, "capability", lambda network: capability)
    network = tiny_model(tiny_config(2), dtype=dtype)
    assert stores_float8("fp8", network) == (reason is None)
    assert (reason or "") in caplog.text and bool(caplog.records) == (reason is not None)
    assert not stores_float8("auto", network)


@pytest.mark.parametrize("generation", [2, 3])
@pytest.mark.parametrize("fast", [False, True])
def test_a_storm_gives_what_the_specification_gives(generation: int, fast: bool) -> None:
    model = tiny_model(tiny_config(generation), seed=4)
    forward = FastText(copy.deepcopy(model).text, plain) if fast else None
    pictures: Any = Pictures(model.config, model.text.wte)
    float8 = [KVScales(0.5, 2.0)] * model.config.text.n_layers
    ours = CudaRuntime(model, NUM_PAGES, 5, 3, 64, pictures, forward=forward, kv_float8=float8)
    theirs = TorchRuntime(model, NUM_PAGES, 5, kv_float8=float8)
    theirs.encode_image = pictures
    assert ours.kv_dtype == theirs.kv_dtype == FLOAT8
    storm = Storm(model.config, ours, theirs, seed=7, max_batch=3, overlaps=True)
    storm.run(30)
    assert len(storm.pairs) > 30
    same = [
        (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size)
        for _, mine, other in storm.pairs
        if mine.finite
    ]
    # A sum that is added in another order may be rounded to the neighbour, which is far in float8.
    assert sum(same) >= 0.9 * len(same)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> LoadedModel:
    """One that takes itself for one on CUDA."""
    monkeypatch.setattr(quantising, "capability", lambda network: (9, 0))
    config = tiny_config(2, vocab_size=300)
    network = tiny_model(config, dtype=torch.bfloat16)
    return LoadedModel(network, Language(config, Tokenizer.of_bytes(config)), CUDA)


def configured(**options: Any) -> RuntimeConfig:
    return RuntimeConfig(**{"device": "cpu", "max_batch_size": 2, "cuda_graphs": "off", **options})


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")
def test_an_engine_has_twice_the_positions_and_says_so(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell_bytes = KVCache.bytes_per_cell(model.network.config.text, torch.bfloat16)
    monkeypatch.setattr(build, "computing_bytes", lambda *_: 0)
    monkeypatch.setattr(build, "free_bytes", lambda device: 1000 * cell_bytes)
    found = {}
    for kv_dtype in ("auto", "fp8"):
        engine = assemble_engine(model, configured(kv_dtype=kv_dtype, kv_cache_tokens=100_000))
        found[engine.in_use()["kv_dtype"]] = engine.runtime.num_pages * engine.runtime.page_size
        engine.close()
    assert found.keys() == {"bfloat16", "float8"}
    assert found["float8"] == pytest.approx(2 * found["bfloat16"], rel=0.02)


def test_an_engine_takes_the_scales_that_were_written(model: LoadedModel, tmp_path: Path) -> None:
    config = model.network.config
    scales = measure_scales(model.network, sample_pictures(config.vision)[:1], sample_prompts(config))
    large = {name: 900.0 if name.endswith(".attn.k") else 1.0 for name in scales.largest}
    replace(scales, largest=large).write(tmp_path / FILE)
    found = model.fast_paths.kv_float8("fp8", None, tmp_path)
    assert found == [KVScales(16.0, 1.0)] * config.text.n_layers
    assert model.fast_paths.kv_float8("fp8", None, None) == [KVScales()] * config.text.n_layers
    assert model.fast_paths.kv_float8("auto", None, tmp_path) is None
