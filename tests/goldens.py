"""The golden folders, laid out as `kestrel parity` takes them, from what `tests/golden` keeps of them.

What is kept compressed is unpacked. Crops that follow from a picture are cut again, and must hash to the
golden ones. The vision encoder that is not kept of Moondream 3 gets random weights, so its image embeddings
have to come from `golden_embeddings`.
"""

import hashlib
import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.checkpoint.config_file import parse_config
from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.crops.cutting import cut_crops
from kestrel_core.moondream.model import Moondream
from kestrel_core.skills.spec import Language

GOLDEN = Path(__file__).parent / "golden"
Name = Literal["md2", "md3"]


def golden_config(name: Name) -> MoondreamConfig:
    return parse_config(json.loads((GOLDEN / name / "config.json").read_text()))


def golden_language(name: Name) -> Language:
    config = golden_config(name)
    return Language(config, Tokenizer.from_file(GOLDEN / name / "tokenizer.json", config))


def lay_out(name: Name, folder: Path) -> Path:
    """Fill an empty folder with the golden data of one generation."""
    shutil.copytree(GOLDEN / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.xz"))
    for packed in (GOLDEN / name).glob("*.xz"):
        (folder / packed.stem).write_bytes(lzma.decompress(packed.read_bytes()))
    if name == "md2":
        _cut_tall(folder)
    else:
        _fill_vision(folder / "model.safetensors", golden_config(name))
    return folder


def golden_embeddings(folder: Path) -> Callable[[PreparedImage], Tensor]:
    """In place of an image encoder: the embeddings [patches, dim] that the reference made of each picture."""
    known = load_file(folder / "embeddings.safetensors")
    return lambda image: known[f"{image.key}.embeddings"]


def _cut_tall(folder: Path) -> None:
    golden = json.loads((folder / "crops.json").read_text())["tall"]
    rgb = decode_image(folder / "images" / "tall.png", ImageLimits(), upright=False)
    crops = cut_crops(rgb, golden_config("md2").vision).pixels
    assert hashlib.sha256(crops.tobytes()).hexdigest() == golden["crops_sha256"]
    np.savez(folder / "crops_tall.npz", crops=crops)


def _fill_vision(checkpoint: Path, config: MoondreamConfig) -> None:
    with torch.device("meta"):
        vision = Moondream(config).vision
    random_weights(vision, torch.device("cpu"), torch.bfloat16, seed=0)
    made = {f"model.vision.{name}": weight for name, weight in vision.state_dict().items()}
    save_file(load_file(checkpoint) | made, checkpoint)
