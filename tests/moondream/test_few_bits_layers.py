"""Networks with weights in 4 and 8 bits: which ones they are, what they take, and that they still compute."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tiny import tiny_config
from torch import Tensor, nn

from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.moondream.checkpoint.weights import load_weights, random_weights
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.few_bits_layers import (
    PackedExperts,
    PackedLinear,
    give_packed,
    is_packed,
    kind_of,
    weights_bytes,
)
from kestrel_core.moondream.few_bits_text import few_bits_text
from kestrel_core.moondream.host_tables import left_on_host
from kestrel_core.moondream.loading import giving, loaded_as, random_network
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose_few_bits import choose_few_bits
from kestrel_core.moondream.ops.few_bits import Kind, num_bytes, pack_weights, unpack
from kestrel_core.runtime import fast_paths
from kestrel_core.runtime.fast_paths import FastPaths

CPU = torch.device("cpu")


def deep_config(generation: int) -> MoondreamConfig:
    """With blocks behind the first four, which have 4 bits."""
    return tiny_config(generation, n_layers=6)


def named(config: MoondreamConfig) -> dict[str, nn.Parameter]:
    with torch.device("meta"):
        return dict(Moondream(config).named_parameters())


@pytest.mark.parametrize(("config", "gigabytes"), [(MOONDREAM2, 1.6), (MOONDREAM3, 5.5)])
def test_the_weights_of_published_models_fit_small_gpus(config: MoondreamConfig, gigabytes: float) -> None:
    """With keys and values of one context, 0.4 and 0.8 GB, this leaves 1 of 3 GB and 1.7 of 8."""
    assert weights_bytes(config, torch.bfloat16, int4=True) < gigabytes * 1e9
    whole = sum(parameter.numel() for parameter in named(config).values())
    assert weights_bytes(config, torch.bfloat16, int4=False) == 2 * whole


@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM3])
def test_little_is_left_wide(config: MoondreamConfig) -> None:
    """Only the embeddings; the decoders of regions; small matrices; and what is no matrix."""
    parameters = named(config)
    wide = {name for name in parameters if kind_of(name) is None}
    large = {name for name in wide if parameters[name].numel() > 2**21 and not name.startswith("region.")}
    assert large == {"text.wte"}, "which is left on the host"
    assert all(parameters[name].dim() > 1 for name in parameters.keys() - wide)


@pytest.mark.parametrize("quantize", ["fp8", "int4"])
def test_on_a_cpu_weights_are_rounded(quantize: Kind) -> None:
    plain, rounded = (
        random_network(deep_config(3), CPU, torch.float32, 1, some) for some in ("off", quantize)
    )
    others = dict(rounded.named_parameters())
    for name, parameter in plain.named_parameters():
        kind = kind_of(name) and ("fp8" if quantize == "fp8" else kind_of(name))
        expected = parameter if kind is None else unpack(pack_weights(parameter, kind), torch.float32)
        assert torch.equal(others[name], expected), name


def test_only_what_a_gpu_can_multiply_is_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    config, cuda = tiny_config(2), torch.device("cuda")
    for capability, dtype, quantize, packs in (
        ((9, 0), torch.bfloat16, "int4", True),
        ((8, 0), torch.float16, "int4", True),
        ((7, 5), torch.float16, "int4", False),
        ((9, 0), torch.float32, "int4", False),
        ((9, 0), torch.bfloat16, "fp8", False),  # float8 products pack in their own way
        ((9, 0), torch.bfloat16, "off", False),
    ):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, told=capability: told)
        assert giving(quantize, config, cuda, dtype) == (give_packed if packs else None)
        assert loaded_as(quantize, config, cuda, dtype) == ("int4" if packs else "off")


def test_embeddings_take_no_memory_of_a_small_gpu() -> None:
    for config in (MOONDREAM2, MOONDREAM3):
        table = named(config)["text.wte"].numel() * 2
        others = sum(
            num_bytes(tuple(parameter.shape), kind) if (kind := kind_of(name)) else 2 * parameter.numel()
            for name, parameter in named(config).items()
        )
        assert weights_bytes(config, torch.bfloat16, int4=True) == others - table


def test_a_network_is_given_its_embeddings_as_they_are_where_there_is_one_memory() -> None:
    config = tiny_config(2)
    plain, packed = random_network(config, CPU, torch.float32, 1), packed_network(config, 1)
    assert torch.equal(packed.text.wte, plain.text.wte) and not packed.text.wte.requires_grad
    assert left_on_host(plain.text.wte) is plain.text.wte


def alone(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """An attention in which each position sees itself."""
    return q + v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def packed_network(config: MoondreamConfig, seed: int) -> Moondream:
    """As a CUDA device gets it."""
    with torch.device("meta"):
        network = Moondream(config).eval()
    random_weights(network, CPU, torch.float32, seed, give_packed)
    return network


@pytest.mark.parametrize("generation", [2, 3])
@torch.inference_mode()
def test_packed_layers_compute_what_rounded_ones_do(generation: int) -> None:
    config = deep_config(generation)
    rounded = random_network(config, CPU, torch.float32, 1, "int4")
    packed = packed_network(config, 1)
    x = torch.randn((5, config.text.dim), generator=torch.Generator().manual_seed(2))
    size = config.vision.crop_size
    crops = torch.randint(256, (2, size, size, 3), dtype=torch.uint8)

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


@pytest.mark.parametrize("generation", [2, 3])
@torch.inference_mode()
def test_the_fast_text_takes_packed_layers_as_they_are(generation: int) -> None:
    config = deep_config(generation)
    rounded = random_network(config, CPU, torch.float32, 1, "int4")
    packed = packed_network(config, 1)
    fast = few_bits_text(packed.text, choose_few_bits(plain), "int4", free=True)
    x = torch.randn((5, config.text.dim), generator=torch.Generator().manual_seed(2))
    ours, expected = (forward(x, torch.arange(5), alone, None) for forward in (fast, rounded.text))
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)
    assert is_packed(packed) and not is_packed(rounded)


@pytest.mark.parametrize("generation", [2, 3])
def test_a_network_that_is_there_is_packed_as_one_that_is_loaded(
    generation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine may be made over a network that was loaded as it is, as `kestrel parity` does."""
    config = deep_config(generation)
    there, loaded = random_network(config, CPU, torch.float32, 1), packed_network(config, 1)
    monkeypatch.setattr(fast_paths, "settle_quantize", lambda wanted, *others: wanted)  # as on a GPU
    paths = FastPaths(there)
    paths.quantise("int4", None, None)
    paths.quantise("int4", None, None)  # the next engine
    assert paths.quantised == "int4"
    layers = dict(there.named_modules())
    kinds = set()
    for name, layer in loaded.named_modules():
        if isinstance(layer, (PackedLinear, PackedExperts)):
            other = layers[name]
            assert isinstance(other, type(layer)) and other.packed.kind == layer.packed.kind
            assert torch.equal(other.weight, layer.weight)
            kinds.add(layer.packed.kind)
    assert kinds == {"fp8", "int4"}


def test_a_checkpoint_is_packed_whatever_its_order(tmp_path: Path) -> None:
    """A bias may be read before or after its weight."""
    config = deep_config(3)
    plain_one = random_network(config, CPU, torch.float32, 1)
    by_name = dict(plain_one.named_parameters())
    for names in (sorted(by_name), sorted(by_name, reverse=True)):
        file = tmp_path / "model.safetensors"
        save_file({name: by_name[name].detach().clone() for name in names}, file)
        with torch.device("meta"):
            network = Moondream(config).eval()
        load_weights(network, config, open_checkpoint(file), CPU, torch.float32, give=give_packed)
        assert not any(parameter.is_meta for parameter in network.parameters())
        qkv = network.text.blocks[0].attn.qkv
        assert torch.equal(qkv.bias, by_name["text.blocks.0.attn.qkv.bias"])
        assert torch.equal(
            qkv.weight, unpack(pack_weights(by_name["text.blocks.0.attn.qkv.weight"], "fp8"), torch.float32)
        )


def test_one_expert_is_unpacked_at_a_time() -> None:
    weight = torch.randn((3, 16, 256), generator=torch.Generator().manual_seed(3))
    experts = PackedExperts(pack_weights(weight, "int4"), torch.float32)
    h = torch.randn((2, 256), generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(experts(h, 1), h @ experts.weight[1].T)
