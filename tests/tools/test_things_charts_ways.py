"""What is asked about how a chart goes on, about places and colours of bars, and about what is missing."""

import re
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random

import pytest

from kestrel_tools.things.language.charts import facts as chart_facts
from kestrel_tools.things.language.charts import more as chart_more
from kestrel_tools.things.language.fact import CANNOT_TELL, Fact
from kestrel_tools.things.scene import Scene
from tests.chart_scenes import chart

UP = r"\b(up|rising|increas\w+|growing|rise)\b"
DOWN = r"\b(down|falling|decreas\w+|shrinking|fall|drop)\b"
HILL = chart("line", "Rain", Jan=20, Feb=60, Mar=90, Apr=30)
RISE = chart("line", "Rain", Jan=20, Feb=40, Mar=60, Apr=90)
FALL = chart("bar", "Rain", Jan=90, Feb=60, Mar=40, Apr=20)
ZIGZAG = chart("line", "Rain", Jan=30, Feb=60, Mar=20, Apr=80)
BARS = chart("bar", "", Zorv=30, Quixt=50, Blenk=20)


@pytest.fixture(autouse=True)
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_more, "casual", lambda rng, question: question)
    monkeypatch.setattr(chart_more, "introduced", lambda rng, question: question)


def asked(scene: Scene, kind: str, times: int = 400) -> list[Fact]:
    rng = Random(kind)
    found = [chart_facts.more_of(rng, kind, scene) for _ in range(times)]
    return [one for one in found if one is not None]


def coloured(*colours: str, flat: bool = False) -> Scene:
    scene = chart("bar", "", flat, Zorv=30, Quixt=50, Blenk=20)
    assert scene.chart is not None
    return replace(scene, chart=replace(scene.chart, colours=colours))


def test_a_way_is_told_in_the_words_of_the_question() -> None:
    for scene, rises in ((RISE, True), (FALL, False)):
        answers = set()
        for one in asked(scene, "way"):
            up, down = re.search(UP, one.question.lower()), re.search(DOWN, one.question.lower())
            if one.answer in ("yes", "no"):
                assert (one.answer == "yes") == ((up is not None) == rises), one
            else:
                assert re.fullmatch(UP if rises else DOWN, one.answer), one
                assert one.answer in ("up", "down") or (up and down and one.answer in one.question.lower())
            answers.add(one.answer)
        assert len(answers) > 5


def test_what_turns_has_no_single_way() -> None:
    assert {one.answer for one in asked(HILL, "way")} == {"up, then down"}
    assert not asked(ZIGZAG, "way")


def test_nothing_goes_up_where_bars_lie() -> None:
    lying = chart("bar", "Rain", True, Jan=20, Feb=40, Mar=60)
    assert not asked(lying, "way") and not asked(lying, "course")


def test_the_course_is_that_of_the_values() -> None:
    for scene in (HILL, RISE, FALL, ZIGZAG):
        assert scene.chart is not None
        values, labels = scene.chart.values, scene.chart.labels
        rises = [after > before for before, after in pairwise(values)]
        for one in asked(scene, "course"):
            up = re.search(UP, one.question.replace("up than", "than")) is not None
            if re.search("higher|lower", one.question):
                true = (values[-1] > values[0]) == ("higher" in one.question)
            elif one.answer.isdigit():
                assert int(one.answer) == len([way for way, _ in groupby(rises) if way == up]), one
                continue
            elif one.answer in labels:
                assert labels.index(one.answer) == len([*next(groupby(rises))[1]]), one
                continue
            elif re.search("always|time$|all the|whole|every|each", one.question.replace("any time", "ever")):
                true = {*rises} == {up}
            else:
                true = up in rises
            assert one.answer == ("yes" if true else "no"), one
    assert {one.answer for one in asked(HILL, "course")} > {"Mar", "yes", "no"}


@pytest.mark.parametrize("flat", [False, True])
def test_bars_are_compared_by_their_colours_and_places(flat: bool) -> None:
    scene = coloured("red", "blue", "green", flat=flat)
    at = {"red": 0, "blue": 1, "green": 2, "first": 0, "last": 2}
    at |= {"top": 0, "bottom": 2} if flat else {"leftmost": 0, "rightmost": 2}
    values, seen = (30, 50, 20), set()
    for one in asked(scene, "by looks"):
        x, y = [word for word in re.findall(r"\w+", one.question) if word in at]
        less = re.search("shorter|lower|smaller", one.question) is not None
        first = (values[at[x]] < values[at[y]]) == less
        assert one.answer in ((x if first else y), "yes" if first else "no"), one
        assert not flat or not re.search("higher|taller|lower", one.question)
        seen |= {x, y}
    assert seen == {*at}


def test_colours_of_bars_are_counted_and_listed() -> None:
    scene, kinds = coloured("red", "blue", "red"), set()
    for one in asked(scene, "tones"):
        if one.answer.isdigit():
            name = next((word for word in ("red", "blue") if word in one.question), "")
            assert one.answer == {"red": "2", "blue": "1", "": "0"}[name], one
            kinds.add("count")
        elif one.answer in ("yes", "no"):
            assert (one.answer == "yes") == (re.search(r"\b(red|blue)\b", one.question) is not None), one
            kinds.add("any")
        else:
            assert one.answer == ("Zorv, Blenk" if "red" in one.question else "red, blue"), one
            kinds.add(one.answer)
    assert kinds == {"count", "any", "Zorv, Blenk", "red, blue"}


def test_spots_are_counted_from_the_side_that_is_named() -> None:
    labels, nths = ["Zorv", "Quixt", "Blenk"], {"second": 1, "third": 2}
    for one in asked(BARS, "spot"):
        back = "right" in one.question
        nth = next((at for word, at in nths.items() if word in one.question), 0)
        at = len(labels) - 1 - nth if back else nth
        assert one.answer in (labels[at], str((30, 50, 20)[at])), one


def test_neighbours_are_those_on_both_sides() -> None:
    answers = set()
    for one in asked(BARS, "beside"):
        if "between" in one.question and "Quixt" not in one.question:
            assert one.answer == "Quixt", one
        else:
            assert one.answer == ("Zorv, Blenk" if "Quixt" in one.question else "Quixt"), one
        answers.add(one.answer)
    assert answers == {"Quixt", "Zorv, Blenk"}


def test_what_is_not_shown_is_not_compared() -> None:
    for kind in ("missing of two", "missing at length"):
        for scene in (BARS, HILL):
            assert scene.chart is not None
            found = asked(scene, kind)
            assert found and {one.answer for one in found} == {CANNOT_TELL}
            for one in found:
                shown = [label for label in scene.chart.labels if re.search(rf"\b{label}\b", one.question)]
                assert len(shown) <= (kind == "missing of two"), one
