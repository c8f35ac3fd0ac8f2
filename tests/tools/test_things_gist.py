"""What is asked about a picture as a whole is what everybody would say of it."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from kestrel_tools.scenes.world import Background
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.whole import called, gist, look
from kestrel_tools.things.language.whole.gist_words import QUESTIONS
from kestrel_tools.things.names import by_name
from kestrel_tools.things.scene import Item, Mark, Scene
from tests.thing_scenes import answers, at, line, scene_of
from tests.wide_scenes import LEFT_OVER, Heard, heard, made_of, wide_scenes

NIGHT = Background("plain", (0.02, 0.02, 0.1), (0.02, 0.02, 0.1), 0, 0.1, 0)
SKY = ("sun", "moon", "cloud", "snowflake", "lightning", "snowman", "rainbow", "umbrella", "dog", "car")


@pytest.fixture
def last(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return heard(monkeypatch, gist, look)


def scenes() -> tuple[Scene, ...]:
    return (*wide_scenes(400), *wide_scenes(250, mixture="herds"), *wide_scenes(80, mixture="crowded"))


def kinds_of(item: Item) -> tuple[str, ...]:
    return ("shape",) if item.is_shape else by_name()[item.noun].kinds


def doubts_of(item: Item) -> tuple[str, ...]:
    return () if item.is_shape else by_name()[item.noun].arguably


def yes(true: bool) -> str:
    return "yes" if true else "no"


def test_every_wording_is_whole_and_there_are_many() -> None:
    rng = Random(1)
    for kind in QUESTIONS:
        asked = {str(gist.asked(rng, kind, "dogs", "a dog", "cats")).lower() for _ in range(80)}
        assert len(asked) > 8, kind
        assert not any(LEFT_OVER.search(question) for question in asked), kind


def test_the_weather_is_what_the_things_of_the_sky_show(last: Heard) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for scene, fact in made_of(look.sky, wide_scenes(500, SKY, most=3), 6):
        there = {item.noun for item in scene.items} & {*SKY[:8]}
        seen[last.kind, fact.answer] += 1
        assert not {"umbrella", "rainbow"} & there or last.kind in ("day or night", "is day", "is night")
        match last.kind, fact.answer:
            case "weather", answer:
                shown = {"sunny": "sun", "snowy": "snowflake", "cloudy": "cloud", "stormy": "lightning"}
                assert shown[answer] in there
            case (("is snowing" | "is sunny" | "sun out" | "is raining"), answer):
                wanted = {"is snowing": "snowflake", "is sunny": "sun", "sun out": "sun"}.get(last.kind, "no")
                assert answer == yes(wanted in there)
            case (("cold or warm" | "winter or summer"), _):
                assert there <= {"snowflake", "snowman"} and there
            case (("day or night" | "is day" | "is night"), answer):
                assert ("sun" in there) != ("moon" in there)
                time, light = ("day", 1) if "sun" in there else ("night", -1)
                assert answer == (time if last.kind == "day or night" else yes(last.kind == f"is {time}"))
                assert light * (sum(scene.background.first) - 1.5) > 0.5
    assert {kind for kind, _ in seen} >= {"weather", "is snowing", "is sunny", "sun out", "is raining"}
    assert {answer for kind, answer in seen if kind == "day or night"} == {"day", "night"}


def test_day_and_night_need_a_ground_that_agrees() -> None:
    by_day, moon = scene_of(at("sun", 0.5, 0.5)), scene_of(at("moon", 0.5, 0.5))
    by_night = replace(moon, background=NIGHT)
    assert answers(look.sky, by_day, r"(?i)day or night") == {"day"}
    assert answers(look.sky, by_night, r"(?i)day or night") == {"night"}
    assert answers(look.sky, moon, r"(?i)day or night") == set(), "a moon on white paper"
    assert answers(look.sky, replace(by_day, background=NIGHT), "") == set(), "a sun on black"
    both = scene_of(at("sun", 0.2, 0.5), at("moon", 0.8, 0.5))
    assert answers(look.sky, both, "") == set()


def test_specks_may_be_snow() -> None:
    speck = Mark((0.5, 0.5), (0.5, 0.5), 0.01, True, (1, 1, 1))
    scene = replace(scene_of(at("dog", 0.5, 0.5)), marks=(speck,))
    assert answers(look.sky, scene, "", 4000) == set()
    assert answers(look.sky, replace(scene, marks=()), "", 4000) == {"no"}


def test_kinds_are_there_if_a_thing_of_them_is(last: Heard) -> None:
    words = {several: kind for kind, (_, ways) in gist.KINDS.items() for several, _ in ways}
    seen = Counter[tuple[str, str]]()
    for scene, fact in made_of(gist.any_of, scenes(), 2):
        kind = "person" if last.kind == "any people" else words[last.subjects[0]]
        assert fact.answer == yes(any(kind in kinds_of(item) for item in scene.items)), fact
        assert not any(kind in doubts_of(item) for item in scene.items), fact
        seen[kind, fact.answer] += 1
    assert all(seen[kind, answer] > 5 for kind in ("animal", "food", "vehicle") for answer in ("yes", "no"))
    assert seen["person", "no"] > 20


def test_what_all_are_is_the_narrowest_kind_of_all(last: Heard) -> None:
    named = {answer: kind for kind, (answer, _) in gist.KINDS.items()}
    several = {ways[0][0]: kind for kind, (_, ways) in gist.KINDS.items()}
    seen = Counter[str]()
    for scene, fact in made_of(gist.about, scenes(), 3):
        assert not scene.lines
        seen[last.kind] += 1
        if last.kind == "all of kind":
            kind = several[last.subjects[0]]
            assert fact.answer == yes(all(kind in kinds_of(item) for item in scene.items)), fact
            assert not any(kind in doubts_of(item) for item in scene.items)
            continue
        kind = named[fact.answer]
        assert all(kinds_of(item)[-1] == kind or kind in kinds_of(item) for item in scene.items)
        assert (
            not all(kind in kinds_of(item)[:-1] for item in scene.items)
            or kind != kinds_of(scene.items[0])[-1]
        )
        if last.kind == "which kind":
            assert fact.answer in last.subjects and len({*last.subjects}) == 3
            for wrong in {*last.subjects} - {fact.answer}:
                other = named[wrong]
                assert not any(other in (*kinds_of(i), *doubts_of(i)) for i in scene.items), fact
    assert min(seen[kind] for kind in ("about", "which kind", "all of kind")) > 10
    fruit = scene_of(at("apple", 0.2, 0.5), at("pear", 0.5, 0.5), at("banana", 0.8, 0.5))
    assert answers(gist.about, fruit, r"(?i)in common|mainly about") == {"fruit"}
    assert answers(gist.about, replace(fruit, lines=(line("HI", 0.5, 0.1, (0, 0, 0)),)), "") == set()


def goes_with(item: Item) -> set[str]:
    return {item.noun, *kinds_of(item), *([f"a {item.colour} shape"] if item.is_shape else [])}


def test_the_odd_one_is_the_only_one_without_which_all_go_together() -> None:
    seen = 0
    for scene, fact in made_of(gist.odd_one, scenes(), 3):
        if fact.answer == "none":
            assert len({item.name for item in scene.items}) == 1
            continue
        seen += 1
        odd = []
        for item in scene.items:
            shared = set.intersection(*(goes_with(other) for other in scene.items if other is not item))
            if shared - goes_with(item):
                odd.append(item)
                assert not shared & {*doubts_of(item)}, fact
        assert [item.name for item in odd] == [fact.answer], fact
    assert seen > 40
    bananas = [at("banana", 0.1 * n, 0.5) for n in range(1, 6)]
    assert answers(gist.odd_one, scene_of(at("book", 0.7, 0.5), *bananas), "") == {"book"}
    two = scene_of(at("book", 0.7, 0.5), at("pear", 0.8, 0.5), *bananas)
    assert answers(gist.odd_one, two, "") == set(), "the book is no food, and the pear no banana"
    fish = scene_of(at("fish", 0.1, 0.5), at("dog", 0.4, 0.5), at("cow", 0.6, 0.5), at("cat", 0.9, 0.5))
    assert answers(gist.odd_one, fish, "") == set(), "all are animals"
    tomato = scene_of(
        *(at(noun, x / 5, 0.5) for x, noun in enumerate(("apple", "pear", "peach", "tomato"), 1))
    )
    assert answers(gist.odd_one, tomato, "") == set(), "some call a tomato a fruit"


def test_what_is_alike_is_counted_once(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    for scene, fact in made_of(gist.alike, scenes(), 3):
        names = Counter(item.name for item in scene.items)
        seen[last.kind, fact.answer] += 1
        told = {
            "different": str(len(names)),
            "all the same": yes(len(names) == 1),
            "same or different": "the same" if len(names) == 1 else "different",
            "twice": yes(max(names.values()) > 1),
            "which twice": ", ".join(name for name, number in names.items() if number > 1),
            "which once": ", ".join(name for name, number in names.items() if number == 1),
        }
        assert fact.answer == told[last.kind], fact
    assert all(seen[kind, answer] > 3 for kind in ("all the same", "twice") for answer in ("yes", "no"))
    assert {kind for kind, _ in seen} >= {"different", "which twice", "which once", "same or different"}
    taxi = scene_of(at("taxi", 0.2, 0.5), at("car", 0.8, 0.5))
    apples = scene_of(at("apple", 0.2, 0.5, "red"), at("apple", 0.8, 0.5, "green"))
    assert answers(gist.alike, taxi, "") == answers(gist.alike, apples, "") == set()


def test_colours_are_those_of_the_things(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    for scene, fact in made_of(look.colouring, scenes(), 2):
        colours = {item.colour for item in scene.items}
        seen[last.kind, fact.answer] += 1
        if last.kind == "one colour":
            assert fact.answer == yes(len(colours) == 1)
        else:
            bright = bool(colours - {"", "black", "gray", "white"})
            told = {"black and white": yes(not bright), "in colour": yes(bright)}
            assert fact.answer == told.get(last.kind, "in color" if bright else "black and white")
    assert seen["one colour", "yes"] > 5 and seen["one colour", "no"] > 5


def test_the_background_is_as_it_is_drawn(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(look.background, scenes(), 2):
        ground = scene.background
        bright = sum(ground.first) / 3
        patterns = {"plain": "plain", "striped": "stripes", "checkered": "checks"}
        assert not scene.marks
        true = {word for word, kind in patterns.items() if kind == ground.kind}
        true |= {"light"} if bright > 0.7 else {"dark"} if bright < 0.4 else set()
        true |= {"patterned"} if ground.kind in ("stripes", "checks") else set()
        seen[last.kind] += 1
        if last.kind == "background is":
            assert fact.answer == yes(last.subjects[0] in true), (fact, ground)
        else:
            assert fact.answer.split()[0] in true, (fact, ground)
    assert min(seen[kind] for kind in ("background", "background or", "background is")) > 10


def test_a_side_is_empty_if_nothing_reaches_into_it(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    sides = {
        "left": (0, 0),
        "right": (0, 1),
        "top": (1, 0),
        "upper": (1, 0),
        "bottom": (1, 1),
        "lower": (1, 1),
    }
    for scene, fact in made_of(gist.sides, wide_scenes(500, most=4), 9):
        seen[last.kind, fact.answer] += 1
        boxes = [thing.box for things in (scene.items, scene.lines) for thing in things]

        def empty(side: str, boxes: list[tuple[float, ...]] = boxes) -> bool:
            axis, end = sides[side]
            return not any(box[axis + 2] > 0.5 if end else box[axis] < 0.5 for box in boxes)

        if last.kind == "empty side":
            side = next(word for word in sides if word in last.subjects[1])
            assert fact.answer == yes(empty(side)), fact
        elif last.kind == "which side empty":
            assert [side for side in ("left", "right", "top", "bottom") if empty(side)] == [fact.answer]
        else:
            axis, end = sides[fact.answer]
            there = sum((item.centre[axis] > 0.5) == bool(end) for item in scene.items)
            assert there > len(scene.items) / 2
    assert seen["empty side", "yes"] > 10 and seen["empty side", "no"] > 10
    assert sum(number for (kind, _), number in seen.items() if kind == "which side more") > 10


def test_what_fills_the_picture_and_what_it_is(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    for scene, fact in made_of(gist.filled, scenes(), 3):
        number, printed = len(scene.items), bool(scene.lines)
        seen[last.kind, fact.answer] += 1
        match last.kind:
            case "crowded":
                assert number >= 10 if fact.answer == "yes" else number <= 2
            case "many or few":
                assert number >= 10 if fact.answer == "many" else number == 2
            case "written":
                assert fact.answer == yes(printed)
            case "only text":
                assert printed and fact.answer == yes(not number)
    assert len(seen) == 8
    told: dict[str, set[str]] = {}
    for scene, fact in made_of(look.medium, scenes()[:200]):
        assert any(not item.is_shape for item in scene.items)
        told.setdefault(last.kind, set()).add(fact.answer)
    assert told == {"medium": {"a drawing"}, "is photo": {"no"}, "is drawing": {"yes"}, "is chart": {"no"}}


def test_makers_are_weighed_and_fast_enough_to_be_asked_in_vain() -> None:
    for maker, weight in {**gist.WEIGHTS, **look.WEIGHTS}.items():
        assert weight > 0
        empty: Fact | None = maker(Random(1), scene_of())
        assert empty is None or empty.answer in ("yes", "no", "plain white", "plain", "light")


def test_the_only_thing_of_a_kind_is_called_by_its_kind() -> None:
    scene = scene_of(at("dog", 0.2, 0.5, "brown"), at("car", 0.8, 0.5, "red"), at("pear", 0.2, 0.1, "green"))
    assert answers(called.called, scene, r"(?i)colou?r.*(the )?animal", 3000) == {"brown"}
    assert answers(called.called, scene, r"(?i)what.*right of the animal", 3000) == {"car"}
    assert answers(
        called.called, scene, r"(?i)(is|would you say) the vehicle .*(above|over) the pear", 3000
    ) == {"no"}
    two = scene_of(at("dog", 0.2, 0.5, "brown"), at("cat", 0.8, 0.5, "gray"))
    assert answers(called.called, two, "", 500) == set(), "which of the two animals?"
