"""The data of the French adapter: its French is right, its answers are true, and a seed repeats it."""

import json
from pathlib import Path
from random import Random

import pytest

from examples.french_adapter.french import COLOURS, NOUNS, NUMBERS, PLACES, noun_of, sized, without_accents
from examples.french_adapter.make_data import make_picture
from examples.french_adapter.questions import answer, ask
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import MODELS
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_tools.scenes.facts import Fact
from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES, SIZES, Scene, draw_scene

TINY = RuntimeConfig(model="moondream-tiny")


def scenes(count: int) -> list[Scene]:
    rng = Random(3)
    return [draw_scene(rng, 1.0) for _ in range(count)]


@pytest.mark.parametrize(
    ("words", "a", "small"),
    [
        ("green circle", "un cercle", "petit"),
        ("the small stars", "une étoile", "petite"),
        ("rings", "un anneau", "petit"),
        ("big gray cross", "une croix", "petite"),
        ("shape", "une forme", "petite"),
    ],
)
def test_articles_and_sizes_agree_with_their_noun(words: str, a: str, small: str) -> None:
    noun = noun_of(words)
    assert noun is not None
    assert (noun.a(), sized("small", noun)) == (a, small)


def test_every_word_of_the_world_has_a_french_one() -> None:
    assert set(SHAPES) < set(NOUNS)
    assert set(COLOUR_NAMES) == set(COLOURS)
    assert all(sized(size, noun) for size in SIZES for noun in NOUNS.values())


def test_what_is_not_of_the_world_has_none() -> None:
    assert noun_of("a red dog") is None


def test_accents_are_left_out_as_in_a_telegram() -> None:
    assert without_accents("Un cœur, un carré et une étoile à gauche") == (
        "Un coeur, un carre et une etoile a gauche"
    )


@pytest.mark.parametrize(
    ("kind", "english", "given", "words", "french"),
    [
        ("colour", "What color is the star?", "green", "the star", "vert"),
        ("size", "How big is the red shape?", "small", "the red shape", "petite"),
        ("shape", "What is red?", "star", "the red shape", "une étoile"),
        ("extreme", "What is the leftmost shape?", "red star", "the red star", "une étoile"),
        ("place", "Where is the ring?", "top left", "the ring", "haut gauche"),
        ("count", "How many stars are there?", "1", "star", "une"),
        ("count", "How many rings are there?", "1", "ring", "un"),
        ("count", "How many dogs are there?", "0", "dogs", "zéro"),
        ("presence", "Is there a ring?", "yes", "the ring", "oui"),
        ("read", "Read the text.", "STOP", "", "STOP"),
        ("read none", "Read the text.", "nothing", "", "rien"),
        ("describe", "What do you see?", "A red star.", "", "A red star."),
    ],
)
def test_answers_are_in_french(kind: str, english: str, given: str, words: str, french: str) -> None:
    assert answer(Fact(kind, english, given, evidence=((words, ()),) if words else ())) == french


def test_no_question_is_asked_twice_about_a_picture() -> None:
    rng = Random(1)
    for scene in scenes(20):
        questions = [asked.question for asked in ask(rng, scene, 12)]
        assert len(set(questions)) == len(questions) > 0


def test_the_tokenizer_gives_every_answer_back() -> None:
    tokenizer = Tokenizer.from_file(MODELS[TINY.model].folder / "tokenizer.json", MOONDREAM_TINY)
    rng = Random(2)
    answers = [asked.answer for scene in scenes(20) for asked in ask(rng, scene, 8)]
    for text in (*answers, *NUMBERS, *PLACES.values()):
        assert tokenizer.decode(tokenizer.encode(text)) == text.lower()


def test_a_picture_has_the_same_lines_each_time(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    lines = make_picture(tmp_path, "train", 7)
    drawn = (tmp_path / "pictures/train-7.png").read_bytes()
    assert json.dumps(make_picture(tmp_path, "train", 7)) == json.dumps(lines)
    assert (tmp_path / "pictures/train-7.png").read_bytes() == drawn
    assert {line["skill"] for line in lines} >= {"query", "caption"}
    assert make_picture(tmp_path, "eval", 7) != lines
