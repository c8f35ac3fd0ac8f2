"""A folder of adapters on disk: good ones with seeded random numbers, and every kind of unusable one."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pickled_trap import Touch
from random_adapters import random_adapter
from safetensors.torch import load_file, save_file

from kestrel_core.moondream.checkpoint.adapter_writing import write_moondream, write_peft
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Target

OF_MOONDREAM3: tuple[Target, ...] = ("fc1", "fc2", "expert_fc1", "expert_fc2")
OF_PEFT: tuple[Target, ...] = ("qkv", "proj", "fc1", "fc2")


def save_adapter(path: Path, config: TextConfig, seed: int, rank: int = 4) -> None:
    """In Moondream 3's own format. What was at the path is replaced at once."""
    write_moondream(random_adapter(config, rank=rank, targets=OF_MOONDREAM3, seed=seed), config, path)


def save_peft(folder: Path, config: TextConfig, seed: int, **more: Any) -> None:
    """`more` is set in its adapter_config.json."""
    write_peft(random_adapter(config, rank=4, targets=OF_PEFT, seed=seed), config, folder, "a/base")
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | more))


def _of_moondream2(folder: Path, config: TextConfig) -> None:
    other = replace(config, moe=None)
    targets: tuple[Target, ...] = ("qkv", "input_proj", "fc1", "fc2")
    write_moondream(
        random_adapter(other, rank=4, targets=targets, seed=1), other, folder / "moondream2.safetensors"
    )


def _of_another_size(folder: Path, config: TextConfig) -> None:
    save_adapter(folder / "larger.safetensors", replace(config, dim=2 * config.dim), 1)


def _of_too_high_rank(folder: Path, config: TextConfig) -> None:
    save_adapter(folder / "rank64.safetensors", config, 1, rank=64)


def _with_nan(folder: Path, config: TextConfig) -> None:
    file = folder / "nan.safetensors"
    save_adapter(file, config, 1)
    tensors = load_file(file)
    tensors[sorted(tensors)[0]].view(-1)[3] = torch.nan
    save_file(tensors, file)


def _with_code(folder: Path, config: TextConfig) -> None:
    torch.save({"lora_state_dict": Touch(folder / "was-run")}, folder / "code.pt")


def _half(folder: Path, config: TextConfig) -> None:
    file = folder / "half.safetensors"
    save_adapter(file, config, 1)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def _dora(folder: Path, config: TextConfig) -> None:
    save_peft(folder / "dora", config, 1, use_dora=True)


UNUSABLE: dict[str, tuple[Callable[[Path, TextConfig], None], str]] = {
    "moondream2": (_of_moondream2, "for Moondream 2, and this model is a Moondream 3"),
    "larger": (_of_another_size, "made for another model"),
    "rank64": (_of_too_high_rank, "serve with a larger max_adapter_rank"),
    "nan": (_with_nan, "NaN or infinite"),
    "code": (_with_code, "code.pt"),
    "half": (_half, "only a part of one"),
    "dora": (_dora, "use_dora is set in adapter_config.json"),
}


def save_unusable(folder: Path, config: TextConfig) -> None:
    """All of `UNUSABLE`, under the names they have there."""
    for save, _ in UNUSABLE.values():
        save(folder, config)
