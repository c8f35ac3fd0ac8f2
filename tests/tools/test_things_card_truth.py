"""Every answer about random cards, against what a simple look at them says."""

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from kestrel_tools.things.cards.draw import SORTS
from kestrel_tools.things.cards.labels import WEATHER, number_in
from kestrel_tools.things.language import spelling
from kestrel_tools.things.language.cards import facts as card_facts
from kestrel_tools.things.language.cards import label_facts as card_label_facts
from kestrel_tools.things.language.cards import print_there as card_print
from kestrel_tools.things.language.cards import words as card_words
from kestrel_tools.things.language.cards.facts import card_fact
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.names import KINDS
from kestrel_tools.things.scene import Card, Scene
from tests.card_scenes import cards_of, laid_out, scenes


@pytest.fixture(autouse=True)
def no_typos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a question are looked for here."""
    monkeypatch.setattr(spelling, "mistyped", lambda rng, question: question)


def thing_in(question: str, cards: list[Card]) -> Card | None:
    """The one card whose thing is named there."""
    found = []
    for card in cards:
        if card.item is not None:
            names = (card.item.name, card.item.noun, *card.item.known_as.also)
            if any(re.search(rf"\bthe (big |small )?{re.escape(name)}\b", question, re.I) for name in names):
                found.append(card)
    return found[0] if len(found) == 1 else None


def truth(question: str, fact: Fact, scene: Scene) -> str | None:
    """What the answer must be; None where this look is too simple."""
    assert scene.cards is not None
    cards, rows = cards_of(scene), scene.cards.rows
    card = thing_in(question, cards)
    if fact.kind == "card label" and card is not None and card.label is not None:
        return card.label.text
    if fact.kind == "card count":
        if re.search(r"\brows and\b", question, re.I):
            return f"{len(rows)} rows, {len(rows[0])} columns"
        if re.search(r"(many|the|of) columns|number of columns", question, re.I):
            return str(len(rows[0]))
        if re.search(
            r"many (rows|shelves|boards|levels)|the (rows|shelves|boards)|of (rows|shelves)", question, re.I
        ):
            return str(len(rows))
    if fact.kind == "card row":
        items = {card.item.name for card in cards if card.item}
        assert fact.answer == "nothing" or {*fact.answer.split(", ")} <= items
        kinds = [kind for kind, words in KINDS.items() if re.search(rf"\b({'|'.join(words)})\b", question)]
        if re.search(r"\b(top|upper|topmost|first) row\b", question) and len(kinds) < 2:
            held = [card.item for card in rows[0] if card.item]
            named = [item.name for item in held if not kinds or kinds[0] in item.known_as.kinds]
            if kinds and fact.answer in ("yes", "no"):
                return "yes" if named else "no"
            return ", ".join(named if len({*named}) > 1 else named[:1]) or "nothing"
    if fact.kind == "card neighbour" and card is not None and "right of" in question:
        row = next(row for row in rows if card in row)
        at = row.index(card)
        both = re.search("left and (to the )?right of", question)
        near = [one.item for one in (*row[at - 1 : at][: bool(both)], *row[at + 1 : at + 2])]
        return ", ".join(item.name for item in near if item) or "nothing"
    if fact.kind == "card pairs":
        numbers = Counter(item.name for item in scene.items)
        if fact.answer not in ("yes", "no"):
            once = re.search(
                "once|alone|no (partner|twin|match|double)|single|left over|but one|not part|without",
                question,
            )
            names = [name for name in numbers if numbers[name] == (1 if once else 2)]
            assert len(names) == (
                int(fact.answer)
                if fact.answer.isdigit()
                else len(fact.answer.split(", ")) * (fact.answer != "none")
            )
            return fact.answer if fact.answer.isdigit() or {*fact.answer.split(", ")} == {*names} else "none"
        if re.search("different|only once|unique", question):
            return "yes" if max(numbers.values()) == 1 else "no"
    if (
        fact.kind == "card place"
        and re.search(r"(?<!place in )which row\b(?!.*(column|place))", question, re.I)
        and card
    ):
        at_row = next(number for number, row in enumerate(rows) if card in row)
        ends = {0: "top row", len(rows) - 1: "bottom row"}
        between = ["", "middle"] if len(rows) == 3 else ["", "second", "third", ""]
        return ends.get(at_row) or f"{between[at_row]} row"
    if (
        fact.kind == "card extreme"
        and re.search("cheapest|least|lowest price", question)
        and "cost" not in question
    ):
        by_price = sorted(
            (one for one in cards if one.label),
            key=lambda one: number_in(one.label.text),  # type: ignore[union-attr]
        )
        best = by_price["second" in question]
        assert best.item is not None and best.label is not None
        return (
            best.label.text
            if fact.answer[-1].isdigit() or "$" in fact.answer or "EUR" in fact.answer
            else best.item.name
        )
    if fact.kind == "card weather" and fact.answer not in ("yes", "no"):
        assert fact.answer in WEATHER.values()
    return None


def test_every_answer_is_true_and_every_question_complete() -> None:
    rng, checked, kinds = Random(11), Counter[str](), Counter[str]()
    for scene in scenes():
        for _ in range(12):
            fact = card_fact(rng, scene)
            if fact is None:
                continue
            kinds[fact.kind] += 1
            assert not set("[]{}<>|") & set(fact.question) and "  " not in fact.question.strip().replace(
                "  ", " ", 1
            )
            assert fact.answer and not set("[]{}<>|") & set(fact.answer)
            expected = truth(fact.question, fact, scene)
            if expected is not None:
                checked[fact.kind] += 1
                assert fact.answer == expected, (fact, scene.cards)
    assert {kind for kind, number in checked.items() if number > 8} >= {
        "card label", "card count", "card row", "card neighbour", "card pairs", "card place", "card extreme"
    }  # fmt: skip
    assert set(kinds) >= {
        "card by label", "card cell", "card compare", "card right", "card says", "card weather", "card empty",
        "card labels", "cannot tell", "absent", "presence",
    }  # fmt: skip


def test_scenes_without_cards_are_not_asked() -> None:
    assert card_fact(Random(1), replace(laid_out("memory", "dog cat"), cards=None)) is None


@pytest.mark.parametrize("table", [card_words.QUESTIONS, card_print.QUESTIONS])
def test_every_template_makes_sentences(table: dict[str, tuple[str, ...]]) -> None:
    rng = Random(2)
    for templates in table.values():
        for template in templates:
            for _ in range(20):
                subjects = ("the dog", "the cat", "a bee", "crown")
                said = spelling.tidy(spelling.chosen(rng, template.format(*subjects)))
                for mark in ("<is>", "<does>", "<it>", "<them>"):
                    said = said.replace(mark, "is").replace(mark.title(), "Is")
                assert not set("[]{}<>|") & set(said), template
                assert said[-1] in ".?!", template


def test_every_kind_of_question_is_asked() -> None:
    """Each table's kinds are used by some maker: what nobody asks for is dead."""
    used: set[str] = set()

    def noting(ask):  # type: ignore[no-untyped-def]
        def note(rng, kind, *subjects, **options):  # type: ignore[no-untyped-def]
            used.add(kind)
            return ask(rng, kind, *subjects, **options)

        return note

    patch = pytest.MonkeyPatch()
    patch.setattr(card_facts, "asked_of", noting(card_facts.asked_of))
    patch.setattr(card_print, "asked_of", noting(card_print.asked_of))
    rng = Random(4)
    own = (
        laid_out("forecast", "sun:Mon cloud:Tue"),
        laid_out("badges", "eagle:Team_A hammer:Team_B"),
        laid_out("menu", "pizza:$4 cake:$2.50 banana:$9"),
        laid_out(
            "forecast",
            "sun:Mon cloud:Tue snowflake:Wed",
            second={"Mon": "21 C", "Tue": "12 C", "Wed": "-3 C"},
        ),
    )
    for scene in (*scenes(), *own * 40):
        for _ in range(15):
            card_fact(rng, scene)
    patch.undo()
    tables = card_words.QUESTIONS | card_print.QUESTIONS
    assert set(tables) - used == set()
    assert set(card_label_facts.BY_KIND) <= set(SORTS)
