"""How right each answer is, and how right all are together: rows of a table, each beside its target."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kestrel_core.protocol.errors import KestrelError
from kestrel_tools.things.lettering import is_known

from .asking import Asked
from .named import named
from .pictures import Drawn, Paths
from .world import Box, Boxed

Outcome = Mapping[str, Any] | KestrelError  # the JSON of an answer, or why there is none

MIN_IOU = 0.5
MAX_SAID = 200  # letters of a wrong answer that are kept
GRID = 96  # samples along a side, where outlines are compared
TEXT = re.compile(r"the text (.+?)(?:, | and the text |\.$)")
VALUE_NEAR = 0.05  # of a chart's value

# What the bundled model has to reach, by world.
TARGETS = {
    "query": 0.97,
    "reading": 0.90,
    "reasoning": 0.97,
    "caption": 0.95,
    "detect F1": 0.98,
    "detect IoU": 0.90,
    "point inside": 0.98,
    "point F1": 0.98,
    "none there": 0.97,
}
THINGS_TARGETS = {
    "naming": 0.95,
    "reading": 0.95,
    "caption": 0.90,
    "detect F1": 0.95,
    "chart label": 0.95,
    "chart value": 0.85,
}
UNSEEN_TARGETS = {"naming": 0.80, "reading": 0.85, "caption": 0.70, "detect F1": 0.85}
WORLD_TARGETS = {
    "shapes": TARGETS,
    "things": THINGS_TARGETS,
    "unseen": UNSEEN_TARGETS,
    "line-art": {},  # nothing is asked of it; it shows how far names reach
    "wide": {},  # nor of this one
}
MEANINGS = {
    "naming": "what is in this box, or what this is: things and shapes, exact",
    "query": "exact match, reading left out",
    "reading": "printed words and numbers, exact",
    "chart label": "the largest and the smallest of a chart, exact",
    "chart value": "a value of a chart, within 5 %",
    "spatial refs": "what is at this point or in this box, exact",
    "reasoning": "counts by pointing, exact",
    "grounding inside": "points of the reasoning inside the shapes counted",
    "grounding F1": "each shape counted has one such point",
    "caption": "names every shape with its colour and every thing, and no other",
    "caption names": "names all that is there, whatever it adds or how often",
    "caption exact": "word for word",
    "chart caption": "of charts, word for word",
    "page caption": "of pages of print, word for word",
    "detect F1": "boxes, at IoU 0.5",
    "detect IoU": "mean over the hits",
    "point inside": "points inside a shape that was meant, one each",
    "point F1": "each shape that was meant has one such point",
    "segment F1": "boxes, at IoU 0.5",
    "segment IoU": "outlines, mean over the hits",
    "none there": "nothing is found where nothing is: detect, point, segment",
    "talk": "small talk, exact",
}


class Row(NamedTuple):
    name: str
    value: float
    num: int  # how many the value is a mean of
    target: float | None

    @property
    def met(self) -> bool:
        return self.target is None or self.value >= self.target


class Hits(NamedTuple):
    skill: str
    num_given: int
    num_wanted: int
    overlaps: tuple[float, ...]  # of the hits: IoU of boxes or outlines, 1 for a point


@dataclass(frozen=True, slots=True)
class Grade:
    right: bool
    said: str  # the answer in a line
    rates: Mapping[str, float] = field(default_factory=dict)  # by row
    hits: Hits | None = None


def grade(asked: Asked, outcome: Outcome, picture: Drawn) -> Grade:
    if isinstance(outcome, KestrelError):
        outcome, said = {}, f"{type(outcome).__name__}: {outcome}"
    else:
        said = ""
    match asked.skill:
        case "caption":
            return _caption(asked, outcome.get("caption", said))
        case "query":
            graded = _query(asked, outcome, said, picture)
            about = {f"about {asked.about}": graded.right} if asked.about else {}
            return replace(graded, rates={**graded.rates, **about})
    return _objects(asked, outcome, said, picture)


def _caption(asked: Asked, text: str) -> Grade:
    found = named(text, asked.texts)
    right, exact = found == Counter(asked.names), text == asked.answer
    if asked.kind in ("chart caption", "page caption"):
        return Grade(exact, text, {asked.kind: exact})
    rates = {
        "caption": right,
        asked.kind: right,
        "caption names": {*asked.names} <= {*found},
        "caption exact": exact,
    }
    return Grade(right, text, rates)


def _by_words(asked: Asked, right: bool) -> dict[str, bool]:
    """Whether the print is of words that training shows, which may be guessed, or has to be spelt."""
    if not asked.texts:
        return {}
    known = all(map(is_known, asked.texts))
    return {"reading, known words" if known else "reading, other letters": right}


def _query(asked: Asked, outcome: Mapping[str, Any], said: str, picture: Drawn) -> Grade:
    text = outcome.get("answer", said)
    right = text == asked.answer
    match asked.kind:
        case "reasoning":
            thoughts = outcome.get("reasoning", {}).get("grounding", ())
            points = [(x, y) for part in thoughts for x, y in part["points"]]
            return Grade(right, text, {"reasoning": right}, _pointed("grounding", points, asked, picture))
        case "read":
            return Grade(right, text, {"reading": right, **_by_words(asked, right)})
        case "spatial":
            return Grade(right, text, {"spatial refs": right})
        case "talk":
            return Grade(right, text, {"talk": right})
        case "describe":
            right = right or same_description(text, asked.answer)
        case "naming":
            by_set = {f"naming, {asked.drawn_by}": right} if asked.drawn_by else {}
            return Grade(right, text, {"naming": right, **by_set})
        case "chart largest" | "chart smallest":
            return Grade(right, text, {"chart label": right})
        case "chart value":
            right = near_value(text, float(asked.answer))
            return Grade(right, text, {"chart value": right})
    return Grade(right, text, {"query": right, f"query {asked.kind}": right})


def _objects(asked: Asked, outcome: Mapping[str, Any], said: str, picture: Drawn) -> Grade:
    points = [(found["x"], found["y"]) for found in outcome.get("points", ())]
    segments = outcome.get("segments", ())
    boxes = [box_of(found) for found in outcome.get("objects", [found["bbox"] for found in segments])]
    said = said or str(len(points) + len(boxes))
    if not asked.things:
        right = bool(outcome) and not points and not boxes
        return Grade(right, said, {"none there": right})
    if asked.skill == "point":
        hits = _pointed("point", points, asked, picture)
    else:
        pairs = match_boxes(boxes, [thing.box for thing in asked.things])
        overlaps = [overlap for _, _, overlap in pairs]
        if asked.skill == "segment":
            outlines = [(path_of(segments[given]), asked.things[wanted]) for given, wanted, _ in pairs]
            overlaps = [outline_iou(path, outlines_of(thing, picture), thing.box) for path, thing in outlines]
        hits = Hits(asked.skill, len(boxes), len(asked.things), tuple(overlaps))
    right = len(hits.overlaps) == hits.num_given == hits.num_wanted
    said = f"{said}, {len(hits.overlaps)} of {hits.num_wanted} hit"
    return Grade(right, said, {}, hits)


def _pointed(skill: str, points: Sequence[tuple[float, float]], asked: Asked, picture: Drawn) -> Hits:
    """A point hits when it lies within the outer outline of a shape that was meant: rings count as filled."""
    left: list[Boxed] = list(asked.things)
    hit = 0
    for point in points:
        for thing in left:
            if inside(outlines_of(thing, picture)[:1], np.array([point]))[0]:
                left.remove(thing)
                hit += 1
                break
    return Hits(skill, len(points), len(asked.things), (1.0,) * hit)


def outlines_of(thing: Boxed, picture: Drawn) -> Paths:
    """Print and bars have no outline but their box."""
    x_min, y_min, x_max, y_max = thing.box
    box = np.array([(x_min, y_min), (x_max, y_min), (x_max, y_max), (x_min, y_max)])
    return picture.outlines.get(thing, [box])


class Scores:
    """All grades together, and the first wrong answers of every kind."""

    def __init__(self, world: str = "shapes", max_wrong: int = 6) -> None:
        self._targets = WORLD_TARGETS[world]
        self._rates: dict[str, list[float]] = defaultdict(list)
        self._given: Counter[str] = Counter()
        self._wanted: Counter[str] = Counter()
        self._overlaps: dict[str, list[float]] = defaultdict(list)
        self._max_wrong = max_wrong
        self.wrong: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.num_answers = 0

    def add(self, asked: Asked, found: Grade, picture: Drawn) -> None:
        self.num_answers += 1
        for name, rate in found.rates.items():
            self._rates[name].append(rate)
        if (hits := found.hits) is not None:
            self._given[hits.skill] += hits.num_given
            self._wanted[hits.skill] += hits.num_wanted
            self._overlaps[hits.skill] += hits.overlaps
        if not found.right and len(self.wrong[asked.kind]) < self._max_wrong:
            true = asked.answer or str(len(asked.things))
            note = {"picture": picture.name, "asked": f"{asked.skill}: {asked.words}"}
            self.wrong[asked.kind].append({**note, "true": true, "said": found.said[:MAX_SAID]})

    def rows(self) -> list[Row]:
        values = {name: (float(np.mean(rates)), len(rates)) for name, rates in self._rates.items()}
        for skill, wanted in self._wanted.items():
            given, overlaps = self._given[skill], self._overlaps[skill]
            if not given + wanted:
                continue
            values[f"{skill} F1"] = 2 * len(overlaps) / (given + wanted), wanted
            if skill in ("point", "grounding"):
                values[f"{skill} inside"] = len(overlaps) / max(1, given), given
            else:
                values[f"{skill} IoU"] = float(np.mean(overlaps or [0.0])), len(overlaps)
        order = [*MEANINGS, *sorted(values.keys() - MEANINGS.keys())]
        return [Row(name, *values[name], self._targets.get(name)) for name in order if name in values]


def same_description(said: str, true: str) -> bool:
    """Whether two captions name the same things and texts: "two dogs" are "a dog and a dog"."""
    return named(said) == named(true) and TEXT.findall(said) == TEXT.findall(true)


def near_value(text: str, true: float) -> bool:
    try:
        return abs(float(text) - true) <= VALUE_NEAR * abs(true)
    except ValueError:
        return False


def match_boxes(given: Sequence[Box], wanted: Sequence[Box]) -> list[tuple[int, int, float]]:
    """Pairs that overlap by half or more, the best first, each box in one of them: given, wanted, IoU."""
    overlaps = [
        (box_iou(one, other), index, at) for index, one in enumerate(given) for at, other in enumerate(wanted)
    ]
    pairs: list[tuple[int, int, float]] = []
    for overlap, index, at in sorted(overlaps, reverse=True):
        if overlap >= MIN_IOU and all(index != i and at != j for i, j, _ in pairs):
            pairs.append((index, at, overlap))
    return pairs


def box_iou(a: Box, b: Box) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = width * height
    return both / max(1e-9, (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def path_of(segment: Mapping[str, Any]) -> list[NDArray[np.float64]]:
    """The closed paths of a segment as fractions of the picture; `svg_path` has them relative to the box."""
    x_min, y_min, x_max, y_max = box_of(segment["bbox"])
    paths = []
    for part in segment["svg_path"].split("Z"):
        corners = np.array(re.findall(r"[-+.\deE]+", part), float).reshape(-1, 2)
        if len(corners):
            paths.append(corners * (x_max - x_min, y_max - y_min) + (x_min, y_min))
    return paths


def outline_iou(given: Paths, true: Paths, box: Box) -> float:
    """Compared on a grid over the true box and a margin around it."""
    x_min, y_min, x_max, y_max = box
    side = (np.arange(GRID) + 0.5) / GRID * 1.4 - 0.2
    grid = np.meshgrid(x_min + side * (x_max - x_min), y_min + side * (y_max - y_min))
    places = np.stack(grid, -1).reshape(-1, 2)
    a, b = inside(given, places), inside(true, places)
    return float((a & b).sum() / max(1, (a | b).sum()))


def inside(paths: Paths, places: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of the places [n, 2] lie inside, by the even-odd rule: a second path is a hole."""
    result = np.zeros(len(places), bool)
    x, y = places.T
    for path in paths:
        for (x1, y1), (x2, y2) in zip(path, np.roll(path, -1, axis=0), strict=True):
            crosses = (y1 > y) != (y2 > y)
            with np.errstate(divide="ignore", invalid="ignore"):  # level edges, which nothing crosses
                result ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return result


def box_of(found: Mapping[str, float]) -> Box:
    return found["x_min"], found["y_min"], found["x_max"], found["y_max"]
