"""Draws the pictures in `client/samples`: `python -m examples.train_tiny.samples`.

Scenes of the small world, arranged by hand, so that a glance tells whether an answer is right.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kestrel_tools.scenes.pictures import draw, encode
from kestrel_tools.scenes.world import Background, Print, Rgb, Scene, Thing, outline_on_picture

SAMPLES = Path(__file__).parents[2] / "client/samples"
SIZE = (640, 480)
UNIT = (SIZE[1] / SIZE[0], 1.0)

RGB: dict[str, Rgb] = {
    "red": (0.88, 0.13, 0.15),
    "orange": (1.0, 0.55, 0.05),
    "yellow": (0.99, 0.85, 0.1),
    "green": (0.1, 0.65, 0.3),
    "cyan": (0.1, 0.83, 0.9),
    "blue": (0.1, 0.35, 0.85),
    "purple": (0.52, 0.16, 0.6),
    "pink": (1.0, 0.55, 0.72),
    "white": (0.98, 0.98, 0.98),
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A shape by name. Its middle is in fractions of the picture, its radius in those of the shorter side."""

    colour: str
    shape: str
    x: float
    y: float
    radius: float
    angle: float = 0.0
    edge: float = 0.0

    def thing(self) -> Thing:
        size = "small" if self.radius < 0.1 else "big"
        rgb = RGB[self.colour]
        edge_rgb = (0.05, 0.05, 0.05)
        named = (self.shape, self.colour, size, self.x, self.y, self.radius, self.angle, 0.5)
        bare = Thing(*named, rgb, self.edge, edge_rgb, (0.0, 0.0, 0.0, 0.0))
        xs, ys = np.concatenate(outline_on_picture(bare, UNIT)).T
        box = (float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max()))
        return replace(bare, box=box)


def scene(first: Rgb, second: Rgb, placed: tuple[Placed, ...], printed: Print | None = None) -> Scene:
    kind = "plain" if first == second else "gradient"
    things = sorted((one.thing() for one in placed), key=lambda thing: thing.centre)
    return Scene(SIZE[0] / SIZE[1], Background(kind, first, second, 1.57, 0.2, 0.0), tuple(things), printed)


CREAM, SNOW, NIGHT, DUSK = (0.97, 0.95, 0.9), (0.99, 0.99, 0.99), (0.09, 0.1, 0.16), (0.2, 0.2, 0.32)
SKY, MIST = (0.78, 0.9, 0.98), (0.95, 0.97, 0.99)

SCENES = {
    "shapes.png": scene(
        CREAM,
        CREAM,
        (
            Placed("red", "circle", 0.2, 0.27, 0.17),
            Placed("blue", "square", 0.53, 0.27, 0.15, 0.1),
            Placed("yellow", "triangle", 0.33, 0.78, 0.18),
            Placed("green", "star", 0.82, 0.68, 0.18),
            Placed("purple", "heart", 0.83, 0.22, 0.07),
            Placed("orange", "diamond", 0.57, 0.84, 0.07),
        ),
    ),
    "circles.png": scene(
        NIGHT,
        DUSK,
        (
            Placed("green", "circle", 0.17, 0.27, 0.14),
            Placed("green", "circle", 0.52, 0.22, 0.07),
            Placed("green", "circle", 0.8, 0.33, 0.16),
            Placed("green", "circle", 0.36, 0.68, 0.17),
            Placed("green", "circle", 0.86, 0.82, 0.08),
            Placed("white", "star", 0.6, 0.55, 0.08),
            Placed("orange", "ring", 0.65, 0.84, 0.075),
        ),
    ),
    "sign.png": scene(
        SKY,
        MIST,
        (
            Placed("red", "heart", 0.17, 0.7, 0.17, edge=0.07),
            Placed("cyan", "ring", 0.83, 0.7, 0.18),
            Placed("pink", "cross", 0.5, 0.77, 0.08, 0.1),
        ),
        Print("OPEN", 0.5, 0.27, 0.58, 0.27, (0.05, 0.05, 0.08), 0.45, 0.9),
    ),
}


if __name__ == "__main__":
    for name, drawn in SCENES.items():
        (SAMPLES / name).write_bytes(encode(draw(drawn, *SIZE, seed=0), None))
