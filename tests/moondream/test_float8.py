"""The network in float8 with fixed scales, in plain torch: how far it is off, and what it refuses."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from lora_rows import adapter_rows, drawn, mixed_stacks
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream import fast_vision
from kestrel_core.moondream.fast_vision import deviation
from kestrel_core.moondream.few_bits_text import few_bits_text
from kestrel_core.moondream.float8_text import float8_text
from kestrel_core.moondream.float8_vision import float8_vision
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose_few_bits import choose_few_bits, choose_float8, why_not_few_bits
from kestrel_core.moondream.ops.float8_products import Matrix8, TorchProducts
from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.moondream.scales import (
    InputScales,
    identify,
    measure_scales,
    measured_layers,
    read_scales,
    sample_pictures,
    sample_prompts,
)
from kestrel_core.protocol.errors import BadCheckpoint

CPU = torch.device("cpu")


def wide_model(generation: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Moondream:
    config = tiny_config(generation, dim=64, ff_dim=96)
    if config.text.moe is not None:
        moe = replace(config.text.moe, expert_inner_dim=32)
        config = replace(config, text=replace(config.text, moe=moe))
    vision = replace(config.vision, enc_dim=64, enc_ff_dim=96, enc_n_layers=3)
    return tiny_model(replace(config, vision=vision), seed, dtype)


def measured(network: Moondream) -> InputScales:
    config = network.config
    return measure_scales(network, sample_pictures(config.vision), sample_prompts(config))


def noise(crops: int, seed: int = 0) -> Tensor:
    return torch.randint(
        0, 256, (crops, 28, 28, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )


@pytest.mark.parametrize("generation", [2, 3])
def test_every_product_has_a_scale_which_covers_what_was_seen(generation: int) -> None:
    network = wide_model(generation)
    scales = measured(network)
    kv = {f"text.blocks.{layer}.attn.{part}" for layer in range(len(network.text.blocks)) for part in "kv"}
    assert set(scales.largest) == {name for name, _ in measured_layers(network)} | kv
    assert all(0 < value < 1000 for value in scales.largest.values())
    norm = network.vision.blocks[0].ln1
    crops = sample_pictures(network.config.vision)[0][0]
    h = norm(network.vision.patch_emb(network.vision.patches(crops)) + network.vision.pos_emb)
    assert float(h.abs().max()) <= scales.largest["vision.blocks.0.attn.qkv"]
    assert scales("vision.blocks.0.attn.qkv") == 4 * scales.largest["vision.blocks.0.attn.qkv"]


def test_scales_come_back_from_a_file_for_the_same_weights_alone(tmp_path: Path) -> None:
    network, file = wide_model(3), tmp_path / "kestrel_scales.json"
    scales = measured(network)
    scales.write(file)
    assert read_scales(file, network) == scales
    assert identify(deepcopy(network).bfloat16()) == scales.weights
    with pytest.raises(BadCheckpoint, match="other weights"):
        read_scales(file, wide_model(3, seed=1))
    for text in ("{}", "[1]", "not json", '{"version": 2}', '{"version": 1, "weights": "x"}'):
        file.write_text(text)
        with pytest.raises(BadCheckpoint, match="kestrel quantize"):
            read_scales(file, network)
    replace(scales, largest={}).write(file)
    with pytest.raises(BadCheckpoint, match="no scale for"):
        read_scales(file, network)


def test_vision_with_fixed_scales_deviates_a_little() -> None:
    network = wide_model(3)
    vision = network.vision
    fast = float8_vision(vision, plain, TorchProducts(plain, CPU), measured(network))
    assert 1e-3 < deviation(vision, fast, noise(2)) < 0.1


def test_attention_that_rounds_its_own_results_saves_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    network, crops = wide_model(2), noise(2)
    vision, scales, passes = network.vision, measured(network), [0]
    counting = SimpleNamespace(**vars(plain))

    def round_float8(x: Tensor, scale: float, gelu: bool) -> Tensor:
        passes[0] += not gelu
        return plain.round_float8(x, scale, gelu)

    def ours_in_float8(qkv: Tensor, num_crops: int, num_heads: int, factor: float) -> Tensor:
        return plain.round_float8(fast_vision.attend(qkv, num_crops, num_heads), 1 / factor, gelu=False)

    counting.round_float8 = round_float8
    products = TorchProducts(plain, CPU)
    expected = float8_vision(vision, cast(Fused, counting), products, scales, "default")(crops)
    assert passes == [3]
    monkeypatch.setattr(fast_vision, "our_attention", lambda vision: fast_vision.attend)
    for rounding, more in ((ours_in_float8, 0), (None, 3)):  # the last: it errs, or cannot be built
        monkeypatch.setattr(
            "kestrel_core.moondream.float8_vision.our_float8_attention", lambda vision, made=rounding: made
        )
        fast = float8_vision(vision, cast(Fused, counting), products, scales, "ours")
        assert torch.equal(fast(crops), expected) and passes.pop() == 3 + more
        passes.append(3)


def test_residuals_may_be_added_by_products() -> None:
    network, crops = wide_model(2), noise(2)
    scales, adds = measured(network), []

    class Adding(TorchProducts):
        name = "cublas"

        def linear(self, x: Tensor, matrix: Matrix8, add: Tensor | None = None) -> Tensor:
            adds.append(add is not None)
            return super().linear(x, matrix, add)

    apart = float8_vision(network.vision, plain, Adding(plain, CPU), scales, sum_in_products=False)
    expected = apart(crops)
    assert not any(adds)
    adds.clear()
    ours = float8_vision(network.vision, plain, Adding(plain, CPU), scales)(crops)
    assert adds == [False, True, False, True] * 3  # qkv, proj, fc1 and fc2 of three blocks
    assert (ours - expected).norm() < 0.01 * expected.norm()  # some number may fall to float8's other side
    other = float8_vision(network.vision, plain, TorchProducts(plain, CPU), scales)
    assert torch.equal(other(crops), expected)


def test_packed_matrices_replace_those_of_the_network() -> None:
    network = wide_model(2)
    scales, crops = measured(network), noise(2)
    kept = float8_vision(network.vision, plain, TorchProducts(plain, CPU), scales)
    freed = float8_vision(network.vision, plain, TorchProducts(plain, CPU), scales, free=True)
    assert torch.equal(kept(crops), freed(crops))
    assert all(block.mlp.fc1.weight.numel() == 0 for block in network.vision.blocks)


class Mean:
    """An `Attend` that mixes all it sees."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q + k.mean(0) + v.mean(0)


def off(ours: Tensor, expected: Tensor) -> float:
    """Of the row in the middle: a rounded number may send a row to another expert, which is no fault."""
    return float(((ours - expected).norm(dim=1) / expected.norm(dim=1)).median())


@pytest.mark.parametrize("adapted", [False, True])
@pytest.mark.parametrize("generation", [2, 3])
@pytest.mark.parametrize("length", [1, 16, 17, 90])
def test_text_in_float8_deviates_a_little(generation: int, length: int, adapted: bool) -> None:
    network = wide_model(generation, seed=3)
    text, positions = network.text, torch.arange(length)
    x = torch.randn(length, 64, generator=torch.Generator().manual_seed(length))
    rows = None
    if adapted:
        rows = adapter_rows(mixed_stacks(text.config, 8), drawn(length, seed=2), 16)
    fast = float8_text(text, choose_float8(plain, CPU, torch.float32), measured(network))
    with torch.inference_mode():
        expected = text(x, positions, Mean(), rows)
        ours = fast(x, positions, Mean(), rows)
        without = fast(x, positions, Mean(), None)
    assert 1e-4 < off(ours, expected) < 0.05
    assert not adapted or off(without, expected) > off(ours, expected)


@pytest.mark.parametrize("generation", [2, 3])
@pytest.mark.parametrize("length", [1, 40])
def test_text_with_weights_of_few_bits(generation: int, length: int) -> None:
    network = wide_model(generation, seed=3)
    text, positions = network.text, torch.arange(length)
    x = torch.randn(length, 64, generator=torch.Generator().manual_seed(length))
    rows = adapter_rows(mixed_stacks(text.config, 8), drawn(length, seed=2), 16)
    for kind, close in (("fp8", 0.05), ("int4", 0.2)):
        fast = few_bits_text(text, choose_few_bits(plain), kind)
        for adapters in (None, rows):
            with torch.inference_mode():
                expected, ours = (way(x, positions, Mean(), adapters) for way in (text, fast))
            assert 1e-4 < off(ours, expected) < close


def test_text_gives_up_its_own_matrices() -> None:
    network, x = wide_model(3, seed=3), torch.randn(20, 64, generator=torch.Generator().manual_seed(1))
    text, scales, ops = network.text, measured(network), choose_float8(plain, CPU, torch.float32)
    kept = float8_text(text, ops, scales)
    freed = float8_text(text, ops, scales, free=True)
    assert torch.equal(kept(x, torch.arange(20), Mean()), freed(x, torch.arange(20), Mean()))
    left = [part for block in text.blocks for part in (block.attn.qkv, block.attn.proj, block.mlp.fc1)]
    assert not any(part.weight.numel() for part in left)


@pytest.mark.parametrize(
    ("capability", "dtype", "told"),
    [
        (None, torch.bfloat16, "needs a CUDA device"),
        ((8, 6), torch.bfloat16, "8.6"),
        ((9, 0), torch.float32, "float32"),
        ((9, 0), torch.bfloat16, "enc_ff_dim is 24"),
    ],
)
def test_what_stands_in_the_way_is_told(
    capability: tuple[int, int] | None, dtype: torch.dtype, told: str
) -> None:
    assert told in (why_not_few_bits("fp8", tiny_config(3), dtype, capability) or "")
    assert why_not_few_bits("fp8", wide_model(3).config, torch.bfloat16, (8, 9)) is None
    assert why_not_few_bits("int4", tiny_config(3), torch.bfloat16, (8, 0)) is None
    assert "needs 8.0" in (why_not_few_bits("int4", tiny_config(3), torch.float16, (7, 5)) or "")
