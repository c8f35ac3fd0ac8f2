"""The outline of a drawing, from the pixels it covers: a polygon of few corners, and its furthest points."""

import math

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]  # [points, 2], x and y
LEAST_SHARE = 0.7  # of the pixels, that the longest outline must hold to stand for the drawing


def hull_of(covered: NDArray[np.bool_], count: int) -> Points:
    """The corner that lies furthest in each of `count` directions, as x and y from -1 to 1."""
    corners = np.concatenate([_corners(loop, covered.shape[0]) for loop in loops_of(covered)])
    angles = np.arange(count) * (2 * math.pi / count)
    furthest = (corners @ np.stack((np.cos(angles), np.sin(angles)))).argmax(0)
    points: Points = corners[furthest]
    return points


def outline_of(covered: NDArray[np.bool_], count: int) -> Points:
    """A closed path of `count` corners around most of what is covered, x and y from -1 to 1."""
    loops = [_corners(loop, covered.shape[0]) for loop in loops_of(covered)]
    longest = max(loops, key=area_of)
    whole = float(covered.sum()) * (2 / covered.shape[0]) ** 2
    if area_of(longest) < LEAST_SHARE * whole:  # many separate pieces, such as the rays of a sun
        return hull_of(covered, count)
    return simplified(longest, count)


def anchor_of(covered: NDArray[np.bool_], margin: int = 3) -> Points:
    """A point well within what is covered, as near to the middle of its box as can be: [2], from -1 to 1."""
    ys, xs = np.nonzero(covered)
    middle = np.array((xs.min() + xs.max() + 1, ys.min() + ys.max() + 1)) / 2
    inner = covered
    for _ in range(margin):
        thinner = inner.copy()
        for axis in (0, 1):
            thinner &= np.roll(inner, 1, axis) & np.roll(inner, -1, axis)
        if not thinner.any():
            break
        inner = thinner
    ys, xs = np.nonzero(inner)
    points = np.stack((xs, ys), 1) + 0.5
    nearest: Points = points[((points - middle) ** 2).sum(1).argmin()] * (2 / covered.shape[0]) - 1
    return nearest


def loops_of(covered: NDArray[np.bool_]) -> list[list[tuple[int, int]]]:
    """The borders between covered and other pixels as closed paths along pixel corners (x, y)."""
    padded = np.pad(covered, 1)
    after: dict[tuple[int, int], list[tuple[int, int]]] = {}
    # The covered pixel lies to the right of each directed edge. Offsets are of its two corners.
    sides = {
        (-1, 0): ((0, 0), (1, 0)),
        (0, 1): ((1, 0), (1, 1)),
        (1, 0): ((1, 1), (0, 1)),
        (0, -1): ((0, 1), (0, 0)),
    }
    for (down, right), ((from_x, from_y), (to_x, to_y)) in sides.items():
        neighbour = padded[1 + down : padded.shape[0] - 1 + down, 1 + right : padded.shape[1] - 1 + right]
        for y, x in zip(*np.nonzero(covered & ~neighbour), strict=True):
            start, end = (int(x) + from_x, int(y) + from_y), (int(x) + to_x, int(y) + to_y)
            after.setdefault(start, []).append(end)
    loops = []
    while after:
        start = at = next(iter(after))
        loop = []
        while True:
            loop.append(at)
            nexts = after[at]
            following = nexts.pop()
            if not nexts:
                del after[at]
            at = following
            if at == start:
                break
        loops.append(loop)
    return loops


def simplified(path: Points, count: int) -> Points:
    """Without the corners that matter least, one after another, until `count` are left (Visvalingam)."""
    points = path
    while len(points) > count:
        before, after = np.roll(points, 1, axis=0), np.roll(points, -1, axis=0)
        triangles = np.abs(_cross(points - before, after - before))
        # Whole runs of corners on straight lines go at once.
        straight = triangles < 1e-9
        straight[1::2] = False
        surplus = len(points) - count
        if straight.sum() and straight.sum() <= surplus:
            points = points[~straight]
        else:
            points = np.delete(points, int(triangles.argmin()), axis=0)
    if len(points) < count:
        points = np.concatenate((points, np.repeat(points[-1:], count - len(points), axis=0)))
    return points


def area_of(path: Points) -> float:
    return abs(float(_cross(path, np.roll(path, -1, axis=0)).sum())) / 2


def _cross(a: Points, b: Points) -> NDArray[np.float64]:
    product: NDArray[np.float64] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return product


def _corners(loop: list[tuple[int, int]], side: int) -> Points:
    return np.array(loop, float) * (2 / side) - 1
