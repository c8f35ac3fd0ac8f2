"""Weights of few bits together with the kernels for steps of few rows, interpreted, against plain torch."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest
import torch
from lora_rows import adapter_rows, drawn, mixed_stacks
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.few_bits_layers import OutputLayer8
from kestrel_core.moondream.few_bits_text import few_bits_text
from kestrel_core.moondream.float8_text import float8_text
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose_few_bits import choose_few_bits, choose_float8
from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.moondream.scales import measure_scales, sample_pictures, sample_prompts

pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
interpreted = pytest.mark.skipif(
    find_spec("triton") is None or torch.cuda.is_available(), reason="needs the kernel language, and no GPU"
)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def decode_kernels() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_core.moondream.ops import decode_kernels

        yield decode_kernels


def network(generation: int) -> Moondream:
    config = tiny_config(generation, dim=64, ff_dim=96, n_layers=3)
    if config.text.moe is not None:
        moe = replace(config.text.moe, expert_inner_dim=32, start_layer=1)
        config = replace(config, text=replace(config.text, moe=moe))
    vision = replace(config.vision, enc_dim=64, enc_ff_dim=96)
    return tiny_model(replace(config, vision=vision), seed=3)


def text_in(kind: str, made: Moondream, fused: Fused) -> FastText:
    if kind == "int4":
        return few_bits_text(made.text, choose_few_bits(fused), "int4")
    scales = measure_scales(made, sample_pictures(made.config.vision), sample_prompts(made.config))
    return float8_text(made.text, choose_float8(fused, CPU, torch.float32), scales)


def mean(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q + k.mean(0) + v.mean(0)


@torch.inference_mode()
@pytest.mark.parametrize(("rows", "adapted"), [(1, False), (1, True), (3, False)])
@pytest.mark.parametrize("generation", [2, 3])
@pytest.mark.parametrize("kind", ["fp8", "int4"])
@interpreted
def test_text_is_that_of_plain_torch(
    decode_kernels: ModuleType, kind: str, generation: int, rows: int, adapted: bool
) -> None:
    made, positions = network(generation), torch.arange(rows)
    x = torch.randn(rows, 64, generator=torch.Generator().manual_seed(rows))
    adapters = None
    if adapted:
        adapters = adapter_rows(mixed_stacks(made.text.config, 8), drawn(rows, seed=2), 16)
    by_plain = text_in(kind, made, plain)
    expected = by_plain(x, positions, mean, adapters)
    ours = by_plain.computed_by(decode_kernels.DecodeKernels(early=False))
    torch.testing.assert_close(ours(x, positions, mean, adapters), expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("early", [False, True])
@interpreted
def test_products_are_launched_as_early_as_the_kernels_beside_them(
    decode_kernels: ModuleType, early: bool
) -> None:
    text = text_in("fp8", network(3), plain).computed_by(decode_kernels.DecodeKernels(early))
    for block in text._blocks:
        ops = cast(SimpleNamespace, block)._few
        products = (ops.linear, ops.linear_sum, ops.experts, ops.linear_beside)
        assert [product.keywords for product in products] == [{"early": early}] * 4


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["fp8", "int4"])
def test_experts_are_chosen_two_launches_before_their_weights_are_fetched(kind: str) -> None:
    """Kernels that are launched early may read what was written two launches before (`ops.early_launch`)."""
    launches: list[str] = []

    def told(name: str) -> object:
        def call(*given: object, **named: object) -> object:
            launches.append(name)
            return getattr(plain, name)(*given, **named)

        return call

    names = ("add_norm", "linear", "rotate", "route", "shrink", "expand")
    fused = cast(Fused, SimpleNamespace(**{**vars(plain), **{name: told(name) for name in names}}))
    text = text_in(kind, network(3), fused)
    for block in text._blocks:
        few = cast(SimpleNamespace, block)._few

        def experts(*given: object, of: object = few.experts) -> object:
            launches.append("experts")
            return of(*given)  # type: ignore[operator]

        cast(SimpleNamespace, block)._few = few._replace(experts=experts)
    text(torch.randn(1, 64), torch.arange(1), mean)
    assert "experts" in launches
    for at, name in enumerate(launches):
        if name == "experts":
            assert launches[at - 2 : at] == ["route", "rotate"]  # and attention, and a product of few bits


@torch.inference_mode()
@pytest.mark.parametrize("rows", [1, 16, 17])
def test_an_output_layer_of_8_bits_has_one_set_of_numbers_for_all_rows(rows: int) -> None:
    layer = torch.nn.Linear(64, 90)
    packed, x = OutputLayer8(layer), torch.randn(rows, 64)
    expected = torch.nn.functional.linear(x, packed.weight, layer.bias)
    torch.testing.assert_close(packed(x), expected)
    torch.testing.assert_close(packed(x[None])[0], expected)
    off = (packed.weight - layer.weight).norm() / layer.weight.norm()
    assert 1e-3 < float(off) < 0.05
