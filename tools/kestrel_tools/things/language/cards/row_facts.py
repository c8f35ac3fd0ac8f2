"""What may be asked further about rows: what shares one, where is most, what is beside what. No torch."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from kestrel_tools.things.language.fact import Fact, names_of, yes_no
from kestrel_tools.things.language.wanted import Wanted, of_kind, of_noun, only, word_for
from kestrel_tools.things.names import is_plural, nouns, with_article
from kestrel_tools.things.scene import Cards, Item, Scene

from .places import flat, framed_of, in_row, is_even, plainly
from .print_there import Evidence, asked
from .words import FRAMED

Maker = Callable[[Random, Scene, Cards], Fact | None]
MOST_LISTED = 4


class Spot(NamedTuple):
    row: int
    column: int
    item: Item


def spots(cards: Cards) -> list[Spot]:
    return [
        Spot(row, column, card.item)
        for row, held in enumerate(cards.rows)
        for column, card in enumerate(held)
        if card.item is not None
    ]


def has_rows(cards: Cards) -> bool:
    return len(cards.rows) > 1 and max(map(len, cards.rows)) > 1


def same_row(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """Whether two things are in one row, or in one column; those of a pair are asked for together."""
    there = spots(cards)
    if not has_rows(cards) or len(there) < 2:
        return None
    one, other = rng.sample(there, 2)
    if rng.random() < 0.5:
        one, other = rng.choice(
            [(a, b) for a in there for b in there if a is not b and a.row == b.row] or [(one, other)]
        )
    words = _two(rng, scene, one.item, other.item)
    if words is None:
        return None
    if is_even(cards) and len(cards.rows[0]) > 1 and rng.random() < 0.3:
        where, same = "in the same column", one.column == other.column
    else:
        where, same = (
            "on the same shelf" if cards.kind == "shelf" else "in the same row",
            one.row == other.row,
        )
    return Fact(
        "card place",
        asked(rng, "same row", words, where),
        yes_no(same),
        evidence=_shown(one.item, other.item),
    )


def _two(rng: Random, scene: Scene, one: Item, other: Item) -> str | None:
    if one.name == other.name and not one.is_shape:
        alike = of_noun(scene, one.noun, one.noun)
        return f"the two {alike.many}" if alike is not None and len(alike.items) == 2 else None
    first, second = only(rng, scene, one), only(rng, scene, other)
    return None if first is None or second is None else f"the {first[0]} and the {second[0]}"


def others_in_row(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """What else is there in the row of a thing."""
    there = spots(cards)
    if not has_rows(cards) or not there:
        return None
    at = rng.choice(there)
    found, others = (
        only(rng, scene, at.item),
        [one.item for one in there if one.row == at.row and one is not at],
    )
    if found is None or (not others and rng.random() < 0.7):
        return None
    where = rng.choice(
        ("on the same shelf as", "on the shelf with")
        if cards.kind == "shelf"
        else ("in the same row as", "in the row with")
    )
    question = asked(rng, "others in row", f"the {found[0]}", where)
    return Fact("card row", question, names_of(others) or "nothing", evidence=_shown(at.item, *others[:2]))


def fullest_row(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """Which row or shelf has the most things, or the fewest; or which of two has more."""
    numbers = [sum(card.item is not None for card in row) for row in cards.rows]
    if not has_rows(cards) or len({*numbers}) == 1:
        return None
    row = "shelf" if cards.kind == "shelf" else "row"
    if rng.random() < 0.3:
        one, other = rng.sample(range(len(numbers)), 2)
        if numbers[one] == numbers[other]:
            return None
        best, words = (
            max(one, other, key=numbers.__getitem__),
            [in_row(rng, cards, at)[0] for at in (one, other)],
        )
        question, told = asked(rng, "which fuller", *words), _row(cards, best)
        return None if told is None else Fact("card compare", question, told)
    most = rng.random() < 0.65
    best = numbers.index(max(numbers) if most else min(numbers))
    told = _row(cards, best)
    if told is None or numbers.count(numbers[best]) > 1:
        return None
    things = rng.choice(("things", "things", "items", "objects" if row == "shelf" else "pictures"))
    return Fact("card extreme", asked(rng, "fullest row", row, things, "most" if most else "fewest"), told)


def _row(cards: Cards, at: int) -> str | None:
    """ "top row", "middle shelf"; None where a shelf may be counted from below as well."""
    if cards.kind == "shelf" and len(cards.rows) > 3 and at not in (0, len(cards.rows) - 1):
        return None
    row = "shelf" if cards.kind == "shelf" else "row"
    return f"{plainly(at, len(cards.rows), ('top', 'middle', 'bottom'))} {row}"


def kind_in_row(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """Which animals are in a row, how many, whether any are; or whether a dog is."""
    if not has_rows(cards) or not scene.items:
        return None
    at = rng.randrange(len(cards.rows))
    found = _some(rng, scene)
    if found is None:
        return None
    held = [card.item for card in cards.rows[at] if card.item is not None]
    here = [item for item in held if any(item is other for other in found.items)]
    several = len({item.noun for item in found.items}) > 1
    kinds = ["is kind in row", "is kind in row"]
    if found.items:
        kinds += ["number of kind in row"] * (2 if here else 1)
    if several and here:
        kinds += ["kind in row" if len(here) == 1 else "kinds in row"] * 4
    kind = rng.choice(kinds)
    where = in_row(rng, cards, at)[0]
    question = asked(rng, kind, where, found.one, found.many, with_article(found.one))
    evidence = _shown(*here[:3])
    match kind:
        case "is kind in row":
            return Fact("presence", question, yes_no(bool(here)), evidence=evidence)
        case "number of kind in row":
            return (
                None
                if is_plural(found.one)
                else Fact("card count", question, str(len(here)), evidence=evidence)
            )
    return Fact("card row", question, names_of(here), evidence=evidence) if len(here) <= MOST_LISTED else None


def _some(rng: Random, scene: Scene) -> Wanted | None:
    """Those of a kind or of a name; some are in no scene."""
    item = rng.choice(scene.items)
    if item.is_shape:
        return of_kind(scene, "shape")
    if item.known_as.kinds and rng.random() < 0.75:
        return of_kind(scene, rng.choice(item.known_as.kinds))
    noun = item.known_as if rng.random() < 0.85 else rng.choice(nouns())
    return of_noun(scene, word_for(rng, noun), noun.name)


def next_to(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """Whether two are side by side: not asked of those that are one above the other."""
    there = spots(cards)
    pairs = [
        (one, other)
        for one in there
        for other in there
        if one.row == other.row and one.column != other.column
    ]
    near = [(one, other) for one, other in pairs if abs(one.column - other.column) == 1]
    if not pairs:
        return None
    one, other = rng.choice(near if near and rng.random() < 0.5 else pairs)
    first, second = only(rng, scene, one.item), only(rng, scene, other.item)
    if first is None or second is None:
        return None
    question = asked(rng, "next to", f"the {first[0]}", f"the {second[0]}", many=is_plural(first[0]))
    yes = abs(one.column - other.column) == 1
    return Fact("card place", question, yes_no(yes), evidence=_shown(one.item, other.item))


def both_sides(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    inner = [(at, row) for row in cards.rows for at in range(1, len(row) - 1)]
    if not inner:
        return None
    at, row = rng.choice(inner)
    item, left, right = row[at].item, row[at - 1].item, row[at + 1].item
    found = only(rng, scene, item) if item is not None else None
    if found is None or left is None or right is None or left.name == right.name:
        return None
    kind = "between which" if len(cards.rows) == 1 and rng.random() < 0.5 else "both sides"
    question = asked(rng, kind, f"the {found[0]}", many=is_plural(found[0]))
    return Fact("card neighbour", question, names_of((left, right)), evidence=_shown(item, left, right))


def empty_row(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """In which row the only empty cell is."""
    empty = [at for at, row in enumerate(cards.rows) for card in row if card.item is None]
    if not has_rows(cards) or len(empty) != 1 or cards.kind not in FRAMED:
        return None
    question = asked(rng, "empty in row", framed_of(rng, cards)[0])
    return Fact(
        "card place", question, f"{plainly(empty[0], len(cards.rows), ('top', 'middle', 'bottom'))} row"
    )


def corners(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    if not is_even(cards) or len(cards.rows[0]) < 2 or len(flat(cards)) == 4 or scene.lines:
        return None
    found = [row[column].item for row in (cards.rows[0], cards.rows[-1]) for column in (0, -1)]
    items = [item for item in found if item is not None]
    if len(items) < 4:
        return None
    return Fact("card row", asked(rng, "corners"), names_of(items), evidence=_shown(*items[:3]))


def _shown(*items: Item | None) -> Evidence:
    return tuple((f"the {item.name}", (item,)) for item in items if item is not None)


MAKERS: dict[Maker, float] = {
    same_row: 0.8,
    others_in_row: 0.8,
    fullest_row: 1.2,
    kind_in_row: 1.6,
    next_to: 0.8,
    both_sides: 0.7,
    empty_row: 1.0,
    corners: 0.4,
}


def row_fact(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    for maker in rng.choices(tuple(MAKERS), tuple(MAKERS.values()), k=4):
        found = maker(rng, scene, cards)
        if found is not None:
            return found
    return None
