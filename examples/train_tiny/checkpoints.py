"""The files of a training: a checkpoint that the server loads, and the weights to go on from."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from kestrel_core.moondream.model import Moondream

from .words import TOKENIZER

RESUME_PARTS = 3  # files, so that none is too large to be sent


def save(
    model: Moondream, out: Path, steps: int, half: bool = False, average: Moondream | None = None
) -> None:
    """Each file is replaced as a whole, so a run that is cut short leaves its last checkpoint."""
    weights = _weights(model)
    shown = weights if average is None else _weights(average)
    _write(out / "model.safetensors", {name: p.to(torch.bfloat16) for name, p in shown.items()}, steps)
    document = {"model_type": "moondream3", "config": asdict(model.config)}
    (out / "config.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    shutil.copyfile(TOKENIZER, out / "tokenizer.json")
    for part in range(RESUME_PARTS):
        dtype = torch.float16 if half else torch.float32
        own = {name: weight.to(dtype) for name, weight in list(weights.items())[part::RESUME_PARTS]}
        _write(out / f"resume_{part}.safetensors", own, steps)


def _write(path: Path, content: dict[str, Tensor], steps: int) -> None:
    fresh = path.with_suffix(".new")
    save_file(content, fresh, metadata={"steps": str(steps)})
    fresh.replace(path)


def _weights(model: Moondream) -> dict[str, Tensor]:
    return {f"model.{name}": p.detach().cpu().contiguous() for name, p in model.named_parameters()}


def _to_go_on_from(folder: Path) -> list[Path]:
    """The float32 weights, or the checkpoint itself where only that was kept."""
    return sorted(folder.glob("resume_*.safetensors")) or [folder / "model.safetensors"]


def trained_steps(folder: Path) -> int:
    with safe_open(_to_go_on_from(folder)[0], "pt") as file:
        return int((file.metadata() or {}).get("steps", 0))


def weights_of(folder: Path) -> dict[str, Tensor]:
    """By the network's own names."""
    parts = [load_file(path) for path in _to_go_on_from(folder)]
    return {name.removeprefix("model."): tensor for part in parts for name, tensor in part.items()}


@torch.no_grad()
def resume(model: Moondream, folder: Path) -> None:
    model.load_state_dict(weights_of(folder))
