"""The model that comes along: it is loaded by its name, is in the wheel, is small, and tells the truth."""

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import torch

from kestrel_core.build import open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_core.intake.models import MODELS
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.triton.banner import QUESTION, SAMPLE

ROOT = Path(__file__).parents[1]
FOLDER = MODELS["moondream-tiny"].folder
TINY = RuntimeConfig(model="moondream-tiny", device="cpu")
WEIGHTS = ("checkpoint", "random")


def test_it_is_loaded_by_its_name() -> None:
    model = open_model(TINY)
    assert model.network.config == MOONDREAM_TINY
    assert model.network.text.wte.dtype == torch.float32
    # Questions are lower-cased by its own words, and a colour is one of them.
    assert model.language.tokenizer.encode(" RED") == model.language.tokenizer.encode(" red")
    assert len(model.language.tokenizer.encode(" purple")) == 1


def test_random_weights_of_its_shape_are_still_to_be_had() -> None:
    trained, random = (open_model(RuntimeConfig(TINY.model, weights=w, device="cpu")) for w in WEIGHTS)
    assert random.network.config == trained.network.config
    assert not torch.equal(random.network.text.wte, trained.network.text.wte)


def test_it_is_small_and_goes_into_the_wheel() -> None:
    files = {path.name: path.stat().st_size for path in FOLDER.iterdir() if path.is_file()}
    sums = "model.safetensors.sha256"
    assert set(files) == {"model.safetensors", sums, "config.json", "tokenizer.json", "README.md"}
    assert sum(files.values()) <= 12_000_000
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    packed = {path for pattern in patterns["kestrel_core"] for path in (ROOT / "kestrel_core").glob(pattern)}
    assert {path for path in packed if path.is_file()} == {
        path for path in FOLDER.rglob("*") if path.is_file()
    }


def test_what_the_banner_asks_is_answered_truly() -> None:
    async def ask() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        engine = await InferenceEngine.create(TINY)
        try:
            picture, greedy = SAMPLE.read_bytes(), {"temperature": 0.0}
            counted = await engine.query(picture, QUESTION, settings=greedy)
            found = await engine.detect(picture, "green circle")
            talked = await engine.query(None, "What can you do?", settings=greedy)
            return counted.output, found.output, talked.output
        finally:
            await engine.shutdown()

    counted, found, talked = asyncio.run(ask())
    assert counted["answer"] == "5"
    assert len(found["objects"]) == 5
    assert "shapes" in talked["answer"]
