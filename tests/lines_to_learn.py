"""Lines for the tests of `kestrel finetune`: a few pictures, and what a tiny model shall say about them."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from image_files import encode
from tiny import tiny_config, tiny_model

from kestrel_core.build import LoadedModel
from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.image_preparer import ImagePreparer
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_tools.finetune.features import Features, pictures_of
from kestrel_tools.finetune.lines import Data, Lessons, read_data

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 40), "blue": (30, 40, 230), "white": (250, 250, 250)}
BOX = {"x_min": 0.25, "y_min": 0.125, "x_max": 0.75, "y_max": 0.625}


def write_lines(path: Path, lines: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_pictures(folder: Path) -> None:
    for name, colour in COLOURS.items():
        (folder / f"{name}.png").write_bytes(encode(np.full((28, 28, 3), colour, np.uint8), ".png"))


def all_skills(folder: Path, colours: Sequence[str] = tuple(COLOURS)) -> Path:
    """Every skill about every picture, and a question without one."""
    write_pictures(folder)
    lines: list[dict[str, Any]] = [{"skill": "query", "question": "who?", "answer": "me"}]
    for name in colours:
        of = {"image": f"{name}.png"}
        lines += [
            {"skill": "query", **of, "question": "which?", "answer": name[:2].upper()},
            {"skill": "caption", **of, "length": "short", "caption": f"{name[0]} é"},
            {"skill": "detect", **of, "object": "it", "objects": [BOX, BOX]},
            {"skill": "point", **of, "object": "it", "points": [{"x": 0.5, "y": 0.25}]},
            {"skill": "point", **of, "object": "no", "points": []},
        ]
    return write_lines(folder / "lines.jsonl", lines)


def tiny_loaded(generation: int) -> LoadedModel:
    config = tiny_config(generation, vocab_size=300)
    language = Language(config, Tokenizer.of_bytes(config))
    return LoadedModel(tiny_model(config), language, torch.device("cpu"))


def preparer(model: LoadedModel) -> ImagePreparer:
    return ImagePreparer(model.network.config.vision, ImageLimits(), time.monotonic, lambda seconds: None)


def read(path: Path, model: LoadedModel) -> Data:
    skills = builtin_skills()
    return read_data(path, skills, Lessons(model.language, skills, preparer(model)), lambda count: None)


def features_of(data: Data, model: LoadedModel, folder: Path) -> Features:
    features = Features(folder)
    features.compute(model.network, pictures_of(data.lines), preparer(model), lambda count: None)
    return features
