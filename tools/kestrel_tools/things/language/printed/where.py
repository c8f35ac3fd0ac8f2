"""Where print lies in a picture: what is above it, what is next to it, and what it lies on. No torch."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from kestrel_tools.scenes.world import Boxed
from kestrel_tools.things.scene import Line, Mark, Points, Scene, turned

from .facts import APART, ink_name

Found = TypeVar("Found", bound=Boxed)
MOST_LINES = 3
# Of the shorter side: how far off "beside" reaches, and how much nearer the nearest is.
NEAR, NEARER = 0.35, 0.1
ABREAST = 0.4  # of the lower of two lines: what is level with the other reads as one line with it
SIDES = {"above": (1, -1), "below": (1, 1), "left of": (0, -1), "right of": (0, 1)}


def is_print(scene: Scene) -> bool:
    return 0 < len(scene.lines) <= MOST_LINES and scene.page is None and scene.cards is None


def apart(lines: Sequence[Line]) -> bool:
    """Whether it is clear which line is above which."""
    return all(b.centre[1] - a.centre[1] >= APART and not _abreast(a, b) for a, b in pairwise(lines))


def _abreast(upper: Line, lower: Line) -> bool:
    heights = [line.box[3] - line.box[1] for line in (upper, lower)]
    return upper.box[3] - lower.box[1] > ABREAST * min(heights)


def side_of(scene: Scene, thing: Boxed, other: Boxed) -> str:
    """On which side of a thing another is, where it is right there; empty where it is askew."""
    for side, (axis, sign) in SIDES.items():
        a, b = thing.box, other.box
        gap = b[axis] - a[axis + 2] if sign > 0 else a[axis] - b[axis + 2]
        across = 1 - axis
        shared = min(a[across + 2], b[across + 2]) - max(a[across], b[across])
        if gap > -0.01 and shared > 0.3 * min(a[across + 2] - a[across], b[across + 2] - b[across]):
            return side
    return ""


def gap_of(scene: Scene, thing: Boxed, other: Boxed) -> float:
    """What is between the boxes of two, in shorter sides of the picture."""
    a, b = thing.box, other.box
    gaps = (max(0.0, a[n] - b[n + 2], b[n] - a[n + 2]) / scene.unit[n] for n in (0, 1))
    return math.hypot(*gaps)


def nearest(scene: Scene, thing: Boxed, others: Sequence[Found]) -> Found | None:
    """The one beside it, if one is, and nearer than the others."""
    ordered = sorted((gap_of(scene, thing, other), at) for at, other in enumerate(others))
    if not ordered or ordered[0][0] > NEAR:
        return None
    if len(ordered) > 1 and ordered[1][0] < ordered[0][0] + NEARER:
        return None
    return others[ordered[0][1]]


def colour_behind(scene: Scene, line: Line) -> tuple[str, bool]:
    """The colour of all that is behind a line, empty if there are several; and whether that is a sign."""
    points = _ink(scene, line)
    behind = {_uppermost(scene, point) for point in points}
    if len(behind) != 1:
        return "", False
    mark = behind.pop()
    if mark is not None:
        inside = all(0 < at < 1 for at in (*mark.start, *mark.end))
        return ink_name(mark.rgb), inside and mark.start != mark.end
    ground = scene.background
    return (ink_name(ground.first) if ground.kind in ("plain", "noise") else ""), False


def _ink(scene: Scene, line: Line) -> Points:
    """Points all over the line, in shorter sides of the picture."""
    (left, top, right, bottom), (x, y) = line.box, line.centre
    width, height = (right - left) / scene.unit[0], (bottom - top) / scene.unit[1]
    cos, sin = math.cos(line.angle), abs(math.sin(line.angle))
    along = (width * cos - height * sin) / (cos**2 - sin**2)
    across = (height * cos - width * sin) / (cos**2 - sin**2)
    grid = [(along * a / 8, across * b / 2) for a in range(-4, 5) for b in (-1, 0, 1)]
    middle = np.array((x / scene.unit[0], y / scene.unit[1]))
    points: Points = turned(np.array(grid), line.angle) + middle
    return points


def _uppermost(scene: Scene, point: Points) -> Mark | None:
    return next((mark for mark in reversed(scene.marks) if _covers(scene, mark, point)), None)


def _covers(scene: Scene, mark: Mark, point: Points) -> bool:
    start, end = np.array(mark.start) / scene.unit, np.array(mark.end) / scene.unit
    length = float(np.hypot(*(end - start)))
    along = float((point - start) @ (end - start)) / length if length else 0.0
    nearest_along = min(max(along, 0.0), length)
    if not mark.rounded and abs(along - nearest_along) > 1e-9:
        return False
    foot = start + (end - start) * (nearest_along / length if length else 0.0)
    return float(np.hypot(*(point - foot))) <= mark.width / 2
