"""Pictures of the same world by other means: `python -m examples.train_tiny.other_pictures DIR --count 200`.

Pillow draws them, with its own font, other forms, line widths, grounds, colours and sizes than the renderer
the model was trained with; no code is shared but the names of things. `kestrel eval scenes --pictures DIR`
scores a model on them.
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image, ImageDraw, ImageFont

Point = tuple[float, float]
Rgb = tuple[int, int, int]

PALETTE: dict[str, Rgb] = {
    "red": (225, 29, 36),
    "orange": (255, 145, 0),
    "yellow": (255, 221, 25),
    "green": (24, 150, 60),
    "cyan": (20, 205, 225),
    "blue": (25, 85, 215),
    "purple": (125, 30, 150),
    "pink": (255, 140, 190),
    "brown": (125, 70, 30),
    "black": (10, 10, 12),
    "gray": (130, 130, 130),
    "white": (252, 252, 252),
}
GROUNDS: tuple[Rgb, ...] = (
    (255, 255, 255),
    (245, 240, 225),
    (225, 235, 245),
    (235, 245, 225),
    (250, 225, 235),
    (30, 34, 44),
    (60, 60, 60),
    (200, 200, 195),
    (180, 205, 230),
)
TEXTS = (
    "OPEN",
    "STOP",
    "SALE",
    "CAFE",
    "TAXI",
    "NEWS",
    "GATE",
    "LAMP",
    "HILL",
    "ZERO",
    "RAIN",
    "7",
    "42",
    "365",
)
SHARP = 3  # drawn so many times larger than saved, so that edges are smooth


@dataclass(frozen=True, slots=True)
class Drawn:
    shape: str
    colour: str
    size: str
    paths: tuple[tuple[Point, ...], ...]  # in pixels; a second one is a hole

    @property
    def box(self) -> tuple[float, float, float, float]:
        xs, ys = zip(*self.paths[0], strict=True)
        return min(xs), min(ys), max(xs), max(ys)


def outline(shape: str, slim: float) -> tuple[tuple[Point, ...], ...]:
    """Paths about the origin, at most 1 away from it; y downwards. `slim`, from 0 to 1, is how thin it is."""

    def around(count: int, radius: float = 1.0, start: float = -0.25) -> tuple[Point, ...]:
        turns = (2 * math.pi * (start + i / count) for i in range(count))
        return tuple((radius * math.cos(turn), radius * math.sin(turn)) for turn in turns)

    match shape:
        case "circle":
            return (around(64),)
        case "ring":
            return around(64), around(64, 0.45 + 0.25 * slim)
        case "square":
            return (((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),)
        case "diamond":
            return (((0, -1), (0.85 - 0.15 * slim, 0), (0, 1), (slim * 0.15 - 0.85, 0)),)
        case "triangle":
            return (((0, -0.95), (1, 0.85), (-1, 0.85)),)
        case "star":
            tips, waists = around(5), around(5, 0.5 - 0.12 * slim, -0.15)
            return (tuple(point for pair in zip(tips, waists, strict=True) for point in pair),)
        case "cross":
            arm = 0.38 - 0.12 * slim
            corner = ((-arm, -1.0), (arm, -1.0), (arm, -arm))
            turned = [corner]
            for _ in range(3):
                turned.append(tuple((-y, x) for x, y in turned[-1]))  # type: ignore[arg-type]
            return (tuple(point for part in turned for point in part),)
        case "heart":
            turns = (2 * math.pi * i / 80 for i in range(80))
            curve = (
                (
                    16 * math.sin(t) ** 3,
                    13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t),
                )
                for t in turns
            )
            return (tuple((x / 17, -y / 17) for x, y in curve),)
    raise AssertionError(shape)


SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "diamond", "heart")


def far(one: Rgb, other: Rgb) -> bool:
    return math.dist(one, other) > 95


def new_picture(rng: Random) -> tuple[Image.Image, dict[str, Any]]:
    """A picture and its entry of `truth.json`, without the file's name."""
    width, height = (rng.randrange(160, 1000) for _ in range(2))
    if not 0.4 < width / height < 2.5:
        width = height
    first = rng.choice(GROUNDS)
    picture = ground(rng, width * SHARP, height * SHARP, first)
    pen, unit = ImageDraw.Draw(picture), min(width, height)
    taken: list[tuple[float, float, float, float]] = []
    printed = write(rng, pen, width, height, first, taken) if rng.random() < 0.4 else None
    drawn: list[Drawn] = []
    rim = rng.choice((0, 0, 0.03, 0.08))
    colours = [name for name, rgb in PALETTE.items() if far(rgb, first)]
    count = rng.randint(1, 6)
    for _ in range(count):
        size = rng.choice(("small", "big"))
        radius = unit * (
            rng.uniform(0.055, 0.085) if size == "small" else rng.uniform(0.13, 0.3 if count < 4 else 0.2)
        )
        shape, colour = rng.choice(SHAPES), rng.choice(colours)
        paths = outline(shape, rng.random())
        for _ in range(30):
            x, y = rng.uniform(radius, width - radius), rng.uniform(radius, height - radius)
            room = (x - radius - 4, y - radius - 4, x + radius + 4, y + radius + 4)
            if all(room[0] > b[2] or room[2] < b[0] or room[1] > b[3] or room[3] < b[1] for b in taken):
                break
        else:
            continue
        taken.append(room)
        placed = tuple(tuple((x + radius * px, y + radius * py) for px, py in path) for path in paths)
        drawn.append(Drawn(shape, colour, size, placed))
        fill(pen, picture, drawn[-1], PALETTE[colour], round(rim * radius * SHARP))
    shapes = [
        {
            "shape": one.shape,
            "colour": one.colour,
            "size": one.size,
            "box": [v / (width, height)[i % 2] for i, v in enumerate(one.box)],
            "outline": [[[x / width, y / height] for x, y in path] for path in one.paths],
        }
        for one in drawn
    ]
    return picture.resize((width, height), Image.Resampling.LANCZOS), {"shapes": shapes, "print": printed}


def ground(rng: Random, width: int, height: int, first: Rgb) -> Image.Image:
    picture = Image.new("RGB", (width, height), first)
    near: Rgb = tuple(max(0, min(255, c + rng.randint(-22, 22))) for c in first)  # type: ignore[assignment]
    pen, step = ImageDraw.Draw(picture), max(8, min(width, height) // rng.randint(10, 24))
    match rng.choice(("plain", "plain", "gradient", "dots", "lines")):
        case "gradient":
            shade = Image.linear_gradient("L").resize((width, height))
            picture = Image.composite(Image.new("RGB", (width, height), near), picture, shade)
        case "dots":
            for x in range(0, width, step):
                for y in range(0, height, step):
                    pen.ellipse((x, y, x + step / 3, y + step / 3), fill=near)
        case "lines":
            for y in range(0, height, step):
                pen.line((0, y, width, y), fill=near, width=max(1, step // 6))
    return picture


def write(
    rng: Random,
    pen: ImageDraw.ImageDraw,
    width: int,
    height: int,
    first: Rgb,
    taken: list[tuple[float, float, float, float]],
) -> dict[str, Any] | None:
    text = rng.choice(TEXTS)
    size = min(width, height) * rng.uniform(0.16, 0.3)
    font = ImageFont.load_default(size * SHARP)
    left, top, right, bottom = (side / SHARP for side in pen.textbbox((0, 0), text, font=font))
    if right - left > 0.9 * width:
        return None
    x, y = rng.uniform(0, width - (right - left)), rng.uniform(0, height - (bottom - top))
    box = (x, y, x + right - left, y + bottom - top)
    ink = (15, 15, 15) if sum(first) > 380 else (250, 250, 250)
    pen.text(((x - left) * SHARP, (y - top) * SHARP), text, fill=ink, font=font)
    taken.append(box)
    return {"text": text, "box": [v / (width, height)[i % 2] for i, v in enumerate(box)]}


def fill(pen: ImageDraw.ImageDraw, picture: Image.Image, one: Drawn, rgb: Rgb, rim: int) -> None:
    outer, *holes = ([(x * SHARP, y * SHARP) for x, y in path] for path in one.paths)
    edge = (20, 20, 20) if sum(rgb) > 120 else (240, 240, 240)
    if not holes:
        pen.polygon(outer, fill=rgb)
        if rim:  # drawn inside, so that the box does not change
            mask = Image.new("L", picture.size)
            ImageDraw.Draw(mask).polygon(outer, fill=255)
            lines = Image.new("L", picture.size)
            ImageDraw.Draw(lines).line([*outer, outer[0], outer[1]], fill=255, width=2 * rim)
            picture.paste(edge, mask=Image.composite(lines, Image.new("L", picture.size), mask))
        return
    mask = Image.new("L", picture.size)
    ImageDraw.Draw(mask).polygon(outer, fill=255)
    ImageDraw.Draw(mask).polygon(holes[0], fill=0)
    picture.paste(rgb, mask=mask)


def main(folder: Path, count: int, seed: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for index in range(count):
        rng = Random(f"other {seed} {index}")
        picture, entry = new_picture(rng)
        suffix = rng.choice(("png", "jpg"))
        file = f"{index:04d}.{suffix}"
        picture.save(folder / file, quality=rng.randint(60, 95))  # a PNG ignores the quality
        entries.append({"file": file, **entry})
    (folder / "truth.json").write_text(json.dumps(entries) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    main(options.folder, options.count, options.seed)
