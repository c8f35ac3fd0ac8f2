"""What signs tell, what is absent, and what is asked without a picture."""

import re
from random import Random

import pytest

from kestrel_tools.things.language import spelling
from kestrel_tools.things.language.printed import facts as print_facts
from kestrel_tools.things.language.talk import NO_PICTURE, talk
from kestrel_tools.things.language.wanted import wanted
from kestrel_tools.things.names import by_name
from kestrel_tools.things.scene import Scene
from tests.thing_scenes import WHITE, answers, at, line, scene_of


@pytest.fixture(autouse=True)
def no_typos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a question are looked for here."""
    monkeypatch.setattr(spelling, "mistyped", lambda rng, question: question)


def test_a_number_beside_a_word_is_told_by_that_word() -> None:
    lines = (line("Gate 12", 0.5, 0.1, (0, 0, 0)), line("Row 7", 0.5, 0.9, (0, 0, 0)))
    scene = Scene(1.0, WHITE, (), lines[:1])
    assert answers(print_facts.numbered, scene, r"(?i)gate") == {"12"}
    assert answers(print_facts.numbered, Scene(1.0, WHITE, (), lines), "") == set(), "which of the two?"
    assert (
        answers(print_facts.numbered, Scene(1.0, WHITE, (), (line("Gate to hell", 0, 0, (0, 0, 0)),)), "")
        == set()
    )


def test_a_word_without_a_number_numbers_nothing() -> None:
    for text in ("Table tea", "room", "Bus 12 km"):
        scene = Scene(1.0, WHITE, (), (line(text, 0.5, 0.5, (0, 0, 0)),))
        assert answers(print_facts.numbered, scene, "") == set(), text


def test_a_place_is_open_or_closed_as_its_sign_says() -> None:
    for sign, is_open, is_closed in (("OPEN", "yes", "no"), ("Closed", "no", "yes")):
        scene = Scene(1.0, WHITE, (), (line(sign, 0.5, 0.5, (0, 0, 0)),))
        ask = print_facts.is_open
        assert answers(ask, scene, r"(?i)open (now|today)") == {is_open}
        assert answers(ask, scene, r"(?i)closed (now|today)") == {is_closed}
        assert answers(ask, scene, r"(?i)open or closed") == {sign.lower()}


def test_what_is_absent_is_often_of_a_kind_with_what_is_there() -> None:
    scene, rng = scene_of(at("cow", 0.2, 0.5), at("pig", 0.8, 0.5)), Random(4)
    found = [wanted(rng, scene, 0.0) for _ in range(400)]
    named = [by_name()[one.one] for one in found if not one.items and one.one in by_name()]
    assert 0.4 < sum("animal" in noun.kinds for noun in named) / len(named) < 0.9


def test_without_a_picture_many_things_are_asked_for_in_the_plural() -> None:
    rng = Random(5)
    said = [
        question for _, question, answer in (talk(rng, False) for _ in range(4000)) if answer == NO_PICTURE
    ]
    counted = [question for question in said if re.match(r"How many ", question)]
    assert len(counted) > 30 and not any(question.startswith("How many the ") for question in counted)
    assert any("circles" in question for question in said)
