"""PEFT makes adapters, or takes ours, and merges them: `peft_adapters.py OUR_PACKAGES FOLDER`.

Each sub-folder holds the weights of a model in base.safetensors. If it holds settings.json, an adapter is
made with these settings and random numbers; else `adapter` is there already. The weights with the adapter
go to merged.safetensors.
"""

import json
import sys
from pathlib import Path

sys.path.append(sys.argv[1])  # torch among them

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor, nn


def model_of(weights: dict[str, Tensor]) -> nn.Module:
    """Modules as the names say: linear layers, and parameters of three dimensions for experts."""
    model = nn.Module()
    for name, weight in weights.items():
        *path, leaf, _ = name.split(".")
        owner = model
        for part in path:
            if not hasattr(owner, part):
                owner.add_module(part, nn.Module())
            owner = getattr(owner, part)
        layer = nn.Module() if weight.ndim == 3 else nn.Linear(*weight.shape[::-1], bias=False)
        layer.weight = nn.Parameter(weight.clone())
        owner.add_module(leaf, layer)
    return model


def merge(folder: Path) -> None:
    base = load_file(folder / "base.safetensors")
    if (folder / "settings.json").exists():
        settings = json.loads((folder / "settings.json").read_text())
        adapted = get_peft_model(model_of(base), LoraConfig(init_lora_weights=False, **settings))
        torch.manual_seed(0)
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                nn.init.normal_(parameter)
        adapted.save_pretrained(str(folder / "adapter"))
    else:
        adapted = PeftModel.from_pretrained(model_of(base), str(folder / "adapter"))
    merged = adapted.merge_and_unload().state_dict()
    save_file({name: merged[name].contiguous() for name in base}, folder / "merged.safetensors")


folders = sorted(Path(sys.argv[2]).iterdir())
for folder in folders:
    merge(folder)
print(json.dumps([folder.name for folder in folders]))
