"""The data of the French adapter: its French is right, its answers are true, and a seed repeats it."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from examples.french_adapter.french import NOUNS, NUMBERS, Phrase, agreeing, caption, without_accents
from examples.french_adapter.make_data import make_picture
from examples.french_adapter.questions import QUESTIONS, answer, ask, french_question
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import MODELS
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_tools.scenes.facts import Fact, facts
from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES, SIZES, Print, Scene, draw_scene


def phrase(words: str) -> Phrase:
    found = Phrase.read(words)
    assert found is not None
    return found


def scenes(count: int) -> list[Scene]:
    rng = Random(3)
    return [draw_scene(rng, 1.0) for _ in range(count)]


@pytest.mark.parametrize(
    ("words", "a", "the", "of_the", "of_many"),
    [
        ("green circle", "un cercle vert", "le cercle vert", "du cercle vert", "de cercles verts"),
        ("the red star", "une étoile rouge", "l'étoile rouge", "de l'étoile rouge", "d'étoiles rouges"),
        ("small star", "une petite étoile", "la petite étoile", "de la petite étoile", "de petites étoiles"),
        ("rings", "un anneau", "l'anneau", "de l'anneau", "d'anneaux"),
        ("big gray cross", "une grande croix grise", "la grande croix grise", "de la grande croix grise",
         "de grandes croix grises"),
        ("brown hearts", "un cœur marron", "le cœur marron", "du cœur marron", "de cœurs marron"),
    ],
)  # fmt: skip
def test_articles_and_adjectives_agree_with_their_noun(
    words: str, a: str, the: str, of_the: str, of_many: str
) -> None:
    found = phrase(words)
    assert (found.a(), found.the(), found.of_the(), found.of_many()) == (a, the, of_the, of_many)


def test_every_word_of_the_world_has_a_french_one() -> None:
    for adjective in (*COLOUR_NAMES, *SIZES):
        assert agreeing(adjective, feminine=False) and agreeing(adjective, feminine=True)
    assert set(SHAPES) < set(NOUNS)


def test_what_is_not_of_the_world_has_none() -> None:
    assert Phrase.read("dog") is None
    assert Phrase.read("wooden circle") is None


def test_accents_are_left_out_as_in_a_telegram() -> None:
    assert without_accents("Un cœur, un carré et une étoile à gauche") == (
        "Un coeur, un carre et une etoile a gauche"
    )


def test_captions_name_things_from_left_to_right_with_sizes_and_places() -> None:
    scene = next(scene for scene in scenes(100) if len(scene.things) == 2)
    first, second = scene.things
    left = replace(first, shape="star", colour="green", size="small", box=(0.1, 0.1, 0.2, 0.2))
    right = replace(second, shape="square", colour="brown", size="big", box=(0.4, 0.7, 0.6, 0.9))
    scene = replace(scene, things=(left, right), print=Print("STOP", 0.5, 0.5, 0.1, 0.1, left.rgb, 0.5, 0.5))
    assert caption(scene, "short") == "Une étoile verte, un carré marron et le texte STOP."
    assert caption(scene, "normal") == (
        "De gauche à droite : une petite étoile verte et un grand carré marron. Le texte dit STOP."
    )
    assert caption(scene, "long") == (
        "Il y a deux formes. Une petite étoile verte en haut à gauche. Un grand carré marron en bas. "
        "Le texte dit STOP."
    )
    assert caption(replace(scene, things=()), "long") == "Seulement le texte STOP."
    assert caption(replace(scene, things=(), print=None), "short") == "Une image vide."


@pytest.mark.parametrize(
    ("kind", "english", "given", "words", "french"),
    [
        ("colour", "What color is the star?", "green", "the star", "verte"),
        ("size", "How big is the red shape?", "small", "the red shape", "petite"),
        ("shape", "What is red?", "star", "the red shape", "une étoile"),
        ("place", "Where is the ring?", "top left", "the ring", "en haut à gauche"),
        ("count", "How many stars are there?", "1", "star", "une"),
        ("count", "How many rings are there?", "1", "ring", "un"),
        ("count", "How many dogs are there?", "0", "dogs", "zéro"),
        ("presence", "Is there a ring?", "yes", "the ring", "oui"),
        ("read", "Read the text.", "STOP", "", "STOP"),
        ("read none", "Read the text.", "nothing", "", "rien"),
    ],
)
def test_answers_are_in_french(kind: str, english: str, given: str, words: str, french: str) -> None:
    fact = Fact(kind, english, given, evidence=((words, ()),) if words else ())
    assert answer(fact, scenes(1)[0]) == french


def test_every_kind_of_question_is_also_put_in_french() -> None:
    rng, put = Random(1), set[str]()
    for scene in scenes(600):
        fact = facts(rng, scene)
        if (question := french_question(rng, fact)) is not None:
            put.add("read number" if "nombre" in question else fact.kind)
            assert not {"{", "}"} & set(question)
    assert put == set(QUESTIONS)


def test_french_and_english_questions_have_the_same_answer() -> None:
    fact = Fact("relation", "Is the star to the left of the big ring?", "no", evidence=(("the star", ()),))
    question = french_question(Random(0), fact)
    assert question is not None
    assert "étoile" in question and "à gauche du grand anneau" in question
    assert answer(fact, scenes(1)[0]) == "non"


def test_the_tokenizer_gives_every_answer_back() -> None:
    folder = MODELS[RuntimeConfig(model="moondream-tiny").model].folder
    tokenizer = Tokenizer.from_file(folder / "tokenizer.json", MOONDREAM_TINY)
    rng = Random(2)
    answers = [ask(rng, scene, 0.5).answer for scene in scenes(100)] + [*NUMBERS]
    answers += [caption(scene, "long") for scene in scenes(100)]
    for text in answers:
        assert tokenizer.decode(tokenizer.encode(text)) == text.lower()


def test_a_picture_has_the_same_lines_each_time(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    lines = make_picture(tmp_path, "train", 0.5, 7)
    drawn = (tmp_path / "pictures/train-7.png").read_bytes()
    assert json.dumps(make_picture(tmp_path, "train", 0.5, 7)) == json.dumps(lines)
    assert (tmp_path / "pictures/train-7.png").read_bytes() == drawn
    assert {line["skill"] for line in lines} == {"query", "caption", "detect"}
    assert make_picture(tmp_path, "eval", 0.5, 7) != lines
