"""What is asked in people's own words is true of the scene, which is looked at in another way here."""

import re
from random import Random
from typing import Any

import pytest

from kestrel_tools.scenes.world import COLOUR_NAMES
from kestrel_tools.things.charts.draw import draw_chart
from kestrel_tools.things.charts.subjects import (
    FAMILIES,
    LABELS,
    MORE_LABELS,
    TITLES,
    TOPICS,
    family_of,
    labels_of,
)
from kestrel_tools.things.language import choices, kinds, places, spelling, unknown
from kestrel_tools.things.language.charts import facts as chart_facts
from kestrel_tools.things.language.charts.words import OTHERWISE, direction, missing, worded
from kestrel_tools.things.language.fact import CANNOT_TELL
from kestrel_tools.things.language.printed import facts as print_facts
from kestrel_tools.things.language.questions import asked
from kestrel_tools.things.language.spelling import introduced
from kestrel_tools.things.scene import Chart, Item, Scene
from tests.thing_scenes import ATLAS, WHITE, answers, at, line, made, scene_of

AXES = {"left of": (0, -1), "right of": (0, 1), "above": (1, -1), "below": (1, 1)}


@pytest.fixture(autouse=True)
def no_typos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a question are looked for here."""
    monkeypatch.setattr(spelling, "mistyped", lambda rng, question: question)


def test_what_is_beside_a_thing_is_its_neighbour() -> None:
    row = scene_of(at("dog", 0.1, 0.5), at("cat", 0.35, 0.5), at("car", 0.65, 0.52), at("tree", 0.9, 0.5))
    assert answers(places.beside, row, r"What.*left .*the car") == {"cat"}
    assert answers(places.beside, row, r"right .*the tree") <= {"nothing", "none"}
    assert answers(places.all_beside, row, r"left .*the car") == {"dog, cat"}
    level = scene_of(at("dog", 0.5, 0.5), at("cat", 0.2, 0.4), at("car", 0.2, 0.6))
    assert answers(places.beside, level, r"^What('s| is) [ton he]*left .*dog") == set(), "both are near"


def test_a_neighbour_lies_on_its_side_with_nothing_nearer_there() -> None:
    seen = 0
    for scene, fact in made(places.beside):
        (_, (item,)), *near = fact.evidence
        if not near:
            assert fact.answer in ("nothing", "none")
            continue
        seen += 1
        [(_, (other,))] = near
        assert isinstance(other, Item) and other.name == fact.answer
        which = next(words for words in AXES if f" {words} the " in fact.sentence)
        axis, sign = AXES[which]
        assert sign * (other.centre[axis] - item.centre[axis]) > 0
        if re.match(r"What('s| is) (to the |on the |left|right|above|below|under)", fact.question):
            unit = scene.unit
            offsets = {o: [(o.centre[n] - item.centre[n]) / unit[n] for n in (0, 1)] for o in scene.items}
            ahead = [o for o, by in offsets.items() if sign * by[axis] > max(0.02, abs(by[1 - axis]))]
            nearest = min(ahead, key=lambda o: sum(by**2 for by in offsets[o]), default=other)
            assert nearest is other, fact
    assert seen > 100


def test_nothing_is_beside_what_is_outermost() -> None:
    for scene, fact in made(places.beside):
        side = re.search(r"\b(left|right) (side )?(of|from)\b", fact.question)
        if fact.answer == "nothing" and side and fact.evidence:
            [(_, (item,))] = fact.evidence
            sign = -1 if side[1] == "left" else 1
            assert all(sign * (o.centre[0] - item.centre[0]) < 0.03 for o in scene.items), fact


def names(answer: str) -> list[str]:
    return [] if answer in ("nothing", "none") else answer.split(", ")


def test_what_is_in_a_part_of_the_picture_is_there() -> None:
    seen = 0
    for scene, fact in made(places.parts):
        if fact.kind != "part" or fact.answer in ("yes", "no"):
            continue
        question = re.sub(r"^right\b|right in the (?=middle|cent|very)", "", fact.question.lower())
        tests = {r"\bleft\b": (0, -1), r"\bright\b": (0, 1), r"\b(top|upper)\b": (1, -1)}
        tests[r"\b(bottom|lower)\b"] = (1, 1)
        sides = [side for words, side in tests.items() if re.search(words, question)]
        there = [
            item for item in scene.items if all(sign * (item.centre[axis] - 0.5) > 0 for axis, sign in sides)
        ]
        if sides:
            seen += 1
            assert {*names(fact.answer)} <= {item.name for item in there}, fact
            corner = [
                item for item in there if all(sign * (item.centre[axis] - 0.5) > 0.25 for axis, sign in sides)
            ]
            if fact.answer == "nothing":
                assert not corner, fact
        assert len({*names(fact.answer)}) > 1 or len(names(fact.answer)) <= 1  # one name for all
    assert seen > 150


def test_numbers_and_yes_or_no_of_a_part_agree_with_it() -> None:
    quarters = scene_of(at("dog", 0.15, 0.15), at("cat", 0.85, 0.2), at("car", 0.8, 0.85))
    assert answers(places.parts, quarters, r"^How many (things|objects|items) are in the left half\?") <= {
        "1"
    }
    assert answers(places.parts, quarters, r"^Is the dog .*(top|upper) left") <= {"yes"}
    assert answers(places.parts, quarters, r"^Is the cat .*(top|upper) left") <= {"no"}
    assert "nothing" in answers(places.parts, quarters, r"^What.* is in the (bottom|lower) left", 6000)
    assert answers(places.parts, quarters, r"^Wh(at|ich) animal is .*right", 3000) <= {"cat", "none"}


def test_what_is_between_two_things_lies_on_the_way() -> None:
    seen = 0
    for scene, fact in made(places.between, 8):
        first, last, *_ = (item for _, found in fact.evidence for item in found)
        across = abs(first.centre[0] - last.centre[0]) / scene.unit[0]
        down = abs(first.centre[1] - last.centre[1]) / scene.unit[1]
        axis = 0 if across > down else 1
        low, high = sorted((first.centre[axis], last.centre[axis]))
        if fact.answer not in ("yes", "no"):
            for name in names(fact.answer):
                seen += 1
                assert any(item.name == name and low < item.centre[axis] < high for item in scene.items), fact
    assert seen > 20
    row = scene_of(at("dog", 0.1, 0.5), at("cat", 0.5, 0.5), at("car", 0.9, 0.52))
    assert answers(places.between, row, "the dog and the car") <= {"cat", "yes", "no"}
    pair = scene_of(at("dog", 0.1, 0.5), at("car", 0.9, 0.52))
    assert answers(places.between, pair, "between", 2000) == {"nothing", "no"}
    alike = scene_of(at("dog", 0.1, 0.5), at("cat", 0.5, 0.5), at("dog", 0.9, 0.52))
    assert answers(places.between, alike, "dogs") == {"cat"}
    herd = scene_of(*(at("dog", x, 0.5) for x in (0.1, 0.5, 0.9)))
    assert answers(places.between, herd, "dogs") == set(), "between which of them?"


def test_one_of_two_answers_is_right_and_was_offered() -> None:
    seen = 0
    for scene, fact in made(choices.either):
        if fact.kind != "either":
            continue
        items = [item for _, found in fact.evidence for item in found if isinstance(item, Item)]
        right = {
            "left": lambda i: i[0].centre[0] < (i[1].centre[0] if len(i) > 1 else 0.5),
            "right": lambda i: i[0].centre[0] > (i[1].centre[0] if len(i) > 1 else 0.5),
            "top": lambda i: i[0].centre[1] < 0.5,
            "bottom": lambda i: i[0].centre[1] > 0.5,
            "above": lambda i: i[0].centre[1] < i[1].centre[1],
            "below": lambda i: i[0].centre[1] > i[1].centre[1],
        }
        seen += 1
        if fact.answer in right:
            assert right[fact.answer](items), fact
        elif len(items) == 1:
            assert fact.answer in (items[0].colour, items[0].noun), fact
        else:
            one = (fact.answer, f"{fact.answer} {items[0].noun}")  # the green one, among two that are alike
            [chosen] = [item for words, (item,) in fact.evidence if words[4:] in one]
            assert not re.search("bigger|larger", fact.question) or chosen is max(items, key=lambda i: i.area)
            assert "smaller" not in fact.question or chosen is min(items, key=lambda i: i.area), fact
            ways = {"left": (0, 1), "right": (0, -1), "up": (1, 1), "down": (1, -1)}
            for word in re.findall(r"\b(?:left|right|up|down)\b", fact.question):
                axis, sign = ways[word]
                assert chosen is min(items, key=lambda item: sign * item.centre[axis]), fact
        assert all(item in scene.items for item in items)
    assert seen > 200


def test_a_thing_asked_for_by_its_colour_alone_has_it() -> None:
    seen = 0
    for scene, fact in made(kinds.by_colour):
        if not fact.evidence:
            assert fact.answer in ("nothing", "none")
            continue
        [(words, (item,))] = fact.evidence
        seen += 1
        assert isinstance(item, Item) and item.colour in words.split() and fact.answer == item.noun
        alike = [o for o in scene.items if o.colour == item.colour]
        assert len(alike) == 1 or words.split()[-1] not in ("thing", "object", "item") or "food" in words
    assert seen > 100


def test_all_colours_of_several_things_are_told() -> None:
    told = set()
    for _, fact in made(kinds.colours):
        [(_, items)] = fact.evidence
        found = {item.colour for item in items if isinstance(item, Item)}
        told.add(fact.kind)
        if fact.kind == "colours":
            assert {*fact.answer.split(", ")} == found and len(items) > 1
        else:
            [colour] = [c for c in COLOUR_NAMES if c in fact.question.replace("grey", "gray")] or [""]
            assert not colour or (fact.answer == "yes") == (found == {colour}), fact
    assert told == {"colours", "all are"}


def test_what_is_not_of_a_kind_is_counted() -> None:
    zoo = scene_of(at("dog", 0.1, 0.5), at("cat", 0.35, 0.5), at("car", 0.65, 0.5), at("tree", 0.9, 0.5))
    assert answers(kinds.count_not, zoo, r"(not|n't) animals", 1500) == {"2"}
    assert answers(kinds.count_not, zoo, r"(not|n't) cars", 1500) == {"3"}
    for scene, fact in made(kinds.count_not):
        [(words, items)] = fact.evidence
        but = words.rsplit(" ", 1)[-1]
        assert int(fact.answer) == len(items) <= len(scene.items)
        assert all(isinstance(i, Item) and f"{i.noun}s" != but and i.colour != but for i in items), fact


def test_what_is_of_a_kind_is_listed_one_by_one() -> None:
    seen = 0
    for _, fact in made(kinds.kinds):
        if fact.kind == "list" and fact.answer != "none":
            [(_, items)] = fact.evidence
            found = fact.answer.split(", ")
            seen += 1
            there = [i.name for i in items if isinstance(i, Item)]
            assert found == (there if len({*there}) > 1 else there[:1])
        if fact.kind == "count":
            [(_, items)] = fact.evidence
            assert len({i.noun for i in items if isinstance(i, Item)}) == int(fact.answer)
    assert seen > 100
    fruit = scene_of(
        at("apple", 0.1, 0.5), at("apple", 0.4, 0.5), at("banana", 0.8, 0.5), at("car", 0.8, 0.9)
    )
    assert answers(kinds.kinds, fruit, r"^What fruits? (are|is) there\?") == {"apple, apple, banana"}
    assert answers(kinds.kinds, fruit, r"^Is there any fruit") == {"yes"}


def test_print_is_told_by_its_colour_place_and_words() -> None:
    lines = (line("OPEN", 0.5, 0.1, (0.9, 0.1, 0.1)), line("old shop", 0.5, 0.9, (0.1, 0.2, 0.9)))
    scene = Scene(1.0, WHITE, (), lines)
    ask = print_facts.about_print
    assert answers(ask, scene, r"color.* OPEN", 3000) == {"red"}
    assert answers(ask, scene, r"^(What|Which) (word|text) is (written in |printed in )?blue") == {"old shop"}
    assert answers(ask, scene, r"(written|printed) at the top\?", 3000) == {"OPEN"}
    assert answers(ask, scene, r"the (bottom|lower|last) line", 3000) == {"old shop"}
    assert answers(ask, scene, r"^How many words") == {"3"}
    assert answers(ask, scene, r"^Does it say OPEN\?", 3000) == {"yes"}
    assert answers(ask, scene, r"^Does it say (?!OPEN|old shop)\w+\?", 3000) == {"no"}


def test_print_answers_are_lines_of_the_scene() -> None:
    told = set()
    for scene, fact in made(print_facts.about_print, 12):
        told.add(fact.kind)
        texts = [one.text for one in scene.lines]
        match fact.kind:
            case "read part":
                assert fact.answer == "nothing" or any(
                    fact.answer in text or text in fact.answer for text in texts
                )
            case "read":
                assert fact.answer == ", ".join(texts)
            case "says":
                if (said := re.fullmatch(r"Does it say (.+?)[?!. ]*", fact.question)) is not None:
                    bare = [text.rstrip("!").lower() for text in texts]
                    assert (fact.answer == "yes") == (said[1].lower() in bare), fact
            case "text colour":
                assert fact.answer in (*COLOUR_NAMES, "yes", "no")
            case "number of words":
                assert int(fact.answer) == len(" ".join(texts).split())
    assert told >= {"read part", "read", "says", "text colour", "number of words", "count"}


def test_what_no_picture_tells_is_asked_only_where_no_print_may_tell() -> None:
    found = list(made(unknown.unknown))
    assert len(found) > 50 and all(fact.answer == CANNOT_TELL and not scene.lines for scene, fact in found)


def test_labels_belong_to_one_family_and_titles_to_one_topic() -> None:
    every = [label for labels in (*LABELS, *(labels for _, labels in MORE_LABELS)) for label in labels]
    assert len(every) == len({*every})
    assert all(family_of(label) for label in every)
    titles = [title for topic in TOPICS for title in topic.titles]
    assert len(titles) == len({*titles}) and len({*titles} | {*TITLES}) > 50
    known = {*FAMILIES, *(name for name, _ in MORE_LABELS)}
    assert all(family in known and labels_of(family) for topic in TOPICS for family in topic.families)


def chart(kind: str, title: str, **values: int) -> Chart:
    boxes = tuple((0.1 * n, 0.1, 0.1 * n + 0.05, 0.9) for n in range(len(values)))
    return Chart(kind, title, tuple(values), tuple(values.values()), boxes)


@pytest.mark.parametrize(
    ("title", "labels", "kind", "wanted"),
    [
        ("Rain", {"Jan": 3, "Feb": 9}, "largest", r"(wettest|rainiest) month"),
        ("Points", {"Ann": 3, "Bob": 9}, "smallest", r"Who scored the (fewest|least)"),
        ("Sales", {"Ann": 3, "Bob": 9}, "value", r"How many did (Ann|Bob) sell"),
        ("Sales", {"Q1": 3, "Q2": 9}, "value", r"Sales in (Q[12]|the (first|second) quarter|quarter [12])"),
        ("", {"Tue": 3, "Wed": 9}, "value", r"How much.* on (Tuesday|Wednesday)"),
        ("", {"Monday": 3, "Tuesday": 9}, "value", r" on (Mon|Tue)\b"),
    ],
)
def test_a_chart_is_asked_in_the_words_of_its_subject(
    title: str, labels: dict[str, int], kind: str, wanted: str
) -> None:
    rng, one = Random(4), chart("bar", title, **labels)
    asked_for = [
        worded(rng, kind, one, *([rng.choice(one.labels)] if kind == "value" else [])) for _ in range(600)
    ]
    assert any(question and re.search(wanted, question) for question in asked_for)
    assert not any(re.search(r"[\[\]|<>{}]", question or "") for question in asked_for)


def test_chart_facts_are_true_of_the_chart() -> None:
    rng, told = Random(6), set()
    for _ in range(60):
        scene = draw_chart(rng, ATLAS, 1.3, (252, 336))
        if scene is None or scene.chart is None:
            continue
        one = scene.chart
        values = dict(zip(one.labels, one.values, strict=True))
        for kind in chart_facts.WEIGHTS:
            fact = chart_facts.fact_of(rng, kind, scene)
            told.add(fact.kind)
            assert not re.search(r"[\[\]|<>{}]", fact.question)
            match fact.kind:
                case "chart largest" | "chart smallest":
                    extreme = max if fact.kind == "chart largest" else min
                    assert values[fact.answer] == extreme(one.values)
                case "chart label of":
                    assert str(values[fact.answer]) in fact.question
                case "chart colour" if len(one.colours) == 1:
                    assert fact.answer == one.colours[0]
                case "chart colour":
                    pairs = dict(zip(one.labels, one.colours, strict=True))
                    if fact.answer in pairs:
                        assert pairs[fact.answer] in fact.question
                    else:
                        [label] = (label for label, colour in pairs.items() if colour == fact.answer)
                        assert label.lower() in fact.question.lower()
                case "chart kind" if fact.answer in ("yes", "no"):
                    assert (f"{one.kind} " in fact.question.lower()) == (fact.answer == "yes")
                case "chart missing":
                    assert fact.answer == CANNOT_TELL
                case "chart direction":
                    rises = one.values[0] < one.values[-1]
                    if fact.answer in ("up", "down"):
                        assert rises == (fact.answer == "up")
                    assert list(one.values) == sorted(one.values, reverse=not rises)
    assert {
        "chart missing",
        "chart direction",
        "cannot tell",
        "chart largest",
        "chart compare",
        "chart colour",
    } <= told


def test_a_missing_label_is_not_another_word_for_one_that_is_there() -> None:
    rng = Random(2)
    short = chart("bar", "", **dict.fromkeys(labels_of("day")[0][:6], 1))
    assert {missing(rng, short) for _ in range(60)} == {"Sun", "Sunday"}
    assert OTHERWISE["Tue"] == ("Tuesday",) and OTHERWISE["January"] == ("Jan",)
    assert "Apples" not in {missing(rng, chart("bar", "", Apple=1, Pear=2)) for _ in range(200)}


def test_a_line_that_goes_both_ways_is_not_asked_for_its_direction() -> None:
    rng = Random(2)
    assert direction(rng, chart("line", "", A=3, B=9, C=2, D=8)) is None
    assert direction(rng, chart("bar", "", A=3, B=9)) is None
    assert {direction(rng, chart("line", "", A=3, B=9))[1] for _ in range(80)} == {"up", "yes", "no"}  # type: ignore[index]


def test_a_few_questions_have_words_around_them() -> None:
    rng = Random(3)
    said = [introduced(rng, "What color is the dog?") for _ in range(4000)]
    longer = [one for one in said if one != "What color is the dog?"]
    assert 0.03 < len(longer) / len(said) < 0.05
    assert all("hat color is the dog?" in one for one in longer) and len({*longer}) > 60


@pytest.mark.parametrize("module", [places, kinds, choices, print_facts, unknown])
def test_every_new_kind_of_question_has_several_wordings(module: Any) -> None:
    rng = Random(1)
    for kind in module.QUESTIONS:
        found = {asked(rng, kind, "one", "two", "three", "four", among=module.QUESTIONS) for _ in range(80)}
        assert len(found) > 6, kind
        assert not any(re.search(r"[\[\]|<>{}]", question) for question in found), kind
