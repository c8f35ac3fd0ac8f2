"""What is asked about the looks of print is what they are; what is not there is said not to be."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from kestrel_tools.things.language.fact import CANNOT_TELL, names_of, place
from kestrel_tools.things.language.printed import lacking, looks
from kestrel_tools.things.language.printed import more as print_more
from kestrel_tools.things.language.printed.facts import ink_name
from kestrel_tools.things.language.printed.where import apart, colour_behind
from kestrel_tools.things.lettering import printed_text
from kestrel_tools.things.scene import Line, Mark, Scene
from tests.thing_scenes import WHITE, answers, at, line, scene_of
from tests.wide_scenes import LEFT_OVER, PRINTED, Heard, heard, made_of, wide_scenes

INK, RED = (0.0, 0.0, 0.0), (0.9, 0.0, 0.0)


@pytest.fixture
def last(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return heard(monkeypatch, looks, lacking)


def yes(true: bool) -> str:
    return "yes" if true else "no"


def of(*lines: Line) -> Scene:
    return Scene(1.0, WHITE, (), lines)


def printed(count: int = 300) -> tuple[Scene, ...]:
    return wide_scenes(count, lines=PRINTED, most=2)


def texts(count: int = 1500) -> list[Scene]:
    rng = Random(3)
    return [
        of(*(line(printed_text(rng), 0.5, 0.2 + 0.3 * n, INK) for n in range(rng.choice((1, 1, 2)))))
        for _ in range(count)
    ]


def line_of(scene: Scene, said: str) -> Line:
    [found] = [one for one in scene.lines if said in (one.text, f"the word {one.text}")]
    return found


@pytest.mark.parametrize("module", [looks, lacking])
def test_every_wording_is_whole(module: object) -> None:
    rng = Random(1)
    for kind in module.QUESTIONS:  # type: ignore[attr-defined]
        asked = {str(module.asked(rng, kind, "the dog", "row")).lower() for _ in range(80)}  # type: ignore[attr-defined]
        assert len(asked) > 4, kind
        assert not any(LEFT_OVER.search(question) for question in asked), kind


def test_a_sign_has_the_colour_of_the_panel_and_not_of_the_picture() -> None:
    panel = Mark((0.35, 0.5), (0.65, 0.5), 0.2, False, RED)
    plain = of(line("STOP", 0.5, 0.5, INK))
    sign = replace(plain, marks=(panel,))
    assert colour_behind(plain, plain.lines[0]) == ("white", False)
    assert colour_behind(sign, sign.lines[0]) == ("red", True)
    assert answers(looks.ground, sign, r"(?i)(color|colour) is the (sign|panel)") == {"red"}
    assert answers(looks.ground, plain, r"(?i)sign|panel|board") == set()
    half = replace(plain, marks=(replace(panel, end=(0.5, 0.5)),))
    assert colour_behind(half, half.lines[0])[0] == "", "it reaches beyond"
    band = replace(plain, marks=(Mark((-0.05, 0.5), (1.05, 0.5), 0.3, False, RED),))
    assert colour_behind(band, band.lines[0]) == ("red", False)
    covered = replace(plain, marks=(panel, Mark((0.5, 0.5), (0.5, 0.5), 0.6, True, (0.0, 0.0, 0.9))))
    assert colour_behind(covered, covered.lines[0]) == ("blue", False), "the last lies above the others"
    tilted = replace(plain.lines[0], angle=0.3)
    assert colour_behind(replace(sign, lines=(tilted,)), tilted)[0] in ("red", "")


def test_a_drawn_sign_is_all_that_is_behind_its_print() -> None:
    on_sign = sum(colour_behind(scene, line)[1] for scene in printed() for line in scene.lines)
    every = sum(len(scene.lines) for scene in printed())
    assert 0.15 < on_sign / every < 0.5, "about a third is drawn on one; some have colours without a name"


def test_lines_have_their_own_colours(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(looks.colours, printed(), 5):
        names = [ink_name(one.rgb) for one in scene.lines]
        seen[last.kind] += 1
        if last.kind == "line colour":
            at = {"first": 0, "top": 0, "second": 1, "third": 2, "last": -1, "bottom": -1}[last.subjects[0]]
            assert fact.answer == names[at]
        elif last.kind == "one colour":
            assert fact.answer == yes(len({*names}) == 1)
        else:
            assert fact.answer == ", ".join(dict.fromkeys(names))
    assert len(seen) == 3 and min(seen.values()) > 10, seen


def test_two_lines_are_compared_by_size_and_height(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    for scene, fact in made_of(looks.two, printed(), 6):
        first, other = (line_of(scene, said) for said in last.subjects)
        seen[last.kind, fact.answer if fact.answer in ("yes", "no") else ""] += 1
        higher = min(first, other, key=lambda one: one.centre[1])
        told = {
            "larger text": max(first, other, key=lambda one: one.height).text,
            "is larger": yes(first.height > other.height),
            "upper text": higher.text,
            "lower text": (other if higher is first else first).text,
            "is above": yes(higher is first),
            "is below": yes(higher is other),
        }
        assert fact.answer == told[last.kind], fact
        if last.kind not in ("larger text", "is larger"):
            assert abs(first.centre[1] - other.centre[1]) > 0.07
    assert len(seen) == 9, seen


def test_lines_side_by_side_have_no_order() -> None:
    tall = line("BIG", 0.3, 0.5, INK)
    tall = replace(tall, box=(0.1, 0.3, 0.5, 0.7))
    small = line("small", 0.8, 0.6, INK)
    assert not apart((tall, small)) and apart((line("A", 0.3, 0.3, INK), line("B", 0.3, 0.5, INK)))
    assert answers(looks.two, of(tall, small), r"(?i)above|below|higher|lower|top") == set()


def test_the_line_in_capitals_is_the_only_one(last: Heard) -> None:
    for scene, fact in made_of(looks.case_of, printed(), 4):
        of_case = str.isupper if last.kind == "capital line" else str.islower
        assert [one.text for one in scene.lines if of_case(one.text)] == [fact.answer]
    both = of(line("OPEN", 0.5, 0.3, INK), line("daily", 0.5, 0.7, INK))
    assert answers(looks.case_of, both, r"(?i)capitals|caps") >= {"OPEN"}
    assert answers(looks.case_of, of(*both.lines[:1], line("SALE", 0.5, 0.7, INK)), "(?i)cap") == set()


def test_print_is_tilted_or_level(last: Heard) -> None:
    level = of(line("STOP", 0.5, 0.5, INK))
    for angle, tilted in ((0.0, True), (0.25, True), (-0.25, True), (0.05, False)):
        scene = replace(level, lines=(replace(level.lines[0], angle=angle),))
        found = {(last.kind, fact.answer) for _, fact in made_of(looks.tilt, [scene], 80)}
        right = {("is tilted", yes(bool(angle))), ("is level", yes(not angle))}
        assert found == (right if tilted else set()), angle


def test_print_is_in_the_half_and_at_the_place_it_is(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(looks.placed, printed(), 4):
        seen[last.kind] += 1
        if last.kind == "where text":
            assert fact.answer == place(line_of(scene, last.subjects[0]))
            continue
        [(x, y)] = [one.centre for one in scene.lines]
        halves = {"left" if x < 0.5 else "right", "top" if y < 0.5 else "bottom"}
        said = fact.answer if last.kind == "which half" else last.subjects[0]
        assert (said in halves) == (fact.answer != "no")
    assert len(seen) == 3 and min(seen.values()) > 10, seen


def test_what_there_is_besides_print(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(looks.by_thing, printed(), 6):
        seen[last.kind] += 1
        if last.kind == "what else":
            assert fact.answer == (names_of(scene.items) or "nothing")
        elif last.kind == "anything else":
            assert fact.answer == yes(bool(scene.items))
        else:
            (_, (item,)), (_, (text,)) = fact.evidence
            (x, y), (to_x, to_y) = item.centre, text.centre
            side = {"above": y - to_y, "below": to_y - y, "left of": x - to_x, "right of": to_x - x}
            assert (side[last.kind.removeprefix("is text ")] > 0) or fact.answer == "no"
    assert len(seen) == 6, seen
    dog = replace(scene_of(at("dog", 0.5, 0.5)), lines=(line("REX", 0.5, 0.65, INK),))
    assert answers(looks.by_thing, dog, r"(?i)(text|print) (below|under|beneath|underneath)") == {"yes"}
    assert answers(looks.by_thing, dog, r"(?i)(text|print) (above|over)") == {"no"}


def test_print_that_is_not_there_is_said_not_to_be() -> None:
    dog = scene_of(at("dog", 0.5, 0.5))
    assert answers(lacking.no_text, dog, r"(?i)colou?r") == {"There is no text."}
    assert answers(lacking.no_text, dog, r"(?i)how many|count") >= {"0"}
    assert answers(lacking.no_text, dog, r"(?i)shop|store") == {CANNOT_TELL}
    assert answers(lacking.no_text, scene_of(at("clock", 0.5, 0.5)), "") == set(), "it has numbers on it"
    words = of(line("Hello", 0.5, 0.5, INK))
    assert answers(lacking.no_number, words, r"(?i)\bnumber") == {"There is no number."}
    for text in ("Gate 7", "SEVEN", "$5.00"):
        assert answers(lacking.no_number, of(line(text, 0.5, 0.5, INK)), "") == set(), text


def test_marks_and_money_are_those_of_the_print(last: Heard) -> None:
    sought = {words: mark for mark, words in lacking.MARKS.items()}
    seen = Counter[str]()
    for scene, fact in made_of(lacking.mark, texts()):
        every = "".join(one.text for one in scene.lines)
        assert fact.answer == yes(sought[last.subjects[0]] in every)
        seen[fact.answer] += 1
    assert min(seen["yes"], seen["no"]) > 100, seen
    for scene, fact in made_of(lacking.money, texts(), 6):
        [price] = [float(one.text[1:]) for one in scene.lines if one.text.startswith("$")]
        seen[last.kind] += 1
        if last.kind == "for two":
            assert float(fact.answer[1:]) == 2 * price
            continue
        offered = float(last.subjects[0][1:])
        assert fact.answer == yes(price > offered if last.kind == "costs more" else price < offered)
    assert {"for two", "enough", "costs more", "costs less"} <= seen.keys(), seen


def test_a_sort_of_word_is_absent_only_where_all_words_are_known() -> None:
    def told(text: str, asked: str) -> set[str]:
        return answers(lacking.names_a, of(line(text, 0.5, 0.5, INK)), rf"(?i)\b{asked}\b")

    assert told("LONDON", "a city") == {"yes"} and told("Monday", "a city") == {"no"}
    assert told("London", "a country") == set(), "some cities are countries"
    assert told("Monday grubble", "a city") == set(), "who knows"
    assert told("Tiger", "an animal") == {"yes"} and told("Tiger", "a food") == set()


def test_these_are_asked_with_the_rest_of_what_is_asked_about_print() -> None:
    assert (looks.WEIGHTS | lacking.WEIGHTS).items() <= print_more.WEIGHTS.items()
