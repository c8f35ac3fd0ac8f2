"""What may be asked about things in cells: rows, columns, neighbours, pairs. No torch, no model."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random

from kestrel_tools.scenes.world import Boxed
from kestrel_tools.things.language.fact import Fact, names_of
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.language.wanted import of_noun, only, word_for
from kestrel_tools.things.names import is_plural, nouns, with_article
from kestrel_tools.things.scene import Card, Cards, Item, Scene

from .label_facts import label_fact
from .places import (
    column_words,
    flat,
    framed_of,
    in_row,
    is_even,
    next_to,
    place_in_row,
    places_of,
    plainly,
    somewhere,
    words_of,
)
from .row_facts import row_fact
from .words import FRAMED, QUESTIONS, SIDES

Maker = Callable[[Random, Scene, Cards], Fact | None]
Evidence = tuple[tuple[str, tuple[Boxed, ...]], ...]

NOTHING = 0.3  # how many of the questions are asked whose answer is nothing
MOST_NAMED = 3  # of those that are there twice, or once
LABELLED = 0.75  # of the questions about cards with print are about it


def card_fact(rng: Random, scene: Scene) -> Fact | None:
    """One thing that is true of the cells of a scene, and is asked of no other scene."""
    cards = scene.cards
    if cards is None:
        return None
    printed = any(card.label is not None for row in cards.rows for card in row)
    if printed and rng.random() < LABELLED:
        found = label_fact(rng, scene, cards)
        if found is not None:
            return found
    for maker in rng.choices(CHOICES, cum_weights=SHARES, k=12):
        found = maker(rng, scene, cards)
        if found is not None:
            return found
    return None


def asked(rng: Random, kind: str, *subjects: str, many: bool = False) -> str:
    return asked_of(rng, kind, *subjects, many=many, among=QUESTIONS)


def name_on(card: Card) -> str:
    return card.item.name if card.item is not None else "nothing"


def shown(*items: Item | None) -> Evidence:
    return tuple((f"the {item.name}", (item,)) for item in items if item is not None)


def rows(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """What is in a row or a column."""
    if len(cards.rows) < 2 or max(map(len, cards.rows)) == 1:
        return None
    _, many = words_of(rng, cards)
    if is_even(cards) and len(cards.rows[0]) > 1 and rng.random() < 0.35:
        at = rng.randrange(len(cards.rows[0]))
        column = column_words(rng, at, len(cards.rows[0]))
        where, held = (f"in {column}", column), [row[at] for row in cards.rows]
    else:
        at = rng.randrange(len(cards.rows))
        where, held = in_row(rng, cards, at), list(cards.rows[at])
    items = [card.item for card in held if card.item is not None]
    if not items and scene.lines:
        return None
    kind = "row of" if scene.lines or (rng.random() < 0.5 and items) else "row"
    if len(items) < len(held):
        many = rng.choice(("things", "pictures"))  # an empty field is a field too
    question = asked(rng, kind, *where, many)
    if "left to right" in question and where[0].endswith("column"):
        return None
    return Fact("card row", question, names_of(items) or "nothing", evidence=shown(*items[:3]))


def cell(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """What is in one cell, by its place."""
    found = places_of(rng, cards)
    if not found:
        return None
    words, card = rng.choice(found)
    if card.item is None and (scene.lines or rng.random() > NOTHING):
        return None
    question = asked(rng, "cell of" if scene.lines else "cell", words)
    return Fact("card cell", question, name_on(card), evidence=shown(card.item))


def neighbour(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """What is in the next cell on one side of a thing."""
    at, column = somewhere(rng, cards)
    card = cards.rows[at][column]
    found = only(rng, scene, card.item) if card.item is not None else None
    if found is None:
        return None
    side = rng.choice(tuple(SIDES))
    down, across, places = SIDES[side]
    if down and (cards.kind == "shelf" or len(cards.rows) == 1):
        return None
    near = next_to(cards, at, column, down, across)
    if near is None:
        return None
    answer = name_on(near[0]) if near else "nothing"
    if answer == "nothing" and (scene.lines or rng.random() > NOTHING):
        return None
    (one, many), place = framed_of(rng, cards), rng.choice(places)
    of = bool(scene.lines) or (answer != "nothing" and rng.random() < 0.4 and cards.kind != "shelf")
    kind, plural = "neighbour of" if of else "neighbour", is_plural(found[0])
    question = asked(rng, kind, place, f"the {found[0]}", one, many, many=plural)
    return Fact("card neighbour", question, answer, evidence=shown(card.item, *(one.item for one in near)))


def numbers(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """How many cells, rows, columns; how many in a row, how many empty."""
    one, many = words_of(rng, cards)
    every, count = flat(cards), len(cards.rows)
    empty = sum(card.item is None for card in every)
    kinds = ["number of"] + ["number of rows"] * 2 * (max(map(len, cards.rows)) > 1)
    if is_even(cards) and len(cards.rows[0]) > 1:
        kinds += ["number of columns", "number of columns", "rows and columns", "per row"]
    kinds += ["number in row"] * 2 * (count > 1 and max(map(len, cards.rows)) > 1)
    if cards.kind in FRAMED:
        kinds += ["number empty"] * 2 * bool(empty) + ["any empty", "all full"]
    kind = rng.choice(kinds)
    match kind:
        case "number of":
            if empty and cards.kind not in FRAMED:
                return None
            return Fact(
                "card count", asked(rng, kind, many), str(len(every)), evidence=((many, _items(every)),)
            )
        case "number of rows":
            if count == 1 and (len(every) == 1 or rng.random() < 0.7):
                return None
            kind = "number of shelves" if cards.kind == "shelf" else kind
            return Fact("card count", asked(rng, kind, many), str(count))
        case "number of columns":
            return Fact("card count", asked(rng, kind, many), str(len(cards.rows[0])))
        case "rows and columns":
            columns = len(cards.rows[0])
            answer = f"{count} rows, {columns} columns"
            return Fact("card count", asked(rng, kind, many), answer)
        case "per row":
            return Fact("card count", asked(rng, kind, many), str(len(cards.rows[0])))
        case "number in row":
            at = rng.randrange(count)
            if any(card.item is None for card in cards.rows[at]):
                return None
            question = asked(rng, kind, in_row(rng, cards, at)[0], many)
            return Fact("card count", question, str(len(cards.rows[at])))
        case "number empty":
            return Fact("card count", asked(rng, kind, many), str(empty))
    yes = bool(empty) == (kind == "any empty")
    if not empty and rng.random() < 0.6:
        return None
    return Fact("card empty", asked(rng, kind, many, one), "yes" if yes else "no")


def _items(cards: Sequence[Card]) -> tuple[Item, ...]:
    return tuple(card.item for card in cards if card.item is not None)


def pairs(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """What is there twice, and what is alone."""
    items = _items(flat(cards))
    if len(items) < 3 or (cards.kind not in ("memory", "bingo", "stickers") and rng.random() < 0.7):
        return None
    one, many = words_of(rng, cards)
    there = Counter(item.name for item in items)
    if max(there.values()) > 2:
        return None
    twice = [name for name, number in there.items() if number == 2]
    once = [name for name, number in there.items() if number == 1]
    kind = rng.choice(
        ("any twice", "all different", "which twice", "which twice", "which once", "number of pairs")
    )
    if not twice and kind in ("which twice", "number of pairs") and rng.random() > NOTHING:
        return None
    match kind:
        case "any twice" | "all different":
            answer = "yes" if bool(twice) == (kind == "any twice") else "no"
        case "which twice":
            answer = ", ".join(twice) or "none"
        case "which once":
            if not twice:
                return None
            answer = ", ".join(once) or "none"
        case _:
            answer = str(len(twice))
    if kind.startswith("which") and len(answer.split(", ")) > MOST_NAMED:
        return None
    pictured = [item for item in items if item.name in (once if kind == "which once" else twice)]
    return Fact("card pairs", asked(rng, kind, many, one), answer, evidence=shown(*pictured[:2]))


def twin(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """Whether one thing is there a second time."""
    items = [item for item in _items(flat(cards)) if not item.is_shape]
    if len(items) < 2:
        return None
    item = rng.choice(items)
    found = of_noun(scene, item.noun, item.noun)
    if found is None or len(found.items) > 2 or is_plural(item.noun):
        return None
    question = asked(
        rng, "has twin", found.one, found.many, framed_of(rng, cards)[1], with_article(found.one)
    )
    return Fact(
        "card pairs", question, "yes" if len(found.items) == 2 else "no", evidence=shown(*found.items)
    )


def match(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """Whether two cards that lie somewhere show the same."""
    if cards.kind not in ("memory", "bingo", "stickers"):
        return None
    (_, many), rows = words_of(rng, cards), cards.rows
    found = [
        (f"the first two {many} {in_row(rng, cards, at)[0]}", row[0], row[1])
        for at, row in enumerate(rows)
        if len(row) > 2 and len(rows) > 1
    ]
    found += [
        (f"the two {many} {in_row(rng, cards, at)[0]}", row[0], row[1])
        for at, row in enumerate(rows)
        if len(row) == 2 and len(rows) > 1
    ]
    if len(rows) == 1 and len(rows[0]) > 2:
        found += [
            (f"the first two {many}", rows[0][0], rows[0][1]),
            (f"the last two {many}", rows[0][-2], rows[0][-1]),
        ]
    if is_even(cards) and len(rows) == 2 and len(rows[0]) > 1:
        at = rng.randrange(len(rows[0]))
        found.append((f"the two {many} in {column_words(rng, at, len(rows[0]))}", rows[0][at], rows[1][at]))
    if is_even(cards) and len(rows[0]) > 1:
        found.append((f"the {many} in the two top corners", rows[0][0], rows[0][-1]))
    full = [(words, one.item, other.item) for words, one, other in found if one.item and other.item]
    same = [one for one in full if one[1].name == one[2].name]
    if not full:
        return None
    words, one, other = rng.choice(same if same and rng.random() < 0.5 else full)
    answer = "yes" if one.name == other.name else "no"
    return Fact("card pairs", asked(rng, "match", words), answer, evidence=shown(one, other))


def present(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """Whether there is a card with a thing."""
    if cards.kind == "shelf" or len(flat(cards)) < 2:
        return None
    items = [item for item in scene.items if not item.is_shape]
    noun = rng.choice(items).known_as if items and rng.random() < 0.5 else rng.choice(nouns())
    found = of_noun(scene, word_for(rng, noun), noun.name)
    if found is None:
        return None
    one, many = framed_of(rng, cards)
    question = asked(rng, "card with", with_article(found.one), one, many, with_article(one))
    return Fact("presence", question, "yes" if found.items else "no", evidence=shown(*found.items[:1]))


def whereabouts(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """In which row a thing is, in which column, at which place of the row."""
    at, column = somewhere(rng, cards)
    item = cards.rows[at][column].item
    found = only(rng, scene, item) if item is not None else None
    if found is None or len(cards.rows) < 2 or max(map(len, cards.rows)) == 1:
        return None
    the, many, even = f"the {found[0]}", is_plural(found[0]), is_even(cards)
    count, columns = len(cards.rows), len(cards.rows[at])
    row = plainly(at, count, ("top", "middle", "bottom"))
    shelf = cards.kind == "shelf"
    kinds = ["which row", "which row", "is in row"]
    if even and columns > 1:
        kinds += ["which column", "which row and column", "where in row", "where in row"]
    kind = rng.choice(kinds)
    evidence = shown(item)
    match kind:
        case "which row" if shelf:
            if count > 3 and at not in (0, count - 1):
                return None
            return Fact(
                "card place", asked(rng, "which shelf", the, many=many), f"{row} shelf", evidence=evidence
            )
        case "which row":
            answer = f"{row} row"
        case "which column":
            answer = f"{plainly(column, columns, ('left', 'middle', 'right'))} column"
        case "which row and column":
            answer = f"row {at + 1}, column {column + 1}"
        case "where in row":
            place = place_in_row(column, columns)
            if place is None:
                return None
            answer = f"{row} row, {place}"
        case _:
            other = at if rng.random() < 0.5 else rng.randrange(count)
            question = asked(rng, kind, the, in_row(rng, cards, other)[0], many=many)
            return Fact("card place", question, "yes" if other == at else "no", evidence=evidence)
    return Fact(
        "card place", asked(rng, kind, the, words_of(rng, cards)[1], many=many), answer, evidence=evidence
    )


MAKERS: dict[Maker, float] = {
    rows: 3.0,
    cell: 3.0,
    neighbour: 3.0,
    numbers: 2.5,
    pairs: 2.2,
    twin: 0.8,
    match: 0.6,
    present: 1.0,
    whereabouts: 2.0,
    row_fact: 6.0,
}
CHOICES = tuple(MAKERS)
SHARES = tuple(accumulate(MAKERS.values()))
