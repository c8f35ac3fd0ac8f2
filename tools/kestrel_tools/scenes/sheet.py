"""Answers drawn over their pictures, many on a sheet. SVG, or PNG made of it.

Boxes, points and outlines have the colour of the line below the picture that asked for them.
"""

import base64
import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pyvips

from kestrel_core.protocol.errors import KestrelError

from .asking import Asked
from .options import check_suffix
from .pictures import Drawn
from .score import Grade, Outcome, box_of, path_of

COLUMNS, PICTURE, MARGIN, LINE = 4, (340, 260), 14, 15
LETTERS = 58  # in a line below a picture
INK = ("#e6005c", "#0072ff", "#00a35a", "#ff7a00", "#8a2be2", "#009aa6", "#b8860b", "#c71585")
RIGHT, WRONG, PLAIN = "#137333", "#c5221f", "#202124"


class Shown(NamedTuple):
    asked: Asked
    outcome: Outcome
    grade: Grade


class Card(NamedTuple):
    picture: Drawn
    answers: Sequence[Shown]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture's place on the sheet, in its own units."""

    x: float
    y: float
    width: float
    height: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.x + x * self.width, self.y + y * self.height


def write_sheet(path: Path, cards: Sequence[Card]) -> None:
    cell, parts, top = PICTURE[0] + MARGIN, [], float(MARGIN)
    for start in range(0, len(cards), COLUMNS):
        row = [_card(card, MARGIN + at * cell, top) for at, card in enumerate(cards[start : start + COLUMNS])]
        parts += [svg for svg, _ in row]
        top = max(bottom for _, bottom in row) + MARGIN
    write_svg(path, COLUMNS * cell + MARGIN, top, parts)


def write_svg(path: Path, width: float, height: float, parts: Sequence[str]) -> None:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    style = 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="11"'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', ground, *parts, "</svg>\n"]
    svg = "\n".join(lines)
    check_suffix(path)
    if path.suffix == ".svg":
        path.write_text(svg, encoding="utf-8")
    else:
        _rasterise(svg).write_to_file(str(path))


def _rasterise(svg: str) -> pyvips.Image:
    # `intake.images` blocks this loader: libvips does not trust it with files of strangers.
    pyvips.operation_block_set("VipsForeignLoadSvg", False)
    try:
        return pyvips.Image.svgload_buffer(svg.encode(), scale=1.5, unlimited=True).flatten().copy_memory()
    finally:
        pyvips.operation_block_set("VipsForeignLoadSvg", True)


def _card(card: Card, x: float, y: float) -> tuple[str, float]:
    """Its SVG, and where it ends."""
    picture = card.picture
    scale = min(PICTURE[0] / picture.width, PICTURE[1] / picture.height)
    place = Drawing(x, y, picture.width * scale, picture.height * scale)
    parts = [image(picture.data, place)]
    title = f"picture {picture.name}, {picture.width} x {picture.height}"
    y += place.height + LINE
    lines = [text(x, y, title, PLAIN, "bold")]
    inks = cycle(INK)
    ink = next(inks)
    for shown in card.answers:
        layer = overlay(shown.outcome, place, ink, 1.6)
        parts.append(layer)
        for number, line in enumerate(_lines(shown)):
            y += LINE
            if layer and not number:
                lines.append(f'<rect x="{x:.1f}" y="{y - 8:.1f}" width="8" height="8" fill="{ink}"/>')
            lines.append(text(x + 13, y, line, RIGHT if shown.grade.right else WRONG))
        ink = next(inks) if layer else ink
    return "\n".join(filter(None, (*parts, *lines))), y


def _lines(shown: Shown) -> list[str]:
    asked, grade = shown.asked, shown.grade
    mark = "\u2713" if grade.right else "\u2717"
    unseen = "" if asked.has_picture else " (without the picture)"
    told = f"{mark} {asked.skill} {asked.words!r}{unseen}: {grade.said}"
    if not grade.right and asked.answer:
        told += f" (true: {asked.answer})"
    return textwrap.wrap(told, LETTERS, max_lines=4, placeholder=" ...") or [mark]


def overlay(outcome: Outcome, place: Drawing, ink: str, pen: float) -> str:
    """Everything in an answer that has a place in the picture."""
    if isinstance(outcome, KestrelError):
        return ""
    parts = []
    for found in outcome.get("objects", ()):
        x_min, y_min, x_max, y_max = box_of(found)
        (x, y), (right, bottom) = place.at(x_min, y_min), place.at(x_max, y_max)
        size = f'x="{x:.1f}" y="{y:.1f}" width="{right - x:.1f}" height="{bottom - y:.1f}"'
        parts.append(f'<rect {size} fill="none" stroke="{ink}" stroke-width="{pen}"/>')
    for found in outcome.get("segments", ()):
        for path in path_of(found):
            corners = " ".join("{:.1f},{:.1f}".format(*place.at(x, y)) for x, y in path)
            style = f'fill="none" stroke="{ink}" stroke-width="{pen}" stroke-dasharray="{3 * pen} {pen}"'
            parts.append(f'<polygon points="{corners}" {style}/>')
    thoughts = outcome.get("reasoning", {}).get("grounding", ())
    points = [(found["x"], found["y"]) for found in outcome.get("points", ())]
    for x, y in (*points, *((x, y) for part in thoughts for x, y in part["points"])):
        middle = 'cx="{:.1f}" cy="{:.1f}"'.format(*place.at(x, y))
        parts.append(
            f'<circle {middle} r="{2.2 * pen:.1f}" fill="{ink}" stroke="white" stroke-width="{pen / 2}"/>'
        )
    return "\n".join(parts)


def image(data: bytes, place: Drawing) -> str:
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    size = f'x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{place.height:.1f}"'
    frame = f'<rect {size} fill="none" stroke="#ccc"/>'
    return f'<image {size} href="data:image/{kind};base64,{base64.b64encode(data).decode()}"/>{frame}'


def text(x: float, y: float, line: str, ink: str, weight: str = "normal") -> str:
    shown = html.escape("".join(letter if letter.isprintable() else "\ufffd" for letter in line))
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{ink}" font-weight="{weight}">{shown}</text>'
