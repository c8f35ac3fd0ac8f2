"""Curves over steps as an SVG, without a drawing library."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
WIDTH, HEIGHT, MARGIN = 800, 420, 50
STEPS = (1, 2, 5)  # of the scale, in every power of ten


def write_curves(path: Path, curves: Mapping[str, Sequence[tuple[float, float]]], across: str) -> None:
    """Lines on a logarithmic scale, from the first x to the last: each is a list of (x, y)."""
    points = [point for curve in curves.values() for point in curve if point[1] > 0]
    if not points:
        return
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    marks = _marks(min(y for _, y in points), max(y for _, y in points))
    low, high = math.log10(marks[0]), math.log10(marks[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        share = (math.log10(max(y, marks[0])) - low) / (high - low)
        along = (x - first) / (last - first or 1)
        return MARGIN + along * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for mark in marks:
        _, at = place(first, mark)
        parts.append(f'<path d="M{MARGIN},{at:.1f}H{WIDTH - MARGIN}" stroke="#ddd"/>')
        parts.append(f'<text x="{MARGIN - 6}" y="{at + 4:.1f}" text-anchor="end">{mark:g}</text>')
    for index, (name, curve) in enumerate(curves.items()):
        colour, places = COLOURS[index % len(COLOURS)], [place(x, y) for x, y in curve]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if len(places) <= 40:  # few enough to be seen one by one
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places]
        parts.append(
            f'<text x="{WIDTH - MARGIN}" y="{MARGIN - 28 + 16 * index}" text-anchor="end" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">'
        f"{escape(across)}, {first:g} to {last:g}</text>"
    )
    path.write_text("\n".join((*parts, "</svg>\n")), encoding="utf-8")


def _marks(least: float, most: float) -> list[float]:
    """1, 2, 5, 10, ... from below the least to above the most."""
    powers = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 2)
    marks = [float(f"{step}e{power}") for power in powers for step in STEPS]
    first = max(index for index, mark in enumerate(marks) if mark <= least)
    last = min(index for index, mark in enumerate(marks) if mark >= most and index > first)
    chosen = marks[first : last + 1]
    return chosen if len(chosen) <= 12 else [chosen[0], *chosen[len(STEPS) : -1 : len(STEPS)], chosen[-1]]
