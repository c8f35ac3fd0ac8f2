"""What may be asked about a scene, and the true answer in words. No torch, no model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from kestrel_core.loop.step import Coord, Input, Size

from .phrases import OTHER_THINGS, plural, question_of
from .world import COLOUR_NAMES, SHAPES, SIZES, Scene, Thing

NOTHING: tuple[Thing, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A description such as "big red circle"; what is None may be anything."""

    size: str | None = None
    colour: str | None = None
    shape: str | None = None

    def fits(self, thing: Thing) -> bool:
        return all(getattr(self, name) in (None, getattr(thing, name)) for name in Wanted.__slots__)

    def among(self, scene: Scene) -> tuple[Thing, ...]:
        return tuple(filter(self.fits, scene.things))

    def words(self, count: int = 1, any_shape: str = "shape") -> str:
        noun = self.shape or any_shape
        return " ".join(filter(None, (self.size, self.colour, noun if count == 1 else plural(noun))))


class Fact(NamedTuple):
    """A question and its answer, with the things that show it."""

    kind: str
    question: str
    answer: str
    sentence: str = ""
    evidence: tuple[tuple[str, tuple[Thing, ...]], ...] = ()


def caption_text(scene: Scene, length: str) -> str:
    """Short names what is there from left to right, normal adds sizes, long adds places."""
    printed = f"the text {scene.print.text}" if scene.print else ""
    if not scene.things:
        return f"Only {printed}." if printed else "An empty picture."
    if length == "short":
        return _sentence(_listed([_article(t.name) for t in scene.things] + [printed] * bool(printed)))
    sized = [_article(f"{t.size} {t.name}") for t in scene.things]
    if length == "normal":
        return _sentence(("from left to right: " if len(sized) > 1 else "") + _listed(sized)) + (
            f" The text says {scene.print.text}." if scene.print else ""
        )
    count = len(sized)
    opening = f"There {'is' if count == 1 else 'are'} {count} {'shape' if count == 1 else 'shapes'}."
    placed = [_sentence(f"{name} at the {place(t)}") for name, t in zip(sized, scene.things, strict=True)]
    return " ".join([opening, *placed] + ([f"The text says {scene.print.text}."] if scene.print else []))


def place(thing: Thing) -> str:
    """One of nine places of the picture."""
    x, y = thing.centre
    row = "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else ""
    column = "left" if x < 1 / 3 else "right" if x > 2 / 3 else ""
    return " ".join(filter(None, (row, column))) or "center"


def facts(rng: Random, scene: Scene) -> Fact:
    """One thing that is true of the scene, of a random kind that the scene allows."""
    for maker in rng.choices(tuple(FACTS), tuple(FACTS.values()), k=12):
        fact = maker(rng, scene)
        if fact is not None:
            return fact
    return _presence(rng, scene)


def wanted(rng: Random, scene: Scene, present: float = 0.75) -> Wanted:
    """A description: of something in the scene, or of something that is probably not in it."""
    if scene.things and rng.random() < present:
        thing = rng.choice(scene.things)
        colour, shape, size = thing.colour, thing.shape, thing.size
    else:
        # Half of what is absent is nearly there: the right colour on the wrong shape.
        colour, shape = rng.choice(COLOUR_NAMES), rng.choice(SHAPES)
        if scene.things and rng.random() < 0.6:
            near = rng.choice(scene.things)
            colour, shape = (near.colour, shape) if rng.random() < 0.5 else (colour, near.shape)
        size = rng.choice(SIZES)
    kind = rng.random()
    if kind < 0.4:
        return Wanted(None, colour, shape)
    if kind < 0.65:
        return Wanted(None, None, shape)
    if kind < 0.8:
        return Wanted(None, colour, None)
    if kind < 0.88:
        return Wanted(size, colour, shape)
    return Wanted(size, None, shape if rng.random() < 0.7 else None)


def target(rng: Random, scene: Scene) -> tuple[str, tuple[Thing, ...]]:
    """What a caller of point, detect or segment may name, and what that is in the scene."""
    if rng.random() < 0.06:
        return other_thing(rng), ()
    if rng.random() < 0.15:
        return rng.choice(("shape", "shapes", "object", "objects", "thing", "all shapes")), scene.things
    what = wanted(rng, scene, 0.8)
    found = what.among(scene)
    words = what.words(1 if rng.random() < 0.75 else 2, rng.choice(("shape", "shape", "object", "thing")))
    return (f"the {words}" if rng.random() < 0.08 else words), found


def other_thing(rng: Random) -> str:
    """Something that is not in this world: a known word, or random letters."""
    if rng.random() < 0.75:
        return rng.choice(OTHER_THINGS)
    letters = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 7)))
    return f"{rng.choice(COLOUR_NAMES)} {letters}" if rng.random() < 0.2 else letters


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _described(rng: Random, scene: Scene, *ways: str) -> tuple[Thing, list[Wanted]] | None:
    """A thing, and the descriptions that fit no other. A way names what is told of it, as in "size shape"."""
    if not scene.things:
        return None
    thing = rng.choice(scene.things)
    descriptions = [Wanted(**{name: getattr(thing, name) for name in way.split()}) for way in ways]
    fitting = [wanted for wanted in descriptions if len(wanted.among(scene)) == 1]
    return (thing, fitting) if fitting else None


def _only(rng: Random, scene: Scene) -> tuple[str, Thing] | None:
    """A thing, and words that fit no other."""
    found = _described(rng, scene, "colour shape", "shape", "size colour shape", "colour", "size shape")
    if found is None:
        return None
    thing, fitting = found
    return (fitting[0] if rng.random() < 0.5 else rng.choice(fitting)).words(), thing


def _about(kind: str, question: str, answer: str, words: str, thing: Thing, article: str = "") -> Fact:
    """The fact that a thing, called by these words, is what the answer says."""
    sentence = f"The {words} is {article}{answer}."
    return Fact(kind, question, answer, sentence, ((f"the {words}", (thing,)),))


def _attribute(kind: str, ways: Sequence[str], rng: Random, scene: Scene) -> Fact | None:
    """The colour or the size of a thing, which is described in one of these ways."""
    found = _described(rng, scene, *ways)
    if found is None:
        return None
    thing, words = found[0], rng.choice(found[1]).words()
    return _about(kind, question_of(rng, kind, words), getattr(thing, kind), words, thing)


_colour = partial(_attribute, "colour", ("shape", "size shape", ""))  # "" fits a thing that is alone
_size = partial(_attribute, "size", ("colour shape", "shape", "colour"))


def _shape(rng: Random, scene: Scene) -> Fact | None:
    found = _described(rng, scene, "colour", "size colour", "size")
    if found is None:
        return None
    thing, what = found[0], rng.choice(found[1])
    adjectives = " ".join(filter(None, (what.size, what.colour)))
    question = question_of(rng, "shape" if rng.random() < 0.5 else "shape of", adjectives)
    return _about("shape", question, thing.shape, what.words(), thing, "a ")


def _where(rng: Random, scene: Scene) -> Fact | None:
    found = _only(rng, scene)
    if found is None:
        return None
    words, thing = found
    if any(abs(c - third) < 0.05 for c in thing.centre for third in (1 / 3, 2 / 3)):
        return None  # too near to a border to say
    return _about("place", question_of(rng, "where", words), place(thing), words, thing, "at the ")


def count_fact(rng: Random, scene: Scene) -> Fact:
    if rng.random() < 0.04:
        nouns = other_thing(rng) + "s"
        return Fact("count", question_of(rng, "count", nouns), "0", f"There are no {nouns}.", ((nouns, ()),))
    kind = rng.random()
    what = Wanted() if kind < 0.25 else wanted(rng, scene, 0.85)
    things = what.among(scene)
    noun, count = what.words(2, "shape" if kind >= 0.1 else "object"), len(things)
    one = noun if count != 1 else what.words(1)
    sentence = f"There {'is' if count == 1 else 'are'} {count or 'no'} {one}."
    return Fact("count", question_of(rng, "count", noun), str(count), sentence, ((one, things),))


def _presence(rng: Random, scene: Scene) -> Fact:
    if rng.random() < 0.1:
        words, things = other_thing(rng), NOTHING
    else:
        what = wanted(rng, scene, 0.5)
        words, things = what.words(), what.among(scene)
    yes = bool(things)
    question = question_of(rng, "presence", _article(words))
    sentence = f"Yes, there is {_article(words)}." if yes else f"No, there is no {words}."
    return Fact("presence", question, "yes" if yes else "no", sentence, ((f"the {words}", things[:1]),))


def _is_colour(rng: Random, scene: Scene) -> Fact | None:
    fact = _colour(rng, scene)
    if fact is None:
        return None
    (words, things), true = fact.evidence[0], fact.answer
    other = true if rng.random() < 0.5 else rng.choice(COLOUR_NAMES)
    answer = "yes" if other == true else "no"
    sentence = f"{answer.capitalize()}, {words} is {true}."
    return Fact("is colour", f"Is {words} {other}?", answer, sentence, ((words, things),))


SIDES = {"left": (0, 1), "right": (0, -1), "top": (1, 1), "bottom": (1, -1)}  # axis, and which way along it
RELATIONS = {
    "left of": ("left of", "to the left of"),
    "right of": ("right of", "to the right of"),
    "above": ("above", "over"),
    "below": ("below", "under"),
}


def _relation(rng: Random, scene: Scene) -> Fact | None:
    first, second = _only(rng, scene), _only(rng, scene)
    if first is None or second is None or first[1] is second[1]:
        return None
    relation = rng.choice(tuple(RELATIONS))
    axis = 0 if relation in ("left of", "right of") else 1
    difference = first[1].centre[axis] - second[1].centre[axis]
    if abs(difference) < 0.06:
        return None
    true = (difference < 0) == (relation in ("left of", "above"))
    words = rng.choice(RELATIONS[relation])
    answer = "yes" if true else "no"
    sentence = f"{answer.capitalize()}, the {first[0]} is {'' if true else 'not '}{relation} the {second[0]}."
    evidence = ((f"the {first[0]}", (first[1],)), (f"the {second[0]}", (second[1],)))
    return Fact("relation", f"Is the {first[0]} {words} the {second[0]}?", answer, sentence, evidence)


def _extreme(rng: Random, scene: Scene) -> Fact | None:
    if len(scene.things) < 2:
        return None
    side = rng.choice(tuple(SIDES))
    axis, sign = SIDES[side]
    ordered = sorted(scene.things, key=lambda t: sign * t.centre[axis])
    if abs(ordered[0].centre[axis] - ordered[1].centre[axis]) < 0.05:
        return None
    question = question_of(rng, f"most {side}", "")
    name = ordered[0].name
    return Fact("extreme", question, name, f"It is the {name}.", ((f"the {name}", (ordered[0],)),))


def read_fact(rng: Random, scene: Scene) -> Fact | None:
    if scene.print is None:
        return Fact("read none", question_of(rng, "read", ""), "nothing") if rng.random() < 0.25 else None
    text = scene.print.text
    kind = "read number" if text.isdigit() and rng.random() < 0.5 else "read"
    return Fact("read", question_of(rng, kind, ""), text, f"The text says {text}.")


def _has_text(rng: Random, scene: Scene) -> Fact:
    return Fact("has text", question_of(rng, "has text", ""), "yes" if scene.print else "no")


def _describe(rng: Random, scene: Scene) -> Fact | None:
    if len(scene.things) > 4:
        return None
    return Fact("describe", question_of(rng, "describe", ""), caption_text(scene, "short"))


FACTS: dict[Callable[[Random, Scene], Fact | None], float] = {
    _colour: 2.0,
    _shape: 1.6,
    _size: 1.0,
    _where: 0.8,
    count_fact: 2.6,
    _presence: 1.6,
    _is_colour: 0.8,
    _relation: 3.6,
    _extreme: 1.0,
    read_fact: 3.4,
    _has_text: 0.3,
    _describe: 0.6,
}


def spatial_fact(rng: Random, scene: Scene) -> tuple[Fact, tuple[Input, ...]] | None:
    """A question about a point or a box of the picture."""
    if not scene.things:
        return None
    thing = rng.choice(scene.things)
    x_min, y_min, x_max, y_max = thing.box
    width, height = x_max - x_min, y_max - y_min
    refs: tuple[Input, ...]
    if rng.random() < 0.4:
        loose = rng.uniform(0.9, 1.25)
        size = Size(min(1.0, width * loose), min(1.0, height * loose))
        refs = (*map(Coord, thing.centre), size)
    else:
        x = thing.centre[0] + rng.uniform(-0.22, 0.22) * width
        refs = (Coord(x), Coord(thing.centre[1] + rng.uniform(-0.22, 0.22) * height))
        if rng.random() < 0.12:
            x, y = rng.uniform(0.02, 0.98), rng.uniform(0.02, 0.98)
            boxes = [t.box for t in scene.things] + ([scene.print.box] if scene.print is not None else [])
            if all(not (b[0] - 0.04 < x < b[2] + 0.04 and b[1] - 0.04 < y < b[3] + 0.04) for b in boxes):
                return Fact("spatial", question_of(rng, "this", ""), "nothing"), (Coord(x), Coord(y))
    kind = rng.random()
    if kind < 0.5:
        sentence = f"This is {_article(thing.name)}."
        return Fact("spatial", question_of(rng, "this", ""), thing.name, sentence), refs
    name = "colour" if kind < 0.75 else "shape"
    return Fact("spatial", question_of(rng, f"this {name}", ""), getattr(thing, name)), refs
