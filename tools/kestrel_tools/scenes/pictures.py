"""Pictures of the small world as files: PNG or JPEG of any size, drawn here or by somebody else.

A folder of somebody else's has a `truth.json`: a list of {"file", "shapes", "print"}, where a shape is
{"shape", "colour", "size", "box": [x_min, y_min, x_max, y_max], "outline": [[[x, y], ...], ...]} and print
is null or {"text", "box"}. All numbers are fractions of the picture; a second path of an outline is a hole.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

import numpy as np
import pyvips
import torch
from numpy.typing import NDArray

from kestrel_core.intake.image_limits import ImageLimits
from kestrel_core.intake.images import decode_image
from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.moondream.crops.cutting import choose_tiling
from kestrel_core.protocol.errors import InvalidRequest

from . import render
from .asking import Asked, scene_requests
from .world import (
    COLOURS,
    SHAPES,
    SIZES,
    Background,
    Boxed,
    Print,
    Scene,
    Thing,
    draw_scene,
    middle_of,
    outline_on_picture,
)

Paths = Sequence[NDArray[np.float64]]  # closed, [corners, 2]

SHORTEST, LONGEST = 120, 1200  # sides in pixels
BLACK = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    data: bytes  # the file's content
    width: int
    height: int
    scene: Scene
    outlines: Mapping[Boxed, Paths]  # as fractions of the picture

    @property
    def tiling(self) -> tuple[int, int]:
        return choose_tiling(self.height, self.width, MOONDREAM_TINY.vision)

    def requests(self, rng: Random) -> list[Asked]:
        """What is asked about it."""
        return scene_requests(rng, self.scene)


class Drawn(Protocol):
    """A picture of any world, the truth about it, and what is asked about it."""

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def outlines(self) -> Mapping[Boxed, Paths]: ...
    @property
    def tiling(self) -> tuple[int, int]: ...
    def requests(self, rng: Random) -> list[Asked]: ...


def new_picture(seed: int, index: int) -> Picture:
    """Picture `index` of the endless series that `seed` names."""
    rng = Random(f"picture {seed} {index}")
    width, height = draw_size(rng)
    scene = draw_scene(rng, width / height, legible_pixels(width, height))
    pixels = draw(scene, width, height, rng.getrandbits(32))
    quality = None if rng.random() < 0.5 else rng.randint(60, 95)
    outlines: dict[Boxed, Paths] = {thing: outline_on_picture(thing, scene.unit) for thing in scene.things}
    return Picture(str(index), encode(pixels, quality), width, height, scene, outlines)


def draw_size(rng: Random) -> tuple[int, int]:
    """Width and height: small ones as often as large ones, square ones more often than long ones."""
    longer = round(160 * (LONGEST / 160) ** rng.random())
    shorter = max(SHORTEST, round(longer * math.exp(rng.triangular(-1.4, 0.0, 0.0))))
    return (longer, shorter) if rng.random() < 0.6 else (shorter, longer)


def legible_pixels(width: int, height: int) -> tuple[int, int]:
    """Height and width of what an encoder like the bundled model's gets to see of a picture."""
    vision = MOONDREAM_TINY.vision
    rows, cols = choose_tiling(height, width, vision)
    margins = 2 * vision.margin_px
    return min(height, rows * vision.window_px + margins), min(width, cols * vision.window_px + margins)


@torch.inference_mode()
def draw(scene: Scene, width: int, height: int, seed: int) -> NDArray[np.uint8]:
    """[height, width, 3]. `seed` decides the grain of the background."""
    arrays = render.to_tensors(render.scene_arrays([scene]), torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    [picture] = render.Painter().draw(arrays, height, width, generator)
    pixels: NDArray[np.uint8] = (picture.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    return pixels


def encode(pixels: NDArray[np.uint8], quality: int | None) -> bytes:
    """A JPEG of that quality, or a PNG."""
    height, width, _ = pixels.shape
    image = pyvips.Image.new_from_memory(np.ascontiguousarray(pixels), width, height, 3, "uchar")
    image = image.copy(interpretation="srgb")
    return bytes(image.pngsave_buffer() if quality is None else image.jpegsave_buffer(Q=quality))


class Pictures(Protocol):
    """Made or read one at a time, when asked for, so that not all of them are in memory."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Drawn: ...


@dataclass(frozen=True, slots=True)
class NewPictures:
    seed: int
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Picture:
        return new_picture(self.seed, index)


class Folder:
    """Somebody else's pictures."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            entries = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{folder / 'truth.json'} cannot be read: {error}") from None
        if not isinstance(entries, list):
            raise InvalidRequest(f"{folder / 'truth.json'} must be a list of pictures")
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Picture:
        entry = self._entries[index]
        try:
            path = self._folder / entry["file"]
            data = path.read_bytes()
            height, width, _ = decode_image(data, ImageLimits()).shape
            shapes = [(_thing(shape), shape["outline"]) for shape in entry["shapes"]]
            shapes.sort(key=lambda pair: pair[0].centre)
            ground = Background("plain", BLACK, BLACK, 0.0, 1.0, 0.0)
            scene = Scene(width / height, ground, tuple(thing for thing, _ in shapes), _print(entry["print"]))
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InvalidRequest(f"truth.json, picture {index}: {error!r}") from None
        outlines: dict[Boxed, Paths] = {
            thing: [np.array(path, float) for path in paths] for thing, paths in shapes
        }
        return Picture(path.name, data, width, height, scene, outlines)


def open_pictures(folder: Path | None, seed: int, count: int) -> Pictures:
    """The pictures in `folder`, or new ones where there is none."""
    return NewPictures(seed, count) if folder is None else Folder(folder)


def _thing(shape: Mapping[str, Any]) -> Thing:
    """Where it is and what it is called; how it was drawn is not known."""
    for name, known in (("shape", SHAPES), ("colour", COLOURS), ("size", SIZES)):
        if shape[name] not in known:
            raise ValueError(f"{name} {shape[name]!r} is none of {', '.join(known)}")
    x_min, y_min, x_max, y_max = map(float, shape["box"])
    middle = middle_of((x_min, y_min, x_max, y_max))
    named = (shape["shape"], shape["colour"], shape["size"])
    return Thing(*named, *middle, 0.0, 0.0, 0.0, BLACK, 0.0, BLACK, (x_min, y_min, x_max, y_max))


def _print(printed: Mapping[str, Any] | None) -> Print | None:
    if printed is None:
        return None
    x_min, y_min, x_max, y_max = map(float, printed["box"])
    middle = middle_of((x_min, y_min, x_max, y_max))
    return Print(str(printed["text"]), *middle, x_max - x_min, y_max - y_min, BLACK, 0.0, 0.0)
