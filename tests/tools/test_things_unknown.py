"""What no picture tells is said to be so, and what is asked nearly alike and can be told is told."""

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from kestrel_tools.things.language import unknown
from kestrel_tools.things.language.fact import CANNOT_TELL, caption, place
from kestrel_tools.things.language.questions import asked
from kestrel_tools.things.language.spelling import number_of
from kestrel_tools.things.language.unknown_words import CAN, CANNOT
from kestrel_tools.things.names import by_name, is_plural
from kestrel_tools.things.scene import Item
from tests.thing_scenes import answers, at, line, scene_of
from tests.wide_scenes import LEFT_OVER, PRINTED, Heard, heard, made_of, those, wide_scenes

INK = (0.0, 0.0, 0.0)


@pytest.fixture
def last(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return heard(monkeypatch, unknown)


def sentences(table: dict[str, tuple[str, ...]]) -> int:
    return sum(number_of(words) for templates in table.values() for words in templates)


def test_every_wording_is_whole_and_there_are_three_times_as_many_as_before() -> None:
    rng = Random(1)
    for table in (CANNOT, CAN):
        for kind in table:
            found = {str(asked(rng, kind, "the dog", "cat", among=table)).lower() for _ in range(60)}
            assert len(found) > 5, kind
            assert not any(LEFT_OVER.search(question) for question in found), kind
    before = sum(len(templates) for templates in unknown.QUESTIONS.values())
    assert sum(len(templates) for templates in CANNOT.values()) > 3 * before
    assert sentences(CANNOT) > 2 * sentences(unknown.QUESTIONS)
    both = {words for table in CAN.values() for words in table} & {w for t in CANNOT.values() for w in t}
    assert all("price" in words or "name" in words or "cost" in words for words in both)


def test_what_cannot_be_told_is_asked_of_things_that_are_there(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(
        unknown.unknown_more, (*wide_scenes(700), *wide_scenes(200, lines=PRINTED)), 4
    ):
        seen[last.kind] += 1
        words = [subject.removeprefix("the ") for subject in last.subjects]
        if fact.kind == "absent":
            assert fact.answer == f"There is no {words[0]}." and not is_plural(words[0])
            assert not any(item.noun == words[0] for item in scene.items)
            continue
        assert fact.answer == CANNOT_TELL and fact.kind == "cannot tell"
        printed = " ".join(line.text for line in scene.lines)
        assert not re.search(r"\d|\$", printed), "a figure may be an age"
        assert not scene.lines or last.kind in unknown.BESIDE_PRINT
        for word in {*words} if last.kind.startswith("two") else {*words[:1]}:
            called = [word.removeprefix("small ").removeprefix("big ")]
            nouns = [n.name for n in by_name().values() if called[0] in (n.name, *n.also)]
            assert any(item.noun in nouns for item in scene.items), (word, fact)
    assert len(seen) > 20, seen
    assert {"food", "living", "vehicle", "two", "whole", "artist"} <= seen.keys()


def test_calories_are_asked_of_food_and_drivers_of_vehicles() -> None:
    rng = Random(3)
    table = {"apple": "cal|taste|expire|calories", "car": "driv|fuel|inside|brand", "dog": "name|born|dream"}
    for noun, words in table.items():
        scene = scene_of(at(noun, 0.5, 0.5))
        said = [str(found.question) for _ in range(400) if (found := unknown.unknown_more(rng, scene))]
        assert sum(bool(re.search(words, question)) for question in said) > 15, noun
        for other in {*table} - {noun}:
            odd = {"apple": "calories", "car": "fuel", "dog": "vet"}[other]
            assert not any(f"{odd} in the {noun}" in question for question in said)


def test_the_weather_is_unknown_only_where_nothing_shows_it(last: Heard) -> None:
    rng = Random(2)
    for noun, wanted in (
        ("dog", True),
        ("sun", False),
        ("snowman", False),
        ("clock", False),
        ("tree", False),
    ):
        scene, asked_for = scene_of(at(noun, 0.5, 0.5)), set()
        for _ in range(400):
            if unknown.unknown_more(rng, scene) is not None:
                asked_for.add(last.kind)
        assert ("weather" in asked_for) == wanted, noun


def test_what_is_close_to_it_can_be_told(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(unknown.known, wide_scenes(500), 6):
        seen[last.kind] += 1
        if last.kind == "drew":
            assert fact.answer == caption(scene, "short")
            continue
        if last.kind == "how many":
            assert fact.answer == str(len(those(scene, last.subjects[0])))
            continue
        if last.kind in ("time", "price", "name"):
            assert [fact.answer] == [line.text for line in scene.lines]
            continue
        [(_, [item])] = fact.evidence
        assert isinstance(item, Item) and not is_plural(last.subjects[0])
        kinds = () if item.is_shape else by_name()[item.noun].kinds
        told = {
            "colour": item.colour,
            "size": item.size,
            "place": place(item),
            "drawn": "a drawing",
            "real": "no",
            "eat": "yes" if "food" in kinds else "no",
            "animal": "yes" if "animal" in kinds else "no",
        }
        assert fact.answer == told[last.kind], fact
        if last.kind == "eat":
            assert not {"animal", "plant"} & {*kinds} and kinds, "some people eat it"
        if last.kind == "animal":
            assert kinds and "face" not in kinds, "an alien may be one"
    assert {"colour", "size", "place", "drawn", "real", "eat", "animal", "how many", "drew"} <= seen.keys()


def test_a_price_and_a_name_beside_the_only_thing_are_its_own() -> None:
    dog = scene_of(at("dog", 0.5, 0.3))
    priced = replace(dog, lines=(line("$5.00", 0.5, 0.8, INK),))
    named = replace(dog, lines=(line("Bella", 0.5, 0.8, INK),))
    assert answers(unknown.known, priced, "") == {"$5.00"}
    assert answers(unknown.known, named, r"name|call") == {"Bella"}
    timed = replace(dog, lines=(line("12:30", 0.5, 0.8, INK),))
    assert answers(unknown.known, timed, "") == {"12:30"}
    for told in (priced, named):
        assert CANNOT_TELL not in answers(unknown.unknown_more, told, r"cost|name|price|call")
    pair = replace(scene_of(at("dog", 0.2, 0.3), at("cat", 0.8, 0.3)), lines=priced.lines)
    assert answers(unknown.known, pair, "") == set(), "which of them costs that?"
    assert answers(unknown.known, replace(dog, lines=(line("OPEN", 0.5, 0.8, INK),)), "") == set()


def test_the_makers_are_weighed() -> None:
    assert {unknown.unknown_more, unknown.known} == {*unknown.WEIGHTS}
    assert {*unknown.SORTS} <= {*by_name(), *(kind for noun in by_name().values() for kind in noun.kinds)}
    assert {sort for sorts in (*unknown.SORTS.values(), unknown.ANY_THING) for sort in sorts} <= {*CANNOT}
