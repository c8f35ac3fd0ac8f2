"""Questions that offer two answers, of which one is right: a cat or a dog, red or blue. No torch."""

from random import Random

from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES
from kestrel_tools.things.names import NUMBERS, is_plural, nouns, with_article
from kestrel_tools.things.scene import Item, Scene

from .fact import Fact, is_are
from .more.choices import MORE
from .questions import COLOUR, PICTURE
from .questions import asked as asked_of
from .relations import CLEARLY, LARGER, SIDES
from .wanted import of_kind, of_noun, only, unrelated, wanted

QUESTIONS: dict[str, tuple[str, ...]] = {
    "this or": (
        "Is [it|this|that] {} or {}?",
        "Is [it|this|that] {}, or is it {}?",
        "Is [this|that] [thing|object] {} or {}?",
        f"Does [the|this] {PICTURE} show {{}} or {{}}?",
        "What is [this|it]: {} or {}?",
        "What is [this|it], {} or {}?",
        "Is [this|it] more likely {} or {}?",
    ),
    "the one or": (
        "Is the {2} {0} or {1}?",
        "What is the {2}, {0} or {1}?",
        "Is the {2} {0}, or is it {1}?",
        "The {2}: is it {0} or {1}?",
        "Would you say the {2} is {0} or {1}?",
    ),
    "red or": (
        "<Is> {2} {0} or {1}?",
        "<Is> {2} {0}, or [rather|] {1}?",
        f"[What|Which] {COLOUR} <is> {{2}}, {{0}} or {{1}}?",
        "Would you say {2} <is> {0} or {1}?",
        "{2}: {0} or {1}?",
        "<Is> {2} more {0} or more {1}?",
    ),
    "left or right": (
        "<Is> {2} [on the|to the|at the] {0} or [on the|to the|at the|] {1}?",
        "<Is> {2} [on the|in the] {0} [side|half|] or the {1} [side|half|]?",
        "Do you see {2} on the {0} or on the {1}?",
        "On which side <is> {2}, {0} or {1}?",
        "Which side <is> {2} on, {0} or {1}?",
        "{2}: {0} or {1}?",
    ),
    "top or bottom": (
        "<Is> {2} [at the|on the|near the] {0} or [at the|on the|near the|] {1}?",
        "<Is> {2} in the {0} [part|half] or the {1} [part|half]?",
        "Do you see {2} at the {0} or at the {1}?",
        "{2}: {0} or {1}?",
    ),
    "side of": (
        "<Is> {2} {0} or {1} {3}?",
        "<Is> {2} [placed|located|] {0} or {1} {3}?",
        "Do you see {2} {0} or {1} {3}?",
        "Would you say {2} <is> {0} or {1} {3}?",
    ),
    "further": (
        "[Which|What] is [further|farther|more] {2}, {0} or {1}?",
        "Is {0} or {1} [further|farther] {2}?",
        "Which one is further {2}: {0} or {1}?",
    ),
    "more or": (
        "Are there more {} or more {}?",
        "Are there more {} or {} [here|in the picture|in this image|]?",
        "Do you see more {} or more {}?",
        "Which [are|is] there more of, {} or {}?",
        "More {} or more {}?",
        "Which is more common here, {} or {}?",
        f"Does [the|this] {PICTURE} have more {{}} or more {{}}?",
    ),
    "which of": (
        "Which {2} is {3}, the {0} one or the {1} one?",
        "Is the {0} {2} or the {1} one {3}?",
        "Which {2} is {3}: {0} or {1}?",
        "The {0} {2} or the {1} {2}, which is {3}?",
    ),
    "outstanding": (
        "Is the {2} {3} {0} or {1}?",
        "The {2} {3}: is it {0} or {1}?",
        "Would you say the {2} {3} is {0} or {1}?",
        "What is the {2} {3}, {0} or {1}?",
        "Is the {3} that is {2} {0} or {1}?",
    ),
    "number or": (
        "Are there {} or {} {}?",
        "Do you see {} or {} {}?",
        "How many {2} are there, {0} or {1}?",
        "Do you count {} or {} {}?",
    ),
}  # fmt: skip
OUTSTANDING = {
    "big": ("biggest", "largest"),
    "small": ("smallest", "tiniest"),
    "left": ("leftmost",),
    "right": ("rightmost",),
    "top": ("topmost", "highest", "uppermost"),
    "bottom": ("lowest", "bottommost"),
}
COMPARED = {"left": SIDES["left"], "right": SIDES["right"], "up": SIDES["top"], "down": SIDES["bottom"]}


def either(rng: Random, scene: Scene) -> Fact | None:
    """One of the questions that offer two answers."""
    if not scene.items:
        return None
    return rng.choice(MAKERS)(rng, scene)


def asked(rng: Random, kind: str, right: str, wrong: str, *others: str, many: bool = False) -> str:
    """The two answers come in either order."""
    first, second = (right, wrong) if rng.random() < 0.5 else (wrong, right)
    return asked_of(rng, kind, first, second, *others, many=many, among=QUESTIONS, more=MORE)


def named(rng: Random, scene: Scene) -> Fact | None:
    """Whether it is a cat or a dog."""
    item = rng.choice(scene.items)
    kind = rng.choice(item.known_as.kinds) if item.known_as.kinds else ""
    found = of_kind(scene, kind) if kind else None
    alone = len(scene.items) == 1
    if not alone and (found is None or len(found.items) != 1):
        return None
    if item.is_shape:
        other = rng.choice([shape for shape in SHAPES if shape != item.noun])
    else:
        like = [noun for noun in nouns() if noun.name != item.noun and item.noun not in noun.arguably]
        like = [noun for noun in like if noun.name not in item.known_as.arguably]
        near = [noun for noun in like if kind in noun.kinds]
        if not near and not alone:
            return None
        other = rng.choice(near if near and (not alone or rng.random() < 0.8) else like).name
    right, wrong = with_article(item.noun), with_article(other)
    if alone and rng.random() < 0.7:
        question = asked(rng, "this or", right, wrong)
    elif found is not None:
        question = asked(rng, "the one or", right, wrong, found.one)
    else:
        return None
    return Fact("either", question, item.noun, f"It is {right}.", ((f"the {item.noun}", (item,)),))


def coloured(rng: Random, scene: Scene) -> Fact | None:
    found = only(rng, scene)
    if found is None or not found[1].colour or found[1].colour in found[0].split():
        return None
    wrong = rng.choice([name for name in COLOUR_NAMES if name != found[1].colour])
    return _told(rng, "red or", found, found[1].colour, wrong)


def sided(rng: Random, scene: Scene) -> Fact | None:
    """On the left or on the right, at the top or at the bottom."""
    found = only(rng, scene)
    if found is None:
        return None
    axis = rng.randrange(2)
    at = found[1].centre[axis]
    if abs(at - 0.5) < 0.1:
        return None
    right, wrong = (("left", "right"), ("top", "bottom"))[axis][:: 1 if at < 0.5 else -1]
    return _told(rng, ("left or right", "top or bottom")[axis], found, right, wrong, ("on", "at")[axis])


def _told(
    rng: Random, kind: str, found: tuple[str, Item], right: str, wrong: str, preposition: str = ""
) -> Fact:
    words, item = found
    question = asked(rng, kind, right, wrong, f"the {words}", many=is_plural(words))
    place = f"{preposition} the {right}" if preposition else right
    evidence = ((f"the {words}", (item,)),)
    return Fact("either", question, right, f"The {words} {is_are(words)} {place}.", evidence)


def beside(rng: Random, scene: Scene) -> Fact | None:
    """Left or right of another thing, or which of the two is further left."""
    first, second = only(rng, scene), only(rng, scene)
    if first is None or second is None or first[1] is second[1]:
        return None
    axis = rng.randrange(2)
    difference = first[1].centre[axis] - second[1].centre[axis]
    if abs(difference) < 1.5 * CLEARLY:
        return None
    one, other = f"the {first[0]}", f"the {second[0]}"
    evidence = ((one, (first[1],)), (other, (second[1],)))
    if rng.random() < 0.4:
        way = rng.choice(tuple(COMPARED))
        axis, sign = COMPARED[way]
        difference = sign * (first[1].centre[axis] - second[1].centre[axis])
        if abs(difference) < 1.5 * CLEARLY:
            return None
        right, wrong = (one, other) if difference < 0 else (other, one)
        return Fact("either", asked(rng, "further", right, wrong, way), right[4:], evidence=evidence)
    answers = (("left of", "right of"), ("above", "below"))[axis]
    right, wrong = answers if difference < 0 else answers[::-1]
    many = is_plural(first[0])
    if axis == 0 and rng.random() < 0.5:
        question = asked(rng, "side of", "to the left", "to the right", one, f"of {other}", many=many)
    elif axis == 0:
        question = asked(rng, "side of", "left", "right", one, f"of {other}", many=many)
    else:
        question = asked(rng, "side of", right, wrong, one, other, many=many)
    sentence = f"The {first[0]} {is_are(first[0])} {right} {other}."
    return Fact("either", question, right.split()[0], sentence, evidence)


def more(rng: Random, scene: Scene) -> Fact | None:
    first, second = wanted(rng, scene, 0.95), wanted(rng, scene, 0.9)
    if not unrelated(first, second) or len(first.items) == len(second.items):
        return None
    right, wrong = (first, second) if len(first.items) > len(second.items) else (second, first)
    evidence = tuple((found.right, found.items) for found in (first, second) if found.items)
    return Fact("compare", asked(rng, "more or", right.many, wrong.many), right.many, evidence=evidence)


def of_two(rng: Random, scene: Scene) -> Fact | None:
    """Which of two that have one name is bigger or further left, the green one or the red one."""
    first = rng.choice(scene.items)
    alike = [item for item in scene.items if item.noun == first.noun]
    shown = [item.colour for item in alike]
    others = [item for item in alike if item.colour != first.colour]
    if not others or not all(shown):
        return None
    second = rng.choice(others)
    if shown.count(first.colour) > 1 or shown.count(second.colour) > 1:
        return None
    if rng.random() < 0.6:
        bigger = rng.random() < 0.6
        way = rng.choice(("bigger", "larger")) if bigger else "smaller"
        if max(first.area, second.area) < LARGER * min(first.area, second.area):
            return None
        right = (first.area > second.area) == bigger
    else:
        side = rng.choice(tuple(COMPARED))
        axis, sign = COMPARED[side]
        difference = sign * (first.centre[axis] - second.centre[axis])
        if abs(difference) < 1.5 * CLEARLY:
            return None
        way, right = f"further {side}", difference < 0
    if not right:
        first, second = second, first
    question = asked(rng, "which of", first.colour, second.colour, first.noun, way)
    evidence = tuple((f"the {one.colour} {one.noun}", (one,)) for one in (first, second))
    return Fact("either", question, first.colour, f"The {first.colour} one is.", evidence)


def outstanding(rng: Random, scene: Scene) -> Fact | None:
    """Whether the biggest circle is red or blue, whether the leftmost animal is a dog or a cat."""
    if len(scene.items) < 2:
        return None
    first = rng.choice(scene.items)
    kinds = first.known_as.kinds
    by_noun = of_noun(scene, first.noun, first.noun) if rng.random() < 0.5 or not kinds else None
    group = by_noun or (of_kind(scene, rng.choice(kinds)) if kinds else None)
    if group is None or len(group.items) < 2:
        return None
    if rng.random() < 0.6:
        words, ordered = OUTSTANDING["big"], sorted(group.items, key=lambda item: -item.area)
        if rng.random() < 0.4:
            words, ordered = OUTSTANDING["small"], ordered[::-1]
        (most, next_one) = (item.area for item in ordered[:2])
        if max(most, next_one) < LARGER * min(most, next_one):
            return None
    else:
        side = rng.choice(tuple(SIDES))
        axis, sign = SIDES[side]
        words, ordered = OUTSTANDING[side], sorted(group.items, key=lambda i: sign * i.centre[axis])
        if abs(ordered[0].centre[axis] - ordered[1].centre[axis]) < CLEARLY:
            return None
    item = ordered[0]
    if by_noun is not None:
        right, others = item.colour, [other.colour for other in ordered[1:] if other.colour != item.colour]
        others = others if rng.random() < 0.8 else [name for name in COLOUR_NAMES if name != right]
    else:
        right, others = item.noun, [other.noun for other in ordered[1:] if other.noun != item.noun]
    if not right or not all(others) or not others:
        return None
    wrong = rng.choice(others)
    said = (right, wrong) if by_noun is not None else (with_article(right), with_article(wrong))
    question = asked(rng, "outstanding", *said, rng.choice(words), group.one)
    sentence = f"It is {said[0]}."
    return Fact("either", question, right, sentence, ((f"the {item.name}", (item,)),))


def number(rng: Random, scene: Scene) -> Fact | None:
    """Whether there are two or three of something."""
    found = wanted(rng, scene, 1.0)
    right = len(found.items)
    if right < 1:
        return None
    wrong = right + rng.choice((-1, 1)) if right > 1 else 2
    in_words = rng.random() < 0.5 and max(right, wrong) < len(NUMBERS)
    said = (NUMBERS[right], NUMBERS[wrong]) if in_words else (str(right), str(wrong))
    if wrong < right:  # people name the smaller first
        said = (said[1], said[0])
    question = asked_of(rng, "number or", *said, found.many, among=QUESTIONS, more=MORE)
    return Fact("count", question, str(right), evidence=((found.right, found.items),))


MAKERS = (
    *(named, named, named, coloured, coloured, sided, sided, beside, beside, of_two, of_two),
    *(outstanding, outstanding, more, number),
)
