import logging
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream import fast_vision
from kestrel_core.moondream.config import MOONDREAM2, VisionConfig
from kestrel_core.moondream.fast_vision import FastVision, deviation
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.vision import Mosaic, Vision, num_crops, pool, stitch

TINY = tiny_config(3)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def test_a_patch_lists_channels_then_rows_then_columns() -> None:
    vision = tiny_model(TINY).vision
    crops = noise(2, 28, 28, 3)
    patches = vision.patches(crops)
    assert patches.shape == (2, 4, 588)
    for crop, row, col, channel, y, x in [(0, 0, 0, 0, 0, 0), (0, 0, 1, 2, 3, 5), (1, 1, 0, 1, 13, 13)]:
        pixel = crops[crop, 14 * row + y, 14 * col + x, channel].item()
        ours = patches[crop, 2 * row + col, 196 * channel + 14 * y + x].item()
        assert ours == pytest.approx((pixel / 255 - 0.5) / 0.5, abs=1e-6)


def test_moondream_2_rounds_every_step_of_a_pixel_to_bfloat16() -> None:
    greys = torch.arange(256, dtype=torch.uint8)
    with torch.device("meta"):
        vision = Vision(replace(MOONDREAM2.vision, enc_n_layers=0))
    vision.pos_emb = torch.nn.Parameter(torch.empty(0))  # tells the dtype

    def rounded(x: Tensor) -> Tensor:
        return x.bfloat16().float()

    ours = vision.patches(greys[:, None, None, None].expand(-1, 378, 378, 3))[:, 0, 0]
    steps = rounded(rounded(rounded(rounded(greys.float()) / 255) - 0.5) / 0.5)
    assert torch.equal(ours, steps)
    assert (ours - (greys / 255 - 0.5) / 0.5).abs().max() > 1e-3, "float32 would differ"


def test_features_are_those_of_the_description() -> None:
    vision = tiny_model(TINY, seed=1).vision
    weights = {name: value.double() for name, value in vision.state_dict().items()}
    crops = noise(3, 28, 28, 3)
    features = vision.encode(crops)

    def linear(name: str, x: Tensor) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name: str, x: Tensor) -> Tensor:
        rows = [reference.layer_norm(r, weights[f"{name}.weight"], weights[f"{name}.bias"]) for r in x]
        return torch.stack(rows)

    for crop, ours in zip(vision.patches(crops).double(), features, strict=True):
        x = linear("patch_emb", crop) + weights["pos_emb"][0]
        for i in range(2):
            qkv = linear(f"blocks.{i}.attn.qkv", norm(f"blocks.{i}.ln1", x))
            heads = []
            for head in range(2):
                q, k, v = (qkv[:, 16 * part + 8 * head : 16 * part + 8 * head + 8] for part in range(3))
                heads.append(torch.softmax(q @ k.T / math.sqrt(8), -1) @ v)
            x = x + linear(f"blocks.{i}.attn.proj", torch.cat(heads, -1))
            inner = linear(f"blocks.{i}.mlp.fc1", norm(f"blocks.{i}.ln2", x))
            inner = 0.5 * inner * (1 + torch.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
            x = x + linear(f"blocks.{i}.mlp.fc2", inner)
        torch.testing.assert_close(ours.double(), norm("post_ln", x), atol=1e-5, rtol=1e-5)


def test_the_projection_takes_the_global_crop_first_and_the_pooled_tiles_second() -> None:
    vision = tiny_model(TINY).vision
    features = torch.randn(7, 4, 16, generator=torch.Generator().manual_seed(2))
    embeddings = vision.project(features, (2, 3))
    assert embeddings.shape == (4, 32)
    pooled = pool(stitch(features[1:], (2, 3), TINY.vision), 2).flatten(0, 1)
    expected = [vision.proj_mlp(torch.cat((features[0, i], pooled[i]))) for i in range(4)]
    torch.testing.assert_close(embeddings, torch.stack(expected))


@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 9), st.data())
def test_stitching_takes_every_cell_from_the_tile_whose_window_it_lies_in(
    rows: int, cols: int, grid: int, data: st.DataObject
) -> None:
    margin = data.draw(st.integers(0, (grid - 1) // 2))
    config = VisionConfig(crop_size=14 * grid, overlap_margin=margin)
    step = grid - 2 * margin
    height, width = step * rows + 2 * margin, step * cols + 2 * margin
    labels = torch.stack(torch.meshgrid(*map(torch.arange, (rows * cols, grid, grid)), indexing="ij"), dim=-1)
    whole = stitch(labels.flatten(1, 2), (rows, cols), config)
    assert whole.shape == (height, width, 3)
    for y in range(height):
        for x in range(width):
            i = min(max((y - margin) // step, 0), rows - 1)
            j = min(max((x - margin) // step, 0), cols - 1)
            assert whole[y, x].tolist() == [i * cols + j, y - step * i, x - step * j]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 27))
def test_pooling_averages_the_cells_between_floor_and_ceiling(height: int, width: int, grid: int) -> None:
    features = torch.randn(height, width, 2, generator=torch.Generator().manual_seed(height * width))

    def cells(k: int, length: int) -> slice:
        return slice(k * length // grid, -(-(k + 1) * length // grid))

    expected = [
        [features[cells(i, height), cells(j, width)].mean((0, 1)) for j in range(grid)] for i in range(grid)
    ]
    stacked = torch.stack([torch.stack(row) for row in expected])
    torch.testing.assert_close(pool(features, grid), stacked, atol=1e-5, rtol=1e-5)


def test_one_tile_is_left_as_it_is() -> None:
    features = torch.randn(1, 729, 3, generator=torch.Generator().manual_seed(0))
    whole = stitch(features, (1, 1), MOONDREAM2.vision)
    torch.testing.assert_close(pool(whole, 27).flatten(0, 1), features[0], atol=0, rtol=0)


def test_many_pictures_are_stitched_and_pooled_as_each_alone() -> None:
    config = replace(MOONDREAM2.vision, enc_dim=3)
    tilings = [(2, 3), (1, 1), (4, 3), (1, 1), (1, 5), (2, 3)]
    counts = [num_crops(tiling) for tiling in tilings]
    assert counts == [7, 1, 13, 1, 6, 7]
    features = torch.randn(sum(counts), 729, 3, generator=torch.Generator().manual_seed(0))
    together = Mosaic(config, torch.device("cpu"))(features, tilings)
    assert together.shape == (6, 729, 6)
    for ours, own, tiling in zip(together, features.split(counts), tilings, strict=True):
        tiles = own if tiling == (1, 1) else own[1:]
        pooled = pool(stitch(tiles, tiling, config), 27).flatten(0, 1)
        torch.testing.assert_close(ours, torch.cat((own[0], pooled), dim=-1), atol=1e-6, rtol=1e-5)


def test_the_fast_encoder_computes_the_same() -> None:
    vision, crops = tiny_model(TINY, seed=1).vision, noise(3, 28, 28, 3)
    torch.testing.assert_close(FastVision(vision, plain)(crops), vision.encode(crops), atol=1e-5, rtol=1e-5)


def test_float8_deviates_a_little() -> None:
    config = replace(TINY, vision=replace(TINY.vision, enc_dim=64, enc_ff_dim=96, enc_n_layers=4))
    vision = tiny_model(config, dtype=torch.bfloat16).vision
    other = FastVision(vision, plain, float8=True)
    assert 1e-3 < deviation(vision, other, noise(2, 28, 28, 3)) < 0.1
    assert deviation(vision, FastVision(vision, plain), noise(2, 28, 28, 3)) < 0.02


def test_our_own_attention_is_used_where_it_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    vision = tiny_model(TINY).vision
    calls: list[int] = []

    def ours(qkv: Tensor, num_crops: int, num_heads: int) -> Tensor:
        calls.append(num_crops)
        return fast_vision.attend(qkv, num_crops, num_heads)

    monkeypatch.setattr(fast_vision, "our_attention", lambda vision: ours)
    fast = FastVision(vision, plain, attention="ours")
    assert fast.attention == "ours" and deviation(vision, fast, noise(3, 28, 28, 3)) < 1e-5
    assert calls == [3] * TINY.vision.enc_n_layers
    assert FastVision(vision, plain, attention="cudnn").attention == "cudnn"


def test_torch_attends_where_our_own_cannot() -> None:
    vision = tiny_model(TINY).vision
    fast = FastVision(vision, plain, attention="ours")
    assert fast.attention == "default" and deviation(vision, fast, noise(3, 28, 28, 3)) < 1e-5


def vision_on(device: str) -> Vision:
    config = MOONDREAM2.vision
    weight = SimpleNamespace(device=torch.device(device), dtype=torch.bfloat16)
    return cast(Vision, SimpleNamespace(config=config, pos_emb=weight))


def test_other_gpus_and_machines_without_a_compiler_use_torchs_attention(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    with caplog.at_level(logging.INFO, "kestrel"):
        assert fast_vision.our_attention(vision_on("cuda")) is None
    assert "not our own: it is written for compute capability 9.0" in caplog.text


@pytest.mark.parametrize("wrong", [1.05, math.nan])
def test_our_own_attention_that_errs_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wrong: float
) -> None:
    factor = 1.0

    def ours(qkv: Tensor, num_crops: int, num_heads: int) -> Tensor:
        return factor * fast_vision.attend(qkv, num_crops, num_heads)

    monkeypatch.setattr(fast_vision, "VisionAttention", lambda shape, device: ours)
    monkeypatch.setattr(fast_vision, "TRIED_CROPS", 1)
    monkeypatch.setattr(fast_vision, "_tried_input", lambda vision: torch.randn(40, 3 * 1152))
    assert fast_vision.our_attention(vision_on("cuda")) is ours
    factor = wrong
    assert fast_vision.our_attention(vision_on("cuda")) is None
    assert "our own is off by" in caplog.text


@pytest.mark.parametrize(("factor", "used"), [(1.0, True), (1.1, False)])
def test_attention_in_float8_is_used_where_it_is_torchs_rounded(
    monkeypatch: pytest.MonkeyPatch, factor: float, used: bool
) -> None:
    def ours(qkv: Tensor, num_crops: int, num_heads: int, scale: float) -> Tensor:
        wide = fast_vision.attend(qkv, num_crops, num_heads)
        return plain.round_float8(factor * wide, 1 / scale, gelu=False)

    monkeypatch.setattr(fast_vision, "VisionAttention", lambda shape, device, float8: ours)
    monkeypatch.setattr(fast_vision, "TRIED_CROPS", 1)
    monkeypatch.setattr(fast_vision, "_tried_input", lambda vision: torch.randn(40, 3 * 1152))
    assert (fast_vision.our_float8_attention(vision_on("cuda")) is ours) == used
