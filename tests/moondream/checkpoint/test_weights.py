"""Checkpoints of every container and spelling into a tiny model, and all that is refused."""

import json
import math
import os
import pickle
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor

from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.moondream.checkpoint.weights import (
    fold,
    load_config,
    load_weights,
    random_weights,
    unpack_int4,
    unscale_float8,
)
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoEConfig, MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.protocol.errors import BadCheckpoint

GOLDEN = Path(__file__).parents[2] / "golden"
CPU = torch.device("cpu")
Tensors = dict[str, Tensor]


def tiny(config: MoondreamConfig) -> MoondreamConfig:
    moe = MoEConfig(num_experts=4, start_layer=1, experts_per_token=2, expert_inner_dim=8)
    return replace(
        config,
        text=replace(
            config.text,
            dim=32,
            ff_dim=64,
            n_layers=3,
            vocab_size=50,
            n_heads=2,
            n_kv_heads=2,
            moe=moe if config.text.moe else None,
        ),
        vision=replace(
            config.vision,
            enc_dim=16,
            enc_n_layers=2,
            enc_ff_dim=24,
            enc_n_heads=2,
            proj_inner_dim=40,
            proj_out_dim=32,
            crop_size=28,
            overlap_margin=0,
        ),
        region=replace(
            config.region,
            dim=32,
            coord_feat_dim=8,
            coord_out_dim=16,
            size_feat_dim=12,
            size_out_dim=32,
            inner_dim=20 if config.region.inner_dim else None,
        ),
    )


TINY2, TINY3 = tiny(MOONDREAM2), tiny(MOONDREAM3)


def meta(config: MoondreamConfig) -> Moondream:
    with torch.device("meta"):
        return Moondream(config)


def tensors_of(config: MoondreamConfig, dtype: torch.dtype = torch.bfloat16) -> Tensors:
    """A checkpoint of random tensors, in the published spelling."""
    model = meta(config)
    random_weights(model, CPU, dtype, seed=1)
    return {f"model.{name}": tensor for name, tensor in model.state_dict().items()}


def save_sharded(tensors: Mapping[str, Tensor], folder: Path, num_shards: int = 3) -> Path:
    shards: list[Tensors] = [{} for _ in range(num_shards)]
    for index, (name, tensor) in enumerate(tensors.items()):
        shards[index % num_shards][name] = tensor
    shard_of = {name: f"part-{i}.safetensors" for i, shard in enumerate(shards) for name in shard}
    for i, shard in enumerate(shards):
        save_file(shard, folder / f"part-{i}.safetensors")
    index_file = folder / "model.safetensors.index.json"
    index_file.write_text(json.dumps({"metadata": {}, "weight_map": shard_of}))
    return index_file


def legacy(tensors: Mapping[str, Tensor]) -> Tensors:
    """The first spelling of Moondream 2, written down the other way around than the loader has it."""
    visual = "vision_encoder.encoder.model.visual"
    rules = [
        (r"^vision\.patch_emb\.", f"{visual}.patch_embed.linear."),
        (r"^vision\.pos_emb$", f"{visual}.pos_embed"),
        (r"^vision\.blocks\.(\d+)\.ln([12])\.", rf"{visual}.blocks.\1.norm\2."),
        (r"^vision\.blocks\.(\d+)\.(attn|mlp)\.", rf"{visual}.blocks.\1.\2."),
        (r"^vision\.post_ln\.", f"{visual}.norm."),
        (r"^vision\.proj_mlp\.", "vision_encoder.projection.mlp."),
        (r"^text\.wte$", "text_model.transformer.embd.wte.weight"),
        (r"^text\.blocks\.(\d+)\.attn\.qkv\.", r"text_model.transformer.h.\1.mixer.Wqkv."),
        (r"^text\.blocks\.(\d+)\.attn\.proj\.", r"text_model.transformer.h.\1.mixer.out_proj."),
        (r"^text\.blocks\.(\d+)\.(ln|mlp)\.", r"text_model.transformer.h.\1.\2."),
        (r"^text\.post_ln\.", "text_model.lm_head.ln."),
        (r"^text\.lm_head\.", "text_model.lm_head.linear."),
        (r"^region\.coord_features$", "region_model.coordinate_features.weight"),
        (r"^region\.size_features$", "region_model.size_features.weight"),
        (r"^region\.coord_(en|de)coder\.", r"region_model.coordinate_\1coder."),
        (r"^region\.size_(en|de)coder\.", r"region_model.size_\1coder."),
    ]
    renamed: Tensors = {}
    for name, tensor in tensors.items():
        bare = name.removeprefix("model.")
        [old] = [re.sub(new, old, bare) for new, old in rules if re.search(new, bare)]
        renamed[old] = tensor.T.contiguous() if "_features." in old else tensor
    return renamed


def load(
    path: Path, config: MoondreamConfig, dtype: torch.dtype = torch.bfloat16
) -> tuple[Moondream, list[tuple[int, int]]]:
    model, steps = meta(config), list[tuple[int, int]]()
    load_weights(
        model, config, open_checkpoint(path), CPU, dtype, lambda done, total: steps.append((done, total))
    )
    return model, steps


def assert_holds(model: Moondream, tensors: Mapping[str, Tensor]) -> None:
    state = model.state_dict()
    assert state.keys() == {name.removeprefix("model.") for name in tensors}
    for name, tensor in tensors.items():
        assert torch.equal(state[name.removeprefix("model.")], tensor), name


def one_file(tensors: Tensors, folder: Path) -> Path:
    save_file(tensors, folder / "weights.safetensors")
    return folder / "weights.safetensors"


def one_folder(tensors: Tensors, folder: Path) -> Path:
    save_file(tensors, folder / "model.safetensors")
    save_file({"adapter": torch.ones(1)}, folder / "adapter.safetensors")
    return folder


def sharded_index(tensors: Tensors, folder: Path) -> Path:
    return save_sharded(tensors, folder)


def sharded_folder(tensors: Tensors, folder: Path) -> Path:
    return save_sharded(tensors, folder).parent


def torch_file(tensors: Tensors, folder: Path) -> Path:
    torch.save(tensors, folder / "weights.pth")
    return folder / "weights.pth"


def torch_folder(tensors: Tensors, folder: Path) -> Path:
    torch.save(tensors, folder / "any.pt")
    return folder


def bare_names(tensors: Tensors, folder: Path) -> Path:
    return one_file({name.removeprefix("model."): tensor for name, tensor in tensors.items()}, folder)


def compiled_names(tensors: Tensors, folder: Path) -> Path:
    return torch_file(
        {name.replace(".blocks.", "._orig_mod.blocks."): t for name, t in tensors.items()}, folder
    )


def with_kv_caches(tensors: Tensors, folder: Path) -> Path:
    caches = {f"model.text.blocks.0.kv_cache.{kind}_cache": torch.zeros(2) for kind in "kv"}
    return one_file({**tensors, **caches}, folder)


Container = Callable[[Tensors, Path], Path]
CONTAINERS: list[Container] = [
    one_file,
    one_folder,
    sharded_index,
    sharded_folder,
    torch_file,
    torch_folder,
    bare_names,
    compiled_names,
    with_kv_caches,
]


@pytest.mark.parametrize("config", [TINY2, TINY3], ids=["moondream2", "moondream3"])
@pytest.mark.parametrize("container", CONTAINERS, ids=lambda container: container.__name__)
def test_every_container_gives_the_same_parameters(
    container: Container, config: MoondreamConfig, tmp_path: Path
) -> None:
    tensors = tensors_of(config)
    model, _ = load(container(tensors, tmp_path), config)
    assert_holds(model, tensors)


@pytest.mark.parametrize("container", [one_file, torch_file])
def test_the_first_spelling_of_moondream_2_is_understood(container: Container, tmp_path: Path) -> None:
    tensors = tensors_of(TINY2)
    renamed = legacy(tensors)
    compiled = {name.replace(".mixer.", "._orig_mod.mixer."): tensor for name, tensor in renamed.items()}
    assert not compiled.keys() & tensors.keys()
    model, _ = load(container(compiled, tmp_path), TINY2)
    assert_holds(model, tensors)


def test_parameters_are_cast_and_ask_for_no_gradient(tmp_path: Path) -> None:
    tensors = tensors_of(TINY3, torch.float16)
    model, _ = load(one_file(tensors, tmp_path), TINY3, torch.float32)
    assert_holds(model, {name: tensor.float() for name, tensor in tensors.items()})
    assert all(p.dtype == torch.float32 and not p.requires_grad for p in model.parameters())


def test_progress_counts_bytes_up_to_the_total(tmp_path: Path) -> None:
    model, steps = load(save_sharded(tensors_of(TINY3), tmp_path), TINY3)
    total = sum(p.nbytes for p in model.parameters())
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert {of for _, of in steps} == {total} and steps[-1] == (total, total)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs the list of mapped files")
def test_one_shard_is_mapped_at_a_time_and_none_afterwards(tmp_path: Path) -> None:
    def mapped() -> set[str]:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return {line.rpartition("/")[2] for line in lines if str(tmp_path) in line}

    model, seen = meta(TINY3), list[set[str]]()
    checkpoint = open_checkpoint(save_sharded(tensors_of(TINY3), tmp_path))
    load_weights(model, TINY3, checkpoint, CPU, torch.bfloat16, lambda *_: seen.append(mapped()))
    assert max(len(files) for files in seen) == 1
    assert set.union(*seen) == {"part-0.safetensors", "part-1.safetensors", "part-2.safetensors"}
    assert mapped() == set()


def test_headers_tell_shape_and_type_alike_in_both_containers(tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(2, 3, dtype=torch.bfloat16), "b": torch.zeros(4, dtype=torch.float8_e4m3fn)}
    torch_infos = open_checkpoint(torch_file(tensors, tmp_path)).tensors
    assert dict(open_checkpoint(one_file(tensors, tmp_path)).tensors) == torch_infos
    assert (torch_infos["a"].shape, torch_infos["b"].dtype) == ((2, 3), "float8_e4m3fn")


# What is refused: containers.


def refused(path: Path) -> str:
    with pytest.raises(BadCheckpoint) as caught:
        open_checkpoint(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_half_a_file_is_refused(suffix: str, tmp_path: Path) -> None:
    container = one_file if suffix == ".safetensors" else torch_file
    whole = container(tensors_of(TINY2), tmp_path).read_bytes()
    path = tmp_path / f"half{suffix}"
    path.write_bytes(whole[: len(whole) // 2])
    assert "only a part of one" in refused(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".index.json"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "is an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n", "is a git-lfs pointer"),
    ],
    ids=["empty", "html", "lfs"],
)
def test_what_a_failed_download_leaves_is_called_by_name(
    content: bytes, said: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    assert said in refused(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04 no zip", b"garbage", struct.pack("<Q", 1 << 40) + b"{}"])
@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_garbage_is_refused(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    assert "only a part of one" in refused(path)


class Touch:
    """Unpickled by a careless loader, it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_pickle_is_refused_and_does_not_run(tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    pickle.loads(pickle.dumps(Touch(proof)))
    assert proof.exists(), "the trap itself must work"
    proof.unlink()
    torch.save({"text.wte": torch.zeros(1), "trap": Touch(proof)}, tmp_path / "zip.pt")
    (tmp_path / "bare.pt").write_bytes(pickle.dumps({"trap": Touch(proof)}))
    assert "maybe code" in refused(tmp_path / "zip.pt")
    assert "no torch file" in refused(tmp_path / "bare.pt")
    assert not proof.exists()


def test_a_torch_file_of_something_else_is_refused(tmp_path: Path) -> None:
    torch.save([torch.zeros(1)], tmp_path / "list.pt")
    assert "no tensors by name" in refused(tmp_path / "list.pt")
    torch.save({"step": 3, "state_dict": {"text.wte": torch.zeros(1)}}, tmp_path / "nested.pt")
    assert "no named tensors: step, state_dict" in refused(tmp_path / "nested.pt")
    torch.save({3: torch.zeros(1)}, tmp_path / "numbered.pt")
    assert "no named tensors: 3" in refused(tmp_path / "numbered.pt")


def test_a_folder_without_a_checkpoint_says_what_was_looked_for(tmp_path: Path) -> None:
    message = refused(tmp_path)
    assert all(name in message for name in ("model.safetensors.index.json", "model.safetensors,", "model.pt"))


def test_several_files_without_an_index_are_no_choice_to_make(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "a.safetensors")
    save_file({"b": torch.zeros(1)}, tmp_path / "b.safetensors")
    assert "holds a.safetensors, b.safetensors and no model.safetensors.index.json" in refused(tmp_path)


def test_a_path_that_is_not_there_and_a_strange_suffix_are_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "nowhere.safetensors")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert "ends in none of .safetensors" in refused(tmp_path / "model.gguf")


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", 'has no "weight_map"'),
        ('{"weight_map": {}}', 'has no "weight_map"'),
        ('{"weight_map": {"a": 3}}', 'has no "weight_map"'),
        (
            '{"weight_map": {"a": "part-0.safetensors", "b": "gone.safetensors"}}',
            "not there: gone.safetensors",
        ),
        (
            '{"weight_map": {"a": "part-0.safetensors", "lost": "part-0.safetensors"}}',
            "lost (part-0.safetensors)",
        ),
        ('{"weight_map": {"a": "../part-0.safetensors"}}', "points outside its folder"),
        ('{"weight_map": {"a": "x/../../part-0.safetensors"}}', "points outside its folder"),
        ('{"weight_map": {"a": "/part-0.safetensors"}}', "points outside its folder"),
    ],
)
def test_an_index_must_lead_to_its_tensors(index: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for place in (tmp_path, folder):
        save_file({"a": torch.zeros(1)}, place / "part-0.safetensors")
    (folder / "model.safetensors.index.json").write_text(index)
    assert said in refused(folder)


# What is refused: tensors.


def misfit(tensors: Tensors, config: MoondreamConfig, tmp_path: Path) -> str:
    path, model = one_file(tensors, tmp_path), meta(config)
    with pytest.raises(BadCheckpoint) as caught:
        load_weights(model, config, open_checkpoint(path), CPU, torch.bfloat16)
    assert all(p.is_meta for p in model.parameters()), "refused before anything is read"
    return str(caught.value)


def test_every_misfit_is_named_in_one_error(tmp_path: Path) -> None:
    tensors = tensors_of(TINY3)
    for layer in range(3):
        del tensors[f"model.text.blocks.{layer}.attn.tau.wq"]
    del tensors["model.region.ln.bias"]
    tensors["model.text.extra"] = torch.zeros(1)
    tensors["model.text.wte"] = torch.zeros(7, 32)
    tensors["model.text.lm_head.bias"] = torch.zeros(50, dtype=torch.int32)
    message = misfit(tensors, TINY3, tmp_path)
    assert "missing: region.ln.bias, text.blocks.{0..2}.attn.tau.wq;" in message
    assert "unexpected: model.text.extra" in message
    assert "[7, 32] instead of [50, 32]: text.wte" in message
    assert "I32 instead of bfloat16 or float16 or float32 or float64: text.lm_head.bias" in message


@pytest.mark.parametrize(("held", "asked"), [(TINY2, TINY3), (TINY3, TINY2)], ids=["2 for 3", "3 for 2"])
def test_the_other_generation_is_recognised_first(
    held: MoondreamConfig, asked: MoondreamConfig, tmp_path: Path
) -> None:
    message = misfit(tensors_of(held), asked, tmp_path)
    assert message.startswith(f"this is a Moondream {held.generation} checkpoint (it has ")
    assert f"but the configuration says Moondream {asked.generation}: missing: " in message


def test_two_names_for_one_tensor_are_refused(tmp_path: Path) -> None:
    tensors = tensors_of(TINY2)
    message = misfit({**tensors, "text.wte": torch.zeros(50, 32)}, TINY2, tmp_path)
    assert "the same tensor under two names" in message and "model.text.wte" in message


def test_only_kv_caches_are_ignored(tmp_path: Path) -> None:
    tensors = {**tensors_of(TINY2), "model.text.blocks.0.kv_cache.other": torch.zeros(1)}
    assert "unexpected: model.text.blocks.0.kv_cache.other" in misfit(tensors, TINY2, tmp_path)


def test_folded_names_can_be_unfolded() -> None:
    names = ["a.0.b", "a.1.b", "a.2.b", "a.9.b", "a.11.c", "plain", "x.7"]
    assert fold(names) == ["plain", "x.7", "a.{0..2,9}.b", "a.11.c"]


# The configuration beside the tensors.


def test_config_json_is_read_in_and_beside_a_checkpoint(tmp_path: Path) -> None:
    path = one_file(tensors_of(TINY3), tmp_path)
    document = {"model_type": "moondream3", "config": {"text": {"max_context": 1234}}}
    (tmp_path / "config.json").write_text(json.dumps(document))
    for place in (tmp_path, path):
        assert load_config(place) == replace(MOONDREAM3, text=replace(MOONDREAM3.text, max_context=1234))


def test_bad_json_is_one_clear_error(tmp_path: Path) -> None:
    path = one_file(tensors_of(TINY3), tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BadCheckpoint, match=r"config\.json is not valid JSON"):
        load_config(path)


@pytest.mark.parametrize(("config", "told"), [(TINY2, MOONDREAM2), (TINY3, MOONDREAM3)])
def test_without_a_config_the_names_tell_the_generation(
    config: MoondreamConfig, told: MoondreamConfig, tmp_path: Path
) -> None:
    path = one_file(tensors_of(config), tmp_path)
    assert load_config(path) == told
    assert load_config(path, default=config) == config
    (tmp_path / "config.json").write_text("{}")
    assert load_config(path) == told


def test_legacy_names_tell_moondream_2(tmp_path: Path) -> None:
    assert load_config(one_file(legacy(tensors_of(TINY2)), tmp_path)) == MOONDREAM2


def test_names_of_another_model_and_no_config_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"has no config\.json"):
        load_config(one_file({"bert.weight": torch.zeros(1)}, tmp_path))


def test_a_preview_without_the_region_norm_loads_without_it(tmp_path: Path) -> None:
    tensors = {name: tensor for name, tensor in tensors_of(TINY3).items() if ".region.ln." not in name}
    path = one_file(tensors, tmp_path)
    config = load_config(path, default=TINY3)
    assert not config.region.norm
    assert_holds(load(path, config)[0], tensors)


# Quantised checkpoints.


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


# Random weights.


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
