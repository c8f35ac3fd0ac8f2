"""Who is in the cells, and what is printed there. No torch."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES, Background
from kestrel_tools.things.atlas import Atlas
from kestrel_tools.things.compose import ONE_HAND, visible
from kestrel_tools.things.lettering import MOST_LETTERS
from kestrel_tools.things.names import KINDS, by_name
from kestrel_tools.things.scene import MOST_SHAPES

from .labels import WEATHER, labels_for, misnamed, temperatures

Drawing = int | tuple[str, str] | None  # a sprite, a colour and a shape, or nothing

THEMED = 0.4  # of the cards have things of one kind
AGAIN = 0.75  # of the cards where things may be there several times have such
WRONG = 0.4  # of the vocabulary cards have a wrong name somewhere
DEGREES = 0.5  # of the forecasts
NAMED_GOODS = 0.25  # of the menus print what it is as well
PLAINLY = 0.27  # how much a thing's colour differs from what it lies on
MOST_PRINTED = 8  # lines of a scene
PRINTED_NAMES = ("vocabulary", "menu", "shop")


class Cell(NamedTuple):
    drawing: Drawing
    label: str = ""
    second: str = ""  # a temperature beside the day, a name beside the price


class Cast:
    """Fills the cells of one kind of cards, on grounds on which all must be seen."""

    def __init__(
        self, rng: Random, atlas: Atlas, font: int, kind: str, grounds: Sequence[Background]
    ) -> None:
        self._rng, self._atlas, self._font, self._kind, self._grounds = rng, atlas, font, kind, grounds

    def cells(
        self, count: int, again: float, empty: float, printed: bool, of_shapes: bool
    ) -> list[Cell] | None:
        """So many, of which some may be there already, or empty; None where they were not found."""
        rng, kind = self._rng, self._kind
        two = rng.random() < {"forecast": DEGREES, "menu": NAMED_GOODS, "shop": NAMED_GOODS}.get(kind, 0.0)
        count = min(count, MOST_PRINTED // 2) if two else count
        cast = self._shapes(count) if of_shapes else self._things(count, again)
        if cast is None:
            return None
        cast = [None if rng.random() < empty else drawing for drawing in cast]
        if not any(drawing is not None for drawing in cast):
            return None
        if not printed:
            return [Cell(drawing) for drawing in cast]
        things = [self._name(drawing) for drawing in cast]
        labels = self._labels(things)
        if labels is None:
            return None
        seconds = [""] * count
        if two:
            seconds = temperatures(rng, things) if kind == "forecast" else [*map(str.capitalize, things)]
        shown = [self._atlas.fonts.shown(self._font, text) for text in (*labels, *seconds)]
        if max(map(len, shown)) > MOST_LETTERS:
            return None
        return [Cell(*cell) for cell in zip(cast, shown[:count], shown[count:], strict=True)]

    def _labels(self, things: Sequence[str]) -> list[str] | None:
        labels = labels_for(self._rng, self._kind, things)
        if labels is not None and self._kind == "vocabulary" and self._rng.random() < WRONG:
            at = self._rng.randrange(len(labels))
            wrong = misnamed(self._rng, by_name()[things[at]])
            labels[at] = wrong if wrong is not None and wrong not in labels else labels[at]
        if labels is None or self._kind not in ("vocabulary", "names", "tag", "badges"):
            return labels
        weights = (30, 40, 30) if self._kind == "vocabulary" else (85, 0, 15)
        [style] = self._rng.choices((str, str.capitalize, str.upper), weights)
        return [style(label) for label in labels]

    def _name(self, drawing: Drawing) -> str:
        if drawing is None:
            return ""
        return self._atlas.sprites.names[drawing] if isinstance(drawing, int) else " ".join(drawing)

    def _shapes(self, count: int) -> list[Drawing] | None:
        """All different, in colours that can be seen there."""
        fitting = [
            name
            for name in COLOUR_NAMES
            if all(shapes.stands_out(shapes.draw_shade(self._rng, name), ground) for ground in self._grounds)
        ]
        pairs = [(colour, shape) for colour in fitting for shape in SHAPES]
        return [*self._rng.sample(pairs, count)] if count <= min(MOST_SHAPES, len(pairs)) else None

    def _things(self, count: int, again: float) -> list[Drawing] | None:
        """Those of one thing are drawn alike, so that they are a pair."""
        rng, sprites, names = self._rng, self._atlas.sprites, self._names()
        hand = rng.choice(sprites.sets) if rng.random() < ONE_HAND else ""
        again = again if rng.random() < AGAIN else 0.0
        if not names:
            return None
        found: dict[str, int] = {}
        cast: list[Drawing] = []
        for _ in range(6 * count):
            if len(cast) == count:
                break
            rare = [index for index in found.values() if self._kind == "forecast" or cast.count(index) < 2]
            if rare and rng.random() < again:
                cast.append(rng.choice(rare))
                continue
            name = rng.choice(names)
            index = (
                None if name in found else visible(rng, sprites, sprites.drawings(name, hand), self._grounds)
            )
            if index is not None:
                found[name] = index
                cast.append(index)
        rng.shuffle(cast)
        return cast if len(cast) == count else None

    def _seen(self, drawings: Sequence[int]) -> int | None:
        """One that stands out from every tile, since it may come to lie on each."""
        index = visible(self._rng, self._atlas.sprites, drawings, self._grounds)
        if index is None:
            return None
        red, green, blue = self._atlas.sprites.means[index].tolist()
        shown = (shapes.stands_out((red, green, blue), ground, PLAINLY) for ground in self._grounds)
        return index if all(shown) else None

    def _names(self) -> list[str]:
        known = sorted(self._atlas.sprites.by_name)
        if self._kind == "forecast":
            return [name for name in known if name in WEATHER]
        kind = "food" if self._kind == "menu" else ""
        if not kind and self._rng.random() < THEMED:
            kind = self._rng.choice(tuple(KINDS))
        if self._kind in PRINTED_NAMES:
            known = [name for name in known if len(name) <= MOST_LETTERS]
        chosen = [name for name in known if kind in by_name()[name].kinds] if kind else known
        return chosen if len(chosen) > 3 else known
