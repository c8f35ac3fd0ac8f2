"""Seeded weights of a model's shape, for tests and benchmarks."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from checkpoints import CPU, TINY3, assert_holds, meta, tiny
from torch import Tensor

from kestrel_core.moondream.checkpoint.weights import (
    random_weights,
)
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.moe import MoE


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second, other = (meta(TINY3) for _ in range(3))
    for model, seed in ((first, 7), (second, 7), (other, 8)):
        random_weights(model, CPU, torch.bfloat16, seed)
    assert_holds(first, second.state_dict())
    assert not torch.equal(first.text.wte, other.text.wte)
    assert all(p.dtype == torch.bfloat16 and not p.requires_grad for p in first.parameters())


def causal(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(0, 1)


def rms(x: Tensor) -> float:
    return x.float().pow(2).mean().sqrt().item()


@pytest.mark.parametrize("config", [MOONDREAM2, MOONDREAM3], ids=["moondream2", "moondream3"])
def test_random_weights_keep_activations_of_order_one(config: MoondreamConfig) -> None:
    small = tiny(config)
    deep = replace(
        small, text=replace(small.text, n_layers=24), vision=replace(small.vision, enc_n_layers=27)
    )
    model = meta(deep)
    random_weights(model, CPU, torch.float32, seed=3)
    crops = torch.randint(
        0, 256, (2, 28, 28, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(4)
    )
    image = model.vision.project(model.vision.encode(crops), (1, 1))
    x = torch.cat((model.text.embed(torch.arange(50)), image))
    hidden = model.text(x, torch.arange(len(x)), causal)
    tokens, coords = model.text.logits(hidden), model.region.coord_logits(hidden)
    for name, value in {"image": image, "hidden": hidden, "logits": tokens, "coords": coords}.items():
        assert 0.2 < rms(value) < 5, f"{name} has rms {rms(value)}"
        assert value.isfinite().all()


def test_a_random_router_uses_every_expert() -> None:
    model = meta(TINY3)
    random_weights(model, CPU, torch.float32, seed=3)
    moe = model.text.blocks[1].mlp
    assert isinstance(moe, MoE)
    ids, _ = moe.route(torch.randn(400, 32, generator=torch.Generator().manual_seed(6)))
    shares = torch.bincount(ids.flatten(), minlength=4) / ids.numel()
    assert shares.min() > 0.1 and math.isclose(shares.sum().item(), 1.0, rel_tol=1e-6)
