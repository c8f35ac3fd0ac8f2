"""Which lines are kept for evaluation, and in which order the others are seen. A seed decides both."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from .lessons import Lesson
from .lines import Line
from .packing import Group, grouped

SHARE = 2  # a picture has at most this part of a step, so that no step is about one picture alone


class Split(NamedTuple):
    training: list[Line]
    evaluation: list[Line]


def split(lines: Sequence[Line], share: float, seed: int) -> Split:
    """Divided by picture: the model never trains on a picture that it is evaluated with."""
    groups = sorted({line.group for line in lines})
    Random(f"split {seed}").shuffle(groups)
    count = min(len(groups) - 1, max(1, round(share * len(groups)))) if share else 0
    kept = set(groups[:count])
    return Split(
        [line for line in lines if line.group not in kept], [line for line in lines if line.group in kept]
    )


def steps_of_epoch(lessons: Sequence[Lesson], batch: int, seed: int, epoch: int) -> list[list[Lesson]]:
    """All lessons, `batch` a step. Those about one picture are near each other, to share its prefix."""
    rng = Random(f"order {seed} {epoch}")
    pieces = list[list[Lesson]]()
    most = max(1, batch // SHARE)
    for group in grouped(lessons):
        own = list(group.lessons)
        rng.shuffle(own)
        size = most if group.picture is not None else 1
        pieces += [own[start : start + size] for start in range(0, len(own), size)]
    rng.shuffle(pieces)
    ordered = [lesson for piece in pieces for lesson in piece]
    return [ordered[start : start + batch] for start in range(0, len(ordered), batch)]


def passes(lessons: Sequence[Lesson], prefix: int, most: int) -> Iterator[list[Group]]:
    """Groups for one pass of the network at a time, of `most` positions unless one alone has more."""
    taken, positions = list[Group](), 0
    for group in grouped(lessons):
        needed = sum(len(lesson.inputs) for lesson in group.lessons)
        needed += prefix if group.picture is not None else 0
        if taken and positions + needed > most:
            yield taken
            taken, positions = [], 0
        taken.append(group)
        positions += needed
    if taken:
        yield taken
