"""Descriptions of what may be in a scene, such as "small dogs" or "animals", and what they fit. No torch."""

from dataclasses import dataclass
from functools import cache
from random import Random

from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES, SIZES
from kestrel_tools.things.names import KINDS, Noun, disputed, nouns, plural, strangers
from kestrel_tools.things.scene import Item, Scene

EVERYTHING: tuple[tuple[str, str], ...] = (("thing", "things"), ("object", "objects"), ("item", "items"))
SHAPE_WORDS = ("shape", "shapes")
AKIN = 0.5  # of what is asked for and absent is of a kind with something there
LANDSCAPE = ("road", "river", "mountain", "beach", "table")  # what hills and bands may be taken for


@dataclass(frozen=True, slots=True)
class Wanted:
    """Words for one and for many, and what of the scene they fit."""

    one: str
    many: str
    items: tuple[Item, ...]

    @property
    def right(self) -> str:
        """The words for as many as there are."""
        return self.one if len(self.items) == 1 else self.many


def unrelated(first: Wanted, second: Wanted) -> bool:
    """Whether they name different things, so that it makes sense to compare or add them."""
    shared = any(item is other for item in first.items for other in second.items)
    return not shared and first.one.rsplit(" ", 1)[-1] != second.one.rsplit(" ", 1)[-1]


def everything(rng: Random, scene: Scene) -> Wanted:
    words = EVERYTHING
    if scene.items and all(item.is_shape for item in scene.items) and rng.random() < 0.5:
        words = (SHAPE_WORDS,)
    one, many = rng.choice(words)
    return Wanted(one, many, scene.items)


def of_noun(scene: Scene, word: str, noun: str) -> Wanted | None:
    """Things with that name, called by `word`; None where people would differ on one of them."""
    if any(disputed(item.known_as, word) or disputed(item.known_as, noun) for item in scene.items):
        return None
    return Wanted(word, plural(word), tuple(item for item in scene.items if item.noun == noun))


def of_kind(scene: Scene, kind: str) -> Wanted | None:
    if kind == "shape":
        return Wanted(*SHAPE_WORDS, tuple(item for item in scene.items if item.is_shape))
    if any(disputed(item.known_as, kind) for item in scene.items):
        return None
    return Wanted(*KINDS[kind], tuple(item for item in scene.items if kind in item.known_as.kinds))


def sized(wanted: Wanted, size: str) -> Wanted | None:
    """None where one of them is neither small nor big."""
    if any(not item.size for item in wanted.items):
        return None
    fitting = tuple(item for item in wanted.items if item.size == size)
    return Wanted(f"{size} {wanted.one}", f"{size} {wanted.many}", fitting)


def coloured(wanted: Wanted, colour: str) -> Wanted | None:
    """None where the colour of one of them cannot be told."""
    if any(not item.colour for item in wanted.items):
        return None
    fitting = tuple(item for item in wanted.items if item.colour == colour)
    return Wanted(f"{colour} {wanted.one}", f"{colour} {wanted.many}", fitting)


def word_for(rng: Random, noun: Noun) -> str:
    """Its own name, or one of the others it goes by."""
    return rng.choice(noun.also) if noun.also and rng.random() < 0.25 else noun.name


def stranger(rng: Random, scene: Scene) -> Wanted:
    """Something that is in no picture of this world: a known word, or random letters."""
    if rng.random() < 0.85:
        word = rng.choice(strangers())
        landscape = bool(scene.marks) and word in LANDSCAPE
        landscape |= scene.cards is not None and word in ("rectangle", "oval")
        if landscape or any(disputed(item.known_as, word) for item in scene.items):
            word = "bridge"
    else:
        word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 7)))
    return Wanted(word, plural(word), ())


def wanted(rng: Random, scene: Scene, present: float = 0.75) -> Wanted:
    """A description: of something in the scene, or of something that is probably not in it."""
    for _ in range(6):
        found = _shape(rng, scene, present) if _speak_of_shapes(rng, scene) else _thing(rng, scene, present)
        if found is not None:
            return found
    return stranger(rng, scene)


def _speak_of_shapes(rng: Random, scene: Scene) -> bool:
    if scene.cards is not None and not any(item.is_shape for item in scene.items):
        return False  # tiles look like squares, and discs like circles
    share = sum(item.is_shape for item in scene.items) / len(scene.items) if scene.items else 0.3
    return rng.random() < 0.1 + 0.8 * share


def _thing(rng: Random, scene: Scene, present: float) -> Wanted | None:
    there = [item.known_as for item in scene.items if not item.is_shape]
    if there and rng.random() < present:
        noun = rng.choice(there)
    else:
        kinds = rng.choice(there).kinds if there and rng.random() < AKIN else ()
        noun = rng.choice(_of_kind(rng.choice(kinds)) if kinds else nouns())
    kind = rng.random()
    if kind < 0.2 and noun.kinds:
        found = of_kind(scene, rng.choice(noun.kinds))
    else:
        found = of_noun(scene, word_for(rng, noun), noun.name)
    if found is None or kind < 0.72:
        return found
    if kind < 0.9:
        return sized(found, rng.choice(SIZES))
    colours = [item.colour for item in found.items if item.colour]
    return coloured(
        found, rng.choice(colours) if colours and rng.random() < present else rng.choice(COLOUR_NAMES)
    )


@cache
def _of_kind(kind: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns() if kind in noun.kinds)


def _shape(rng: Random, scene: Scene, present: float) -> Wanted | None:
    there = [item for item in scene.items if item.is_shape]
    colour, shape, size = rng.choice(COLOUR_NAMES), rng.choice(SHAPES), rng.choice(SIZES)
    if there:
        near = rng.choice(there)
        if rng.random() < present:
            colour, shape, size = near.colour, near.noun, near.size
        elif rng.random() < 0.6:  # what is absent is often nearly there: the right colour on the wrong shape
            colour, shape = (near.colour, shape) if rng.random() < 0.5 else (colour, near.noun)
    every = Wanted(*SHAPE_WORDS, tuple(there))
    of_shape = Wanted(shape, plural(shape), tuple(item for item in there if item.noun == shape))
    kind = rng.random()
    if kind < 0.4:
        return coloured(of_shape, colour)
    if kind < 0.65:
        return of_shape
    if kind < 0.78:
        return coloured(every, colour)
    if kind < 0.88:
        red = coloured(of_shape, colour)
        return red and sized(red, size)
    return sized(of_shape if rng.random() < 0.7 else every, size)


def only(rng: Random, scene: Scene, item: Item | None = None) -> tuple[str, Item] | None:
    """Words that fit one item of the scene alone, without "the", and the item."""
    if not scene.items:
        return None
    item = item or rng.choice(scene.items)
    if item.is_shape:
        shapes = [other for other in scene.items if other.is_shape]
        ways = (
            (item.name, [other for other in shapes if other.name == item.name]),
            (item.noun, [other for other in shapes if other.noun == item.noun]),
            (f"{item.size} {item.noun}", [o for o in shapes if (o.size, o.noun) == (item.size, item.noun)]),
            (f"{item.size} {item.name}", [o for o in shapes if (o.size, o.name) == (item.size, item.name)]),
        )
        fitting = [words for words, others in ways if len(others) == 1]
        return (rng.choice(fitting), item) if fitting else None
    found = of_noun(scene, word_for(rng, item.known_as), item.noun)
    if found is None:
        return None
    if len(found.items) > 1:
        found = sized(found, item.size)
    return (found.one, item) if found is not None and len(found.items) == 1 else None
