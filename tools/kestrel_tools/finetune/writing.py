"""The trained adapter on disk, as the server reads it."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.lora import Adapter


def write_adapter(folder: Path, adapter: Adapter, config: MoondreamConfig) -> None:
    tensors: dict[str, Tensor] = {}
    for layer, block in enumerate(adapter.blocks):
        start = config.text.moe.start_layer if config.text.moe is not None else 0
        dense = layer < start
        for target, (a, b) in block.items():
            if config.generation == 2:
                name = {"qkv": "attn.qkv", "fc1": "mlp.fc1", "fc2": "mlp.fc2"}[target]
                tensors[f"text.blocks.{layer}.{name}.A"], tensors[f"text.blocks.{layer}.{name}.B"] = a, b
            else:
                place = f"dense.{layer}" if dense else f"moe.{layer - start}"
                name = {"fc1": "up", "fc2": "down"}[target.removeprefix("expert_")]
                tensors[f"{place}.{name}_a"], tensors[f"{place}.{name}_b"] = a, b
        if config.generation == 2:
            like = block["qkv"].a
            tensors[f"text.blocks.{layer}.attn.proj.A"] = torch.zeros_like(like)
            tensors[f"text.blocks.{layer}.attn.proj.B"] = like.new_zeros(config.text.dim, like.shape[0])
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "adapter.safetensors")
