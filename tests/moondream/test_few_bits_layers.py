"""Networks with weights in 4 and 8 bits: which ones they are, what they take, and that they still compute."""

import pytest
import torch
from tiny import tiny_config
from torch import nn

from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.few_bits_layers import (
    PackedExperts,
    PackedLinear,
    give_packed,
    join_layers,
    kind_of,
    replace_layer,
    weights_bytes,
)
from kestrel_core.moondream.loading import giving, random_network
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.few_bits import Kind, pack_weights, unpack
from kestrel_core.moondream.text import MLP

CPU = torch.device("cpu")


def named(config: MoondreamConfig) -> dict[str, nn.Parameter]:
    with torch.device("meta"):
        return dict(Moondream(config).named_parameters())


@pytest.mark.parametrize(("config", "gigabytes"), [(MOONDREAM2, 1.5), (MOONDREAM3, 5.4)])
def test_the_weights_of_published_models_fit_small_gpus(config: MoondreamConfig, gigabytes: float) -> None:
    """With a context of keys and values, 0.4 and 0.8 GB, this leaves a GB and more of 3 and of 8."""
    assert weights_bytes(config, torch.bfloat16, int4=True) < gigabytes * 1e9
    whole = sum(parameter.numel() for parameter in named(config).values())
    assert weights_bytes(config, torch.bfloat16, int4=False) == 2 * whole


@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM3])
def test_little_is_left_wide(config: MoondreamConfig) -> None:
    """Only the embeddings; small matrices; and what is no matrix."""
    parameters = named(config)
    wide = {name for name in parameters if kind_of(name) is None}
    assert {name for name in wide if parameters[name].numel() > 2**21} == {"text.wte"}
    assert all(parameters[name].dim() > 1 for name in parameters.keys() - wide)


@pytest.mark.parametrize("quantize", ["fp8", "int4"])
def test_on_a_cpu_weights_are_rounded(quantize: Kind) -> None:
    plain, rounded = (
        random_network(tiny_config(3), CPU, torch.float32, 1, some) for some in ("off", quantize)
    )
    others = dict(rounded.named_parameters())
    for name, parameter in plain.named_parameters():
        kind = kind_of(name) and ("fp8" if quantize == "fp8" else kind_of(name))
        expected = parameter if kind is None else unpack(pack_weights(parameter, kind), torch.float32)
        assert torch.equal(others[name], expected), name


def test_only_16_bits_are_packed_on_a_gpu() -> None:
    """The kernels are made for inputs of 16 bits; float8 products need the wide weights first."""
    cuda = torch.device("cuda")
    assert giving("off", cuda, torch.bfloat16) is None
    assert giving("int4", cuda, torch.float32) is None
    assert giving("fp8", cuda, torch.bfloat16) is None
    assert giving("int4", cuda, torch.bfloat16) is give_packed


def packed_like(network: Moondream) -> Moondream:
    """As a CUDA device has it."""
    for name, parameter in list(network.named_parameters()):
        kind = kind_of(name)
        if kind is not None:
            layer = name.removesuffix(".weight")
            packed = pack_weights(parameter, kind)
            replace_layer(network, layer, packed, parameter.dtype)
    return network


@pytest.mark.parametrize("generation", [2, 3])
@torch.inference_mode()
def test_packed_layers_compute_what_rounded_ones_do(generation: int) -> None:
    config = tiny_config(generation)
    rounded = random_network(config, CPU, torch.float32, 1, "int4")
    packed = packed_like(random_network(config, CPU, torch.float32, 1))
    x = torch.randn((5, config.text.dim), generator=torch.Generator().manual_seed(2))
    size = config.vision.crop_size
    crops = torch.randint(256, (2, size, size, 3), dtype=torch.uint8)

    def alone(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return q + v if q.shape == v.shape else q

    made = []
    for network in (rounded, packed):
        hidden = network.text(x, torch.arange(5), alone)
        embeddings = network.vision.project(network.vision.encode(crops), (1, 1))
        made.append(
            (
                hidden,
                network.text.logits(hidden),
                network.region.coord_logits(hidden),
                embeddings,
            )
        )
    torch.testing.assert_close(*made, atol=1e-4, rtol=1e-4)


def test_joined_layers_become_views() -> None:
    network = packed_like(random_network(tiny_config(2), CPU, torch.float32, 1))
    block = network.text.blocks[0]
    mlp, qkv = block.mlp, block.attn.qkv
    assert isinstance(mlp, MLP) and isinstance(qkv, PackedLinear) and isinstance(mlp.fc1, PackedLinear)
    before = [(layer.weight, layer.bias.clone()) for layer in (qkv, mlp.fc1)]
    packed, bias = join_layers(qkv, mlp.fc1)
    for layer, (weight, own_bias) in zip((qkv, mlp.fc1), before, strict=True):
        assert torch.equal(layer.weight, weight) and torch.equal(layer.bias, own_bias)
        assert layer.packed.values.untyped_storage().data_ptr() == packed.values.untyped_storage().data_ptr()
    assert torch.equal(unpack(packed, torch.float32), torch.cat([weight for weight, _ in before]))
    assert torch.equal(bias, torch.cat([own for _, own in before]))


def test_one_expert_is_unpacked_at_a_time() -> None:
    weight = torch.randn((3, 16, 256), generator=torch.Generator().manual_seed(3))
    experts = PackedExperts(pack_weights(weight, "int4"), torch.float32)
    h = torch.randn((2, 256), generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(experts(h, 1), h @ experts.weight[1].T)
