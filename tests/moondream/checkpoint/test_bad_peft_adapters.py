"""Adapters of PEFT that are refused: each setting and each tensor that is not served is named."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from random_adapters import refused_adapter
from safetensors.torch import save_file
from tiny import tiny_config
from torch import Tensor

CONFIG2, CONFIG3 = tiny_config(2).text, tiny_config(3).text
PEFT = {"peft_type": "LORA", "r": 4, "lora_alpha": 8}
STEM = "base_model.model.text.blocks.0."


def peft(folder: Path, settings: dict[str, Any], tensors: dict[str, Tensor]) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(PEFT | settings))
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"peft_type": "LOHA"}, 'peft_type is "LOHA"'),
        ({"bias": "all"}, 'bias is "all"'),
        ({"use_dora": True}, "use_dora is set"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save is set"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out is set"),
        ({"lora_bias": True}, "lora_bias is set"),
        ({"layer_replication": [[0, 2]]}, "layer_replication is set"),
        ({"megatron_config": {"a": 1}}, "megatron_config is set"),
        ({"trainable_token_indices": [3]}, "trainable_token_indices is set"),
        ({"something_new": 3}, "something_new is set"),
        ({"init_lora_weights": "pissa"}, 'init_lora_weights is "pissa"'),
        ({"init_lora_weights": {}}, 'init_lora_weights is "{}"'),
        ({"init_lora_weights": 1}, 'init_lora_weights is "1"'),
        ({"use_rslora": "false"}, 'use_rslora is "false" in adapter_config.json, and must be true or false'),
        ({"use_rslora": 1}, "use_rslora is 1 in adapter_config.json, and must be true or false"),
        ({"use_dora": "none"}, 'use_dora is "none" in adapter_config.json, and must be true or false'),
        ({"fan_in_fan_out": "false"}, 'fan_in_fan_out is "false" in adapter_config.json, and must be true'),
        ({"lora_bias": 0}, "lora_bias is 0 in adapter_config.json, and must be true or false"),
        ({"bias": None}, 'bias is "None"'),
        ({"bias": False}, 'bias is "False"'),
        ({"r": 0}, "r is 0"),
        ({"r": 4.5}, "r is 4.5"),
        ({"r": True}, "r is True"),
        ({"lora_alpha": "8"}, "lora_alpha is 8"),
        ({"lora_alpha": float("inf")}, "lora_alpha is inf"),
        ({"rank_pattern": [1]}, "rank_pattern in adapter_config.json must be"),
        ({"rank_pattern": {"qkv": None}}, "rank_pattern of qkv is None"),
        ({"rank_pattern": {"(": 4}}, "is no regular expression"),
        ({"rank_pattern": {"(a+)+": 4}}, "is too involved"),
        ({"rank_pattern": {"a*b*c*d*": 4}}, "is too involved"),
        ({"rank_pattern": {"a" * 300: 4}}, "is too involved"),
        ({"r": 2}, "and adapter_config.json says that its rank is 2"),
    ],
)
def test_a_peft_setting_that_is_not_served_is_named(
    settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    good = {
        f"{STEM}attn.qkv.lora_A.weight": torch.ones(4, 32),
        f"{STEM}attn.qkv.lora_B.weight": torch.ones(96, 4),
    }
    assert said in refused_adapter(peft(tmp_path / "x", settings, good), CONFIG2)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "base_model.model.vision.blocks.0.attn.qkv.lora_A.weight",
            "changes a matrix that adapters do not reach",
        ),
        ("base_model.model.text.lm_head.lora_A.weight", "changes a matrix that adapters do not reach"),
        (
            "base_model.model.region.coord_encoder.lora_A.weight",
            "changes a matrix that adapters do not reach",
        ),
        ("base_model.model.text.blocks.0.mlp.router.lora_A.weight", "changes a matrix that adapters do not"),
        ("base_model.model.text.wte.lora_embedding_A", "is no matrix of LoRA"),
        (f"{STEM}attn.qkv.lora_magnitude_vector", "is no matrix of LoRA"),
        ("text.blocks.0.attn.qkv.lora_A.weight", "is no matrix of LoRA"),
        (
            "base_model.model.text.blocks.9.attn.qkv.lora_A.weight",
            "belongs to no matrix of this model, which has 3",
        ),
        (f"{STEM}attn.qkv.lora_A.weight", "has no B matrix beside it"),
    ],
)
def test_a_peft_tensor_that_belongs_to_nothing_is_named(name: str, said: str, tmp_path: Path) -> None:
    message = refused_adapter(peft(tmp_path / "x", {}, {name: torch.ones(4, 32)}), CONFIG2)
    assert said in message and name in message


def test_a_pickle_of_peft_is_refused(tmp_path: Path) -> None:
    folder = peft(tmp_path / "x", {}, {})
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    assert "adapter_model.bin is a pickle" in refused_adapter(folder, CONFIG2)


@pytest.mark.parametrize(
    ("settings", "shape", "said"),
    [
        ({}, (4 * 6, 32), "PEFT older than 0.19"),
        ({"peft_version": "0.18.1"}, (4 * 6, 32), "PEFT older than 0.19"),
        ({"peft_version": "0.19.0"}, (25, 32), "has the shape [25, 32], and experts need [6 * rank, in]"),
    ],
)
def test_experts_of_peft_in_another_layout_are_refused(
    settings: dict[str, Any], shape: tuple[int, ...], said: str, tmp_path: Path
) -> None:
    tensors = {"base_model.model.text.blocks.1.mlp.fc1.lora_A.weight": torch.ones(shape)}
    assert said in refused_adapter(peft(tmp_path / "x", settings, tensors), CONFIG3)
