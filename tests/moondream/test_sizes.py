"""The published models have exactly the published tensors: names, shapes and parameter counts."""

import math

import pytest
import torch

from kestrel_core.moondream.config import MOONDREAM05, MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.model import Moondream

Shapes = dict[str, tuple[int, ...]]


def linear(name: str, out_dim: int, in_dim: int) -> Shapes:
    return {f"{name}.weight": (out_dim, in_dim), f"{name}.bias": (out_dim,)}


def norm(name: str, dim: int) -> Shapes:
    return {f"{name}.weight": (dim,), f"{name}.bias": (dim,)}


def mlp(name: str, dim: int, inner_dim: int, out_dim: int) -> Shapes:
    return linear(f"{name}.fc1", inner_dim, dim) | linear(f"{name}.fc2", out_dim, inner_dim)


def vision(dim: int, ff_dim: int, out_dim: int) -> Shapes:
    shapes: Shapes = linear("vision.patch_emb", dim, 588) | {"vision.pos_emb": (1, 729, dim)}
    for i in range(27):
        block = f"vision.blocks.{i}"
        shapes |= norm(f"{block}.ln1", dim) | norm(f"{block}.ln2", dim)
        shapes |= linear(f"{block}.attn.qkv", 3 * dim, dim) | linear(f"{block}.attn.proj", dim, dim)
        shapes |= mlp(f"{block}.mlp", dim, ff_dim, dim)
    return shapes | norm("vision.post_ln", dim) | mlp("vision.proj_mlp", 2 * dim, 8192, out_dim)


def text(dim: int, ff_dim: int, heads: int, dense_layers: int, tau: bool) -> Shapes:
    shapes: Shapes = {"text.wte": (51200, dim)}
    for i in range(24):
        block = f"text.blocks.{i}"
        shapes |= norm(f"{block}.ln", dim)
        shapes |= linear(f"{block}.attn.qkv", 3 * dim, dim) | linear(f"{block}.attn.proj", dim, dim)
        if tau:
            shapes |= {f"{block}.attn.tau.{w}": (heads, 3 * dim) for w in ("wq", "wv")}
            shapes |= {f"{block}.attn.tau.alpha": (heads,)}
        if i < dense_layers:
            shapes |= mlp(f"{block}.mlp", dim, ff_dim, dim)
        else:
            shapes |= linear(f"{block}.mlp.router", 64, dim)
            shapes |= {
                f"{block}.mlp.fc1.weight": (64, 2 * 1024, dim),
                f"{block}.mlp.fc2.weight": (64, dim, 1024),
            }
    return shapes | norm("text.post_ln", dim) | linear("text.lm_head", 51200, dim)


def region_encoders(dim: int) -> Shapes:
    shapes: Shapes = {"region.coord_features": (1, 128), "region.size_features": (2, 256)}
    return shapes | linear("region.coord_encoder", dim, 256) | linear("region.size_encoder", dim, 512)


def region2(dim: int) -> Shapes:
    decoders = mlp("region.coord_decoder", dim, 8192, 1024) | mlp("region.size_decoder", dim, 8192, 2048)
    return region_encoders(dim) | decoders


def region3(dim: int) -> Shapes:
    decoders = linear("region.coord_decoder", 1024, dim) | linear("region.size_decoder", 2048, dim)
    return region_encoders(dim) | decoders | norm("region.ln", dim)


PUBLISHED: dict[str, tuple[MoondreamConfig, Shapes, int]] = {
    "moondream2": (
        MOONDREAM2,
        vision(1152, 4304, 2048) | text(2048, 8192, 32, 24, tau=False) | region2(2048),
        592,
    ),
    "moondream0.5": (
        MOONDREAM05,
        vision(720, 2690, 1024) | text(1024, 4096, 16, 24, tau=False) | region2(1024),
        592,
    ),
    "moondream3": (
        MOONDREAM3,
        vision(1152, 4304, 2048) | text(2048, 8192, 32, 4, tau=True) | region3(2048),
        662,
    ),
}

COUNTS = {
    "moondream2": {
        "": 1_927_237_104,
        "vision.patch_emb vision.pos_emb": 1_518_336,
        "vision.blocks.0": 15_239_504,
        "vision.blocks": 411_466_608,
        "vision.post_ln": 2_304,
        "vision.proj_mlp": 35_661_824,
        "text.wte": 104_857_600,
        "text.blocks.0": 50_354_176,
        "text.blocks": 1_208_500_224,
        "text.post_ln text.lm_head": 104_912_896,
        "text": 1_418_270_720,
        "region.coord_encoder": 526_336,
        "region.coord_decoder": 25_175_040,
        "region.size_encoder": 1_050_624,
        "region.size_decoder": 33_564_672,
        "region.coord_features region.size_features": 640,
        "region": 60_317_312,
    },
    "moondream0.5": {
        "": 631_889_382,
        "vision.patch_emb vision.pos_emb": 948_960,
        "vision.blocks.0": 5_956_370,
        "vision.blocks": 160_821_990,
        "vision.post_ln": 1_440,
        "vision.proj_mlp": 20_194_304,
        "text.wte": 52_428_800,
        "text.blocks.0": 12_594_176,
        "text.blocks": 302_260_224,
        "text.post_ln text.lm_head": 52_482_048,
        "text": 407_171_072,
        "region.coord_encoder": 263_168,
        "region.coord_decoder": 16_786_432,
        "region.size_encoder": 525_312,
        "region.size_decoder": 25_176_064,
        "region.coord_features region.size_features": 640,
        "region": 42_751_616,
    },
    "moondream3": {
        "": 9_268_626_928,
        "vision.blocks": 411_466_608,
        "vision.patch_emb": 678_528,
        "vision.pos_emb": 839_808,
        "vision.post_ln": 2_304,
        "vision.proj_mlp": 35_661_824,
        "text.wte": 104_857_600,
        "text.blocks.0.attn.qkv text.blocks.0.attn.proj": 16_785_408,
        "text.blocks.0.attn.tau": 393_248,
        "text.blocks.0.ln": 4_096,
        "text.blocks.0.mlp": 33_564_672,
        "text.blocks.4.mlp.router": 131_136,
        "text.blocks.4.mlp.fc1 text.blocks.4.mlp.fc2": 402_653_184,
        "text.blocks": 8_602_331_136,
        "text.post_ln text.lm_head": 104_912_896,
        "region": 7_876_224,
    },
}


def built(config: MoondreamConfig) -> Shapes:
    with torch.device("meta"):
        model = Moondream(config)
    assert not list(model.buffers())
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_model_has_the_published_tensors(name: str) -> None:
    config, expected, count = PUBLISHED[name]
    assert built(config) == expected
    assert len(expected) == count


@pytest.mark.parametrize("name", COUNTS)
def test_a_published_model_has_the_published_parameter_counts(name: str) -> None:
    shapes = built(PUBLISHED[name][0])
    for parts, expected in COUNTS[name].items():
        inside = tuple(f"{part}." for part in parts.split()) or ("",)
        assert sum(math.prod(s) for n, s in shapes.items() if f"{n}.".startswith(inside)) == expected, parts
