"""What may be asked about how a chart goes on, which bar is where, and of which colour. No torch, no model.

As in `more`.
"""

from itertools import groupby, pairwise
from random import Random

from kestrel_tools.scenes.world import COLOUR_NAMES
from kestrel_tools.things.language.fact import CANNOT_TELL, Fact

from .more import Maker, fact, put, two, yes
from .printed import absent
from .view import View

LEAST_CHANGE = 0.2  # of the largest value, for a line that goes up or down
MOST_COLOURS = 5
GOING = (
    ("going up", "going down", "up", "down"), ("rising", "falling", "rising", "falling"),
    ("increasing", "decreasing", "increasing", "decreasing"),
    ("growing", "shrinking", "growing", "shrinking"),
    ("heading up", "heading down", "up", "down"),
)  # fmt: skip
UPWARD, DOWNWARD = ("go up", "rise", "increase"), ("go down", "fall", "drop", "decrease")
# What lies below another is lower, also where it is longer.
TALLER = {
    "line": ("higher",),
    "upright": ("taller", "higher", "bigger", "longer"),
    "flat": ("longer", "bigger"),
}
SHORTER = {"line": ("lower",), "upright": ("shorter", "lower", "smaller"), "flat": ("shorter", "smaller")}
ORDINALS = ("second", "third", "fourth")


def goes_on(view: View) -> bool:
    """Whether people say of it that it goes up or down: from left to right."""
    return (view.is_line or view.runs) and not view.is_flat


def _steps(view: View) -> list[bool]:
    """Whether it rises, step by step; empty where somebody might doubt it, or nothing runs on."""
    count = len(view.values)
    if not goes_on(view) or not all(view.clear(at, at + 1) for at in range(count - 1)):
        return []
    return [after > before for before, after in pairwise(view.values)]


def way(rng: Random, view: View) -> Fact | None:
    """Which way it goes, all in all."""
    rises = _steps(view)
    turns = [up for up, _ in groupby(rises)]
    if not rises or len(turns) > 2:
        return None
    least = LEAST_CHANGE * max(view.values)
    first, last = view.values[0], view.values[-1]
    best = max(view.values) if turns[0] else min(view.values)
    if len(turns) == 2 and min(abs(best - first), abs(best - last)) >= least and rng.random() < 0.5:
        answer = "up, then down" if turns[0] else "down, then up"
        return fact("direction", put(rng, view, "course"), answer, view)
    if len(turns) == 2 or abs(last - first) < least:
        return None
    chance, (up, down, is_up, is_down) = rng.random(), rng.choice(GOING)
    if chance < 0.35:
        return fact("direction", put(rng, view, "which way"), "up" if turns[0] else "down", view)
    if chance < 0.7:
        x, y = (up, down) if rng.random() < 0.6 else (down, up)
        question = put(rng, view, "going", x=x, y=y)
        return fact("direction", question, is_up if turns[0] else is_down, view)
    asked_up = rng.random() < 0.5
    question = put(rng, view, "is going", x=up if asked_up else down)
    return fact("direction", question, yes(asked_up == turns[0]), view)


def course(rng: Random, view: View) -> Fact | None:
    """Whether it goes one way all the time or ever, how often, where it turns, how it ends."""
    count = len(view.values)
    kind = rng.choice(("ends", "ends", "always", "ever", "how often", "turn"))
    if kind == "ends":
        if count < 3 or not goes_on(view) or not view.clear(0, count - 1):
            return None
        higher = rng.random() < 0.5
        question = put(rng, view, kind, x="higher" if higher else "lower")
        return fact("step", question, yes((view.values[-1] > view.values[0]) == higher), view, 0, count - 1)
    rises = _steps(view)
    if len(rises) < 2:
        return None
    asked_up = rng.random() < 0.5
    word, turns = rng.choice(UPWARD if asked_up else DOWNWARD), [(up, len([*n])) for up, n in groupby(rises)]
    match kind:
        case "always":
            return fact("step", put(rng, view, kind, x=word), yes({*rises} == {asked_up}), view)
        case "ever":
            return fact("step", put(rng, view, kind, x=word), yes(asked_up in rises), view)
        case "how often" if all(n == 1 for up, n in turns if up == asked_up):
            return fact("step", put(rng, view, kind, x=word), str(rises.count(asked_up)), view)
        case "turn" if len(turns) == 2:
            at = turns[0][1]
            before, after = (UPWARD, DOWNWARD) if rises[0] else (DOWNWARD, UPWARD)
            question = put(rng, view, kind, x=rng.choice(before), y=rng.choice(after))
            return fact("step", question, view.labels[at], view, at)
    return None


def _own_colours(view: View) -> tuple[str, ...]:
    """Those of the bars, where they differ and no label is a colour."""
    names = view.chart.colours
    if view.is_line or len(names) < 2 or any(label.lower() in COLOUR_NAMES for label in view.labels):
        return ()
    return names


def _places(view: View) -> list[tuple[str, str]]:
    """Words for the first and the last."""
    found = [("first", "last"), ("top", "bottom") if view.is_flat else ("leftmost", "rightmost")]
    if len(view.labels) == 2:
        found += [("upper", "lower") if view.is_flat else ("left", "right")] * 2
    return found


def by_looks(rng: Random, view: View) -> Fact | None:
    """Which of two is higher, when their colours or places name them."""
    names, pair = _own_colours(view), two(rng, view)
    if pair is None:
        return None
    one, other = pair
    if names and names.count(names[one]) == names.count(names[other]) == 1 and rng.random() < 0.7:
        x, y = names[one], names[other]
    else:
        one, other = 0, len(view.labels) - 1
        x, y = rng.choice(_places(view))
        if not view.clear(one, other):
            return None
        if rng.random() < 0.5:
            one, other, x, y = other, one, y, x
    less = rng.random() < 0.35
    look = "line" if view.is_line else "flat" if view.is_flat else "upright"
    words = {"x": x, "y": y, "taller": rng.choice((SHORTER if less else TALLER)[look])}
    first = (view.values[one] < view.values[other]) == less
    if rng.random() < 0.6:
        return fact("compare", put(rng, view, "is red taller", **words), yes(first), view, one, other)
    return fact("compare", put(rng, view, "red or blue", **words), x if first else y, view, one, other)


def tones(rng: Random, view: View) -> Fact | None:
    """How many bars have a colour, which, and whether any has."""
    names = _own_colours(view)
    if not names and not view.is_line and rng.random() < 0.3:
        names = view.chart.colours * len(view.labels)
    if not names or any(label.lower() in COLOUR_NAMES for label in view.labels):
        return None
    own, other = rng.choice(names), rng.choice([name for name in COLOUR_NAMES if name not in names])
    found = [at for at, name in enumerate(names) if name == own]
    kind = rng.choice(("all colours", "how many red", "how many red", "any red", "any red", "which red"))
    match kind:
        case "all colours" if 1 < len(distinct := [*dict.fromkeys(names)]) <= MOST_COLOURS:
            return fact("colour", put(rng, view, kind), ", ".join(distinct), view)
        case "how many red":
            absent_one = rng.random() < 0.1
            answer = "0" if absent_one else str(len(found))
            return fact("colour", put(rng, view, kind, x=other if absent_one else own), answer, view)
        case "any red":
            true = rng.random() < 0.5
            return fact("colour", put(rng, view, kind, x=own if true else other), yes(true), view)
        case "which red" if 1 < len(found) < len(names):
            return fact("colour", put(rng, view, kind, x=own), view.listed(found), view, *found)
    return None


def spot(rng: Random, view: View) -> Fact | None:
    """The value or the label of one that is counted from either side."""
    last, bar = len(view.labels) - 1, "point" if view.is_line else "bar"
    start, end = ("top", "bottom") if view.is_flat else ("left", "right")
    side = "at the very" if view.is_flat else "on the far"
    found = [(f"{bar} {side} {start}", 0), (f"{bar} {side} {end}", last)]
    found += [(f"{nth} {bar} from the {start}", at) for at, nth in enumerate(ORDINALS, 1) if at <= last]
    found += [(f"{nth} {bar} from the {end}", last - at) for at, nth in enumerate(ORDINALS, 1) if at <= last]
    if last == 1 and not view.is_flat:
        found = [(f"{bar} on the left", 0), (f"{bar} on the right", 1)]
    words, at = rng.choice(found)
    if rng.random() < 0.5 and view.readable(at):
        return fact("value", put(rng, view, "spot value", spot=words), str(view.values[at]), view, at)
    return fact("label of", put(rng, view, "spot label", spot=words), view.labels[at], view, at)


def beside(rng: Random, view: View) -> Fact | None:
    """What is between two, or next to one."""
    count = len(view.labels)
    if count < 3:
        return None
    at = rng.randrange(count)
    near = [n for n in (at - 1, at + 1) if 0 <= n < count]
    if rng.random() < 0.5 and len(near) == 2:
        ends = rng.sample(near, 2)
        question = put(rng, view, "between", *(view.labels[n] for n in ends))
        return fact("label of", question, view.labels[at], view, at)
    question = put(rng, view, "both sides" if len(near) == 2 else "next to", view.labels[at])
    return fact("label of", question, view.listed(near), view, *near)


def missing_of_two(rng: Random, view: View) -> Fact | None:
    """One that is shown and one that is not cannot be compared, nor added."""
    label = absent(rng, view)
    if label is None:
        return None
    kinds = ["which of two", "which of two", "more of", "less of"]
    pair = [label, rng.choice(view.labels)]
    rng.shuffle(pair)
    question = put(rng, view, rng.choice([*kinds, "sum", "difference"] if view.printed else kinds), *pair)
    return None if question is None else Fact("chart missing", question, CANNOT_TELL)


MAKERS: dict[str, Maker] = {
    "way": way, "course": course, "by looks": by_looks, "tones": tones, "spot": spot, "beside": beside,
    "missing of two": missing_of_two,
}  # fmt: skip
