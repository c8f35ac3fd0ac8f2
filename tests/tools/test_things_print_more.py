"""What is asked about letters, words, figures and what stands beside them is what the print says."""

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from kestrel_tools.things.language.printed import lacking
from kestrel_tools.things.language.printed import more as print_more
from kestrel_tools.things.language.printed.sign_words import MEANINGS
from kestrel_tools.things.lettering import KNOWN, PLACES, printed_text
from kestrel_tools.things.scene import Page, Scene
from tests.thing_scenes import WHITE, answers, at, line, scene_of
from tests.wide_scenes import LEFT_OVER, PRINTED, Heard, heard, made_of, wide_scenes

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
INK = (0.0, 0.0, 0.0)


@pytest.fixture
def last(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return heard(monkeypatch, print_more)


def yes(true: bool) -> str:
    return "yes" if true else "no"


def of(*texts: str) -> Scene:
    heights = [0.2 + 0.6 * n / max(1, len(texts) - 1) for n in range(len(texts))]
    lines = tuple(line(text, 0.5, y, INK) for text, y in zip(texts, heights, strict=True))
    return Scene(1.0, WHITE, (), lines)


def scenes(count: int = 1500) -> list[Scene]:
    """Print in every case and font, as it is made for training, but for the places."""
    rng = Random(3)
    return [of(*(printed_text(rng) for _ in range(rng.choice((1, 1, 2, 3))))) for _ in range(count)]


def words_of(scene: Scene) -> list[str]:
    return re.findall(r"[^ !]+", " ".join(line.text for line in scene.lines))


def test_every_wording_is_whole_and_there_are_many() -> None:
    rng = Random(1)
    for kind in print_more.QUESTIONS:
        asked = {str(print_more.asked(rng, kind, "the dog", "row")).lower() for _ in range(80)}
        assert len(asked) > 6, kind
        assert not any(LEFT_OVER.search(question) for question in asked), kind


def test_letters_are_those_of_the_line_that_is_named(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(print_more.letters, scenes()):
        named = re.search(r"(?:the )?(\w+)(?: line|$)", last.subjects[0])
        assert bool(named) == (len(scene.lines) > 1)
        kind = last.kind.removesuffix(" of line")
        at = 0 if named is None else {"top": 0, "bottom": -1, "last": -1}.get(named[1])
        text = scene.lines[ORDINALS.index(named[1]) if named and at is None else at or 0].text.rstrip("!")
        seen[kind] += 1
        letter = last.subjects[1].lower() if len(last.subjects) > 1 else ""
        told = {
            "first letter": text[0],
            "last letter": text[-1],
            "first digit": text[0],
            "last digit": text[-1],
            "number of letters": str(len(text)),
            "number of digits": str(len(text)),
            "spell": "-".join(text),
            "has letter": yes(letter in text.lower()),
            "starts with": yes(text.lower().startswith(letter)),
            "ends with": yes(text.lower().endswith(letter)),
            "count of letter": str(text.lower().count(letter)),
        }
        if kind == "nth letter":
            assert fact.answer == text[ORDINALS.index(last.subjects[1])]
        else:
            assert fact.answer == told[kind], fact
    assert len(seen) == 12 and min(seen.values()) > 10, seen
    assert answers(print_more.letters, of("Stop"), r"(?i)\bspell") == {"S-t-o-p"}


def test_words_are_in_the_order_of_the_lines(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(print_more.words_in, scenes()):
        words = words_of(scene)
        seen[last.kind] += 1
        longest, shortest = max(words, key=len), min(words, key=len)
        told = {
            "first word": words[0],
            "last word": words[-1],
            "number of words": str(len(words)),
            "longest word": longest,
            "shortest word": shortest,
            "second word": words[min(1, len(words) - 1)],
        }
        if last.kind == "word after":
            assert words[words.index(last.subjects[1]) + 1] == fact.answer
        elif last.kind == "word before":
            assert words[words.index(last.subjects[1]) - 1] == fact.answer
        else:
            assert fact.answer == told[last.kind], fact
        if last.kind in ("longest word", "shortest word"):
            assert sum(len(word) == len(fact.answer) for word in words) == 1
    assert len(seen) == 8 and min(seen.values()) > 5, seen
    assert answers(print_more.words_in, of("go to bed"), r"(?i)after go|follows go") == {"to"}
    assert answers(print_more.words_in, of("go to bed"), r"(?i)before bed") == {"to"}


def test_capitals_are_told_where_letters_show_them(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    for scene, fact in made_of(print_more.case, scenes()):
        every = "".join(filter(str.isalpha, "".join(words_of(scene))))
        seen[last.kind, fact.answer] += 1
        told = {"in capitals": yes(every.isupper()), "in small letters": yes(every.islower())}
        assert fact.answer == told.get(last.kind, "capital letters" if every.isupper() else "small letters")
        assert last.kind != "capitals or" or every.isupper() or every.islower()
    assert len(seen) == 6 and min(seen.values()) > 10, seen
    assert answers(print_more.case, of("ZOO"), "") == set(), "it looks like zoo"


def test_numbers_are_told_from_words(last: Heard) -> None:
    seen = Counter[tuple[str, str]]()
    for scene, fact in made_of(print_more.sort_of, scenes()):
        text = " ".join(words_of(scene))
        seen[last.kind, fact.answer] += 1
        if last.kind == "word or number":
            assert fact.answer == ("a number" if text.isdigit() else "a word")
            assert text.isdigit() or text.lower() in KNOWN
        else:
            assert fact.answer == yes(bool(re.search(r"\d" if last.kind == "is number" else r"\$", text)))
    assert len(seen) == 6 and min(seen.values()) > 5, seen


def test_figures_add_up(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(print_more.arithmetic, scenes(2500)):
        numbers = [int(number) for number in re.findall(r"\d+", " ".join(words_of(scene)))]
        seen[last.kind] += 1
        by = int(last.subjects[1]) if len(last.subjects) > 1 else 0
        number = numbers[0]
        told = {
            "plus": str(number + by),
            "next number": str(number + 1),
            "number before": str(number - 1),
            "double": str(number + number),
            "even or odd": ("even", "odd")[number % 2],
            "larger than": yes(number > by),
            "smaller than": yes(number < by),
            "larger number": str(max(numbers)),
            "smaller number": str(min(numbers)),
            "sum": str(sum(numbers)),
        }
        assert fact.answer == told[last.kind], fact
        assert len(numbers) == (2 if last.kind in ("larger number", "smaller number", "sum") else 1), fact
    assert len(seen) == 10, seen


def test_prices_times_and_gates_are_asked_as_such(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(print_more.figures, scenes(2500)):
        [text] = [line.text for line in scene.lines if re.search(r"\d", line.text)]
        seen[last.kind] += 1
        match last.kind:
            case "price":
                assert text.startswith("$") or text.endswith("EUR")
            case "time":
                assert ":" in text or text.lower().endswith("m")
            case "percentage":
                assert text.endswith("%")
            case "year":
                assert 1900 <= int(text) <= 2040
            case "distance" | "weight" | "length" | "speed" | "temperature":
                assert re.fullmatch(r"\d+ [A-Za-z]+", text)
            case kind:
                word, number = text.lower().split()
                assert word in PLACES and kind in (word, "numbered")
                assert fact.answer == number
                continue
        assert fact.answer == text
    assert {"price", "time", "percentage", "year", "numbered", "speed"} <= seen.keys(), seen
    assert answers(print_more.figures, of("137 pm"), "") == set(), "there is no such hour"
    assert answers(print_more.figures, of("$5.00", "$7.00"), "") == set(), "which of the two?"


def test_words_mean_what_they_are_asked_for(last: Heard) -> None:
    for texts, kind, answer in (
        (("LONDON",), "city", "LONDON"),
        (("Monday tea",), "day", "Monday"),
        (("hello", "Anna!"), "name", "Anna"),
        (("Fifty", "Gate 7"), "number word", "Fifty"),
    ):
        found = {}
        for seed in range(60):
            fact = print_more.meaning(Random(seed), of(*texts))
            assert fact is not None
            found[last.kind] = fact.answer
        assert found[kind] == answer
    assert print_more.meaning(Random(1), of("Anna Peter")) is None, "which of the two?"
    assert print_more.meaning(Random(1), of("London France")) is None, "is it the city or the country?"
    every = [word for words in MEANINGS.values() for word in words]
    assert len(every) == len({*every}) and {*every} <= {*KNOWN}


def test_a_word_is_mentioned_if_it_can_be_read(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(print_more.mentions, scenes(600)):
        [_, said] = last.subjects
        assert fact.answer == yes(any(said.lower() in line.text.lower() for line in scene.lines)), fact
        seen[fact.answer] += 1
    assert min(seen["yes"], seen["no"]) > 300


def test_headings_are_larger_and_lines_follow_each_other(last: Heard) -> None:
    seen = Counter[str]()
    for scene, fact in made_of(print_more.headed, wide_scenes(400, lines=PRINTED, most=2), 5):
        lines = sorted(scene.lines, key=lambda line: line.centre[1])
        by_height = sorted(scene.lines, key=lambda line: line.height)
        texts = [line.text for line in lines]
        seen[last.kind] += 1
        match last.kind:
            case "heading":
                assert fact.answer == texts[0] == by_height[-1].text
            case "small print":
                assert fact.answer == by_height[0].text
            case "line after":
                assert fact.answer == texts[texts.index(last.subjects[1]) + 1]
            case "line before":
                assert fact.answer == texts[texts.index(last.subjects[1]) - 1]
            case _:
                assert [fact.answer] == texts
    assert len(seen) == 5 and min(seen.values()) > 5, seen


def test_what_is_beside_print_is_the_nearest_to_it(last: Heard) -> None:
    seen = Counter[str]()
    for _, fact in made_of(print_more.by_things, wide_scenes(400, lines=PRINTED, most=4), 5):
        (_, (item,)), (_, (text,)) = fact.evidence
        seen[last.kind] += 1
        (x, y), (to_x, to_y) = item.centre, text.centre
        told = {
            "text above or": "above" if to_y < y else "below",
            "text left or": "left" if to_x < x else "right",
        }
        a, b = item.box, text.box
        apart = [max(a[n] - b[n + 2], b[n] - a[n + 2]) for n in (0, 1)]
        if last.kind in told:
            assert fact.answer == told[last.kind], fact
            assert apart[last.kind == "text above or"] > -0.02, "beside rather than above"
        elif last.kind.startswith("text"):
            assert fact.answer == text.text  # type: ignore[attr-defined]
        else:
            assert fact.answer == item.name  # type: ignore[attr-defined]
        if last.kind in ("text by thing", "thing by text"):
            where = last.subjects[1]
            axis, sign = (0 if "left" in where or "right" in where else 1), (-1 if "left" in where else 1)
            sign = -1 if "above" in where else sign
            moved = (to_x - x, to_y - y)[axis] * (1 if last.kind == "text by thing" else -1)
            assert sign * moved > 0, fact
    assert len(seen) == 6 and min(seen.values()) > 3, seen
    both = replace(
        scene_of(at("dog", 0.2, 0.5), at("cat", 0.8, 0.5)),
        lines=(line("REX", 0.2, 0.65, INK), line("TOM", 0.8, 0.65, INK)),
    )
    assert answers(print_more.by_things, both, r"(?i)written (under|below|beneath) the dog") == {"REX"}
    assert answers(print_more.by_things, both, r"(?i)(thing|object) is (above|over) the word TOM") == {"cat"}
    between = replace(both, lines=(line("REX", 0.5, 0.5, INK),))
    assert answers(print_more.by_things, between, "") == set(), "it is as near to the cat"


def test_pages_and_crowds_of_lines_have_questions_of_their_own() -> None:
    menu = replace(of("Soup", "Tea"), page=Page("menu", None, ()))
    many = of("One", "Two", "Four", "Six")
    for maker, weight in print_more.WEIGHTS.items():
        assert weight > 0
        for one in (menu, many, scene_of(at("dog", 0.5, 0.5))):
            if one is menu or one is many or maker is not lacking.no_text:
                assert {maker(Random(seed), one) for seed in range(20)} == {None}, maker
