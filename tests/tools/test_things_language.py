"""What is asked about scenes of things has a true answer, in many words."""

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from kestrel_tools.scenes import facts as old_facts
from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import Background, Box
from kestrel_tools.things.atlas import CHARACTERS
from kestrel_tools.things.charts.draw import LEAST_MEASURED, draw_chart
from kestrel_tools.things.charts.subjects import draw_subject
from kestrel_tools.things.compose import apart, draw_scene
from kestrel_tools.things.decor import reach_of_mark
from kestrel_tools.things.language import facts, places, relations, talk
from kestrel_tools.things.language.charts import facts as chart_facts
from kestrel_tools.things.language.choose import MAKERS, fact, shares_of, spatial_fact
from kestrel_tools.things.language.fact import CANNOT_TELL, caption, names_of
from kestrel_tools.things.language.questions import QUESTIONS, asked
from kestrel_tools.things.language.spelling import casual, chosen, mistyped, number_of
from kestrel_tools.things.language.targets import ALL, target
from kestrel_tools.things.language.wanted import LANDSCAPE, of_kind, of_noun, only, sized, stranger, wanted
from kestrel_tools.things.lettering import KNOWN, MOST_LETTERS, printed_text
from kestrel_tools.things.scene import Item, Line, Mark, Placed, Scene, widened
from tests.small_atlas import small_atlas

ATLAS = small_atlas()
WHITE = Background("plain", (1, 1, 1), (1, 1, 1), 0, 0.1, 0)


def thing(noun: str, box: Box, colour: str = "", size: str = "big") -> Item:
    middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return Item(noun, colour, size, box, Placed(0, 0.0, 0.0, 0.1, 0.0, False), middle)


def scene_of(*items: Item) -> Scene:
    return Scene(1.0, WHITE, tuple(sorted(items, key=lambda item: item.centre)))


DOG = thing("dog", (0.02, 0.1, 0.12, 0.2), "brown", "small")
CAT = thing("cat", (0.5, 0.5, 0.9, 0.9), "gray")
CAR = thing("car", (0.05, 0.7, 0.35, 0.9), "red")
SCENE = scene_of(DOG, CAT, CAR)


def scenes(count: int, seed: int = 0) -> list[Scene]:
    rng = Random(seed)
    return [draw_scene(rng, ATLAS, rng.uniform(0.6, 1.7), (252, 252)) for _ in range(count)]


def test_brackets_stand_for_every_choice_of_their_parts() -> None:
    template = "[What's|What [is|was]] here[?|]"
    found = {chosen(Random(seed), template) for seed in range(100)}
    assert found == {f"{start} here{end}" for start in ("What's", "What is", "What was") for end in ("?", "")}
    assert number_of("[a|b] [c|d|]") == 6


def test_every_kind_of_question_has_several_wordings_and_no_brackets_are_left() -> None:
    rng = Random(1)
    for kind in QUESTIONS:
        found = {asked(rng, kind, "one", "two", "three") for _ in range(60)}
        assert len(found) > 8, kind
        assert not any(re.search(r"[\[\]|<>{}]", question) for question in found), kind
    for kind in chart_facts.QUESTIONS:
        found = {chart_facts.asked(rng, kind, "one", "two") for _ in range(60)}
        assert len(found) > 5 and not any(re.search(r"[\[\]|<>{}]", question) for question in found), kind


def test_a_typo_changes_one_word_of_a_question() -> None:
    for seed in range(50):
        changed = mistyped(Random(seed), "How many dogs are there?")
        words = zip(["How", "many", "dogs", "are", "there?"], changed.split(), strict=True)
        assert sum(one != other for one, other in words) <= 1


def test_casual_questions_keep_their_words_most_of_the_time() -> None:
    questions = Counter(casual(Random(seed), "What color is the dog?") for seed in range(300))
    assert questions.most_common(1)[0][0] == "What color is the dog?"
    assert {"What colour is the dog?", "What color is the dog"} <= questions.keys()


def test_names_and_kinds_fit_what_they_mean() -> None:
    assert of_noun(SCENE, "kitten", "cat").items == (CAT,)  # type: ignore[union-attr]
    assert set(of_kind(SCENE, "animal").items) == {DOG, CAT}  # type: ignore[union-attr]
    taxi = scene_of(CAR, thing("taxi", (0.6, 0.1, 0.8, 0.3)))
    assert of_noun(taxi, "car", "car") is None, "some call a taxi a car"
    assert len(of_kind(taxi, "vehicle").items) == 2  # type: ignore[union-attr]


def test_only_words_that_fit_one_thing_name_it() -> None:
    small, big = thing("dog", (0.1, 0.1, 0.2, 0.2), size="small"), thing("dog", (0.5, 0.5, 0.9, 0.9))
    rng = Random(3)
    found = [only(rng, scene_of(small, big)) for _ in range(30)]
    assert all(one is not None for one in found)
    assert {words.split()[0] for words, _ in filter(None, found)} == {"small", "big"}
    assert all(item.size == words.split()[0] for words, item in filter(None, found))


@pytest.mark.parametrize("seed", range(6))
def test_counts_and_presence_agree_with_what_is_there(seed: int) -> None:
    rng = Random(seed)
    for scene in scenes(12, seed):
        number = facts.count(rng, scene)
        assert number.answer == str(len(number.evidence[0][1])), number
        there = facts.presence(rng, scene)
        assert (there.answer == "yes") == bool(there.evidence[0][1]), there
        described = wanted(rng, scene)
        assert all(item in scene.items for item in described.items)


def test_sides_and_sizes_are_those_of_the_scene() -> None:
    seen = set()
    for seed in range(300):
        rng = Random(seed)
        for maker in (relations.extreme, relations.superlative, relations.sizes, places.all_beside):
            found = maker(rng, SCENE)
            if found is not None:
                seen.add((found.kind, found.answer))
    assert {answer for kind, answer in seen if kind == "superlative"} == {"cat", "dog"}
    assert {answer for kind, answer in seen if kind == "extreme"} == {"cat", "dog", "car"}
    beside = {answer for kind, answer in seen if kind == "all beside"}
    assert {"nothing", "cat", "car, cat"} <= beside


def test_a_shape_is_told_by_a_colour_that_it_alone_has() -> None:
    for seed in range(40):
        scene = widened(shapes.draw_scene(Random(seed), 1.2))
        found = facts.shape(Random(seed), scene)
        if found is not None:
            [(words, (item,))] = found.evidence
            assert sum(words.split()[-2] == other.colour for other in scene.items) >= 1
            assert found.answer == item.noun  # type: ignore[attr-defined]


def test_what_lies_level_with_another_is_not_asked_about() -> None:
    level = scene_of(DOG, thing("cat", (0.5, 0.1, 0.6, 0.2)))
    for seed in range(200):
        found = relations.relation(Random(seed), level)
        assert found is None or not re.search(
            r"above|over|higher|top|below|under|beneath|lower", found.question
        )


def test_each_is_named_by_itself_unless_all_are_the_same() -> None:
    other = thing("dog", (0.6, 0.1, 0.7, 0.2))
    mixed = scene_of(DOG, CAT, other)
    assert caption(mixed, "short") == "A dog, a dog and a cat." and names_of(mixed.items) == "dog, dog, cat"
    twins = scene_of(DOG, other)
    assert caption(twins, "short") == "Two dogs." and names_of(twins.items) == "dog"
    assert caption(SCENE, "normal") == "From left to right: a small dog, a big car and a big cat."
    assert caption(SCENE, "long").startswith("There are 3 things. A small dog at the top left. A big car")


@pytest.mark.parametrize("length", ["short", "normal", "long"])
def test_shapes_alone_are_described_as_in_the_small_world(length: str) -> None:
    for seed in range(20):
        small = shapes.draw_scene(Random(seed), 1.2)
        assert caption(widened(small), length) == old_facts.caption_text(small, length)


def test_every_scene_is_asked_and_answered() -> None:
    rng, kinds = Random(8), Counter[str]()
    for scene in scenes(60, 3):
        for _ in range(6):
            found = fact(rng, scene)
            kinds[found.kind] += 1
            assert found.question.strip() and found.answer
        target(rng, scene)
        spatial_fact(rng, scene)
    assert len(kinds) > 18, kinds
    assert len(MAKERS) > 20


def test_a_training_may_ask_some_kinds_alone() -> None:
    """Shares of nothing leave the others; what a scene does not allow is asked of none."""
    chart = draw_chart(Random(1), ATLAS, 1.3, (252, 252))
    assert chart is not None
    alone = shares_of(
        {maker: 0.0 for maker in MAKERS if maker is not facts.count},
        {kind: 0.0 for kind in chart_facts.WEIGHTS if kind != "value"},
    )
    assert {fact(Random(seed), SCENE, alone).kind for seed in range(20)} == {"count"}
    assert {fact(Random(seed), chart, alone).kind for seed in range(20)} == {"chart value"}
    often = shares_of({places.beside: 20.0}, {})
    asked_so = [
        Counter(fact(Random(seed), SCENE, *more).kind for seed in range(300)) for more in ((), (often,))
    ]
    assert asked_so[1]["beside"] > 3 * asked_so[0]["beside"] > 0


def test_a_training_asks_what_the_score_does_not() -> None:
    chart = draw_chart(Random(1), ATLAS, 1.3, (252, 252))
    assert chart is not None
    for scene in (SCENE, chart):
        scored, trained = (
            {fact(Random(seed), scene, shares).kind for seed in range(600)}
            for shares in (shares_of({}, {}), shares_of({}, {}, besides=True))
        )
        assert len(trained - scored) > 3


def test_everything_means_all_things() -> None:
    words = {target(Random(seed), SCENE)[0]: target(Random(seed), SCENE)[1] for seed in range(400)}
    said = [word for word in words if word in ALL]
    assert len(said) > 8 and all(len(words[word]) == 3 for word in said)
    assert any(not found for found in words.values()), "what is absent is asked for too"


def test_shapes_alone_are_counted_by_that_word() -> None:
    rng, said = Random(4), Counter[str]()
    for seed in range(60):
        scene = widened(shapes.draw_scene(Random(seed), 1.2))
        for _ in range(10):
            found = facts.count(rng, scene)
            if re.search(
                r"(how many|count the|number of) shapes\b(?! that| are not| aren)", found.question.lower()
            ):
                said[found.question] += 1
                assert found.answer == str(len(scene.items)), found
    assert len(said) > 5


def test_what_lies_behind_things_is_not_asked_about() -> None:
    decorated = [scene for scene in scenes(250, 9) if scene.marks and scene.items and not scene.lines]
    assert 30 < len(decorated) < 90 and any(item.is_shape for scene in decorated for item in scene.items)
    for scene in decorated:
        assert facts.ground(Random(1), scene) is None
        assert caption(scene, "long") == caption(replace(scene, marks=()), "long")
    words = {stranger(Random(seed), decorated[0]).one for seed in range(2000)}
    assert "bridge" in words and not words & set(LANDSCAPE)


def test_a_picture_of_nothing_that_is_known_is_said_to_be_one() -> None:
    found = [scene for scene in scenes(600, 12) if not scene.items and not scene.lines and scene.marks]
    assert found
    for scene in found:
        rng = Random(3)
        assert {caption(scene, length) for length in ("short", "normal", "long")} == {CANNOT_TELL}
        assert facts.describe(rng, scene).answer == CANNOT_TELL
        assert facts.empty(rng, scene) is None, "it is neither empty nor is anything there"
        assert {facts.count(rng, scene).answer for _ in range(20)} == {"0"}


def test_what_is_neither_small_nor_big_is_not_called_so() -> None:
    middling = thing("dog", (0.4, 0.1, 0.6, 0.3), "brown", "")
    scene = scene_of(middling, CAT, CAR)
    assert "a dog" in caption(scene, "normal") and "A big cat" in caption(scene, "long")
    dogs = of_noun(scene, "dog", "dog")
    assert dogs is not None and sized(dogs, "small") is None
    rng = Random(5)
    told = [found for found in (facts.size(rng, scene) for _ in range(200)) if found is not None]
    assert told and not any("dog" in found.question for found in told if found.kind == "size")
    drawn = {item.size for one in scenes(40, 13) for item in one.items if not item.is_shape}
    assert drawn == {"small", "", "big"}


def test_lines_are_set_below_each_other_in_the_same_letters() -> None:
    below = [
        (upper, lower)
        for scene in scenes(300, 14)
        for upper, lower in pairwise(scene.lines)
        if (upper.font, upper.rgb) == (lower.font, lower.rgb) and upper.box[3] < lower.box[1]
    ]
    assert len(below) > 5


def test_print_is_of_words_from_no_list_too() -> None:
    rng = Random(6)
    found = [printed_text(rng) for _ in range(3000)]
    assert max(map(len, found)) <= MOST_LETTERS
    assert all(letter in CHARACTERS for text in found for letter in text)
    single = {text.lower() for text in found if text.isalpha() and len(text) > 5}
    assert len(single - set(KNOWN)) > 200 and len(single & set(KNOWN)) > 25
    patterns = (r"(19|20)\d\d", r"\d+,\d{3}", r"[A-Z]{1,3}-\d+", r"\d+[A-Z]{1,3}", r"\d+ kg", r"\$\d+\.\d\d")
    for pattern in patterns:
        assert any(re.fullmatch(pattern, text) for text in found), pattern


def test_print_stands_out_from_its_sign_and_nothing_else_is_on_that() -> None:
    found = 0
    for scene in scenes(250, 10):
        panels = [mark for mark in scene.marks if _lies_behind(mark, scene)]
        found += len(panels)
        for line in scene.lines:
            behind = [mark for mark in panels if _around(mark, line)]
            if behind:
                ground = Background("plain", behind[-1].rgb, behind[-1].rgb, 0, 0.1, 0)
                assert shapes.stands_out(line.rgb, ground, 0.6)
        for item in scene.items:
            assert all(apart(item.box, _box(mark, scene)) for mark in panels)
    assert found > 30


def _box(mark: Mark, scene: Scene) -> Box:
    low, high = reach_of_mark(mark, scene.unit)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def _lies_behind(mark: Mark, scene: Scene) -> bool:
    """Whether it is a sign: decor lies behind more than one line, or reaches out of the picture."""
    inside = all(-0.001 <= c <= 1.001 for c in _box(mark, scene))
    return inside and any(_around(mark, line) for line in scene.lines)


def _around(mark: Mark, line: Line) -> bool:
    x, y = line.centre
    (x1, y1), (x2, y2) = mark.start, mark.end
    return abs((x1 + x2) / 2 - x) < 0.03 and abs((y1 + y2) / 2 - y) < 0.03


def test_what_a_chart_is_about_can_be_printed() -> None:
    rng = Random(6)
    for _ in range(4000):
        title, labels = draw_subject(rng)
        assert max(map(len, (title, *labels))) <= MOST_LETTERS


def test_a_place_is_read_alone() -> None:
    rng, read = Random(5), Counter[str]()
    for seed in range(30):
        chart = draw_chart(Random(seed), ATLAS, 1.3, (364, 364))
        if chart is None:
            continue
        found = spatial_fact(rng, chart)
        assert found is not None
        fact_, (x, y, *_) = found
        [line] = [line for line in chart.lines if line.centre == (x.value, y.value)]  # type: ignore[union-attr]
        assert fact_.answer == line.text
        read[fact_.answer] += 1
    assert len(read) > 8


def test_a_chart_says_what_it_shows() -> None:
    rng = Random(5)
    kinds = set()
    for _ in range(25):
        scene = draw_chart(rng, ATLAS, 1.3, (252, 336))
        assert scene is not None and scene.chart is not None
        values = dict(zip(scene.chart.labels, scene.chart.values, strict=True))
        for _ in range(20):
            found = fact(rng, scene)
            kinds.add(found.kind)
            match found.kind:
                case "chart largest":
                    assert values[found.answer] == max(values.values())
                case "chart smallest":
                    assert values[found.answer] == min(values.values())
                case "chart value":
                    assert int(found.answer) in values.values()
        for length in ("normal", "long"):
            told = caption(scene, length)
            assert all(f"{label} {value}" in told for label, value in values.items())
    assert len(kinds) > 10


def test_values_that_no_print_tells_are_long_enough_to_be_measured() -> None:
    rng, measured = Random(8), 0
    for _ in range(120):
        scene = draw_chart(rng, ATLAS, 1.3, (364, 364))
        if scene is None or scene.chart is None:
            continue
        values, texts = scene.chart.values, {line.text for line in scene.lines}
        if not {str(value) for value in values} <= texts:
            measured += 1
            assert min(values) >= int(LEAST_MEASURED * max(values)), values
    assert measured > 20


def test_what_a_picture_does_not_tell_is_not_told() -> None:
    said = {talk.talk(Random(seed), True)[::2] for seed in range(200)}
    assert ("cannot tell", "I can't tell.") in said
    assert ("talk", talk.NO_PICTURE) not in said
    assert any(talk.talk(Random(seed), False)[2] == talk.NO_PICTURE for seed in range(20))
