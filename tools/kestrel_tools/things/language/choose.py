"""Which question a scene is asked: one of the kinds that it allows, by their weights. No torch, no model."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import NamedTuple

from kestrel_core.loop.step import Coord, Input, Size
from kestrel_tools.things.language.printed import facts as print_facts
from kestrel_tools.things.language.printed import more as print_more
from kestrel_tools.things.language.traits import facts as traits
from kestrel_tools.things.language.traits import more as traits_more
from kestrel_tools.things.language.whole import called, gist, look, sums
from kestrel_tools.things.names import with_article
from kestrel_tools.things.scene import Scene

from . import choices, claims, facts, kinds, places, relations, unknown
from .cards.facts import card_fact
from .charts.facts import MORE_WEIGHTS, WEIGHTS, chart_fact
from .fact import Fact
from .pages.facts import page_fact
from .questions import asked

Maker = Callable[[Random, Scene], Fact | None]

MAKERS: dict[Maker, float] = {
    facts.describe: 2.4,
    facts.listing: 2.2,
    facts.kind_of: 0.6,
    facts.count: 5.5,
    facts.count_of_kind: 0.4,
    facts.presence: 1.8,
    facts.presence_of_two: 0.4,
    facts.is_this: 1.5,
    facts.colour: 1.8,
    facts.is_colour: 0.8,
    facts.shape: 0.8,
    facts.size: 0.8,
    facts.where: 1.0,
    facts.ground: 0.4,
    facts.read: 6.2,
    facts.has_text: 0.3,
    facts.empty: 0.1,
    relations.relation: 2.2,
    relations.nearest: 0.5,
    relations.extreme: 1.2,
    relations.superlative: 1.0,
    relations.ordinal: 0.5,
    relations.sizes: 0.8,
    relations.numbers: 0.5,
    places.beside: 2.4,
    places.all_beside: 0.3,
    places.parts: 1.6,
    places.between: 1.1,
    choices.either: 1.8,
    kinds.by_colour: 0.8,
    kinds.colours: 0.8,
    kinds.count_not: 0.4,
    kinds.kinds: 0.9,
    print_facts.about_print: 2.0,
    unknown.unknown: 0.5,
    traits.trait: 0.7,
}
# What training asks besides, and the world `wide`; other scores do not, so that they stay the same.
BESIDES: dict[Maker, float] = {
    claims.claim: 1.2,
    claims.two_parts: 0.3,
    **called.WEIGHTS,
    **gist.WEIGHTS,
    **look.WEIGHTS,
    **sums.WEIGHTS,
    **print_more.WEIGHTS,
    **unknown.WEIGHTS,
    **traits_more.WEIGHTS,
}
OF_CARDS = 0.65  # of the questions about things in cells


class Shares(NamedTuple):
    """How often each kind is asked: of scenes, summed up as `random.choices` takes them, and of charts."""

    makers: Sequence[Maker]
    scenes: Sequence[float]
    charts: Mapping[str, float]


def shares_of(
    more: Mapping[Maker, float], more_of_charts: Mapping[str, float], besides: bool = False
) -> Shares:
    """Some kinds so many times as often as in the score, and those `besides` that it does not ask."""
    makers, kinds = (MAKERS | BESIDES, WEIGHTS | MORE_WEIGHTS) if besides else (MAKERS, WEIGHTS)
    weights = {maker: share * more.get(maker, 1.0) for maker, share in makers.items()}
    charts = {kind: share * more_of_charts.get(kind, 1.0) for kind, share in kinds.items()}
    return Shares(tuple(weights), tuple(accumulate(weights.values())), charts)


SCORED = shares_of({}, {})
WIDE = shares_of({}, {}, besides=True)


def fact(rng: Random, scene: Scene, shares: Shares = SCORED) -> Fact:
    """One thing that is true of the scene, of a random kind that the scene allows."""
    if scene.chart is not None:
        return chart_fact(rng, scene, shares.charts)
    if scene.page is not None:
        return page_fact(rng, scene) or facts.presence(rng, scene)
    if scene.cards is not None and rng.random() < OF_CARDS and (found := card_fact(rng, scene)) is not None:
        return found
    for maker in rng.choices(shares.makers, cum_weights=shares.scenes, k=16):
        found = maker(rng, scene)
        if found is not None:
            return found
    return facts.presence(rng, scene)


def spatial_fact(rng: Random, scene: Scene) -> tuple[Fact, tuple[Input, ...]] | None:
    """A question about a point or a box of the picture."""
    if scene.lines and rng.random() < (1.0 if scene.chart is not None else 0.4):
        return _print_there(rng, scene)
    if not scene.items:
        return None
    if rng.random() < 0.08:
        return _nothing_there(rng, scene)
    item = rng.choice(scene.items)
    x_min, y_min, x_max, y_max = item.box
    (x, y), width, height = item.centre, x_max - x_min, y_max - y_min
    refs: tuple[Input, ...]
    if rng.random() < 0.5:
        loose = rng.uniform(0.9, 1.25)
        refs = (Coord(x), Coord(y), Size(min(1.0, width * loose), min(1.0, height * loose)))
    else:
        # Close to the middle, since an item may be a bent one that the rest of its box is not.
        point = (x + rng.uniform(-0.12, 0.12) * width, y + rng.uniform(-0.12, 0.12) * height)
        others = (other.box for other in scene.items if other is not item)
        if any(box[0] < point[0] < box[2] and box[1] < point[1] < box[3] for box in others):
            return None
        refs = (Coord(point[0]), Coord(point[1]))
    if item.colour and rng.random() < 0.25:
        return Fact("spatial", asked(rng, "this colour"), item.colour), refs
    sentence = f"This is {with_article(item.name)}."
    return Fact("spatial", asked(rng, "this"), item.name, sentence), refs


def _print_there(rng: Random, scene: Scene) -> tuple[Fact, tuple[Input, ...]]:
    """What is printed at one place, among other things that are."""
    line = rng.choice(scene.lines)
    x_min, y_min, x_max, y_max = line.box
    x, y = line.centre
    refs: tuple[Input, ...] = (Coord(x), Coord(y))
    if rng.random() < 0.7:
        loose = rng.uniform(1.0, 1.2)
        refs += (Size(min(1.0, (x_max - x_min) * loose), min(1.0, (y_max - y_min) * loose)),)
    number = line.text.isdigit() and rng.random() < 0.5
    question = asked(rng, "read number" if number else "read")
    return Fact("read there", question, line.text), refs


def _nothing_there(rng: Random, scene: Scene) -> tuple[Fact, tuple[Input, ...]] | None:
    """A point of the ground, well away from everything."""
    x, y = rng.uniform(0.02, 0.98), rng.uniform(0.02, 0.98)
    boxes = [item.box for item in scene.items] + [line.box for line in scene.lines]
    if any(b[0] - 0.04 < x < b[2] + 0.04 and b[1] - 0.04 < y < b[3] + 0.04 for b in boxes):
        return None
    return Fact("spatial", asked(rng, "this"), "nothing"), (Coord(x), Coord(y))
