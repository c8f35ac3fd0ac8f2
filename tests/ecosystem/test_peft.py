"""Adapters between PEFT and us: what it merges into the weights is what we add to the products."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from other_clients import Drive
from random_adapters import random_adapter
from safetensors.torch import load_file, save_file
from tiny import tiny_config
from torch import Tensor

from kestrel_core.moondream.checkpoint.adapter_files import read_adapter
from kestrel_core.moondream.checkpoint.adapter_writing import write_peft
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import TARGETS, Adapter, Target, target_shapes

pytestmark = pytest.mark.ecosystem

MODULES: dict[Target, str] = {
    "qkv": "attn.qkv",
    "proj": "attn.proj",
    "fc1": "mlp.fc1",
    "fc2": "mlp.fc2",
    "expert_fc1": "mlp.fc1",
    "expert_fc2": "mlp.fc2",
}


def weights(config: TextConfig) -> dict[tuple[int, Target], Tensor]:
    """Matrices as the model has them, with random numbers."""
    torch.manual_seed(1)
    made: dict[tuple[int, Target], Tensor] = {}
    for layer in range(config.n_layers):
        for target, shape in target_shapes(config, layer).items():
            if target in MODULES:
                experts = (shape.num_experts,) if shape.num_experts else ()
                made[layer, target] = torch.randn(*experts, shape.out_dim, shape.in_dim)
    return made


def named(layer: int, target: Target) -> str:
    return f"model.text.blocks.{layer}.{MODULES[target]}.weight"


def check_merged(folder: Path, base: dict[tuple[int, Target], Tensor], adapter: Adapter) -> None:
    merged = load_file(folder / "merged.safetensors")
    for (layer, target), weight in base.items():
        ours = weight
        if (low_rank := adapter.blocks[layer].get(target)) is not None:
            ours = weight + low_rank.b @ low_rank.a
        torch.testing.assert_close(ours, merged[named(layer, target)], rtol=1e-5, atol=1e-4)


MADE: dict[str, tuple[int, dict[str, Any]]] = {  # by PEFT: the generation, and its settings
    "plain": (2, {"r": 4, "lora_alpha": 8, "target_modules": ["qkv", "proj", "fc1", "fc2"]}),
    "rslora": (2, {"r": 4, "lora_alpha": 8, "target_modules": ["qkv", "fc2"], "use_rslora": True}),
    "patterns": (
        2,
        {
            "r": 4,
            "lora_alpha": 8,
            "target_modules": r".*\.blocks\.[01]\..*(qkv|proj|fc1)",
            "rank_pattern": {"attn.proj": 2, r"blocks\.[0-9]+\.mlp\.fc1": 3, "^model.*qkv": 5, "kv": 1},
            "alpha_pattern": {"fc1": 30, r"blocks\.1\.attn\.qkv": 1, "qkv": 7},
            "use_rslora": True,
        },
    ),
    "experts": (
        3,
        {
            "r": 3,
            "lora_alpha": 5,
            "target_modules": ["qkv", "proj"],
            "target_parameters": ["mlp.fc1.weight", "mlp.fc2.weight"],
            "rank_pattern": {r"blocks\.2\.mlp\.fc2\.weight": 2, r"blocks\.1\.mlp\.fc1": 1},
            "alpha_pattern": {"fc1.weight": 7, "fc2": 9},
        },
    ),
}
OURS = {"our dense": 2, "our experts": 3}


def our_adapter(config: TextConfig) -> Adapter:
    return random_adapter(config, 4, [target for target in TARGETS if target in MODULES])


@pytest.fixture(scope="module")
def folder(drive: Drive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sub-folder for each adapter, and PEFT's merged weights in it. It takes long to be imported: once."""
    folder = tmp_path_factory.mktemp("peft")
    for name in (*MADE, *OURS):
        (folder / name).mkdir()
        generation, settings = MADE[name] if name in MADE else (OURS[name], None)
        config = tiny_config(generation).text
        base = {named(*place): weight for place, weight in weights(config).items()}
        save_file(base, folder / name / "base.safetensors")
        if settings is not None:
            (folder / name / "settings.json").write_text(json.dumps(settings))
        else:
            write_peft(our_adapter(config), config, folder / name / "adapter", "moondream")
    assert set(drive("peft", "peft_adapters.py", Path(torch.__file__).parents[1], folder)) == {*MADE, *OURS}
    return folder


@pytest.mark.parametrize("name", MADE)
def test_what_peft_made_computes_here_what_it_computes_there(folder: Path, name: str) -> None:
    config = tiny_config(MADE[name][0]).text
    adapter = read_adapter(folder / name / "adapter", config, torch.float32, max_rank=16)
    assert any(adapter.blocks)
    check_merged(folder / name, weights(config), adapter)


@pytest.mark.parametrize("name", OURS)
def test_peft_takes_what_we_write(folder: Path, name: str) -> None:
    config = tiny_config(OURS[name]).text
    check_merged(folder / name, weights(config), our_adapter(config))
