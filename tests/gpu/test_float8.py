"""Float8 with fixed scales on the device, against plain torch, at the real widths and in few layers."""

import gc
from dataclasses import replace

import pytest
import torch
from cuda_tensors import CUDA, randn
from torch import Tensor

from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.fast_vision import AttentionBackend, deviation
from kestrel_core.moondream.float8_text import float8_text
from kestrel_core.moondream.float8_vision import float8_vision
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose_few_bits import choose_float8, choose_products
from kestrel_core.moondream.ops.float8_products import FixedScale, TorchProducts, pack_float8
from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.moondream.scales import InputScales, measure_scales, sample_pictures, sample_prompts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9), reason="has no float8"
    ),
]


def network(config: MoondreamConfig, layers: int = 2) -> Moondream:
    text = replace(config.text, n_layers=layers)
    if text.moe is not None:
        text = replace(text, moe=replace(text.moe, start_layer=1))
    with torch.device("meta"):
        model = Moondream(replace(config, text=text, vision=replace(config.vision, enc_n_layers=layers)))
    random_weights(model, CUDA, torch.bfloat16, seed=1)
    return model.eval()


def measured(model: Moondream) -> InputScales:
    return measure_scales(model, sample_pictures(model.config.vision), sample_prompts(model.config))


def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q + k.mean(0) + v.mean(0)


def test_cublas_is_called_and_does_what_torch_does(kernels: Fused) -> None:
    products = choose_products(kernels, CUDA, torch.bfloat16)
    assert products.name == "cublas"
    by_torch, inputs, inner = (
        TorchProducts(kernels, CUDA),
        FixedScale.of(8.0, CUDA),
        FixedScale.of(99.0, CUDA),
    )
    for rows, columns, depth in ((17, 6144, 2048), (745, 8192, 2048), (729, 4304, 1152), (729, 1152, 4304)):
        matrix = pack_float8(
            randn(columns, depth, dtype=torch.bfloat16), randn(columns, seed=1, dtype=torch.bfloat16), inputs
        )
        x = kernels.round_float8(randn(rows, depth, seed=2, dtype=torch.bfloat16), inputs.value, gelu=False)
        add = randn(rows, columns, seed=3, dtype=torch.bfloat16)
        made = [
            (
                way.linear(x, matrix).float(),
                way.linear(x, matrix._replace(bias=None), add).float(),
                way.gelu_linear(x, matrix, inner).float(),
            )
            for way in (products, by_torch)
        ]
        for ours, expected in zip(*made, strict=True):
            assert (ours - expected).norm() < 0.02 * expected.norm(), (rows, columns, depth)


def test_what_is_no_number_stays_none(kernels: Fused) -> None:
    x = randn(3, 64, dtype=torch.bfloat16)
    x[1, 5] = torch.nan
    ours, expected = (ops.round_float8(x, 0.02, gelu=False).float() for ops in (kernels, plain))
    assert torch.equal(ours.isnan(), expected.isnan()) and int(ours.isnan().sum()) == 1


@pytest.mark.parametrize(("attention", "summing"), [("auto", False), ("ours", False), ("ours", True)])
def test_vision_deviates_a_little(kernels: Fused, attention: AttentionBackend, summing: bool) -> None:
    model = network(MOONDREAM2)
    products = choose_products(kernels, CUDA, torch.bfloat16)
    fast = float8_vision(model.vision, kernels, products, measured(model), attention, False, summing)
    if attention == "ours" and torch.cuda.get_device_capability() == (9, 0):
        assert fast.attention == "ours"
    crops = torch.randint(0, 256, (3, 378, 378, 3), dtype=torch.uint8, device=CUDA)
    assert deviation(model.vision, fast, crops) < 0.05


@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM3], ids=["Moondream 2", "Moondream 3"])
def test_text_deviates_a_little_and_can_be_captured(kernels: Fused, config: MoondreamConfig) -> None:
    model = network(config)
    fast = float8_text(model.text, choose_float8(kernels, CUDA, torch.bfloat16), measured(model))
    for tokens in (1, 16, 17, 64, 65, 745, 3000):
        x, positions = (
            randn(tokens, 2048, seed=tokens, dtype=torch.bfloat16),
            torch.arange(tokens, device=CUDA) % config.text.max_context,
        )
        with torch.inference_mode():
            expected, ours = (way(x, positions, attend, None).float() for way in (model.text, fast))
            off = (ours - expected).norm(dim=1) / expected.norm(dim=1)
            assert float(off.median()) < 0.08, (tokens, float(off.median()))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                captured = fast(x, positions, attend, None)
            graph.replay()
            torch.testing.assert_close(captured.float(), ours, atol=0, rtol=0)


@pytest.mark.parametrize("kind", ["fp8", "int4"])
def test_an_engine_needs_less_memory(kind: str) -> None:
    weights = []
    for quantize in ("off", kind):
        config = RuntimeConfig(
            model="moondream2", device="cuda", weights="random", quantize=quantize, cuda_graphs="off"
        )
        engine = assemble_engine(open_model(config), config)
        assert engine.in_use()["quantize"] == quantize
        gc.collect()
        torch.cuda.empty_cache()
        weights.append(torch.cuda.memory_allocated())
        engine.close()
        engine.runtime.close()
        del engine
        gc.collect()
    print(f"allocated: {weights[0] / 2**30:.2f} GiB, {kind} {weights[1] / 2**30:.2f} GiB")
    assert weights[1] < weights[0] - 2**30
