"""Draws the pictures of everyday things in `client/samples`: `python -m examples.train_tiny.thing_samples`.

Needs `npm`, as `make_atlas` does. Arranged by hand, with icons of Noto Emoji (Apache-2.0) and letters of Lato
(OFL-1.1), drawn at the size of the picture and not from the atlas of the training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyvips

from kestrel_tools.things.names import by_name

from .icons import Icons, icons_of
from .packages import npm_package
from .samples import SAMPLES
from .sources import FONT_VERSION
from .svg import rasterise
from .typeface import Typeface

SIZE = (640, 480)
SET, FONT = "noto", "lato"
INK = "#26323d"
CAPITAL = 0.72  # of an em, the height of a capital


@dataclass(frozen=True, slots=True)
class Icon:
    """A thing by its name; its middle and its side in pixels."""

    name: str
    x: float
    y: float
    side: float


@dataclass(frozen=True, slots=True)
class Print:
    """Words about a middle; as wide as they come."""

    text: str
    x: float
    y: float
    size: float
    fill: str = INK


@dataclass(frozen=True, slots=True)
class Sample:
    ground: str  # what is behind, as SVG
    icons: Sequence[Icon] = ()
    prints: Sequence[Print] = ()


def _box(x: float, y: float, width: float, height: float, fill: str, radius: float = 0) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" fill="{fill}"/>'


def _meadow() -> str:
    sky = _box(0, 0, 640, 480, "#cfeafb")
    far = '<path d="M0 300 Q160 200 340 285 T640 250 V480 H0 Z" fill="#a9d68f"/>'
    near = '<path d="M0 380 Q200 310 400 370 T640 350 V480 H0 Z" fill="#7fbf63"/>'
    return sky + far + near


def _street() -> str:
    lines = "".join(_box(x, 398, 60, 10, "#f1efe6") for x in range(20, 640, 120))
    walls, road = _box(0, 0, 640, 330, "#f6e7c8"), _box(0, 330, 640, 150, "#8d949b")
    return walls + road + lines + _box(60, 40, 250, 86, "#2f6f4f", 10)


# What a bar chart shows, and the place of its bars.
VISITORS = {"Mon": 12, "Tue": 30, "Wed": 45, "Thu": 20, "Fri": 38}
BASE, PIXELS_A_VISITOR, WIDTH, FIRST, APART = 410, 6.4, 66, 60, 110


def _bars() -> str:
    bars = "".join(
        _box(FIRST + APART * at, BASE - PIXELS_A_VISITOR * value, WIDTH, PIXELS_A_VISITOR * value, "#3d7fc4")
        for at, value in enumerate(VISITORS.values())
    )
    return _box(0, 0, 640, 480, "#ffffff") + bars + _box(40, BASE, 560, 3, INK)


def _on_bars() -> tuple[Print, ...]:
    middles = [FIRST + APART * at + WIDTH / 2 for at in range(len(VISITORS))]
    labels = [Print(label, x, BASE + 32, 32) for label, x in zip(VISITORS, middles, strict=True)]
    values = [
        Print(str(value), x, BASE - PIXELS_A_VISITOR * value - 20, 30)
        for value, x in zip(VISITORS.values(), middles, strict=True)
    ]
    return Print("Visitors", 320, 46, 42), *labels, *values


PICTURES = {
    "park.png": Sample(
        _meadow(),
        (
            Icon("sun", 90, 85, 120),
            Icon("tree", 500, 190, 220),
            Icon("dog", 150, 350, 130),
            Icon("dog", 330, 400, 80),
            Icon("balloon", 300, 120, 110),
            Icon("soccer ball", 460, 420, 70),
            Icon("butterfly", 590, 350, 64),
        ),
    ),
    "street.png": Sample(
        _street(),
        (
            Icon("house", 480, 210, 190),
            Icon("bus", 130, 350, 170),
            Icon("car", 350, 390, 150),
            Icon("bicycle", 550, 400, 120),
        ),
        (Print("BAKERY", 185, 83, 56, "#ffffff"),),
    ),
    "chart.png": Sample(_bars(), prints=_on_bars()),
}


def icon_svg(icon: Icon, icons: Icons) -> str:
    name = icons.name_of(by_name()[icon.name].icons[0])
    assert name is not None
    body, width, height = icons[name]
    left, top, side = icon.x - icon.side / 2, icon.y - icon.side / 2, icon.side
    place = f'x="{left}" y="{top}" width="{side}" height="{side}"'
    return f'<svg {place} viewBox="0 0 {width} {height}">{body}</svg>'


def print_svg(words: Print, face: Typeface) -> str:
    scale = words.size / face.units
    x = words.x - scale * sum(map(face.advance, words.text)) / 2
    paths = []
    for letter in words.text:
        paths.append(face.svg_path(letter, scale, x, words.y + CAPITAL * words.size / 2))
        x += scale * face.advance(letter)
    return f'<path d="{" ".join(paths)}" fill="{words.fill}"/>'


def main() -> None:
    icons = icons_of(SET)
    with npm_package(f"@fontsource/{FONT}", FONT_VERSION) as package:
        face = Typeface((package / f"files/{FONT}-latin-700-normal.woff").read_bytes())
    for name, sample in PICTURES.items():
        parts = [icon_svg(icon, icons) for icon in sample.icons]
        parts += [print_svg(words, face) for words in sample.prints]
        pixels = rasterise(
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'width="{SIZE[0]}" height="{SIZE[1]}">{sample.ground}{"".join(parts)}</svg>'.encode()
        )
        write(SAMPLES / name, pixels[..., :3])


def write(path: Path, pixels: object) -> None:
    pyvips.Image.new_from_array(pixels).write_to_file(str(path), compression=9, strip=True)


if __name__ == "__main__":
    main()
