"""Whatever is asked about random pages has the answer that their print tells, found in another way."""

import re
from collections import Counter
from random import Random

import pytest

from kestrel_tools.things.language.fact import CANNOT_TELL
from kestrel_tools.things.language.pages.facts import ALL_HOURS, ALL_NOTICES, ALL_TABLE, ANY, page_text
from kestrel_tools.things.language.pages.hours import days_of
from kestrel_tools.things.language.pages.more.line_words import CLAIMS, LINES
from kestrel_tools.things.language.pages.more.values import MORE
from kestrel_tools.things.language.pages.questions import ASKED, GENERAL, ask, read_table
from kestrel_tools.things.language.pages.view import CALLED, View, number_in
from kestrel_tools.things.pages.words import DAYS
from tests.page_scenes import asked, mentioned, pages, parts_of, plain, told

PRICED = ("menu", "price list", "receipt")
OTHERWISE = ("page says", "page cannot tell", "page claim", "page beside", "page days")
WORKED_OUT = ("page sum", "page colour", "page several", "page which", "page days")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
# In the words of prices, times, distances and the weather.
LEAST = re.compile("least|cheap|lowest|first|earliest|near|clos|cold|cool|start|begin")


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    plain(monkeypatch)


def test_templates_leave_no_brackets(plainly: None) -> None:
    names = (*"abcdefjknoptuvwxyz", "an", "ns", "au", "who")
    fields, rng = dict.fromkeys(names, "word"), Random(2)
    for kinds in (*ASKED.values(), *MORE.values(), *read_table(LINES).values(), *read_table(CLAIMS).values()):
        for templates in kinds.values():
            for template in templates:
                for many in (False, True):
                    question = ask(rng, (template,), fields, many=many, exact=True)
                    assert not re.search(r"[\[\]|<>{}]|  | [?.,]", question), template


def test_every_maker_asks_something_and_no_question_has_brackets() -> None:
    rng, made = Random(4), Counter()
    for scene, page in pages():
        view = View(scene, page)
        hours = page.kind == "opening hours"
        special = ALL_HOURS if hours else ALL_TABLE if view.listed else ALL_NOTICES
        for maker in 3 * (*special, *ANY):
            fact = maker(rng, view)
            if fact is not None:
                made[maker] += 1
                assert fact.answer and not re.search(r"[\[\]|<>{}]", fact.question), fact
    assert all(made[maker] > 0 for maker in (*ALL_HOURS, *ALL_TABLE, *ALL_NOTICES, *ANY))
    kinds = Counter(fact.kind for _, _, fact in asked())
    assert len(kinds) > 14 and min(kinds.values()) > 5


def test_answers_are_printed_or_one_of_few_words() -> None:
    few = ("yes", "no", CANNOT_TELL, "push", "pull", "open", "closed", *map(str, range(1, 9)))
    for scene, page, fact in asked():
        printed = page_text(page).replace(":", "").replace(",", "")
        assert (
            fact.answer in few
            or all(piece.replace(":", "").replace(",", "") in printed for piece in fact.answer.split(", "))
            or fact.kind in ("page kind", "page picture", *WORKED_OUT)
        ), fact
        assert fact.kind != "page picture" or fact.answer in (
            "yes",
            "no",
            *(item.name for item in scene.items),
        )


def test_values_are_those_of_the_thing_that_is_asked_for() -> None:
    checked = 0
    for _, page, fact in asked():
        if fact.kind == "page value" and page.kind != "opening hours":
            total = parts_of(page, "total")
            if total and fact.answer == total[0].text:
                continue
            named = mentioned(page, fact.question)
            assert any(re.search(rf"(?<![\d.]){re.escape(fact.answer)}(?![\d.])", one[2]) for one in named), (
                fact
            )
            checked += 1
        elif fact.kind == "page thing" and page.kind != "opening hours":
            [(_, _, detail)] = [one for one in told(page) if one[1] == fact.answer]
            number = re.sub(r"^\D* ", "", detail)
            day = next((name for name in DAYS if name.lower().startswith(detail.lower()[:3])), "?")
            ordinal = ORDINALS[int(number[0]) - 1] if number[0].isdigit() and "0" < number[0] < "7" else "?"
            assert any(word.lower() in fact.question.lower() for word in (detail, number, day, ordinal)), fact
            checked += 1
    assert checked > 1000


def test_extremes_are_the_first_or_the_last_of_the_sorted_numbers() -> None:
    checked = 0
    for _, page, fact in asked():
        if fact.kind != "page extreme":
            continue
        numbers = sorted(number_in(detail) for _, _, detail in told(page))
        [number] = {number_in(d) for _, t, d in told(page) if fact.answer in (t, d)}
        assert number in (numbers[0], numbers[-1]) and numbers.count(number) == 1, fact
        if page.kind in (*PRICED, "departures", "distances", "forecast", "timetable"):
            assert (number == numbers[0]) == bool(LEAST.search(fact.question.lower())), fact
        if "won" in fact.question:
            assert number == (numbers[0] if page.kind == "ranking" else numbers[-1])
        checked += 1
    assert checked > 200


def test_comparisons_are_those_of_the_numbers() -> None:
    checked = 0
    for _, page, fact in asked():
        if fact.kind == "page compare" and page.kind in PRICED:
            named = mentioned(page, fact.question)
            if len(named) < 2:  # of "soup" and "pea soup" one is not found
                continue
            first, second = sorted(named, key=lambda one: fact.question.lower().find(one[0].lower()))
            dearer = number_in(first[2]) > number_in(second[2])
            cheap = re.search(r"\b(cheaper|less|save)\b", fact.question) is not None
            right = first if dearer != cheap else second
            assert fact.answer == (
                right[1]
                if " or " in fact.question or "between" in fact.question
                else "yes"
                if dearer != cheap
                else "no"
            ), fact
            checked += 1
    assert checked > 40


def test_counts_places_and_lists_follow_the_rows() -> None:
    seen = Counter[str]()
    for scene, page, fact in asked():
        things = [text for _, text, _ in told(page)]
        low = fact.question.lower()
        if fact.kind == "page list":
            assert fact.answer == ", ".join(things), fact
        elif fact.kind == "page count":
            buttons = "button" in low
            rows = (
                parts_of(page, "button")
                if buttons
                else View(scene, page).lines
                if "lines of" in low or "line" in low
                else things or page.rows
            )
            assert fact.answer in (str(len(rows)), str(len(things))), fact
        elif fact.kind == "page nth" and (named := mentioned(page, fact.question)):
            [(_, text, _)] = named
            step = things.index(fact.answer) - things.index(text)
            assert step == (-1 if re.search("before|above|over", low) else 1), fact
        elif fact.kind == "page nth" and (found := re.search("|".join((*ORDINALS, r"\blast")), low)):
            words = things or [row.label.text for row in page.rows]
            assert fact.answer == words[-1 if found[0] == "last" else ORDINALS.index(found[0])], fact
        elif fact.kind == "page nth" and (found := re.search(r"rule number (\d)", low)):
            assert fact.answer == page.rows[int(found[1]) - 1].label.text
        elif fact.kind == "page read":
            assert fact.answer == page_text(page)
        elif fact.kind == "page title":
            assert page.title is not None and fact.answer == page.title.text
        else:
            continue
        seen[fact.kind] += 1
    assert len(seen) == 5 and min(seen.values()) > 40


def test_what_is_on_a_page_is_there_and_what_is_not_is_not() -> None:
    seen = Counter[tuple[str, str]]()
    templates = (*GENERAL["says"], *GENERAL["says number"], *GENERAL["about"], *CALLED.values())
    usual = {*re.findall(r"\w+", " ".join(templates).lower()), *CALLED.values()}
    for scene, page, fact in asked():
        low = fact.question.lower()
        if fact.kind == "page says":
            texts = [one.text.lower().strip(":!?") for one in scene.lines]
            whole = [text for text in texts if re.search(rf"(?<![\w.]){re.escape(text)}(?!\w)", low)]
            words = [word.strip(",:!?") for text in texts for word in text.split()]
            assert fact.answer != "yes" or any(word in low for word in (*texts, *words)), fact
            longer = {word for text in texts if " " in text for word in text.split()}
            assert fact.answer != "no" or not {*whole} - usual - longer, fact
            seen[fact.kind, fact.answer] += 1
        elif (
            fact.kind == "page has"
            and told(page)
            and page.kind != "opening hours"
            and not re.search(r"\d", low)
        ):
            named = mentioned(page, fact.question) or [
                one for one in told(page) if one[0].split()[-1] in low and fact.answer == "yes"
            ]
            assert fact.answer == ("yes" if named else "no"), fact
            seen[fact.kind, fact.answer] += 1
        elif (
            fact.kind == "page cannot tell"
            and told(page)
            and page.kind not in ("opening hours", "shopping list")
        ):
            assert not mentioned(page, fact.question) or "wrote" in low or "took" in low, fact
            seen[fact.kind, ""] += 1
    assert len(seen) == 5 and min(seen.values()) > 50


def test_doors_open_and_close_as_printed() -> None:
    checked = 0
    for _, page, fact in asked():
        day = re.search("|".join(DAYS), fact.question)
        if page.kind != "opening hours" or day is None or fact.kind in OTHERWISE:
            continue
        row = next(
            (row for row in page.rows if DAYS.index(day[0]) in days_of(row.label.text.title().strip(":"))),
            None,
        )
        assert row is not None and row.value is not None, fact
        hours = re.fullmatch(r"(.+?) ?- ?(.+)", row.value.text)
        if fact.answer in ("yes", "no"):
            time = re.search(r"(\d+)(:00| [ap]m)", fact.question)
            if time is not None and hours is not None:
                bare = row.value.text.replace("-", "").replace(" ", "").isdigit()
                first, last = (number_in(text) * (60 if bare else 1) for text in hours.groups())
                assert (fact.answer == "yes") == (first < number_in(time[0]) < last), fact
            else:
                closed = "closed" in fact.question or "day off" in fact.question
                assert (fact.answer == "yes") == ((hours is None) == closed), fact
        elif hours is not None:
            assert fact.answer in (hours[1], hours[2], row.value.text), fact
            assert fact.answer != hours[2] or re.search(
                "close|late|until|till|out|how long", fact.question.lower()
            )
        checked += 1
    assert checked > 200
