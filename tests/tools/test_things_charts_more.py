"""What is asked about charts beyond the scored kinds is true.

The answers are worked out again from the words of the question and the numbers of the chart alone.
"""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from random import Random

import pytest

from kestrel_tools.things.charts.subjects import (
    any_topic_of,
    in_order,
)
from kestrel_tools.things.language.charts import facts as chart_facts
from kestrel_tools.things.language.charts import more as chart_more
from kestrel_tools.things.language.charts import printed as chart_print
from kestrel_tools.things.language.charts.view import View, comparative, fields_of
from kestrel_tools.things.language.charts.words import OTHERWISE
from kestrel_tools.things.language.choose import SCORED, Shares, fact
from kestrel_tools.things.language.fact import CANNOT_TELL, Fact
from kestrel_tools.things.scene import Chart, Scene
from tests.chart_scenes import chart, scenes

POSITIONS = r"first|second|third|last|middle|leftmost|rightmost|topmost|\btop\b|bottom"
OTHER_WORDS = {label.lower(): words for label, words in OTHERWISE.items()}
NUMBER = r"(?<![\w-])\d+(?![\w-])"
LOW = (
    r"\blowest|worst|smallest|least|fewest|shortest|tiniest|minimum|\bmin\b|\blast\b|loser|looser|lost|\blose\b|bottom"
    r"|low point|end of the ranking|\blower|smaller|shorter|\bless\b|fewer|behind|not reach|<"
    r"|its low\b|\blow\b|hardly|crowds|to save|(?<!say )(?<!stands )(?<!written )(below|under\b)"
)


@pytest.fixture(autouse=True)
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without slips and without words around the question, which are looked at here."""
    monkeypatch.setattr(chart_more, "casual", lambda rng, question: question)
    monkeypatch.setattr(chart_more, "introduced", lambda rng, question: question)


def made(kind: str, each: int = 4) -> Iterator[tuple[Chart, Fact]]:
    rng = Random(kind)
    for scene in scenes():
        for _ in range(each):
            found = chart_facts.more_of(rng, kind, scene)
            if found is not None and scene.chart is not None:
                yield scene.chart, found


def spans_in(one: Chart, question: str) -> list[tuple[int, int, int]]:
    """Where a question says a label, also by another word for it, and which."""
    spans: set[tuple[int, int, int]] = set()
    question = re.sub("sun hours|hours of sun", lambda found: "-" * len(found[0]), question)
    for at, label in enumerate(one.labels):
        for words in (label, *OTHER_WORDS.get(label.lower(), ())):
            words = f"{words} o'clock" if words.isdigit() and not label.isdigit() else words
            pattern = rf"(?<![\w-]){re.escape(words)}(?!\w|-\d)"
            spans |= {(*m.span(), at) for m in re.finditer(pattern, question, re.IGNORECASE)}
    return sorted(
        s for s in spans if not any(o[0] <= s[0] and s[1] <= o[1] and o[:2] != s[:2] for o in spans)
    )


def named(one: Chart, question: str) -> list[int]:
    """The labels that a question says, in its order."""
    return list(dict.fromkeys(at for _, _, at in spans_in(one, question)))


def bare(one: Chart, question: str) -> str:
    """Without its labels."""
    for start, end, _ in reversed(spans_in(one, question)):
        question = f"{question[:start]}X{question[end:]}"
    return question


def is_low(one: Chart, question: str) -> bool:
    """Whether the question asks for less, also in the words of the title."""
    found = any_topic_of(one.title)
    words = found[1].least if found else ()
    pattern = "|".join([LOW, *words, *(word for word in map(comparative, words) if word)])
    return re.search(pattern, bare(one, question), re.IGNORECASE) is not None


def number_in(one: Chart, question: str) -> int:
    [found] = re.findall(NUMBER, bare(one, question))
    return int(found)


def test_first_and_last_are_the_largest_and_the_smallest() -> None:
    seen = set()
    for one, found in made("extreme"):
        best = (min if is_low(one, found.question) else max)(one.values)
        assert one.values[one.labels.index(found.answer)] == best, found
        seen.add(found.question)
    for one, found in made("is extreme"):
        [at, *_] = named(one, found.question)
        best = (min if is_low(one, found.question) else max)(one.values)
        assert (found.answer == "yes") == (one.values[at] == best), found
    for one, found in made("extreme value"):
        assert int(found.answer) == (min if is_low(one, found.question) else max)(one.values), found
    assert len(seen) > 300


def test_places_are_counted_from_the_largest() -> None:
    words = {"second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "silver": 2, "bronze": 3}
    nths = set()
    for one, found in made("place"):
        order = sorted(one.values, reverse=True)
        low = is_low(one, re.sub("from .* to low|to smallest|lost only|behind", "", found.question))
        said = [
            words[word] for word in re.findall(r"\w+", bare(one, found.question).lower()) if word in words
        ]
        nth = said[0] if said else 2
        assert one.values[one.labels.index(found.answer)] == order[-2 if low else nth - 1], found
        nths.add(nth)
    assert nths == {2, 3, 4}
    for one, found in made("place of"):
        [at, *_] = named(one, found.question)
        rank = chart_more.PLACES.index(found.answer)
        assert sorted(one.values, reverse=True)[rank] == one.values[at], found


def test_a_ranking_goes_one_way() -> None:
    lengths = set()
    for one, found in made("ranking"):
        values = [one.values[one.labels.index(label)] for label in found.answer.split(", ")]
        down = values == sorted(values, reverse=True)
        assert down or values == sorted(values)
        assert len({*one.values}) == len(one.values), "nobody is before somebody equal"
        few = {"two": 2, "three": 3}.get(next(iter(re.findall(r"\b(two|three)\b", found.question)), ""), 0)
        assert len(values) == (few or len(one.values)), found
        if few:
            assert (max(one.values) in values) == (not is_low(one, found.question)), found
        lengths.add(len(values))
    assert lengths >= {2, 3, 4}


def test_comparisons_hold() -> None:
    sorts = set()
    for one, found in made("compared"):
        a, b = named(one, found.question)
        less = is_low(one, found.question)
        if found.answer in ("yes", "no"):
            assert (found.answer == "yes") == ((one.values[a] < one.values[b]) == less), found
        else:
            best = (min if less else max)(one.values[a], one.values[b])
            assert one.values[one.labels.index(found.answer)] == best, found
        sorts.add(found.answer in ("yes", "no"))
    assert sorts == {True, False}


def test_differences_and_sums_are_right() -> None:
    for kind, question in (("difference", r"minus|difference|more|ahead"), ("sum", r"sum|together|total")):
        seen = 0
        for one, found in made(kind):
            values, ats = sorted(one.values), named(one, found.question.replace("the fall from", "it from"))
            seen += re.search(question, found.question) is not None
            if kind == "difference" and len(ats) == 2:
                wanted = abs(one.values[ats[0]] - one.values[ats[1]])
            elif kind == "difference":
                lead = re.search(
                    r"second|top two|two highest|two largest|\bwin\b|winner|lead", found.question
                )
                last = re.search(r"last", found.question)
                wanted = values[-1] - values[-2 if lead and not last else 0]
            elif len(ats) == 2:
                wanted = one.values[ats[0]] + one.values[ats[1]]
            else:
                mean = re.search("average|mean", found.question)
                wanted = sum(values) // len(values) if mean else sum(values)
            assert int(found.answer) == wanted, found
        assert seen > 60


def test_twice_is_exactly_twice_or_clearly_not() -> None:
    answers = set()
    for one, found in made("twice"):
        ats = named(one, found.question)
        if found.answer in ("yes", "no"):
            a, b = (one.values[at] for at in ats)
            half = re.search("half", found.question) is not None
            ratio = b / a if half else a / b
            assert ratio == 2 if found.answer == "yes" else ratio < 1.6, found
        else:
            [at] = [at for at in ats if one.labels[at] != found.answer]
            assert [v for v in one.values if v == 2 * one.values[at]] == [2 * one.values[at]]
        answers.add(found.answer if found.answer in ("yes", "no") else "label")
    assert answers == {"yes", "no", "label"}


def test_what_is_above_a_number_is_counted_and_named() -> None:
    answers = set()
    for one, found in (*made("over"), *made("than one")):
        ats = named(one, found.question)
        limit = one.values[ats[0]] if ats else number_in(one, found.question)
        less = is_low(one, found.question) or re.match("Whom did", found.question) is not None
        there = [
            label for label, value in zip(one.labels, one.values, strict=True) if less == (value < limit)
        ]
        there = [label for label in there if not ats or label != one.labels[ats[0]]]
        assert ats or limit not in one.values
        if found.answer in ("yes", "no"):
            every = re.search(r"\b(all|every|always|everybody|everyone)\b", found.question)
            assert (found.answer == "yes") == (len(there) == len(one.labels) if every else bool(there)), found
        elif found.answer.isdigit() and found.answer not in one.labels:
            assert int(found.answer) == len(there), found
        else:
            assert found.answer == (", ".join(there) or "none"), found
        answers.add(found.answer)
    assert {"yes", "no", "none", "0", "2"} <= answers
    for one, found in made("is over"):
        [at, *_] = named(one, found.question)
        limit = number_in(one, found.question)
        exactly = re.search(
            r"exactly|right|orrect|really| at \d|Is it|^Was it \d|(number|value) ", found.question
        )
        over = re.search(r"more|over|above|higher|greater|bigger|>|least|exceed", found.question)
        if limit == one.values[at] or (exactly and not over and not is_low(one, found.question)):
            assert (found.answer == "yes") == (limit == one.values[at]), found
        else:
            less = is_low(one, found.question) and "at least" not in found.question
            assert (found.answer == "yes") == ((one.values[at] < limit) == less), found


def test_ups_and_downs_are_of_what_runs_on() -> None:
    for one, found in made("step"):
        if "autumn" in map(str.lower, one.labels):  # which is fall, too
            continue
        ats = named(one, found.question)
        end = re.search(r"\bend\b|last", found.question) is not None
        a = len(one.values) - 2 if end and not ats else ats[0]
        b = ats[1] if len(ats) > 1 else a + 1
        rises = one.values[b] > one.values[a]
        assert all((y > x) == rises or x == y for x, y in pairwise(one.values[a : b + 1])), found
        if found.answer in ("yes", "no"):
            down = (
                re.search(r"down|\bfall|decrease|drop|shrink|decline", bare(one, found.question)) is not None
            )
            assert (found.answer == "yes") == (rises != down), found
        else:
            assert (found.answer in ("up", "rise", "increase", "climb", "grow")) == rises, found
        assert one.kind == "line" or in_order(one.labels)
    for one, found in made("steepest"):
        down = re.search(r"down|fall|drop|decrease", found.question) is not None
        steps = [(y - x) * (-1 if down else 1) for x, y in pairwise(one.values)]
        at = steps.index(max(steps))
        assert found.answer == f"{one.labels[at]}, {one.labels[at + 1]}", found


def test_equal_is_equal() -> None:
    kinds = set()
    for one, found in made("equal", 8):
        ats, pairs = named(one, found.question), combinations(range(len(one.values)), 2)
        alike = [(a, b) for a, b in pairs if one.values[a] == one.values[b]]
        if found.answer in ("yes", "no"):
            same = one.values[ats[0]] == one.values[ats[1]] if len(ats) == 2 else bool(alike)
            assert (found.answer == "yes") == same, found
            kinds.add((len(ats), same))
        elif "," in found.answer:
            [(a, b)] = alike
            assert found.answer == f"{one.labels[a]}, {one.labels[b]}"
        else:
            [at] = [at for at in ats if one.labels[at] != found.answer]
            assert one.values[one.labels.index(found.answer)] == one.values[at]
            kinds.add((1, True))
    assert kinds == {(2, True), (2, False), (0, True), (0, False), (1, True)}
    for one, found in made("closest"):
        a, b = (one.values[one.labels.index(label)] for label in found.answer.split(", "))
        assert abs(a - b) == min(abs(x - y) for x, y in combinations(one.values, 2))


def test_values_labels_and_numbers_are_those_of_the_chart() -> None:
    for one, found in made("value at length"):
        [at, *_] = named(one, found.question)
        assert found.answer == str(one.values[at]), found
    for one, found in made("who has"):
        there = [label for label, v in zip(one.labels, one.values, strict=True) if str(v) in found.question]
        assert {*found.answer.split(", ")} <= {*there}, found
    for one, found in made("number at length"):
        assert found.answer == str(len(one.labels))
    for one, found in made("nth"):
        place = re.search(POSITIONS, bare(one, found.question))
        middle, last = len(one.labels) // 2, len(one.labels) - 1
        ats = {"first": 0, "leftmost": 0, "topmost": 0, "top": 0, "second": 1, "third": 2, "middle": middle}
        at = ats.get(place[0], last) if place else (last if re.search(r"\bend|stop", found.question) else 0)
        assert found.answer in (one.labels[at], str(one.values[at])), found
    for one, found in made("neighbour"):
        [at, *_] = named(one, found.question)
        back = re.search("before|left|above", found.question) is not None
        assert found.answer == one.labels[at - 1 if back else at + 1], found


def test_what_is_not_shown_cannot_be_told() -> None:
    assert all(
        found.answer == CANNOT_TELL for kind in ("missing at length", "untold") for _, found in made(kind)
    )
    for one, found in made("missing at length"):
        assert not named(one, found.question), found
    for one, found in made("shows"):
        assert (found.answer == "yes") == bool(named(one, found.question)), found


def test_titles_are_asked_for_in_every_wording() -> None:
    questions = set()
    for one, found in made("title at length"):
        questions.add(found.question)
        if found.answer not in ("yes", "no"):
            assert found.answer == (one.title or chart_print.NO_TITLE)
        elif (said := re.search(r'title is (.+?), |heading say "?(.+?)"?\?', found.question)) is not None:
            assert (found.answer == "yes") == ((said[1] or said[2]).strip('"') == one.title), found
    for one, found in made("about"):
        if found.answer in ("yes", "no"):
            topic = re.sub(" in [a-z/]+$", "", one.title.lower()).replace("temp.", "temperature")
            assert (found.answer == "yes") == (
                re.search(rf"\b{topic}\b", found.question.lower()) is not None
            ), found
    assert len(questions) > 150


def test_no_template_leaves_brackets_and_every_kind_is_asked() -> None:
    assert {*chart_facts.MORE_WEIGHTS} == {*chart_facts.MAKERS}
    assert not {*chart_facts.MORE_WEIGHTS} & {*chart_facts.WEIGHTS}
    for kind in chart_facts.MORE_WEIGHTS:
        found = [found for _, found in made(kind, 2)]
        if kind not in ("unit", "colours"):
            assert len({one.question for one in found}) > 15, kind
        assert not any(re.search(r"[\[\]|{}]|  | \?|^$", one.question) for one in found), kind
        assert all(one.answer for one in found)


def test_no_template_names_a_field_that_does_not_exist() -> None:
    more = {
        "nth",
        "medal",
        "few",
        "N",
        "count",
        "u",
        "d",
        "up",
        "rise",
        "growth",
        "fall",
        "drop",
        "x",
        "y",
        "edge",
    }
    more |= {"side", "pos", "pos_only", "start", "if_next", "spot", "taller"}
    known: set[str] = set()
    for scene in scenes():
        view = View(scene)
        known |= {*fields_of(Random(1), view, *view.labels[:2])}
    needed = {
        name
        for groups in chart_more.NEEDED.values()
        for group in groups.values()
        for _, names in group
        for name in names
    }
    assert needed <= known | more, needed - known - more


@pytest.mark.parametrize(
    ("scene", "kind", "asked", "answers"),
    [
        (chart("bar", "Points", Ann=30, Bob=50, Eva=20), "extreme", r"^Who won", {"Bob"}),
        (chart("bar", "Points", Ann=30, Bob=50, Eva=20), "extreme", r"came last", {"Eva"}),
        (chart("bar", "Rain", Mon=30, Tue=50, Wed=20), "extreme", r"driest", {"Wed"}),
        (chart("bar", "Points", Ann=30, Bob=50, Eva=20), "difference", r"more points.*Bob.*Ann", {"20"}),
        (chart("bar", "Sales", May=30, Jun=50), "compared", r"sell more in (May|Jun).* or in", {"Jun"}),
        (chart("bar", "Favorite pet", Dog=30, Cat=50, Hamster=20), "place", r"second most popular", {"Dog"}),
        (chart("line", "Rain in mm", May=30, Jun=50), "unit", r"unit", {"mm"}),
        (chart("bar", "Weight", printed=False, Dog=30, Cat=50), "axis", r"go up to", {"50"}),
        (chart("bar", "Weight", printed=False, Dog=30, Cat=50), "difference", r"", set()),
        (chart("bar", "Weight", printed=False, Dog=30, Cat=50), "sum", r"", set()),
        (chart("bar", "Temperature", May=10, Jun=20, Jul=15), "sum", r"", set()),
        (chart("bar", "Costs", May=10, Jun=20, Jul=15), "extreme", r"(?i)who won|winner", set()),
    ],
)  # fmt: skip
def test_questions_in_the_words_of_the_subject(
    scene: Scene, kind: str, asked: str, answers: set[str]
) -> None:
    rng = Random(1)
    found = [chart_facts.more_of(rng, kind, scene) for _ in range(1500)]
    assert {one.answer for one in found if one is not None and re.search(asked, one.question)} == answers


def test_a_training_may_add_the_new_kinds() -> None:
    rng = Random(2)
    more = SCORED._replace(charts={**SCORED.charts, **chart_facts.MORE_WEIGHTS})

    def kinds(shares: Shares) -> set[str]:
        return {fact(rng, scene, shares).kind for scene in scenes()[:200] for _ in range(5)}

    new = kinds(more) - kinds(SCORED)
    assert {"chart sum", "chart difference", "chart rank", "chart above", "chart step", "chart axis"} <= new
