"""Whether the one thing there is a cat, whether the biggest is red or blue, how many animals there are."""

import re
from dataclasses import replace

import pytest

from kestrel_tools.things.language import choices, facts, spelling
from kestrel_tools.things.language.printed import facts as print_facts
from tests.thing_scenes import answers, at, line, made, scene_of


@pytest.fixture(autouse=True)
def no_typos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a question are looked for here."""
    monkeypatch.setattr(spelling, "mistyped", lambda rng, question: question)


def test_whether_the_one_thing_is_something() -> None:
    cat = scene_of(at("cat", 0.5, 0.5))
    assert answers(facts.is_this, cat, r"^Is (this|it|that) a cat\b") == {"yes"}
    assert answers(facts.is_this, cat, r"^Is (this|it|that) an animal\b") == {"yes"}
    assert answers(facts.is_this, cat, r"^Is (this|it|that) a dog\b", 4000) == {"no"}
    two = scene_of(at("cat", 0.2, 0.5), at("dog", 0.8, 0.5))
    assert answers(facts.is_this, two, "") == set(), "which of them?"


def test_several_sorts_of_a_kind_are_counted_together() -> None:
    zoo = scene_of(at("dog", 0.1, 0.5), at("cat", 0.4, 0.5), at("dog", 0.7, 0.5), at("car", 0.9, 0.5))
    assert answers(facts.count_of_kind, zoo, "animals") == {"3"}
    assert answers(facts.count_of_kind, zoo, "vehicles") == set(), "there is one sort of them"


def test_what_is_there_several_times_is_counted() -> None:
    zoo = scene_of(at("dog", 0.1, 0.5), at("cat", 0.4, 0.5), at("dog", 0.7, 0.5), at("dog", 0.9, 0.5))
    assert answers(facts.count_several, zoo, "(dogs|doggies|puppies)") == {"3"}
    assert answers(facts.count_several, zoo, "(cats|kittens)") == set(), "there is one"
    for scene, fact in made(facts.count_several):
        [(_, items)] = fact.evidence
        assert fact.answer == str(len(items)) and len(items) > 1
        assert len(items) == sum(item.noun == items[0].noun for item in scene.items)


def test_the_number_of_a_percentage_is_its_digits() -> None:
    sale = replace(scene_of(), lines=(line("25%", 0.5, 0.5, (0, 0, 0)), line("SALE", 0.5, 0.8, (0, 0, 0))))
    assert answers(print_facts.figure, sale, "percent") == {"25%"}
    assert answers(print_facts.figure, sale, "number") == {"25"}
    room = replace(sale, lines=(line("No. 7", 0.5, 0.5, (0, 0, 0)),))
    assert answers(print_facts.figure, room, "") == {"7"}
    assert answers(print_facts.figure, replace(sale, lines=(*sale.lines, *room.lines)), "") == set(), "which?"


def test_the_most_outstanding_is_one_of_two() -> None:
    row = scene_of(at("dog", 0.1, 0.5), at("cat", 0.5, 0.5), at("dog", 0.9, 0.52))
    assert answers(choices.outstanding, row, "leftmost animal") == {"dog"}
    assert answers(choices.outstanding, row, "(big|large|small|tini)") == set(), "they are of one size"
    for scene, fact in made(choices.outstanding):
        [(_, (item,))] = fact.evidence
        assert fact.answer in (item.colour, item.noun)
        if way := re.search("biggest|largest|smallest|tiniest", fact.question):
            alike = [other for other in scene.items if other.noun == item.noun]
            outermost = max if way[0] in ("biggest", "largest") else min
            assert item is outermost(alike, key=lambda other: other.area), fact
