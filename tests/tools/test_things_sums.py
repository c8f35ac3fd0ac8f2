"""Sums over the things of a scene come out as somebody gets them who counts the things by name."""

from collections import Counter
from random import Random

import pytest

from kestrel_tools.things.language.whole import sums
from kestrel_tools.things.language.whole.sums_words import QUESTIONS
from kestrel_tools.things.names import PAIRS, SUBSTANCES
from kestrel_tools.things.scene import Scene
from tests.thing_scenes import answers, at, scene_of
from tests.wide_scenes import LEFT_OVER, Heard, heard, made_of, number_in, those, wide_scenes

BY_LEGS = {
    4: "dog cat mouse rabbit horse cow pig sheep lion tiger elephant zebra",
    2: "chicken duck owl eagle penguin",
}


@pytest.fixture
def last(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return heard(monkeypatch, sums)


def scenes() -> tuple[Scene, ...]:
    return (*wide_scenes(500), *wide_scenes(400, mixture="herds"), *wide_scenes(150, mixture="crowded"))


def yes(true: bool) -> str:
    return "yes" if true else "no"


def test_every_wording_is_whole_and_there_are_many() -> None:
    rng = Random(1)
    for kind in QUESTIONS:
        asked = {str(sums.asked(rng, kind, "two", "dogs", "left", "a dog")).lower() for _ in range(80)}
        assert len(asked) > 8, kind
        assert not any(LEFT_OVER.search(question) for question in asked), kind


def test_sums_and_differences_of_two_sorts(last: Heard) -> None:
    seen = Counter[str]()
    for maker in (sums.total, sums.difference):
        for scene, fact in made_of(maker, scenes(), 2):
            seen[last.kind] += 1
            if last.kind == "total":
                assert fact.answer == str(len(scene.items)) and not scene.lines
                continue
            one, other = (those(scene, words) for words in last.subjects)
            assert one and other and not any(item is twin for item in one for twin in other), fact
            a, b = len(one), len(other)
            told = {"together": a + b, "how many more": a - b, "how many fewer": b - a}
            if last.kind == "same number":
                assert fact.answer == yes(a == b), fact
            elif last.kind == "each":
                assert [number.split()[0] for number in fact.answer.split(", ")] == [str(a), str(b)], fact
            else:
                assert fact.answer == str(told[last.kind]) and int(fact.answer) > 0, fact
    assert min(seen[kind] for kind in ("total", "each", "together", "how many more", "same number")) > 20
    assert seen["how many fewer"] > 5


def test_what_cannot_be_counted_one_by_one_is_not(last: Heard) -> None:
    names = ("grapes", "bread", "fries", "dog", "cat", "cheese")
    for maker in (sums.total, sums.difference, sums.changed, sums.pairs, sums.bounds, sums.other_colour):
        for _, _ in made_of(maker, wide_scenes(60, names), 2):
            said = {words.rsplit(" ", 1)[-1] for words in last.subjects if words}
            assert not said & {*PAIRS, *SUBSTANCES, "breads", "cheeses"}, (maker, last.subjects)


def test_legs_and_wheels_are_as_many_as_a_child_says(last: Heard) -> None:
    legs = {noun: number for number, names in BY_LEGS.items() for noun in names.split()}
    names = (*legs, "bicycle", "motorcycle", "monkey", "spider", "frog", "fish", "car", "crab")
    seen = Counter[str]()
    for scene, fact in made_of(sums.limbs, wide_scenes(250, names, "herds"), 2):
        seen[last.kind] += 1
        [subject, *_] = last.subjects
        noun = subject if last.kind.endswith("of one") else those(scene, subject)[0].noun
        number = sum(item.noun == noun for item in scene.items)
        each = legs[noun] if last.kind.startswith("legs") else 2
        assert fact.answer == str(each * number), fact
        assert noun not in ("monkey", "spider", "frog", "fish", "car", "crab")
        assert last.kind != "wings" or legs[noun] == 2
        assert not last.kind.startswith("wheels") or noun in ("bicycle", "motorcycle")
    assert all(seen[kind] > 3 for kind in ("legs", "legs of one", "wings", "wheels"))


def test_the_most_frequent_thing_has_no_rival(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(sums.most_often, scenes(), 2):
        seen[last.kind] += 1
        numbers = Counter(item.noun for item in scene.items)
        mine = numbers.pop(fact.answer)
        others = numbers.values()
        assert mine > max(others) if last.kind == "most often" else mine < min(others), fact
        assert not any(item.is_shape for item in scene.items)
    assert seen["most often"] > 40 and seen["least often"] > 20
    taxi = scene_of(at("taxi", 0.2, 0.5), at("taxi", 0.5, 0.5), at("car", 0.8, 0.5))
    assert answers(sums.most_often, taxi, "") == set(), "a taxi is a car to some"


def test_one_of_another_colour_is_told_by_its_colour(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(sums.other_colour, scenes(), 3):
        colours = Counter(item.colour for item in those(scene, last.subjects[0])).most_common()
        seen[last.kind] += 1
        assert "" not in dict(colours) and sum(number for _, number in colours) > 2
        different = len(colours) == 2 and colours[1][1] == 1
        if last.kind == "is one different":
            assert fact.answer == yes(different), fact
        else:
            assert different and fact.answer == colours[last.kind == "another colour"][0], fact
    assert all(seen[kind] > 5 for kind in ("another colour", "main colour", "is one different"))


def test_what_would_be_left_or_come_is_reckoned(last: Heard) -> None:
    seen = Counter[tuple[str, bool]]()
    for scene, fact in made_of(sums.changed, scenes()[:500], 2):
        said, many, _ = last.subjects
        by, number = number_in(said), len(those(scene, many))
        left = number - by if last.kind == "taken away" else number + by
        assert fact.answer == str(left) and left >= 0, fact
        seen[last.kind, left == 0] += 1
    assert seen["taken away", False] > 40 < seen["added", False] and seen["taken away", True] > 0


def test_enough_for_all_pairs_and_bounds(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    for maker in (sums.enough, sums.pairs, sums.bounds):
        for scene, fact in made_of(maker, scenes(), 2):
            answer = fact.answer
            if last.kind in ("one or several", "only one", "more than one"):
                number = len(those(scene, last.subjects[1]))
                told = {"only one": yes(number == 1), "more than one": yes(number > 1)}
                assert answer == told.get(last.kind, "one" if number == 1 else "several")
            elif last.kind == "bound":
                way, _, said = last.subjects[0].rpartition(" ")
                number, limit = len(those(scene, last.subjects[1])), number_in(said)
                holds = {
                    "exactly": number == limit,
                    "at least": number >= limit,
                    "more than": number > limit,
                    "fewer than": number < limit,
                    "less than": number < limit,
                    "at most": number <= limit,
                    "no more than": number <= limit,
                }
                assert answer == yes(holds[way]), fact
            elif maker is sums.enough:
                people, number = number_in(last.subjects[0]), len(those(scene, last.subjects[1]))
                told = {"enough": yes(number >= people), "missing": str(people - number)}
                assert answer == told.get(last.kind, str(number / people).removesuffix(".0")), fact
            else:
                number = len(those(scene, last.subjects[0]))
                told = {"even": yes(number % 2 == 0), "pairs": str(number / 2).removesuffix(".0")}
                assert answer == told.get(last.kind, ("even", "odd")[number % 2]), fact
            seen[last.kind, answer if answer in ("yes", "no") else "number"] += 1
    assert all(seen[kind, answer] > 10 for kind in ("bound", "enough", "even") for answer in ("yes", "no"))
    assert all(seen[kind, "number"] > 5 for kind in ("missing", "share", "pairs", "even or odd"))


def test_a_scene_of_nothing_is_asked_for_no_sum() -> None:
    assert all(weight > 0 for weight in sums.WEIGHTS.values())
    assert {maker(Random(seed), scene_of()) for maker in sums.WEIGHTS for seed in range(20)} == {None}
