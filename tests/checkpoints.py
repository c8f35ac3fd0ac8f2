"""Checkpoints of tiny models, in every container and spelling."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.moondream.checkpoint.weights import (
    load_weights,
    random_weights,
)
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoEConfig, MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.protocol.errors import BadCheckpoint

GOLDEN = Path(__file__).parent / "golden"
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


def old_torch_file(tensors: Tensors, folder: Path) -> Path:
    """As torch wrote them before 1.6: no zip archive, which could be mapped."""
    torch.save(tensors, folder / "weights.pt", _use_new_zipfile_serialization=False)
    return folder / "weights.pt"


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
    old_torch_file,
    torch_folder,
    bare_names,
    compiled_names,
    with_kv_caches,
]


def misfit(tensors: Tensors, config: MoondreamConfig, tmp_path: Path) -> str:
    path, model = one_file(tensors, tmp_path), meta(config)
    with pytest.raises(BadCheckpoint) as caught:
        load_weights(model, config, open_checkpoint(path), CPU, torch.bfloat16)
    assert all(p.is_meta for p in model.parameters()), "refused before anything is read"
    return str(caught.value)
