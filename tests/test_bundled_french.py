"""The adapter that comes along: with it the bundled model answers in French, without it as it always did."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.french_adapter.make_data import make_picture
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_core.intake.models import MODELS

TINY = RuntimeConfig(model="moondream-tiny", device="cpu")
SAMPLES = Path(__file__).parents[1] / "client/samples"
FRENCH = {"adapter": "french", "temperature": 0.0}
ENGLISH = {"temperature": 0.0}
NUM_SCENES = 8  # new ones, with some 20 questions each
LEAST_RIGHT = 0.95


class Asked:
    """An engine that is asked from tests without asyncio."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._engine = self._runner.run(InferenceEngine.create(TINY))

    def query(self, image: bytes, question: str, settings: dict[str, Any]) -> str:
        return str(self._runner.run(self._engine.query(image, question, settings=settings)).output["answer"])

    def queries(self, asked: list[tuple[bytes, str]], settings: dict[str, Any]) -> list[str]:
        """All at once, as a server would have them."""

        async def gather() -> list[Any]:
            calls = (self._engine.query(image, question, settings=settings) for image, question in asked)
            return await asyncio.gather(*calls)

        return [str(result.output["answer"]) for result in self._runner.run(gather())]

    def caption(self, image: bytes, length: str, settings: dict[str, Any]) -> str:
        result = self._runner.run(self._engine.caption(image, length=length, settings=settings))
        return str(result.output["caption"])

    def num_found(self, image: bytes, words: str, settings: dict[str, Any]) -> int:
        result = self._runner.run(self._engine.detect(image, words, settings=settings))
        return len(result.output["objects"])

    def close(self) -> None:
        self._runner.run(self._engine.shutdown())
        self._runner.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.close()


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.png").read_bytes()


def test_it_is_the_adapter_that_comes_along() -> None:
    folder = MODELS["moondream-tiny"].adapters
    assert folder is not None
    assert [path.stem for path in folder.iterdir()] == ["french"]


@pytest.mark.parametrize(
    ("picture", "question", "english", "french"),
    [
        ("shapes", "How many hearts are there?", "1", "un"),
        ("circles", "What color is the star?", "white", "blanc"),
        ("shapes", "What color is the square?", "blue", "bleu"),
        ("shapes", "Is there a purple heart?", "yes", "oui"),
        ("sign", "What does the text say?", "OPEN", "OPEN"),
        ("sign", "What is the leftmost shape?", "red heart", "un coeur"),
        ("sign", "Where is the ring?", "bottom right", "bas droite"),
    ],
)
def test_the_same_question_is_answered_in_either_language(
    engine: Asked, picture: str, question: str, english: str, french: str
) -> None:
    assert engine.query(sample(picture), question, FRENCH) == french
    assert engine.query(sample(picture), question, ENGLISH) == english


def test_captions_stay_in_english(engine: Asked) -> None:
    captions = {engine.caption(sample("sign"), "short", settings) for settings in (FRENCH, ENGLISH)}
    assert captions == {"A red heart, a pink cross, a cyan ring and the text OPEN."}


def test_objects_are_found_with_it_too(engine: Asked) -> None:
    assert engine.num_found(sample("circles"), "green circle", FRENCH) == 5


def test_most_questions_about_new_scenes_are_answered_rightly_in_french(
    engine: Asked, tmp_path: Path
) -> None:
    (tmp_path / "pictures").mkdir()
    lines = [line for index in range(NUM_SCENES) for line in make_picture(tmp_path, "test", index)]
    asked = [line for line in lines if line["skill"] == "query"]
    pictures = {line["image"]: (tmp_path / line["image"]).read_bytes() for line in asked}
    answers = engine.queries([(pictures[line["image"]], line["question"]) for line in asked], FRENCH)
    wrong = [
        (line["question"], line["answer"], answer)
        for line, answer in zip(asked, answers, strict=True)
        if answer != line["answer"]
    ]
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(asked), wrong
