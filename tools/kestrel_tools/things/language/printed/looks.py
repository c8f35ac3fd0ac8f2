"""What may be asked about the looks of print: what it lies on, its colours, size and place. No torch."""

from collections.abc import Callable
from itertools import combinations
from random import Random

from kestrel_tools.things.language.fact import ORDINALS, Fact, between_places, names_of, place, yes_no
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.language.wanted import only
from kestrel_tools.things.scene import Line, Scene

from .facts import ink_name
from .looks_words import QUESTIONS
from .where import apart, colour_behind, is_print, nearest, side_of

LARGER = 1.3  # how many times as high larger letters are
TILTED = 0.12  # what everybody sees
MOST_LISTED = 3
OPPOSITE = {"above": "below", "below": "above", "left of": "right of", "right of": "left of"}
# Letters of which everybody sees whether they are capitals.
TELLING = frozenset("abdefghijlmnqrty")


def asked(rng: Random, kind: str, *subjects: str) -> str:
    """The words of print are spelt as they are."""
    return asked_of(rng, kind, *subjects, exact=True, among=QUESTIONS)


def named(line: Line) -> str:
    return f"the word {line.text}" if line.text.isalpha() else line.text


def _distinct(scene: Scene) -> bool:
    return len({line.text.lower() for line in scene.lines}) == len(scene.lines)


def ground(rng: Random, scene: Scene) -> Fact | None:
    """The colour of the sign, or of whatever is behind the print."""
    if not is_print(scene) or not _distinct(scene):
        return None
    line = rng.choice(scene.lines)
    colour, on_sign = colour_behind(scene, line)
    if not colour:
        return None
    alone, evidence = len(scene.lines) == 1, (("the text", (line,)),)
    if alone and on_sign and rng.random() < 0.7:
        return Fact("text ground", asked(rng, "sign colour"), colour, evidence=evidence)
    question = asked(rng, "behind text", "the text" if alone else named(line))
    return Fact("text ground", question, colour, evidence=evidence)


def colours(rng: Random, scene: Scene) -> Fact | None:
    """The colour of the first line, the colours of all, and whether they are the same."""
    if not is_print(scene) or len(scene.lines) < 2:
        return None
    names, evidence = [ink_name(line.rgb) for line in scene.lines], (("the text", scene.lines),)
    chance = rng.random()
    if chance < 0.5:
        at = rng.randrange(len(names))
        if not apart(scene.lines) or not names[at]:
            return None
        ends = {0: ("top",), len(names) - 1: ("bottom", "last")}
        word = rng.choice((ORDINALS[at], *ends.get(at, ())))
        shown = (("the text", (scene.lines[at],)),)
        return Fact("text colour", asked(rng, "line colour", word), names[at], evidence=shown)
    if not all(names):
        return None
    if chance < 0.8:
        question = asked(rng, "one colour", "both" if len(names) == 2 else "all")
        return Fact("text colour", question, yes_no(len({*names}) == 1), evidence=evidence)
    answer = ", ".join(dict.fromkeys(names))
    return Fact("text colour", asked(rng, "text colours"), answer, evidence=evidence)


def two(rng: Random, scene: Scene) -> Fact | None:
    """Which of two lines is larger or higher up, and whether one is."""
    if not is_print(scene) or len(scene.lines) < 2 or not _distinct(scene):
        return None
    upper, lower = rng.choice(list(combinations(scene.lines, 2)))
    evidence = (("the text", (upper, lower)),)
    pair = [upper.text, lower.text]
    rng.shuffle(pair)
    small, large = sorted((upper, lower), key=lambda line: line.height)
    sized = 0 < LARGER * small.height < large.height and _height(scene, large) > _height(scene, small)
    if sized and rng.random() < 0.6:
        if rng.random() < 0.6:
            return Fact("read part", asked(rng, "larger text", *pair), large.text, evidence=evidence)
        return Fact("says", asked(rng, "is larger", *pair), yes_no(pair[0] == large.text), evidence=evidence)
    if not apart((upper, lower)):
        return None
    if rng.random() < 0.5:
        kind, answer = rng.choice((("upper text", upper.text), ("lower text", lower.text)))
        return Fact("read part", asked(rng, kind, *pair), answer, evidence=evidence)
    if side_of(scene, upper, lower) != "below":
        return None
    kind, first = rng.choice((("is above", upper), ("is below", lower)))
    return Fact("says", asked(rng, kind, *pair), yes_no(pair[0] == first.text), evidence=evidence)


def _height(scene: Scene, line: Line) -> float:
    return (line.box[3] - line.box[1]) / scene.unit[1]


def case_of(rng: Random, scene: Scene) -> Fact | None:
    """Which line is in capitals, where one is and the letters show it."""
    if not is_print(scene) or len(scene.lines) < 2:
        return None
    if any(TELLING.isdisjoint(line.text.lower()) or line.text[0].isdigit() for line in scene.lines):
        return None
    kind, of_case = rng.choice((("capital line", str.isupper), ("small line", str.islower)))
    found = [line for line in scene.lines if of_case(line.text)]
    if len(found) != 1:
        return None
    return Fact("read part", asked(rng, kind), found[0].text, evidence=(("the text", (found[0],)),))


def tilt(rng: Random, scene: Scene) -> Fact | None:
    if not is_print(scene) or len(scene.lines) > 1 or not scene.lines[0].height:
        return None
    [line] = scene.lines
    tilted = abs(line.angle) > TILTED
    if (line.angle and not tilted) or (not tilted and rng.random() < 0.7):  # most print is level
        return None
    kind = rng.choice(("is tilted", "is level"))
    yes = tilted == (kind == "is tilted")
    return Fact("text tilt", asked(rng, kind), yes_no(yes), evidence=(("the text", (line,)),))


def placed(rng: Random, scene: Scene) -> Fact | None:
    """In which half the print is, and where one of several lines is."""
    if not is_print(scene):
        return None
    line = rng.choice(scene.lines)
    evidence = (("the text", (line,)),)
    if len(scene.lines) > 1:
        if between_places(line) or not _distinct(scene):
            return None
        return Fact("place", asked(rng, "where text", named(line)), place(line), evidence=evidence)
    axis, halves = rng.choice(((0, ("left", "right")), (1, ("top", "bottom"))))
    low, high = line.box[axis], line.box[axis + 2]
    if low < 0.5 < high:
        return None
    half = halves[low >= 0.5]
    if rng.random() < 0.5:
        return Fact("place", asked(rng, "which half", *halves), half, evidence=evidence)
    said = rng.choice(halves)
    return Fact("place", asked(rng, "is in half", said), yes_no(said == half), evidence=evidence)


def by_thing(rng: Random, scene: Scene) -> Fact | None:
    """Whether the print is above or below a thing; what else there is."""
    if not is_print(scene):
        return None
    chance = rng.random()
    if chance < 0.5:
        if (scene.marks and not scene.items) or len({item.name for item in scene.items}) > MOST_LISTED:
            return None
        if chance < 0.15:
            return Fact("presence", asked(rng, "anything else"), yes_no(bool(scene.items)))
        evidence = tuple((f"the {item.name}", (item,)) for item in scene.items[:MOST_LISTED])
        answer = names_of(scene.items) or "nothing"
        return Fact("list", asked(rng, "what else"), answer, evidence=evidence)
    found = only(rng, scene) if len(scene.lines) == 1 else None
    if found is None:
        return None
    [line], (words, item) = scene.lines, found
    side = side_of(scene, item, line)
    if not side or nearest(scene, item, scene.lines) is None:
        return None
    said = side if rng.random() < 0.5 else OPPOSITE[side]
    shown = ((f"the {words}", (item,)), ("the text", (line,)))
    return Fact(
        "relation", asked(rng, f"is text {said}", f"the {words}"), yes_no(said == side), evidence=shown
    )


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {
    ground: 0.7,
    colours: 0.5,
    two: 0.9,
    case_of: 0.4,
    tilt: 0.2,
    placed: 0.4,
    by_thing: 0.6,
}
