"""What may be asked about things in relation to each other: places, sizes, numbers. No torch, no model."""

import math
from itertools import pairwise
from random import Random

from kestrel_tools.things.names import is_plural
from kestrel_tools.things.scene import Item, Scene

from .fact import ORDINALS, Fact, is_are
from .questions import asked
from .wanted import everything, of_kind, only, unrelated, wanted

SIDES = {"left": (0, 1), "right": (0, -1), "top": (1, 1), "bottom": (1, -1)}  # axis, and which way along it
RELATIONS = {
    "left of": ("left of", "to the left of", "on the left of", "left from"),
    "right of": ("right of", "to the right of", "on the right of"),
    "above": ("above", "over", "higher than", "on top of"),
    "below": ("below", "under", "beneath", "underneath", "lower than"),
}
MOST_COUNTED = 5  # from a side
CLEARLY = 0.05  # fractions of the picture, by which centres differ when nobody doubts it
LARGER = 1.35  # how many times the box of a bigger thing is as large
MOST_LISTED = 4  # names in an answer


def holds(relation: str, item: Item, other: Item) -> bool | None:
    """Whether it holds between two centres; None where it is hard to say."""
    axis = 0 if relation in ("left of", "right of") else 1
    difference = item.centre[axis] - other.centre[axis]
    if abs(difference) < CLEARLY:
        return None
    return (difference < 0) == (relation in ("left of", "above"))


def relation(rng: Random, scene: Scene) -> Fact | None:
    first, second = only(rng, scene), only(rng, scene)
    if first is None or second is None or first[1] is second[1]:
        return None
    which = rng.choice(tuple(RELATIONS))
    true = holds(which, first[1], second[1])
    if true is None:
        return None
    words = rng.choice(RELATIONS[which])
    question = asked(rng, "relation", f"the {first[0]}", words, f"the {second[0]}", many=is_plural(first[0]))
    answer, negation = ("yes", "") if true else ("no", "not ")
    sentence = f"{answer.capitalize()}, the {first[0]} {is_are(first[0])} {negation}{which} the {second[0]}."
    evidence = ((f"the {first[0]}", (first[1],)), (f"the {second[0]}", (second[1],)))
    return Fact("relation", question, answer, sentence, evidence)


def nearest(rng: Random, scene: Scene) -> Fact | None:
    found = only(rng, scene)
    if found is None or len(scene.items) < 2:
        return None
    words, item = found
    (unit_x, unit_y), (x, y) = scene.unit, item.centre

    def distance(other: Item) -> float:
        return math.hypot((other.centre[0] - x) / unit_x, (other.centre[1] - y) / unit_y)

    others = sorted((other for other in scene.items if other is not item), key=distance)
    if len(others) > 1 and distance(others[1]) < 1.3 * distance(others[0]):
        return None
    evidence = ((f"the {words}", (item,)), ("the nearest", (others[0],)))
    question = asked(rng, "nearest", f"the {words}", many=is_plural(words))
    return Fact("nearest", question, others[0].name, evidence=evidence)


def _group(rng: Random, scene: Scene) -> tuple[str, tuple[Item, ...], bool] | None:
    """Two things or more to choose from, in words, and whether the words must be said."""
    kinds = [kind for item in scene.items for kind in item.known_as.kinds]
    if kinds and rng.random() < 0.4:
        found = of_kind(scene, rng.choice(kinds))
        if found is not None and len(found.items) >= 2:
            return found.one, found.items, True
    found = everything(rng, scene)
    return (found.one, found.items, False) if len(found.items) >= 2 else None


def extreme(rng: Random, scene: Scene) -> Fact | None:
    group = _group(rng, scene)
    if group is None:
        return None
    words, items, named = group
    side = rng.choice(tuple(SIDES))
    axis, sign = SIDES[side]
    ordered = sorted(items, key=lambda item: sign * item.centre[axis])
    if abs(ordered[0].centre[axis] - ordered[1].centre[axis]) < CLEARLY:
        return None
    return _chosen("extreme", asked(rng, f"most {side}", words, named=named), ordered[0])


def superlative(rng: Random, scene: Scene) -> Fact | None:
    group = _group(rng, scene)
    if group is None:
        return None
    words, items, named = group
    kind = rng.choice(("big", "small"))
    ordered = sorted(items, key=lambda item: item.area, reverse=kind == "big")
    first, second = ordered[0].area, ordered[1].area
    if max(first, second) < LARGER * min(first, second):
        return None
    return _chosen("superlative", asked(rng, f"most {kind}", words, named=named), ordered[0])


def _chosen(kind: str, question: str, item: Item) -> Fact:
    return Fact(kind, question, item.name, f"It is the {item.name}.", ((f"the {item.name}", (item,)),))


def ordinal(rng: Random, scene: Scene) -> Fact | None:
    side = rng.choice(("left", "right", "top"))
    axis, sign = SIDES[side]
    ordered = sorted(scene.items, key=lambda item: sign * item.centre[axis])
    number = rng.randrange(min(len(ordered), MOST_COUNTED)) if ordered else 0
    around = ordered[max(0, number - 1) : number + 2]
    places = [item.centre[axis] for item in around]
    if len(ordered) < 2 or any(abs(a - b) < CLEARLY for a, b in pairwise(places)):
        return None
    return _chosen("ordinal", asked(rng, "ordinal", ORDINALS[number], side), ordered[number])


def sizes(rng: Random, scene: Scene) -> Fact | None:
    """Which of two things is bigger, or whether one is."""
    first, second = only(rng, scene), only(rng, scene)
    if first is None or second is None or first[1] is second[1]:
        return None
    (words, item), (other_words, other) = first, second
    if max(item.area, other.area) < LARGER * min(item.area, other.area):
        return None
    evidence = ((f"the {words}", (item,)), (f"the {other_words}", (other,)))
    bigger = item.area > other.area
    if rng.random() < 0.5:
        asks_bigger = rng.random() < 0.7
        kind = "bigger of" if asks_bigger else "smaller of"
        right = first if bigger == asks_bigger else second
        question = asked(rng, kind, f"the {words}", f"the {other_words}")
        return Fact("compare", question, right[0], f"The {right[0]} is.", evidence)
    comparative = rng.choice(("bigger", "larger", "smaller"))
    yes = bigger == (comparative != "smaller")
    question = asked(
        rng, "compare size", f"the {words}", comparative, f"the {other_words}", many=is_plural(words)
    )
    return Fact("compare", question, "yes" if yes else "no", evidence=evidence)


def numbers(rng: Random, scene: Scene) -> Fact | None:
    """Whether there are more of one thing than of another."""
    first, second = wanted(rng, scene, 0.9), wanted(rng, scene, 0.9)
    if not unrelated(first, second) or not (first.items or second.items):
        return None
    evidence = tuple((found.right, found.items) for found in (first, second) if found.items)
    more, fewer = len(first.items), len(second.items)
    if rng.random() < 0.5:
        answer = "yes" if more > fewer else "no"
        return Fact("compare", asked(rng, "more of", first.many, second.many), answer, evidence=evidence)
    answer = "the same" if more == fewer else (first if more > fewer else second).many
    return Fact("compare", asked(rng, "which more", first.many, second.many), answer, evidence=evidence)
