"""Where the cells lie, and in each the thing and what is printed at it. No torch, no drawings.

Lengths are fractions of the picture's shorter side.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from .looks import Area, Look

MOST_ROWS, MOST_COLUMNS, MOST_LISTED = 4, 6, 6
SPACE = 0.45  # between print and what is above or below it, in heights of the print
STRIP = 0.3  # of a cell's height, that a line may take
THING = 0.45  # of a cell's width, where it is printed beside the thing
LONGEST = {"bare": 2.2, "boards": 3.0, "discs": 1.3}  # width of a cell, in heights
NARROWEST = {"bare": 0.7, "boards": 0.4, "discs": 0.7}
LISTED = (1.7, 4.5)  # both where it is printed beside the thing
GAPS = {"tiles": 0.1, "discs": 0.08, "bare": 0.08, "boards": 0.06}  # in shorter sides of a cell
APART = 0.25  # the same where only the gap tells to which thing print belongs


class Prints(NamedTuple):
    """What is printed at the cells. Lengths are in heights of the print."""

    where: str = ""  # below, above, corner, right, or under the tile; empty: nothing is
    wide: float = 0.0  # the widest
    low: float = 0.0  # how far the ink reaches up from the middle of a line, and down
    high: float = 0.0
    two: bool = False  # lines at each

    @property
    def strip(self) -> float:
        return self.high - self.low + SPACE


class Place(NamedTuple):
    """One cell; points are the middles of lines."""

    slot: Area  # all of it
    tile: Area
    room: Area  # for the thing
    label: tuple[float, float]
    second: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    look: Look
    prints: Prints
    rows: tuple[int, ...]  # how many are in each
    width: float  # of a cell
    height: float
    printed: float = 0.0  # height of the print

    @property
    def radius(self) -> float:
        """The largest that a thing may have."""
        room = self.place(Area(0.0, 0.0, self.width, self.height)).room
        return min(room.width, room.height) / 2

    @property
    def is_even(self) -> bool:
        return len({*self.rows}) == 1

    @property
    def size(self) -> tuple[float, float]:
        return max(self.rows) * self.width, len(self.rows) * self.height

    def places(self, block: Area, centred: bool) -> Iterator[list[Place]]:
        """Those of each row. What stands on a board takes all of it; another short row is set to the left or
        to the middle.
        """
        for number, count in enumerate(self.rows):
            width = block.width / count if self.look.name == "boards" else self.width
            left = block.left + (block.width - count * width) / 2 * centred
            top = block.top + number * self.height
            yield [
                self.place(Area(left + at * width, top, left + (at + 1) * width, top + self.height))
                for at in range(count)
            ]

    @property
    def gap(self) -> float:
        """Between a tile and the next."""
        close = self.look.name in ("bare", "boards") and self.prints.where in (
            "below",
            "above",
            "corner",
            "under",
        )
        share = APART if close else GAPS.get(self.look.name, 0.0)
        return share * min(self.width, self.height)

    def place(self, slot: Area) -> Place:
        look, prints, size = self.look, self.prints, self.printed
        tile = slot.within(self.gap / 2)
        board = look.border if look.name == "boards" else 0.0
        under = prints.strip * size if prints.where == "under" else 0.0
        tile = tile._replace(bottom=tile.bottom - under - board)
        if look.name == "discs":
            (x, y), half = tile.middle, min(tile.width, tile.height) / 2
            tile = Area(x - half, y - half, x + half, y + half)
        inner = tile.within(look.pad * min(tile.width, tile.height) + (look.border - board))
        (x, _), strip = inner.middle, prints.strip * size * prints.two
        upper, lower = inner.top - prints.low * size, inner.bottom - prints.high * size
        match prints.where:
            case "below":
                room = inner._replace(top=inner.top + strip, bottom=inner.bottom - prints.strip * size)
                return Place(slot, tile, room, (x, lower), (x, upper))
            case "above" | "corner":
                room = inner._replace(top=inner.top + prints.strip * size, bottom=inner.bottom - strip)
                at = x if prints.where == "above" else inner.left
                return Place(slot, tile, room, (at, upper), (x, lower))
            case "under":
                below = tile.bottom + board + (SPACE / 2 - prints.low) * size
                return Place(slot, tile, inner._replace(top=inner.top + strip), (x, below), (x, upper))
            case "right":
                room = inner._replace(right=inner.left + min(inner.height, THING * inner.width))
                beside, (_, y) = room.right + 0.35 * size, inner.middle
                if not prints.two:
                    middle = (beside, y - (prints.low + prints.high) / 2 * size)
                    return Place(slot, tile, room, middle, middle)
                up, down = y - (0.12 + prints.high) * size, y + (0.12 - prints.low) * size
                return Place(slot, tile, room, (beside, up), (beside, down))
        return Place(slot, tile, inner, (x, lower), (x, upper))


def layouts(
    rng: Random, count: int, look: Look, prints: Prints, area: Area, least_print: float
) -> list[Layout]:
    """The ways in which so many cells fit there, each with print that is no smaller than `least_print`."""
    ways = [_boards(rng, count) for _ in range(4)] if look.name == "boards" else _grids(count, look, prints)
    found = []
    for rows in ways:
        layout = _fitted(rows, look, prints, area)
        if prints.where:
            most = _largest_print(layout)
            if most < least_print:
                continue
            larger = min((3.0 if count == 1 else 2.2) * least_print, 0.7 * most)
            printed = rng.uniform(least_print, max(least_print, larger))
            layout = Layout(look, prints, rows, layout.width, layout.height, printed)
        found.append(layout)
    return found


def _grids(count: int, look: Look, prints: Prints) -> list[tuple[int, ...]]:
    """As many in each row, or less in the last."""
    listed, ways = prints.where == "right", []
    for rows in range(1, (MOST_LISTED if listed else MOST_ROWS) + 1):
        columns = math.ceil(count / rows)
        last = count - (rows - 1) * columns
        if last == columns or (last > 0 and look.name != "grid"):
            ways.append((columns,) * (rows - 1) + (last,))
    return [rows for rows in ways if rows[0] <= (2 if listed else MOST_COLUMNS)]


def _boards(rng: Random, count: int) -> tuple[int, ...]:
    rows = rng.randint(math.ceil(count / MOST_COLUMNS), min(MOST_ROWS, count))
    counts = [1] * rows
    while sum(counts) < count:
        counts[rng.choice([at for at, number in enumerate(counts) if number < MOST_COLUMNS])] += 1
    return tuple(counts)


def _fitted(rows: tuple[int, ...], look: Look, prints: Prints, area: Area) -> Layout:
    """Cells as large as the area lets them be, neither too long nor too narrow."""
    width, height = area.width / max(rows), area.height / len(rows)
    least, most = NARROWEST.get(look.name, 0.6), LONGEST.get(look.name, 1.6)
    if prints.where == "right":
        least, most = LISTED
    width = min(width, most * height)
    return Layout(look, prints, rows, width, min(height, width / least))


def _largest_print(layout: Layout) -> float:
    """That has room in a cell and leaves most of it to the thing."""
    look, prints = layout.look, layout.prints
    shorter = min(layout.width, layout.height) - layout.gap
    inner = layout.width - layout.gap - 2 * (look.pad * shorter + look.border)
    tall = prints.high - prints.low
    if prints.where == "right":
        beside = inner - min(layout.height, THING * inner)
        return min(beside / (prints.wide + 0.6), 0.4 * layout.height / tall)
    across = 0.95 * layout.width if prints.where == "under" else inner
    return min(across / prints.wide, STRIP * layout.height / tall)
