"""What may be asked about the things of a scene one by one, and the true answers. No torch, no model."""

from collections import Counter
from random import Random

import numpy as np

from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES, SIZES
from kestrel_tools.things.colour import names_of as colours_of
from kestrel_tools.things.names import KINDS, by_name, is_plural, nouns, with_article
from kestrel_tools.things.scene import Item, Scene

from .fact import Fact, between_places, caption, is_are, names_of, none_of, place, texts_of
from .questions import asked
from .wanted import (
    Wanted,
    coloured,
    everything,
    of_kind,
    of_noun,
    only,
    sized,
    stranger,
    unrelated,
    wanted,
    word_for,
)


def describe(rng: Random, scene: Scene) -> Fact:
    kind = "this one" if len(scene.items) == 1 and not scene.lines and rng.random() < 0.6 else "describe"
    return Fact("name" if kind == "this one" else "describe", asked(rng, kind), caption(scene, "short"))


def listing(rng: Random, scene: Scene) -> Fact | None:
    """All things, or all of a kind."""
    present = [kind for item in scene.items for kind in item.known_as.kinds]
    kind = rng.choice([*present, *KINDS, "shape"]) if rng.random() < 0.6 else ""
    found = of_kind(scene, kind) if kind else everything(rng, scene)
    if found is None:
        return None
    answer = names_of(found.items) or "none"
    return Fact("list", asked(rng, "list", found.many), answer, evidence=((found.many, found.items),))


def kind_of(rng: Random, scene: Scene) -> Fact | None:
    """Which animal it is, where there is one."""
    kinds = [kind for item in scene.items for kind in item.known_as.kinds]
    found = of_kind(scene, rng.choice(kinds)) if kinds else None
    if found is None or len(found.items) != 1:
        return None
    name = found.items[0].noun if found.one == "shape" else found.items[0].name
    return Fact("kind", asked(rng, "kind", found.one), name, evidence=((f"the {found.one}", found.items),))


def count(rng: Random, scene: Scene) -> Fact:
    return _how_many(rng, _counted(rng, scene))


def count_of_kind(rng: Random, scene: Scene) -> Fact | None:
    """How many animals there are, where these are dogs and cats."""
    kinds = [kind for item in scene.items for kind in item.known_as.kinds]
    found = of_kind(scene, rng.choice(kinds)) if kinds else None
    return _how_many(rng, found) if found and len({item.noun for item in found.items}) > 1 else None


def count_several(rng: Random, scene: Scene) -> Fact | None:
    """How many there are of what is there more than once."""
    there = Counter(item.noun for item in scene.items)
    several = [noun for noun, number in there.items() if number > 1]
    if not several:
        return None
    noun = rng.choice(several)
    word = noun if noun in SHAPES else word_for(rng, by_name()[noun])
    found = of_noun(scene, word, noun)
    return None if found is None else _how_many(rng, found)


def _how_many(rng: Random, found: Wanted) -> Fact:
    number, words = len(found.items), found.many
    sentence = f"There is 1 {found.one}." if number == 1 else f"There are {number or 'no'} {words}."
    if is_plural(found.one) or " and " in words:
        sentence = ""  # nobody says "1 scissors"
    return Fact("count", asked(rng, "count", words), str(number), sentence, ((found.right, found.items),))


def _counted(rng: Random, scene: Scene) -> Wanted:
    chance = rng.random()
    if chance < 0.2:
        return everything(rng, scene)
    if chance < 0.28:
        small = sized(everything(rng, scene), rng.choice(SIZES))
        if small is not None:
            return small
    elif chance < 0.34:
        red = coloured(everything(rng, scene), rng.choice(COLOUR_NAMES))
        if red is not None:
            return red
    if chance < 0.46 and (both := _either(rng, scene)) is not None:
        return both
    return wanted(rng, scene, 0.85)


def _either(rng: Random, scene: Scene) -> Wanted | None:
    """Two kinds of things together: dogs and cats."""
    first, second = wanted(rng, scene, 0.85), wanted(rng, scene, 0.6)
    if not unrelated(first, second):
        return None
    items = tuple(
        item for item in scene.items if any(item is other for other in (*first.items, *second.items))
    )
    return Wanted(f"{first.one} or {second.one}", f"{first.many} and {second.many}", items)


def presence(rng: Random, scene: Scene) -> Fact:
    found = stranger(rng, scene) if rng.random() < 0.12 else wanted(rng, scene, 0.5)
    yes = bool(found.items)
    plural = rng.random() < 0.45
    subject = found.many if plural else with_article(found.one)
    question = asked(rng, "presence any" if plural else "presence", subject)
    sentence = f"Yes, there is {with_article(found.one)}." if yes else f"No, t{none_of(found.one)[1:]}"
    answer = "yes" if yes else "no"
    return Fact("presence", question, answer, sentence, ((f"the {found.one}", found.items[:1]),))


def is_this(rng: Random, scene: Scene) -> Fact | None:
    """Whether the one thing that is there is a cat, or an animal."""
    if len(scene.items) != 1 or scene.lines:
        return None
    found = wanted(rng, scene, 0.5)
    yes = "yes" if found.items else "no"
    told = with_article(scene.items[0].name)
    sentence = f"Yes, it is {with_article(found.one)}." if found.items else f"No, it is {told}."
    question = asked(rng, "is this", with_article(found.one))
    return Fact("presence", question, yes, sentence, ((told, scene.items),))


def presence_of_two(rng: Random, scene: Scene) -> Fact | None:
    first, second = wanted(rng, scene, 0.6), wanted(rng, scene, 0.5)
    if not unrelated(first, second):
        return None
    joint = rng.choice(("or", "and"))
    there = (bool(first.items), bool(second.items))
    yes = any(there) if joint == "or" else all(there)
    question = asked(rng, f"presence {joint}", with_article(first.one), with_article(second.one))
    shown = tuple((f"the {found.one}", found.items[:1]) for found in (first, second) if found.items)
    return Fact("presence", question, "yes" if yes else "no", evidence=shown)


def colour(rng: Random, scene: Scene) -> Fact | None:
    found = _unlike(rng, scene)
    if found is None:
        return absent(rng, scene, "colour") if rng.random() < 0.15 else None
    words, item = found
    return _told(rng, "colour", words, item, item.colour)


def is_colour(rng: Random, scene: Scene) -> Fact | None:
    found = _unlike(rng, scene)
    if found is None:
        return None
    words, item = found
    other = item.colour if rng.random() < 0.5 else rng.choice(COLOUR_NAMES)
    answer = "yes" if other == item.colour else "no"
    question = asked(rng, "is colour", f"the {words}", other, many=is_plural(words))
    sentence = f"{answer.capitalize()}, the {words} {is_are(words)} {item.colour}."
    return Fact("is colour", question, answer, sentence, ((f"the {words}", (item,)),))


def _unlike(rng: Random, scene: Scene) -> tuple[str, Item] | None:
    """An item with a colour, described without it."""
    found = only(rng, scene)
    if found is None or not found[1].colour or found[1].colour in found[0].split():
        return None
    return found


def shape(rng: Random, scene: Scene) -> Fact | None:
    """Which shape has a colour, where one thing alone has it."""
    there = [item for item in scene.items if item.is_shape]
    if not there or not all(item.colour and item.size for item in scene.items):
        return None
    item = rng.choice(there)
    adjectives = item.colour if rng.random() < 0.7 else f"{item.size} {item.colour}"
    alike = [other for other in scene.items if set(adjectives.split()) <= {other.size, other.colour}]
    if len(alike) != 1:
        return None
    sentence = f"The {adjectives} shape is {with_article(item.noun)}."
    evidence = ((f"the {adjectives} shape", (item,)),)
    return Fact("shape", asked(rng, "shape", adjectives), item.noun, sentence, evidence)


def size(rng: Random, scene: Scene) -> Fact | None:
    found = only(rng, scene)
    if found is None or not found[1].size or found[1].size in found[0].split():
        return absent(rng, scene, "size") if rng.random() < 0.1 else None
    return _told(rng, "size", *found, found[1].size)


def where(rng: Random, scene: Scene) -> Fact | None:
    if scene.lines and rng.random() < 0.12:
        if len(scene.lines) > 1 or between_places(scene.lines[0]):
            return None
        word = rng.choice(("text", "word", "writing", "print"))
        evidence = (("the text", scene.lines),)
        return Fact("place", asked(rng, "where", f"the {word}"), place(scene.lines[0]), evidence=evidence)
    found = only(rng, scene)
    if found is None:
        return absent(rng, scene, "where") if rng.random() < 0.2 else None
    words, item = found
    if between_places(item):
        return None
    told = _told(rng, "where", words, item, place(item), "at the ")
    return told._replace(kind="place")


def _told(rng: Random, kind: str, words: str, item: Item, answer: str, article: str = "") -> Fact:
    question = asked(rng, kind, f"the {words}", many=is_plural(words))
    sentence = f"The {words} {is_are(words)} {article}{answer}."
    return Fact(kind, question, answer, sentence, ((f"the {words}", (item,)),))


def absent(rng: Random, scene: Scene, kind: str) -> Fact | None:
    """A question about something that is not there."""
    noun = rng.choice(nouns())
    word = word_for(rng, noun)
    found = of_noun(scene, word, noun.name)
    if found is None or found.items:
        return None
    return Fact("absent", asked(rng, kind, f"the {word}", many=is_plural(word)), none_of(word))


def ground(rng: Random, scene: Scene) -> Fact | None:
    background = scene.background
    if background.kind not in ("plain", "noise") or scene.marks:
        return None
    [name] = colours_of(np.array([background.first]))
    return Fact("ground", asked(rng, "ground"), str(name)) if name else None


def read(rng: Random, scene: Scene) -> Fact | None:
    if not scene.lines:
        return Fact("read none", asked(rng, "read"), "nothing") if rng.random() < 0.08 else None
    text = texts_of(scene)
    number = len(scene.lines) == 1 and text.isdigit() and rng.random() < 0.5
    sentence = f"The text says {text}."
    return Fact(
        "read", asked(rng, "read number" if number else "read"), text, sentence, (("the text", scene.lines),)
    )


def has_text(rng: Random, scene: Scene) -> Fact:
    evidence = (("the text", scene.lines),)
    return Fact("has text", asked(rng, "has text"), "yes" if scene.lines else "no", evidence=evidence)


def empty(rng: Random, scene: Scene) -> Fact | None:
    if scene.marks and not scene.items and not scene.lines:
        return None
    kind = rng.choice(("is empty", "is anything"))
    yes = bool(scene.items or scene.lines) == (kind == "is anything")
    return Fact("presence", asked(rng, kind), "yes" if yes else "no")
