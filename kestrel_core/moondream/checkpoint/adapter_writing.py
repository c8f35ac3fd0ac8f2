"""Writes adapters in Moondream's own formats and as PEFT's folders. A file is there whole, or not at all."""

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from kestrel_core.intake.local_adapters import PEFT_CONFIG, PEFT_TENSORS, SUFFIXES
from kestrel_core.moondream.checkpoint.adapter_files import IN_DICT
from kestrel_core.moondream.checkpoint.adapter_formats import MOONDREAM2, MOONDREAM3, PARTS
from kestrel_core.moondream.checkpoint.peft_adapter import EXPERTS, EXPERTS_SINCE, MATRICES, PREFIX
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Adapter, Target, rank_of, target_shapes
from kestrel_core.protocol.errors import BadAdapter


def write_moondream(adapter: Adapter, config: TextConfig, path: Path) -> None:
    """Write the format of the model's generation, into a `.safetensors` or a `.pt` file.

    The formats ask for every matrix: those that the adapter leaves alone are zeros.
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path} must end in {' or '.join(SUFFIXES)}")
    names = (MOONDREAM2 if config.moe is None else MOONDREAM3).written(config)
    reached = {place.target for place in names}
    if others := sorted({target for block in adapter.blocks for target in block} - reached):
        raise BadAdapter(
            f"Moondream's own format has no place for what this adapter has of {', '.join(others)}; "
            "write it as PEFT's"
        )
    dtype = _dtype(adapter)
    tensors: dict[str, Tensor] = {}
    for place, name in names.items():
        shape = getattr(target_shapes(config, place.layer)[place.target], place.part)
        rank = rank_of(config, place.target, adapter.rank)
        numbers = torch.zeros(shape(rank), dtype=dtype)
        low_rank = adapter.blocks[place.layer].get(place.target)
        if low_rank is not None:
            own = low_rank.a.shape[-2]
            if place.part == "a":
                numbers[..., :own, :] = low_rank.a
            else:
                numbers[..., :own] = low_rank.b
        tensors[name] = numbers
    if path.suffix == ".safetensors":
        _write(path, lambda file: save_file(tensors, file, {"format": "pt"}))
    else:
        content = tensors if config.moe is None else {IN_DICT: tensors}
        _write(path, lambda file: torch.save(content, file))


def write_peft(adapter: Adapter, config: TextConfig, folder: Path, base_model: str) -> None:
    """Write a folder as PEFT does. The scale stays in B, so alpha is the rank everywhere."""
    modules: dict[Target, str] = {
        target: name for names in (MATRICES, EXPERTS) for name, target in names.items()
    }
    tensors: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    for layer, block in enumerate(adapter.blocks):
        for target, low_rank in block.items():
            if target not in modules:
                raise BadAdapter(
                    f"PEFT's format has no place for this adapter's {target}; write it as Moondream's"
                )
            module = f"model.text.blocks.{layer}.{modules[target]}"
            experts = target in EXPERTS.values()
            ranks[f"{module}.weight" if experts else module] = low_rank.a.shape[-2]
            for part, tensor in zip(PARTS, low_rank, strict=True):
                name = f"{PREFIX}{module}.lora_{part.upper()}.weight"
                tensors[name] = _flat(tensor, part) if experts else tensor.contiguous()
    other_ranks = {name.replace(".", r"\."): rank for name, rank in ranks.items() if rank != adapter.rank}
    document = {
        "peft_type": "LORA",
        "base_model_name_or_path": base_model,
        "r": adapter.rank,
        "lora_alpha": adapter.rank,
        "rank_pattern": other_ranks,
        "alpha_pattern": other_ranks,
        "target_modules": [name for name in ranks if not name.endswith(".weight")],
        # By their whole names: the last part alone would be that of dense layers too.
        "target_parameters": [name for name in ranks if name.endswith(".weight")] or None,
        "bias": "none",
        "use_rslora": False,
        "lora_dropout": 0.0,
        "inference_mode": True,
        "peft_version": f"{EXPERTS_SINCE[0]}.{EXPERTS_SINCE[1]}.0",  # whose layout this is
    }
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / PEFT_TENSORS, lambda file: save_file(tensors, file, {"format": "pt"}))
    text = json.dumps(document, indent=2) + "\n"
    _write(folder / PEFT_CONFIG, lambda file: Path(file).write_text(text))


def _flat(tensor: Tensor, part: str) -> Tensor:
    """Experts as PEFT stores them: A [experts * rank, in], B [out, rank * experts]."""
    flat = tensor.flatten(0, 1) if part == "a" else tensor.permute(1, 2, 0).flatten(1)
    return flat.contiguous()


def _dtype(adapter: Adapter) -> torch.dtype:
    kinds = {low_rank.a.dtype for block in adapter.blocks for low_rank in block.values()}
    return kinds.pop() if len(kinds) == 1 else torch.float32


def _write(path: Path, write: Callable[[str], object]) -> None:
    partial = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
    try:
        write(str(partial))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
