"""Scenes of things in cells: random ones, and those that a test lays out."""

import re
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np

from kestrel_tools.things.atlas import ARRAYS, Atlas, Sprites
from kestrel_tools.things.cards.draw import draw_cards
from kestrel_tools.things.language.cards import label_facts as card_label_facts
from kestrel_tools.things.language.cards.facts import card_fact
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.names import nouns
from kestrel_tools.things.scene import Card, Cards, Item, Line, Scene
from tests.small_atlas import small_atlas
from tests.thing_scenes import WHITE, at

PIXELS = (252, 252)


@cache
def wide_atlas() -> Atlas:
    """All things, each as one of the few of the small atlas."""
    atlas, names = small_atlas(), tuple(noun.name for noun in nouns())
    drawn = np.arange(len(names)) % len(atlas.sprites)
    arrays = (getattr(atlas.sprites, name)[drawn] for name in ARRAYS)
    colours = tuple(atlas.sprites.colours[index] for index in drawn)
    return replace(atlas, sprites=Sprites(names, ("ours",) * len(names), colours, *arrays))


@cache
def scenes() -> tuple[Scene, ...]:
    rng = Random(3)
    drawn = (draw_cards(rng, wide_atlas(), rng.uniform(0.6, 1.7), PIXELS) for _ in range(350))
    return tuple(scene for scene in drawn if scene is not None)


def cards_of(scene: Scene) -> list[Card]:
    assert scene.cards is not None
    return [card for row in scene.cards.rows for card in row]


def laid_out(kind: str, *rows: str, second: dict[str, str] | None = None) -> Scene:
    """ "dog:Mon cat:Tue" is a row of two cells; "-" is an empty one. Print is below."""
    width, height = 1 / max(len(row.split()) for row in rows), 1 / len(rows)
    items: list[Item] = []
    lines: list[Line] = []
    laid = []
    for row_number, row in enumerate(rows):
        cards = []
        for column, text in enumerate(row.split()):
            name, _, label = text.replace("_", " ").partition(":")
            x, y = (column + 0.5) * width, (row_number + 0.4) * height
            item = None if name == "-" else at(name, x, y)
            lower = y + 0.06 + 0.02
            line = Line(
                label, 0, x, lower, 0.05, 0.0, (0, 0, 0), (x - 0.03, lower - 0.01, x + 0.03, lower + 0.01)
            )
            box = (column * width, row_number * height, (column + 1) * width, (row_number + 1) * height)
            cards.append(Card(box, item, line if label else None))
            items += [item] if item else []
            lines += [line] if label else []
            if second and label in second:
                upper = y - 0.08
                spot = (x - 0.03, upper - 0.01, x + 0.03, upper + 0.01)
                lines.append(Line(second[label], 0, x, upper, 0.05, 0.0, (0, 0, 0), spot))
        laid.append(tuple(cards))
    ordered = tuple(sorted(items, key=lambda item: item.centre))
    return Scene(1.0, WHITE, ordered, tuple(lines), cards=Cards(kind, tuple(laid)))


@cache
def asked_of(scene: Scene) -> tuple[Fact, ...]:
    """What may be asked about it, mostly about its print if there is some."""
    assert scene.cards is not None
    rng, printed = Random(1), 4000 if scene.lines else 0
    found = [card_label_facts.label_fact(rng, scene, scene.cards) for _ in range(printed)]
    found += [card_fact(rng, scene) for _ in range(5000 - printed)]
    return tuple(fact for fact in found if fact is not None)


def told(scene: Scene, pattern: str) -> set[str]:
    return {fact.answer for fact in asked_of(scene) if re.search(pattern, fact.question, re.I)}
