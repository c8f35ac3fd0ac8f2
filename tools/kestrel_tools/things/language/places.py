"""What may be asked about places: one side of a thing, a part of the picture, between two. No torch."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes.world import Boxed
from kestrel_tools.things.names import is_plural, with_article
from kestrel_tools.things.scene import Item, Line, Scene

from .fact import Fact, is_are, names_of
from .more.places import MORE
from .questions import HERE, PICTURE
from .questions import QUESTIONS as WIDE
from .questions import asked as asked_of
from .relations import CLEARLY, MOST_LISTED, SIDES, holds
from .wanted import Wanted, everything, of_kind, of_noun, only

QUESTIONS: dict[str, tuple[str, ...]] = {
    "neighbour": (
        *(template for template in WIDE["beside"] if " are " not in template),
        "What's {} {}?",
        "What is [just|directly|immediately] {} {}?",
        "[Tell me|Can you tell me|Do you know] what is {} {}.",
        "What do we [have|find|see] {} {}?",
        "Which one is {} {}?",
        "What's that [thing|] {} {}?",
    ),
    "neighbour of kind": (
        "[What|Which] {2} is {0} {1}?",
        "[What's|What is] the {2} {0} {1}?",
        "[What|Which] {2} [do you see|can you see|is there|is located] {0} {1}?",
        "Name the {2} {0} {1}.",
        "What [kind|sort|type] of {2} is {0} {1}?",
    ),
    "all beside": (
        *(template for template in WIDE["beside"] if " are " in template),
        "What [things|objects|items] are {} {}?",
        "[List|Name] [all|all the things|everything|the things] {} {}.",
        "What all is {} {}?",
        "[What are|Which are] [all|] the [things|objects|items] {} {}?",
        "[What|Which] [things|objects] [do you see|can you see|lie] {} {}?",
        "Tell me everything that is {} {}.",
    ),
    "in part": (
        "[What's|What is] {}?",
        "[What's|What is] {} [here|of the picture|of the image|in the drawing|]?",
        f"[What's|What is] {{}} of [the|this] {PICTURE}?",
        "What [do you see|can you see|is there|is shown|do we have|is located|is drawn] {}?",
        "[What|Which] [thing|object|things|objects|one] [is|are] {}?",
        "[Tell me|Can you tell me] what is {}[.|?]",
        "{}, what [is there|do you see|can you see]?",
        "What [appears|sits|lies|shows up] {}?",
        "[Anything|Is there something] {}? What is it?",
        "Name what is {}.",
        "What object is {}?",
    ),
    "kind in part": (
        "[What|Which] {1} is {0}?",
        "[What|Which] {1} [do you see|can you see|is there|is shown] {0}?",
        "[What's|What is] the {1} {0}?",
        f"[What|Which] {{1}} is {{0}} of [the|this] {PICTURE}?",
        "Name the {1} {0}.",
        "{0}, which {1} is [it|there|that]?",
        "The {1} {0}, what is it?",
    ),
    "anything in part": (
        "Is [anything|something] {}?",
        "Is there [anything|something] {}?",
        "[Do|Can] you see [anything|something] {}?",
        "Anything {}?",
    ),
    "is in part": (
        "<Is> {1} {0}?",
        "<Is> {1} {0} [of the picture|of the image|or not|]?",
        "[Do|Can] you see {1} {0}?",
        "Would you say {1} <is> {0}?",
    ),
    "count in part": (
        "How many {1} are {0}?",
        "How many {1} [do you see|can you see|are there|are shown] {0}?",
        "Count the {1} {0}.",
        "{0}, how many {1} are there?",
        f"How many {{1}} are {{0}} of [the|this] {PICTURE}?",
        "[What's|What is] the number of {1} {0}?",
    ),
    "between": (
        "[What's|What is] between {} and {}?",
        "[What thing|What object|Which thing|Which object|Which one] is between {} and {}?",
        "What [do you see|can you see|is there|lies|sits|stands|is located] between {} and {}?",
        "[What's|What is] in between {} and {}?",
        "[What's|What is] in the middle, between {} and {}?",
        "Between {} and {}, what [is there|do you see]?",
        "Name the [thing|object] between {} and {}.",
        "{} and {}: what is between them?",
    ),
    "between two": (
        "[What's|What is] between the [two|] {}?",
        "What [do you see|can you see|is there|lies|sits|stands] [in|] between the [two|] {}?",
        "[What|Which] [thing|object] is between the [two|] {}?",
        "[What's|What is] in the middle of the two {}?",
        "There are two {}[.|,] [What's|what is] [in|] between [them|]?",
        "The two {}: what is between them?",
    ),
    "anything between": (
        "Is [anything|something] between {} and {}?",
        "Is there [anything|something] [in|] between {} and {}?",
        f"[Do|Can] you see anything between {{}} and {{}}[| {HERE}]?",
    ),
    "is between": (
        "<Is> {2} between {0} and {1}?",
        "<Is> {2} [in|somewhere|right] between {0} and {1}?",
        "Is it {2} that <is> between {0} and {1}?",
        "Would you say {2} <is> between {0} and {1}?",
    ),
}  # fmt: skip
BESIDE = {
    "left of": ("left of", "to the left of", "on the left of", "on the left side of", "to the left of"),
    "right of": ("right of", "to the right of", "on the right of", "on the right side of", "to the right of"),
    "above": ("above", "above", "over", "on top of"),
    "below": ("below", "under", "beneath", "underneath", "below"),
}
NOTHING = 0.25  # how many of the questions are asked whose answer is nothing


class Part(NamedTuple):
    """A part of the picture in words, and how far it reaches along each axis: all of it, if None."""

    words: str
    x: str | None
    y: str | None


def _corner(row: str, column: str) -> Part:
    other = "upper" if row == "top" else "lower"
    words = (
        f"[in|in|at] the [{row} {column}|{other} {column}|{row} {column}|{column} {row}] corner",
        f"[in|at|on] the [{row}|{row}|{other}] {column}",
        f"in the corner [at the|on the] {row} {column}",
        f"{row} {column}",
    )
    return Part(f"[{'|'.join((*words[:2] * 3, *words))}]", column, row)


PARTS = (
    *(_corner(row, column) for row in ("top", "bottom") for column in ("left", "right")),
    Part("[at the top|at the top|in the upper part|up at the top|in the top [part|area|third]]", None, "top"),
    Part("[at the bottom|at the bottom|in the lower part|in the bottom [part|area|third]]", None, "bottom"),
    Part("[on|on|at] the [left|left|left side|left hand side|left edge]", "left", None),
    Part("[on|on|at] the [right|right|right side|right hand side|right edge]", "right", None),
    Part("[in|on] the left half", "left half", None),
    Part("[in|on] the right half", "right half", None),
    Part("in the [top|upper] half", None, "top half"),
    Part("in the [bottom|lower] half", None, "bottom half"),
    Part("[in|in|right in|at] the [middle|center|very middle|central part]", "middle", "middle"),
)
# From where to where it is in, and from where to where it may be.
REACH = {
    "left": ((0.0, 0.3), (0.0, 0.43)),
    "right": ((0.7, 1.0), (0.57, 1.0)),
    "top": ((0.0, 0.3), (0.0, 0.43)),
    "bottom": ((0.7, 1.0), (0.57, 1.0)),
    "left half": ((0.0, 0.44), (0.0, 0.56)),
    "right half": ((0.56, 1.0), (0.44, 1.0)),
    "top half": ((0.0, 0.44), (0.0, 0.56)),
    "bottom half": ((0.56, 1.0), (0.44, 1.0)),
    "middle": ((0.37, 0.63), (0.27, 0.73)),
}
FAR = 0.3  # of the shorter side, between things that something else may be between


def asked(rng: Random, kind: str, *subjects: str, many: bool = False) -> str:
    return asked_of(rng, kind, *subjects, many=many, among=QUESTIONS, more=MORE)


def beside(rng: Random, scene: Scene) -> Fact | None:
    """What lies on one side of a thing: the nearest, of all or of a kind."""
    found = only(rng, scene)
    if found is None:
        return None
    words, item = found
    which = rng.choice(tuple(BESIDE))
    kinds = [kind for other in scene.items if other is not item for kind in other.known_as.kinds]
    group = of_kind(scene, rng.choice(kinds)) if kinds and rng.random() < 0.25 else None
    others: Sequence[Item] = scene.items if group is None else group.items
    near = neighbour(scene, item, which, [other for other in others if other is not item], group is None)
    if near is None or (not near and rng.random() > NOTHING):
        return None
    place, the = rng.choice(BESIDE[which]), f"the {words}"
    evidence: tuple[tuple[str, tuple[Boxed, ...]], ...] = ((the, (item,)),)
    if group is not None:
        question = asked(rng, "neighbour of kind", place, the, group.one, many=is_plural(words))
        none = "none"
    else:
        question, none = asked(rng, "neighbour", place, the, many=is_plural(words)), "nothing"
    if not near:
        return Fact("beside", question, none, evidence=evidence)
    name = near[0].name
    sentence = f"The {name} {is_are(name)} {which} {the}."
    return Fact("beside", question, name, sentence, (*evidence, (f"the {name}", near)))


def all_beside(rng: Random, scene: Scene) -> Fact | None:
    """What lies on one side of a thing: the names of all that does."""
    found = only(rng, scene)
    if found is None:
        return None
    words, item = found
    which = rng.choice(tuple(BESIDE))
    others = [other for other in scene.items if other is not item]
    true = [holds(which, other, item) for other in others]
    there = [other for other, is_there in zip(others, true, strict=True) if is_there]
    if not there and rng.random() > NOTHING:
        return None
    if None in true or len({other.name for other in there}) > MOST_LISTED:
        return None
    place = rng.choice(BESIDE[which])
    question = asked(rng, "all beside", place, f"the {words}", many=is_plural(words))
    return Fact("all beside", question, names_of(there) or "nothing", evidence=((f"the {words}", (item,)),))


def neighbour(
    scene: Scene, item: Item, which: str, others: Sequence[Item], with_print: bool
) -> tuple[Item, ...] | None:
    """The nearest on that side, nothing where all lie elsewhere, None where it is hard to say."""
    axis, sign = SIDES[{"above": "top", "below": "bottom"}.get(which) or which.split()[0]]
    unit, centre = scene.unit, item.centre
    found: list[tuple[float, float, Item | None]] = []  # distance, how much it is on that side, which
    everyone: list[Item | None] = [*others]
    places = [other.centre for other in others]
    if with_print:
        places += [line.centre for line in scene.lines]
        everyone += [None] * len(scene.lines)
    for other, at in zip(everyone, places, strict=True):
        along = sign * (centre[axis] - at[axis]) / unit[axis]
        across = abs(centre[1 - axis] - at[1 - axis]) / unit[1 - axis]
        if along > 0.02:
            found.append((math.hypot(along, across), along / max(across, 1e-6), other))
    if not found:
        return ()
    found.sort(key=lambda one: one[0])
    distance, slope, nearest = found[0]
    clearly = slope > 1.25 or (len(found) == 1 and slope > 0.6)
    if nearest is None or not clearly or distance * slope < CLEARLY:
        return None
    if len(found) > 1 and found[1][0] < 1.25 * distance and found[1][1] > 0.4:
        return None
    return (nearest,)


def in_part(part: Part, things: Iterable[Boxed]) -> list[Boxed] | None:
    """Those whose middle is in a part of the picture; None if it is hard to say of one."""
    found = []
    for thing in things:
        inside = may_be = True
        for at, reach in zip(thing.centre, (part.x, part.y), strict=True):
            if reach is not None:
                (low, high), (least, most) = REACH[reach]
                inside &= low <= at <= high
                may_be &= least <= at <= most
        if inside:
            found.append(thing)
        elif may_be:
            return None
    return found


def parts(rng: Random, scene: Scene) -> Fact | None:
    """What is in a part of the picture."""
    kinds = [kind for item in scene.items for kind in item.known_as.kinds]
    group = of_kind(scene, rng.choice(kinds)) if kinds and rng.random() < 0.35 else None
    wanted = everything(rng, scene) if group is None else group
    for part in rng.sample(PARTS, 4):
        there = in_part(part, wanted.items)
        printed = in_part(part, scene.lines)
        if there is None or printed is None or (not there and rng.random() < 0.75):
            continue
        items = [item for item in there if isinstance(item, Item)]
        if len({item.name for item in items}) <= MOST_LISTED:
            return _of_part(
                rng, scene, part.words, items, bool(printed), group.one if group else None, wanted.many
            )
    return None


def _of_part(
    rng: Random, scene: Scene, place: str, items: list[Item], printed: bool, kind: str | None, many: str
) -> Fact | None:
    evidence = tuple((f"the {item.name}", (item,)) for item in items[:3])
    chance = rng.random()
    if chance < 0.12:
        number = str(len(items))
        return Fact(
            "count", asked(rng, "count in part", place, many), number, evidence=((many, tuple(items)),)
        )
    if chance < 0.2:
        if kind is not None or (printed and not items):
            return None
        yes = "yes" if items else "no"
        return Fact("part", asked(rng, "anything in part", place), yes, evidence=evidence[:1])
    if chance < 0.32:
        found = only(rng, scene)
        if found is None or kind is not None:
            return None
        yes = "yes" if any(found[1] is item for item in items) else "no"
        question = asked(rng, "is in part", place, f"the {found[0]}", many=is_plural(found[0]))
        return Fact("part", question, yes, evidence=((f"the {found[0]}", (found[1],)),))
    if kind is not None:
        answer = names_of(items) or "none"
        return Fact("part", asked(rng, "kind in part", place, kind), answer, evidence=evidence)
    if printed:
        return None  # the print may be what is asked for
    answer = names_of(items) or "nothing"
    sentence = f"There is {with_article(answer)}." if len(items) == 1 else ""
    return Fact("part", asked(rng, "in part", place), answer, sentence, evidence)


def between(rng: Random, scene: Scene) -> Fact | None:
    """What lies on the way from one thing to another that is beside, above or below it."""
    if len(scene.items) < 2:
        return None
    pairs = _alike(scene)
    for _ in range(5):
        pair = rng.choice(pairs) if pairs and rng.random() < 0.5 else None
        one, other = rng.sample(scene.items, 2) if pair is None else pair.items
        there = _between(scene, one, other)
        if there is None or (not there and rng.random() < 0.97):
            continue
        if pair is not None:
            question = asked(rng, "between two", pair.many)
            answer = names_of(there) or "nothing"
            return Fact("between", question, answer, evidence=((f"the {pair.many}", pair.items),))
        first, last = only(rng, scene, one), only(rng, scene, other)
        if first is None or last is None:
            continue
        ends = (f"the {first[0]}", f"the {last[0]}")
        evidence = ((ends[0], (first[1],)), (ends[1], (last[1],)))
        chance, answer = rng.random(), names_of(there)
        if chance < 0.12:
            question = asked(rng, "anything between", *ends)
            return Fact("between", question, "yes" if there else "no", evidence=evidence)
        if chance < 0.25:
            third = only(rng, scene, there[0] if there and rng.random() < 0.5 else None)
            if third is None or third[1] is first[1] or third[1] is last[1]:
                continue
            yes = "yes" if any(third[1] is item for item in there) else "no"
            question = asked(rng, "is between", *ends, f"the {third[0]}", many=is_plural(third[0]))
            return Fact("between", question, yes, evidence=(*evidence, (f"the {third[0]}", (third[1],))))
        sentence = (
            f"The {answer} {is_are(answer)} between {ends[0]} and {ends[1]}." if len(there) == 1 else ""
        )
        return Fact("between", asked(rng, "between", *ends), answer or "nothing", sentence, evidence)
    return None


def _alike(scene: Scene) -> list[Wanted]:
    """Those of which there are two."""
    nouns = Counter(item.noun for item in scene.items)
    found = (of_noun(scene, noun, noun) for noun, number in nouns.items() if number == 2)
    return [pair for pair in found if pair is not None and len(pair.items) == 2]


def _between(scene: Scene, first: Item, last: Item) -> list[Item] | None:
    """None where it is hard to say, or where the two are not side by side or one above the other."""
    unit = scene.unit
    (x, y), (end_x, end_y) = ((item.centre[0] / unit[0], item.centre[1] / unit[1]) for item in (first, last))
    across, down = end_x - x, end_y - y
    length = math.hypot(across, down)
    if length < FAR or max(abs(across), abs(down)) < 1.8 * min(abs(across), abs(down)):
        return None
    found = []
    others: tuple[Item | Line, ...] = (*scene.items, *scene.lines)
    for other in others:
        if other is first or other is last:
            continue
        at_x, at_y = other.centre[0] / unit[0] - x, other.centre[1] / unit[1] - y
        along = (at_x * across + at_y * down) / length**2
        aside = abs(at_x * down - at_y * across) / length
        if 0.2 < along < 0.8 and aside < min(0.15, 0.3 * length):
            if not isinstance(other, Item):
                return None
            found.append(other)
        elif -0.05 < along < 1.05 and aside < 0.3:
            return None
    return found if len({item.name for item in found}) <= 3 else None
