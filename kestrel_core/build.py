"""Puts the rooms together: weights, tokenizer and device become a model. Nobody else knows them all."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from kestrel_core.errors import BadCheckpoint, InvalidRequest
from kestrel_core.moondream.checkpoint import open_checkpoint
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.weights import load_config, load_weights
from kestrel_core.skills import Language
from kestrel_core.tokenizer import Tokenizer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class LoadedModel:
    network: Moondream
    language: Language
    device: torch.device


def load_model(
    path: Path,
    tokenizer: Path | None,
    device: torch.device,
    dtype: torch.dtype,
    default: MoondreamConfig | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LoadedModel:
    """A checkpoint from disk. `tokenizer` is its `tokenizer.json`, if that is not beside the weights."""
    folder = path if path.is_dir() else path.parent
    config = load_config(path, default)
    words = Tokenizer.from_file(tokenizer or folder / "tokenizer.json", config)
    with torch.device("meta"):
        network = Moondream(config)
    load_weights(network, config, open_checkpoint(path), device, dtype, progress)
    return LoadedModel(network.eval(), Language(config, words), device)


def parse_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InvalidRequest(f'device "{name}" is not one; use cpu, cuda or cuda:N') from None
    if device.type not in ("cpu", "cuda"):
        raise InvalidRequest(f'device "{name}" is not supported; use cpu, cuda or cuda:N')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise BadCheckpoint(
            f'device "{name}" is asked for, and {torch.cuda.device_count()} CUDA devices are here'
        )
    return device
