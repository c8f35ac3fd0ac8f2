"""Weights stored in int4 or float8 are unpacked when they are loaded."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checkpoints import (
    GOLDEN,
    TINY2,
    TINY3,
    Container,
    Tensors,
    assert_holds,
    load,
    misfit,
    one_file,
    sharded_index,
    tensors_of,
    torch_file,
)
from safetensors.torch import load_file

from kestrel_core.moondream.checkpoint.weights import (
    unpack_int4,
    unscale_float8,
)
from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.moe import MoE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_int4_unpacks_to_the_golden_weights(dtype: torch.dtype) -> None:
    golden = load_file(GOLDEN / "md2" / "unit.safetensors")
    expected = golden["quant.weight_f32" if dtype == torch.float32 else "quant.weight_bf16"]
    out = torch.empty_like(expected)
    unpack_int4(golden["quant.packed"], golden["quant.scale"], golden["quant.zero_point"], out)
    assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_float8_experts_give_the_golden_outputs(dtype: torch.dtype) -> None:
    stored = load_file(GOLDEN / "md3" / "experts_fp8.safetensors")
    expected = load_file(GOLDEN / "md3" / "experts_fp8_expected.safetensors")
    moe = MoE(128, MoEConfig(num_experts=16, experts_per_token=4, expert_inner_dim=32)).requires_grad_(False)
    router = load_file(GOLDEN / "md3" / "router_5.safetensors")
    moe.router.load_state_dict({name.rpartition(".")[2]: tensor for name, tensor in router.items()})
    for experts, part, scale in ((moe.fc1, "fc1", "up_scale"), (moe.fc2, "fc2", "down_scale")):
        weight = stored[f"model.text.blocks.5.mlp.{part}.weight"]
        out = torch.empty(weight.shape, dtype=dtype)
        unscale_float8(weight, stored[f"model.text.blocks.5.moe_quant.{scale}"], out)
        experts.weight.copy_(out)
    name = str(dtype).removeprefix("torch.")
    torch.testing.assert_close(moe(expected["x"]), expected[f"out_{name}_weights"], atol=1e-5, rtol=1e-5)


def as_float8(tensors: Tensors) -> tuple[Tensors, Tensors]:
    """The checkpoint with float8 experts and their scales, and what it should load as in float32."""
    stored, expected = dict(tensors), {name: tensor.float() for name, tensor in tensors.items()}
    for name, exact in expected.items():
        if "mlp.fc" in name and exact.ndim == 3:
            scale = exact.abs().amax(-1) / 448
            block, _, leaf = name.partition("mlp.")
            stored[f"{block}moe_quant.{'up_scale' if leaf == 'fc1.weight' else 'down_scale'}"] = scale
            stored[name] = (exact / scale[..., None]).to(torch.float8_e4m3fn)
            expected[name] = stored[name].float() * scale[..., None]
    return stored, expected


@pytest.mark.parametrize("container", [one_file, sharded_index, torch_file])
def test_float8_experts_load_whichever_shard_their_scales_are_in(
    container: Container, tmp_path: Path
) -> None:
    stored, expected = as_float8(tensors_of(TINY3))
    assert len(stored) == len(expected) + 4
    model, _ = load(container(stored, tmp_path), TINY3, torch.float32)
    assert_holds(model, expected)


def test_float8_and_scales_need_each_other(tmp_path: Path) -> None:
    tensors = tensors_of(TINY3)
    quantised, _ = as_float8(tensors)
    del quantised["model.text.blocks.1.moe_quant.up_scale"]
    quantised["model.text.blocks.2.mlp.fc2.weight"] = tensors["model.text.blocks.2.mlp.fc2.weight"]
    quantised["model.text.lm_head.weight"] = torch.zeros(50, 32, dtype=torch.float8_e4m3fn)
    message = misfit(quantised, TINY3, tmp_path)
    assert "missing: text.blocks.1.moe_quant.up_scale" in message
    assert "unexpected: model.text.blocks.2.moe_quant.down_scale" in message
    assert (
        "float8_e4m3fn instead of bfloat16 or float16 or float32 or float64: text.lm_head.weight" in message
    )


def test_int4_linears_load_where_the_config_says_groups(tmp_path: Path) -> None:
    group = 16
    config = replace(
        TINY2,
        text=replace(TINY2.text, group_size=group),
        region=replace(TINY2.region, group_size=group),
    )
    generator = torch.Generator().manual_seed(5)
    stored: Tensors = {}
    expected: Tensors = {}
    for name, tensor in tensors_of(TINY2).items():
        linear = tensor.ndim == 2 and name.endswith(".weight")
        if not (linear and name.startswith(("model.text.blocks.", "model.region."))):
            stored[name] = expected[name] = tensor
            continue
        groups = tensor.numel() // group
        packed = torch.randint(0, 256, (groups // 2, group), dtype=torch.uint8, generator=generator)
        scale, zero = (
            torch.rand(groups, 1, generator=generator),
            15 * torch.rand(groups, 1, generator=generator),
        )
        stored |= {f"{name}.packed": packed, f"{name}.scale": scale, f"{name}.zero_point": zero}
        expected[name] = torch.empty_like(tensor)
        unpack_int4(packed, scale, zero, expected[name])
    model, _ = load(one_file(stored, tmp_path), config)
    assert_holds(model, expected)
    del stored["model.region.size_encoder.weight.packed"]
    assert "missing: region.size_encoder.weight.packed" in misfit(stored, config, tmp_path)
    assert "unexpected: model.region.coord_decoder" in misfit(stored, TINY2, tmp_path)
