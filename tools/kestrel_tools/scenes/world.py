"""The small world the model learns: coloured shapes and printed words on some background. No torch.

A `Scene` is the truth about one picture, whatever its size in pixels. Positions are fractions of the picture;
lengths are fractions of its shorter side, so that a circle is round in a picture of any aspect ratio.
"""

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Rgb = tuple[float, float, float]
Box = tuple[float, float, float, float]  # x_min, y_min, x_max, y_max
Number = TypeVar("Number", float, Any)  # the renderer passes tensors

SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "diamond", "heart")
SIZES = ("small", "big")
MAX_OBJECTS = 8
MAX_LETTERS = 5
LEAST_RADIUS = 7.0  # pixels
LEAST_DOT = 1.8  # pixels

# Hue in degrees, saturation and value: ranges wide enough for other people's idea of a colour, and apart.
COLOURS: dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
    "red": ((-8, 8), (0.78, 1.0), (0.78, 1.0)),
    "orange": ((23, 40), (0.85, 1.0), (0.92, 1.0)),
    "yellow": ((50, 62), (0.7, 1.0), (0.92, 1.0)),
    "green": ((95, 150), (0.6, 1.0), (0.42, 1.0)),
    "cyan": ((176, 192), (0.65, 1.0), (0.85, 1.0)),
    "blue": ((208, 245), (0.68, 1.0), (0.6, 1.0)),
    "purple": ((266, 302), (0.5, 1.0), (0.42, 0.75)),
    "pink": ((322, 352), (0.24, 0.6), (0.95, 1.0)),
    "brown": ((4, 30), (0.6, 0.8), (0.34, 0.6)),
    "black": ((0, 360), (0.0, 0.2), (0.0, 0.1)),
    "gray": ((0, 360), (0.0, 0.05), (0.42, 0.62)),
    "white": ((0, 360), (0.0, 0.03), (0.94, 1.0)),
}

COLOUR_NAMES = tuple(COLOURS)

WORDS = (
    "STOP", "EXIT", "OPEN", "CAFE", "TAXI", "SALE", "CAT", "DOG", "SUN", "HELLO", "WORLD", "FIRE",
    "PARK", "BUS", "SHOP", "HOTEL", "BANK", "FOOD", "MILK", "BREAD", "FISH", "TREE", "STAR", "MOON",
    "BLUE", "RED", "GREEN", "LEFT", "RIGHT", "UP", "DOWN", "YES", "NO", "GO", "SLOW", "FAST", "PUSH",
    "PULL", "KEY", "BOOK", "HOUSE", "WATER", "ZOO", "QUIZ", "JAZZ", "BOX", "SIX", "TEN", "FROG", "KING",
    "VAN",
)  # fmt: skip

# Share up to which it is drawn, saturation and value.
GROUNDS: tuple[tuple[float, tuple[float, float], tuple[float, float]], ...] = (
    (0.3, (0, 0.03), (0.88, 1)),
    (0.45, (0, 0.4), (0, 0.2)),
    (0.6, (0, 0.05), (0.2, 0.88)),
    (0.85, (0.08, 0.35), (0.75, 1)),
    (1.0, (0.2, 0.8), (0.25, 0.85)),
)
BACKGROUNDS = ("plain", "gradient", "noise", "stripes", "checks")


def middle_of(box: Box) -> tuple[float, float]:
    x_min, y_min, x_max, y_max = box
    return (x_min + x_max) / 2, (y_min + y_max) / 2


class Boxed(Protocol):
    """What can be found in a picture."""

    @property
    def box(self) -> Box: ...
    @property
    def centre(self) -> tuple[float, float]: ...
    @property
    def point(self) -> tuple[float, float]:
        """Where to point at it: the centre, unless that lies beside what is drawn."""
        ...


@dataclass(frozen=True, slots=True)
class Thing:
    """A shape of the scene. `radius` is a fraction of the shorter side; `form` bends its outline a little."""

    shape: str
    colour: str
    size: str
    x: float
    y: float
    radius: float
    angle: float
    form: float
    rgb: Rgb
    edge: float  # an outline's width as a fraction of the radius, drawn inside; 0 is none
    edge_rgb: Rgb
    box: Box  # of what is drawn

    @property
    def name(self) -> str:
        return f"{self.colour} {self.shape}"

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the box. Hearts and triangles are rotated about another point."""
        return middle_of(self.box)

    @property
    def point(self) -> tuple[float, float]:
        return self.centre


@dataclass(frozen=True, slots=True)
class Print:
    """Upper-case letters and digits. `stroke` is how bold they are, `soft` how rounded."""

    text: str
    x: float
    y: float
    width: float  # as a fraction of the picture's width
    height: float
    rgb: Rgb
    stroke: float
    soft: float

    @property
    def box(self) -> Box:
        x, y = self.width / 2, self.height / 2
        return self.x - x, self.y - y, self.x + x, self.y + y


@dataclass(frozen=True, slots=True)
class Background:
    kind: str
    first: Rgb
    second: Rgb
    angle: float
    period: float
    grain: float


@dataclass(frozen=True, slots=True)
class Scene:
    aspect: float  # width / height
    background: Background
    things: tuple[Thing, ...]  # from left to right
    print: Print | None

    @property
    def unit(self) -> tuple[float, float]:
        """The shorter side as fractions of width and height."""
        return min(1.0, 1 / self.aspect), min(1.0, self.aspect)


def outlines(shape: str, form: float) -> list[NDArray[np.float64]]:
    """Closed paths of a shape of radius 1 about the origin, y downwards; a second path is a hole."""

    def turns(count: int, radius: float, start: float = -math.pi / 2) -> NDArray[np.float64]:
        at = start + np.arange(count) * (2 * math.pi / count)
        points: NDArray[np.float64] = radius * np.stack((np.cos(at), np.sin(at)), axis=1)
        return points

    match shape:
        case "circle":
            return [turns(16, 1.0)]
        case "ring":
            return [turns(12, 1.0), turns(12, ring_hole(form))[::-1]]
        case "square":
            return [turns(4, 0.86 * math.sqrt(2), -3 * math.pi / 4)]
        case "diamond":
            return [turns(4, 1.08)]
        case "triangle":
            return [turns(3, 1.15)]
        case "star":
            points = np.empty((10, 2))
            points[::2], points[1::2] = turns(5, 1.12), turns(5, 1.12 * star_waist(form), -math.pi * 0.3)
            return [points]
        case "cross":
            long, thin = 0.98, cross_arm(form)
            quarter = np.array([[-thin, -long], [thin, -long], [thin, -thin]])
            turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
            return [np.concatenate([quarter @ np.linalg.matrix_power(turn, k) for k in range(4)])]
        case "heart":
            at = np.linspace(-math.pi / 4, 3 * math.pi / 4, 6)
            right = np.stack((0.25 + math.sqrt(2) / 4 * np.cos(at), 0.75 + math.sqrt(2) / 4 * np.sin(at)), 1)
            left = right[-2::-1] * (-1, 1)
            points = np.concatenate((np.zeros((1, 2)), right, left))
            return [np.roll((points - (0, HEART_MIDDLE)) * (1, -1) * HEART_SCALE, -6, axis=0)[::-1]]
    raise AssertionError(shape)


HEART_MIDDLE, HEART_SCALE = 0.55, 1.75


def ring_hole(form: Number) -> Number:
    return 0.48 + 0.17 * form


def star_waist(form: Number) -> Number:
    return 0.38 + 0.14 * form


def cross_arm(form: Number) -> Number:
    return 0.26 + 0.14 * form


def outline_on_picture(thing: Thing, unit: tuple[float, float]) -> list[NDArray[np.float64]]:
    """The paths of a thing as fractions of the picture."""
    scale = np.array(unit) * thing.radius
    turned = (path @ _rotation(thing.angle) for path in outlines(thing.shape, thing.form))
    return [path * scale + (thing.x, thing.y) for path in turned]


def _rotation(angle: float) -> NDArray[np.float64]:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, sin], [-sin, cos]])


def _half_extent(shape: str, form: float, angle: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if shape in ("circle", "ring"):  # the corners of their path do not touch the box
        return np.array((-1.0, -1.0)), np.array((1.0, 1.0))
    points = np.concatenate(outlines(shape, form)) @ _rotation(angle)
    if shape == "heart":  # two round tops
        middles = np.array(((0.25, 0.75), (-0.25, 0.75))) - (0, HEART_MIDDLE)
        middles = middles * (1, -1) * HEART_SCALE @ _rotation(angle)
        reach = math.sqrt(2) / 4 * HEART_SCALE
        # Only the outer half of each round top is an edge: the other half lies inside the heart.
        tops = middles - np.array((0, reach)), middles + np.sign(middles[:, :1]) * np.array((reach, 0))
        points = np.concatenate((points, *tops))
    return points.min(0), points.max(0)


def draw_scene(
    rng: Random, aspect: float, pixels: tuple[int, int] = (196, 196), most: int = MAX_OBJECTS
) -> Scene:
    """A random scene in which all is legible at `pixels` (height, width), the size the encoder will see."""
    unit = (min(1.0, 1 / aspect), min(1.0, aspect))
    background = draw_background(rng)
    taken: list[Box] = []
    printed = _print(rng, unit, background, taken, pixels) if rng.random() < 0.45 else None
    least = LEAST_RADIUS / min(unit[0] * pixels[1], unit[1] * pixels[0])
    things = _things(rng, unit, background, taken, min(least, 0.1), most)
    return Scene(aspect, background, tuple(sorted(things, key=lambda t: t.centre)), printed)


def _things(
    rng: Random, unit: tuple[float, float], background: Background, taken: list[Box], least: float, most: int
) -> list[Thing]:
    [count] = rng.choices(range(most + 1), (2, 12, 14, 17, 17, 14, 11, 8, 5)[: most + 1])
    # Few shapes and colours in a scene make it worth learning to count and to tell them apart.
    shapes = rng.sample(SHAPES, *rng.choices((1, 2, 3, len(SHAPES)), (15, 20, 20, 45)))
    colours = rng.sample(COLOUR_NAMES, *rng.choices((1, 2, 3, len(COLOURS)), (10, 20, 20, 50)))
    edges = rng.random() < 0.3
    room = 0.42 if count <= 2 else 0.3 if count <= 4 else 0.2
    things: list[Thing] = []
    for _ in range(count):
        thing = draw_thing(rng, shapes, colours, unit, background, taken, least, room, edges)
        if thing is not None:
            things.append(thing)
    return things


def draw_thing(
    rng: Random,
    shapes: Sequence[str],
    colours: Sequence[str],
    unit: tuple[float, float],
    background: Background,
    taken: list[Box],
    least: float,
    room: float,
    edges: bool,
) -> Thing | None:
    """One of the shapes, somewhere where nothing else is; None when there is no such place."""
    shape, size = rng.choice(shapes), "small" if rng.random() < 0.55 else "big"
    for colour in (rng.choice(colours), *rng.sample(COLOUR_NAMES, len(COLOUR_NAMES))):
        rgb = draw_shade(rng, colour)
        if stands_out(rgb, background, 0.33):
            break
    smallest, largest = (max(0.055, least), max(0.085, least)) if size == "small" else (0.125, room)
    radius = rng.uniform(smallest, largest)
    angle, form = rng.uniform(-0.2, 0.2) * (rng.random() < 0.6), rng.random()
    low, high = _half_extent(shape, form, angle)
    scale = np.array(unit) * radius
    place = _place(rng, low * scale, high * scale, taken, 0.012)
    if place is None:
        return None
    x, y, box = place
    edge = rng.uniform(0.05, 0.16) if edges else 0.0
    darker = (0.6 * rgb[0], 0.6 * rgb[1], 0.6 * rgb[2])
    [edge_rgb] = rng.choices(((0.05, 0.05, 0.05), (0.97, 0.97, 0.97), darker), (50, 15, 35))
    return Thing(shape, colour, size, x, y, radius, angle, form, rgb, edge, edge_rgb, box)


def _print(
    rng: Random, unit: tuple[float, float], background: Background, taken: list[Box], pixels: tuple[int, int]
) -> Print | None:
    text = printed_text(rng)
    height = rng.uniform(0.11, 0.26)
    columns = (6 * len(text) - 1) / 7 * rng.uniform(0.8, 1.25)
    # A letter's dot must be large enough both ways, and the word must fit.
    widest = 0.94 / (columns * unit[0])
    least = max(7 / (unit[1] * pixels[0]), (6 * len(text) - 1) / (columns * unit[0] * pixels[1])) * LEAST_DOT
    height = min(max(height, least), widest)
    if height < least or height * unit[1] > 0.6:
        return None
    size = np.array((height * columns * unit[0], height * unit[1]))
    place = _place(rng, -size / 2, size / 2, taken, 0.02)
    shades = [draw_shade(rng, name) for name in rng.sample(COLOUR_NAMES, len(COLOUR_NAMES))]
    colours = [shade for shade in shades if stands_out(shade, background)]
    dark = (0.03, 0.03, 0.03) if sum(background.first) > 1.5 else (0.98, 0.98, 0.98)
    rgb = colours[0] if colours and rng.random() < 0.5 else dark
    if place is None or not stands_out(rgb, background, 0.45):
        return None
    (x, y, _), (width, height) = place, size.tolist()
    return Print(text, x, y, width, height, rgb, rng.uniform(0.38, 0.58), rng.random())


def printed_text(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(WORDS)
    if kind < 0.8:
        return str(rng.randrange(rng.choice((10, 100, 1000))))
    return "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=rng.randint(1, MAX_LETTERS)))


def _place(
    rng: Random, low: NDArray[np.float64], high: NDArray[np.float64], taken: list[Box], gap: float
) -> tuple[float, float, Box] | None:
    """Somewhere inside the picture where nothing else is; None when nothing was found."""
    if np.any(high - low > 0.97):
        return None
    (left, top), (right, bottom) = low.tolist(), high.tolist()
    for _ in range(25):
        x, y = rng.uniform(0.01 - left, 0.99 - right), rng.uniform(0.01 - top, 0.99 - bottom)
        box = (x + left, y + top, x + right, y + bottom)
        if all(
            box[0] > b[2] + gap or box[2] < b[0] - gap or box[1] > b[3] + gap or box[3] < b[1] - gap
            for b in taken
        ):
            taken.append(box)
            return x, y, box
    return None


def draw_background(rng: Random) -> Background:
    [kind] = rng.choices(BACKGROUNDS, (40, 25, 20, 9, 6))
    first = _ground(rng)
    near = 0.5 if kind == "gradient" else 0.18
    red, green, blue = (min(1.0, max(0.0, c + rng.uniform(-near, near))) for c in first)
    grain = rng.uniform(0.02, 0.12) if kind == "noise" else float(rng.random() < 0.2) * 0.02
    second = first if kind in ("plain", "noise") else (red, green, blue)
    return Background(kind, first, second, rng.uniform(0, 2 * math.pi), rng.uniform(0.06, 0.3), grain)


def _ground(rng: Random) -> Rgb:
    """Mostly white, dark or pastel, as people draw; now and then any other colour."""
    kind = rng.random()
    if kind < 0.3 and rng.random() < 0.5:
        return 1.0, 1.0, 1.0
    saturation, value = next(ranges for most, *ranges in GROUNDS if kind < most)
    return colorsys.hsv_to_rgb(rng.random(), rng.uniform(*saturation), rng.uniform(*value))


def draw_shade(rng: Random, colour: str) -> Rgb:
    hue, saturation, value = (rng.uniform(*limits) for limits in COLOURS[colour])
    return colorsys.hsv_to_rgb(hue / 360 % 1, saturation, value)


def stands_out(rgb: Rgb, background: Background, least: float = 0.4) -> bool:
    first, second = np.array(background.first), np.array(background.second)
    grounds = (first, second, (first + second) / 2)  # a gradient passes between its ends
    return all(math.dist(rgb, ground) > least for ground in grounds)
