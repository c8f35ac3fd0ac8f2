"""Print at the things of a scene: which is whose, and how people speak of both. No torch, no model."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes.world import Boxed
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.language.wanted import only
from kestrel_tools.things.names import is_plural
from kestrel_tools.things.scene import Card, Cards, Item, Line, Scene

from .day_words import QUESTIONS as OF_DAYS
from .label_words import QUESTIONS as OF_LABELS
from .more_words import QUESTIONS as MORE

QUESTIONS = OF_LABELS | OF_DAYS | MORE
assert len(QUESTIONS) == len(OF_LABELS) + len(OF_DAYS) + len(MORE)
Evidence = tuple[tuple[str, tuple[Boxed, ...]], ...]


class Labelled(NamedTuple):
    """A card with print and a thing, if there is one."""

    label: Line
    item: Item | None
    second: Line | None

    @property
    def text(self) -> str:
        return self.label.text

    @property
    def name(self) -> str:
        return self.item.name if self.item is not None else "nothing"

    @property
    def evidence(self) -> Evidence:
        item = () if self.item is None else ((f"the {self.item.name}", (self.item,)),)
        return (*item, ("the label", (self.label,)))


def labelled(scene: Scene, cards: Cards) -> list[Labelled]:
    """In the order in which they are read."""
    found = []
    for row in cards.rows:
        for card in row:
            if card.label is not None:
                found.append(Labelled(card.label, card.item, _second(scene, card)))
    return found


def _second(scene: Scene, card: Card) -> Line | None:
    """Another line in the same cell."""
    left, top, right, bottom = card.box
    for line in scene.lines:
        x, y = line.centre
        if line is not card.label and left < x < right and top < y < bottom:
            return line
    return None


def asked(rng: Random, kind: str, *subjects: str, many: bool = False, exact: bool = False) -> str:
    return asked_of(rng, kind, *subjects, many=many, exact=exact, among=QUESTIONS)


def spoken(rng: Random, text: str) -> str:
    """A label as somebody types it."""
    chance = rng.random()
    return text.lower() if chance < 0.15 else f'"{text}"' if chance < 0.25 else text


def alone(rng: Random, scene: Scene, card: Labelled) -> tuple[str, bool] | None:
    """Words for its thing that fit no other, and whether they take "are"."""
    found = only(rng, scene, card.item) if card.item is not None else None
    return None if found is None else (f"the {found[0]}", is_plural(found[0]))


def is_only(card: Labelled, cards: Sequence[Labelled]) -> bool:
    return [other.text.lower() for other in cards].count(card.text.lower()) == 1


def two_of(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> list[tuple[Labelled, str, bool]] | None:
    """Two cards whose things can be told apart, with words for those."""
    if len(cards) < 2:
        return None
    found = []
    for card in rng.sample(list(cards), 2):
        words = alone(rng, scene, card)
        if words is not None:
            found.append((card, *words))
    return found if len(found) == 2 else None


def yes_no(true: bool) -> str:
    return "yes" if true else "no"


def where_is(card: Labelled) -> str | None:
    """Print is below, above or beside its thing; None where it is in a corner."""
    if card.item is None:
        return None
    (left, top, right, bottom), (x, _) = card.item.box, card.label.centre
    if card.label.box[0] >= right:
        return "beside"
    if (
        not left - 0.3 * (right - left) < x < right + 0.3 * (right - left)
        and abs(x - card.item.centre[0]) > 0.02
    ):
        return None
    return (
        "below"
        if card.label.box[1] >= bottom - 0.01
        else "above"
        if card.label.box[3] <= top + 0.01
        else None
    )


def all_labels(rng: Random, kind: str, cards: Sequence[Labelled], second: bool = False) -> Fact:
    """What is printed at all of them, or the other line of each."""
    lines = [card.second if second and card.second is not None else card.label for card in cards]
    return Fact(
        "card labels",
        asked(rng, kind),
        ", ".join(line.text for line in lines),
        evidence=(("the labels", tuple(lines)),),
    )
