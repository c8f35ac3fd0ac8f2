"""What pictures are composed of, as SVG: everyday things, shapes, words, charts, and what lies behind them.

Places are fractions of the picture, lengths fractions of its shorter side.
"""

import json
import math
import re
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

COLOURS = {
    "red": "#e02424",
    "orange": "#ff8c1a",
    "yellow": "#fcd91c",
    "green": "#1da64e",
    "blue": "#1c5bd9",
    "purple": "#7d2ba0",
    "pink": "#ff8ab8",
    "brown": "#7a4a22",
    "black": "#14141a",
    "gray": "#7f7f7f",
    "white": "#fafafa",
    "cyan": "#1cd4e6",
}
ICONS = {  # what the emoji sets call a thing, where it is not its everyday name
    "angry face": "pouting-face",
    "apple": "red-apple",
    "bee": "honeybee",
    "boat": "sailboat",
    "book": "closed-book",
    "burger": "hamburger",
    "cake": "birthday-cake",
    "car": "automobile",
    "cheese": "cheese-wedge",
    "clock": "alarm-clock",
    "coffee": "hot-beverage",
    "corn": "ear-of-corn",
    "donut": "doughnut",
    "fire truck": "fire-engine",
    "gift": "wrapped-gift",
    "ice cream": "soft-ice-cream",
    "lightning": "high-voltage",
    "moon": "crescent-moon",
    "orange": "tangerine",
    "phone": "mobile-phone",
    "saw": "carpentry-saw",
    "shoe": "running-shoe",
    "smiling face": "grinning-face",
    "snowman": "snowman-without-snow",
    "train": "locomotive",
    "tree": "deciduous-tree",
    "truck": "delivery-truck",
}
Draw = Callable[["Sheet"], str]


@dataclass(frozen=True)
class Sheet:
    """What a part needs to know to be drawn: the picture's size, its emoji set, and where the sets are."""

    width: int
    height: int
    drawn: str
    assets: Path

    @property
    def unit(self) -> int:
        return min(self.width, self.height)


@dataclass(frozen=True)
class Part:
    """Something to draw. If it has a name it counts as a thing that is there, and its box is kept."""

    name: str
    draw: Draw


@dataclass(frozen=True)
class Picture:
    name: str  # of the file, with its suffix
    drawn: str  # the emoji set, or what else it is made of
    behind: Draw
    parts: Sequence[Part]
    width: int = 400
    height: int = 300
    values: tuple[tuple[str, float], ...] = ()  # of a chart


@cache
def _icons(archive: Path) -> dict[str, dict[str, object]]:
    with tarfile.open(archive) as packed:
        file = packed.extractfile("package/icons.json")
        assert file is not None
        icons: dict[str, dict[str, object]] = json.load(file)
        return icons


def _icon(sheet: Sheet, drawn: str, name: str) -> tuple[str, float]:
    """The inside of an icon's SVG, and the side of its square."""
    [archive] = sheet.assets.glob(f"iconify-json-{drawn}-[0-9]*.tgz")
    found = _icons(archive)
    icons, aliases = found["icons"], found.get("aliases", {})
    while name in aliases:
        name = aliases[name]["parent"]  # type: ignore[index]
    icon = icons[name]  # type: ignore[index]
    return icon["body"], icon.get("width", found.get("width", 16))


def thing(
    name: str,
    x: float,
    y: float,
    size: float,
    turn: float = 0,
    icon: str = "",
    drawn: str = "",
    flip: int = 1,
) -> Part:
    """`icon`: its name in the emoji sets, if it is not that of ICONS. `flip`: -1 looks the other way."""

    def draw(sheet: Sheet) -> str:
        body, side = _icon(sheet, drawn or sheet.drawn, icon or ICONS.get(name, name.replace(" ", "-")))
        # Gradients are found by their ids, which must differ between the things of a picture.
        unique = f"{name}{x}{y}".replace(" ", "").replace(".", "")
        body = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{unique}", body)
        scale = size * sheet.unit / side
        return (
            f'<g transform="translate({x * sheet.width} {y * sheet.height}) rotate({turn}) '
            f'scale({scale * flip} {scale}) translate({-side / 2} {-side / 2})">{body}</g>'
        )

    return Part(name, draw)


def shape(kind: str, colour: str, x: float, y: float, size: float, turn: float = 0, edge: str = "") -> Part:
    """`size` is its diameter."""

    def draw(sheet: Sheet) -> str:
        stroke = f'stroke="{COLOURS[edge]}" stroke-width="0.1"' if edge else ""
        return (
            f'<g transform="translate({x * sheet.width} {y * sheet.height}) rotate({turn}) '
            f'scale({size * sheet.unit / 2})" fill="{COLOURS[colour]}" {stroke}>{_outline(kind)}</g>'
        )

    return Part(f"{colour} {kind}", draw)


HEART = "M0 .95C-1.3 .05-1.05-.85-.5-.85C-.2-.85 0-.65 0-.45C0-.65 .2-.85 .5-.85C1.05-.85 1.3 .05 0 .95z"
RING = "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0zM-.55 0a.55 .55 0 1 0 1.1 0a.55 .55 0 1 0-1.1 0z"
OUTLINES = {  # of radius 1
    "circle": '<circle r="1"/>',
    "ring": f'<path fill-rule="evenodd" d="{RING}"/>',
    "heart": f'<path d="{HEART}"/>',
    "cross": '<path d="M-.33-1h.66v.67h.67v.66h-.67v.67h-.66v-.67h-.67v-.66h.67z"/>',
    "square": '<rect x="-.85" y="-.85" width="1.7" height="1.7"/>',
}
CORNERS = {
    "triangle": (3, 0.5),
    "diamond": (4, 0.7071),
    "star": (5, 0.42),
}  # and how far in its sides are bent


def _outline(kind: str) -> str:
    if kind in OUTLINES:
        return OUTLINES[kind]
    corners, waist = CORNERS[kind]
    at = [
        (length * math.sin(angle), -length * math.cos(angle))
        for corner in range(2 * corners)
        for angle, length in [(math.pi * corner / corners, waist if corner % 2 else 1.0)]
    ]
    return f'<polygon points="{" ".join(f"{x:.4f},{y:.4f}" for x, y in at)}"/>'


def word(
    text: str,
    x: float,
    y: float,
    size: float,
    font: str,
    colour: str = "black",
    turn: float = 0,
    bold: bool = False,
) -> Part:
    """`size` is the font's; the text is centred around x and stands on y."""

    def draw(sheet: Sheet) -> str:
        weight = 'font-weight="bold"' if bold else ""
        return (
            f'<text transform="translate({x * sheet.width} {y * sheet.height}) rotate({turn})" {weight} '
            f'text-anchor="middle" font-family="{font}" font-size="{size * sheet.unit}" '
            f'fill="{COLOURS[colour]}">{text}</text>'
        )

    return Part(f'"{text}"', draw)


def panel(
    colour: str, x: float, y: float, width: float, height: float, edge: str = "none", turn: float = 0
) -> Part:
    """A rounded board under words. It is no thing of its own."""

    def draw(sheet: Sheet) -> str:
        w, h = width * sheet.width, height * sheet.height
        return (
            f'<rect transform="translate({x * sheet.width} {y * sheet.height}) rotate({turn})" x="{-w / 2}" '
            f'y="{-h / 2}" width="{w}" height="{h}" rx="{0.04 * sheet.unit}" fill="{colour}" stroke="{edge}" '
            f'stroke-width="{0.015 * sheet.unit}"/>'
        )

    return Part("", draw)


def plain(colour: str) -> Draw:
    return lambda sheet: f'<rect width="100%" height="100%" fill="{colour}"/>'


def fading(first: str, second: str, across: bool = False) -> Draw:
    end = 'x2="1" y2="0"' if across else 'x2="0" y2="1"'
    return lambda sheet: (
        f'<linearGradient id="fading" x1="0" y1="0" {end}><stop offset="0" stop-color="{first}"/>'
        f'<stop offset="1" stop-color="{second}"/></linearGradient>'
        '<rect width="100%" height="100%" fill="url(#fading)"/>'
    )


def tiled(under: str, side: float, tile: str, turn: float = 0) -> Draw:
    """`tile` is SVG in a square of side 1, repeated."""

    def draw(sheet: Sheet) -> str:
        scale = side * sheet.unit
        return (
            f'<pattern id="tile" width="1" height="1" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate({turn}) scale({scale})">{tile}</pattern>'
            f'<rect width="100%" height="100%" fill="{under}"/>'
            '<rect width="100%" height="100%" fill="url(#tile)"/>'
        )

    return draw


def stripes(first: str, second: str, side: float = 0.12, turn: float = 45) -> Draw:
    return tiled(first, side, f'<rect width="1" height=".5" fill="{second}"/>', turn)


def checks(first: str, second: str, side: float = 0.2) -> Draw:
    squares = "".join(f'<rect x="{at}" y="{at}" width=".5" height=".5" fill="{second}"/>' for at in (0, 0.5))
    return tiled(first, side, squares)


def dots(first: str, second: str, side: float = 0.1) -> Draw:
    return tiled(first, side, f'<circle cx=".5" cy=".5" r=".22" fill="{second}"/>', 30)


def bricks(stone: str, joint: str, side: float = 0.16) -> Draw:
    lines = "M0 0H1M0 .5H1M.25 0V.5M.75 .5V1"
    return tiled(stone, side, f'<path d="{lines}" stroke="{joint}" stroke-width=".05" fill="none"/>')


def meadow(sky: str = "#bfe3ff", grass: str = "#8fce6b", horizon: float = 0.6) -> Draw:
    """Sky over rolling grass."""

    def draw(sheet: Sheet) -> str:
        w, h = sheet.width, sheet.height
        y = horizon * h
        return (
            f'<rect width="100%" height="100%" fill="{sky}"/>'
            f'<path d="M0 {y}Q{w / 4} {y - 0.06 * h} {w / 2} {y}T{w} {y}V{h}H0z" fill="{grass}"/>'
        )

    return draw


def spots(under: str, *at: tuple[str, float, float, float]) -> Draw:
    """Large soft spots, each a colour, its place and its radius."""

    def draw(sheet: Sheet) -> str:
        circles = "".join(
            f'<circle cx="{x * sheet.width}" cy="{y * sheet.height}" r="{r * sheet.unit}" fill="{colour}" '
            'fill-opacity=".6" filter="url(#soft)"/>'
            for colour, x, y, r in at
        )
        return (
            '<filter id="soft" x="-1" y="-1" width="3" height="3">'
            f'<feGaussianBlur stdDeviation="{sheet.unit / 20}"/></filter>'
            f'<rect width="100%" height="100%" fill="{under}"/>{circles}'
        )

    return draw
