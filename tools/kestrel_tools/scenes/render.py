"""Scenes to pixels, a batch at a time on any device: by distance functions, without files and without loops
over pictures.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor

from . import font
from .world import (
    BACKGROUNDS,
    HEART_MIDDLE,
    HEART_SCALE,
    MAX_LETTERS,
    MAX_OBJECTS,
    SHAPES,
    Scene,
    cross_arm,
    ring_hole,
    star_waist,
)

Arrays = dict[str, NDArray[np.float32]]
OVERSAMPLE = 8  # pixels along a side of a letter's dot


def scene_arrays(scenes: Sequence[Scene]) -> Arrays:
    """What is drawn, as numbers: one row for each picture, -1 for a shape or letter that is not there."""
    count = len(scenes)
    arrays = {
        "unit": np.array([scene.unit for scene in scenes], np.float32),
        "ground": np.zeros((count, 10), np.float32),
        "things": np.full((count, MAX_OBJECTS, 13), -1, np.float32),
        "letters": np.full((count, MAX_LETTERS), -1, np.float32),
        "print": np.zeros((count, 9), np.float32),
    }
    for row, scene in enumerate(scenes):
        g = scene.background
        kind = BACKGROUNDS.index(g.kind)
        arrays["ground"][row] = (kind, *g.first, *g.second, g.angle, g.period, g.grain)
        for slot, t in enumerate(scene.things):
            where = (SHAPES.index(t.shape), t.x, t.y, t.radius, t.angle, t.form)
            arrays["things"][row, slot] = (*where, *t.rgb, t.edge, *t.edge_rgb)
        if (p := scene.print) is not None:
            arrays["letters"][row, : len(p.text)] = [font.LETTERS.index(letter) for letter in p.text]
            arrays["print"][row] = (p.x, p.y, p.width, p.height, *p.rgb, p.stroke, p.soft)
    return arrays


class Painter:
    """Draws batches of scenes. If compiled, each part is one program for pictures of every size."""

    def __init__(self, compiled: bool = False) -> None:
        def part(function: Callable[..., Any]) -> Callable[..., Any]:
            return torch.compile(function, dynamic=True) if compiled else function

        self._ground, self._thing = part(_ground), part(_thing)
        self._print = part(_print)

    def draw(
        self, scenes: Mapping[str, Tensor], height: int, width: int, generator: Generator | None
    ) -> Tensor:
        """[pictures, 3, height, width], from 0 to 1."""
        picture, x, y = self.draw_shapes(scenes, height, width, generator)
        printed: Tensor = self._print(picture, _dots(scenes), scenes["letters"], scenes["print"], x, y)
        return printed

    def draw_shapes(
        self,
        scenes: Mapping[str, Tensor],
        height: int,
        width: int,
        generator: Generator | None,
        beneath: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The pictures without their print, and where their pixels are: x [1, 1, width], y [1, height, 1].

        `beneath` draws on the ground before the shapes are there: from picture, x and y to a picture.
        """
        device = scenes["unit"].device
        y = ((torch.arange(height, device=device) + 0.5) / height)[None, :, None]
        x = ((torch.arange(width, device=device) + 0.5) / width)[None, None, :]
        shape = (len(scenes["unit"]), 1, height // 6 + 2, width // 6 + 2)
        coarse = torch.randn(shape, generator=generator, device=device)
        coarse = F.interpolate(coarse, (height, width), mode="bilinear", align_corners=False)
        fine = torch.randn(len(coarse), 3, height, width, generator=generator, device=device)
        picture = self._ground(scenes["ground"], x, y, fine, coarse)
        if beneath is not None:
            picture = beneath(picture, x, y)
        for slot in range(scenes["things"].shape[1]):
            thing = scenes["things"][:, slot]
            picture = self._thing(picture, thing, scenes["unit"], x, y, height, width)
        return picture, x, y


def _thing(
    picture: Tensor, thing: Tensor, unit: Tensor, x: Tensor, y: Tensor, height: int, width: int
) -> Tensor:
    covered, inner = _cover(thing, unit, x, y, height, width)
    fill, rim, edge = thing[:, 6:9, None, None], thing[:, 10:13, None, None], thing[:, 9:10, None, None]
    colour = torch.where(edge > 0, torch.lerp(rim, fill, inner[:, None]), fill)
    return torch.lerp(picture, colour, covered[:, None])


def _cover(
    thing: Tensor, unit: Tensor, x: Tensor, y: Tensor, height: int, width: int
) -> tuple[Tensor, Tensor]:
    """How much of each pixel a thing covers, and how much its inside without the rim: [n, height, width]."""
    unit_x, unit_y = unit[:, 0, None, None], unit[:, 1, None, None]
    shape, at_x, at_y, radius, angle, form = (thing[:, i, None, None] for i in range(6))
    u, v = (x - at_x) / (unit_x * radius), (y - at_y) / (unit_y * radius)
    cos, sin = angle.cos(), angle.sin()
    distance = _distance(shape, u * cos + v * sin, v * cos - u * sin, form)
    pixel = 0.5 * (1 / (width * unit_x * radius) + 1 / (height * unit_y * radius)).abs()
    covered = (0.5 - distance / pixel).clamp(0, 1) * (shape >= 0)
    return covered, (0.5 - (distance + thing[:, 9, None, None]) / pixel).clamp(0, 1)


def _ground(ground: Tensor, x: Tensor, y: Tensor, fine: Tensor, coarse: Tensor) -> Tensor:
    kind, angle, period = (ground[:, i, None, None] for i in (0, 7, 8))
    along = (x - 0.5) * angle.cos() + (y - 0.5) * angle.sin()
    across = (y - 0.5) * angle.cos() - (x - 0.5) * angle.sin()

    def wave(at: Tensor) -> Tensor:
        return (8 * (2 * math.pi * at / period).sin()).clamp(-1, 1) / 2

    share = torch.where(kind == BACKGROUNDS.index("stripes"), wave(along) + 0.5, (along + 0.5).clamp(0, 1))
    share = torch.where(kind == BACKGROUNDS.index("checks"), 2 * wave(along) * wave(across) + 0.5, share)
    picture = torch.lerp(ground[:, 1:4, None, None], ground[:, 4:7, None, None], share[:, None])
    return picture + ground[:, 9, None, None, None] * (0.5 * fine + 0.8 * coarse)


def _distance(shape: Tensor, x: Tensor, y: Tensor, form: Tensor) -> Tensor:
    """Signed distance to a shape of radius 1, negative inside. y runs downwards."""
    is_a = {name: shape == index for index, name in enumerate(SHAPES)}
    radius = torch.hypot(x, y)
    hole = torch.where(is_a["ring"], ring_hole(form), 0.0)
    distance = (radius - (1 + hole) / 2).abs() - (1 - hole) / 2
    distance = torch.where(is_a["circle"], radius - 1, distance)

    half = math.sqrt(0.5)
    turned = is_a["diamond"]
    a, b = torch.where(turned, (x + y) * half, x).abs(), torch.where(turned, (y - x) * half, y).abs()
    long = torch.where(is_a["square"], 0.86, torch.where(turned, 1.08 * half, 0.98))
    thin = torch.where(is_a["cross"], cross_arm(form), long)
    boxes = torch.minimum(torch.maximum(a - long, b - thin), torch.maximum(a - thin, b - long))
    distance = torch.where(is_a["square"] | turned | is_a["cross"], boxes, distance)

    # Fold the plane into half a point of the star; one straight edge is left. A triangle's waist is its side.
    sector = torch.where(is_a["star"], 2 * math.pi / 5, 2 * math.pi / 3)
    fold = (torch.remainder(torch.atan2(x, -y) + sector / 2, sector) - sector / 2).abs()
    tip = torch.where(is_a["star"], 1.12, 1.15)
    waist = tip * torch.where(is_a["star"], star_waist(form), 0.5)
    edge_x, edge_y = waist * (sector / 2).cos() - tip, waist * (sector / 2).sin()
    pointed = ((radius * fold.cos() - tip) * edge_y - radius * fold.sin() * edge_x) / torch.hypot(
        edge_x, edge_y
    )
    distance = torch.where(is_a["star"] | is_a["triangle"], pointed, distance)

    p, q = x.abs() / HEART_SCALE, HEART_MIDDLE - y / HEART_SCALE
    top = torch.hypot(p - 0.25, q - 0.75) - math.sqrt(2) / 4
    along = 0.5 * (p + q).clamp(min=0)
    side = torch.minimum(torch.hypot(p, q - 1), torch.hypot(p - along, q - along)) * (p - q).sign()
    return torch.where(is_a["heart"], HEART_SCALE * torch.where(p + q > 1, top, side), distance)


def _dots(scenes: Mapping[str, Tensor]) -> Tensor:
    """The printed letters, drawn large and blurred: [pictures, 1, rows, columns]."""
    letters, where = scenes["letters"].long(), scenes["print"]
    drawn = _glyphs(letters.device)
    dots = torch.where(letters[:, :, None, None] >= 0, drawn[letters.clamp(min=0)], 0.0)  # [n, letters, 7, 5]
    dots = F.pad(dots, (0, 1)).permute(0, 2, 1, 3).flatten(2)  # a column between letters
    dots = (
        F.pad(dots, (1, 1, 1, 1)).repeat_interleave(OVERSAMPLE, 1).repeat_interleave(OVERSAMPLE, 2)[:, None]
    )
    soft = F.avg_pool2d(F.avg_pool2d(dots, 7, 1, 3), 7, 1, 3)
    hard = F.avg_pool2d(dots, 3, 1, 1)
    return torch.lerp(hard, soft, (where[:, 8, None, None, None] > 0.5).float())


def _print(picture: Tensor, dots: Tensor, letters: Tensor, where: Tensor, x: Tensor, y: Tensor) -> Tensor:
    columns = 6.0 * (letters >= 0).sum(1)[:, None, None] - 1
    width, height = (where[:, i, None, None].clamp(min=1e-3) for i in (2, 3))
    column = (x - where[:, 0, None, None]) / width * columns + columns / 2 + 1
    row = (y - where[:, 1, None, None]) / height * font.ROWS + font.ROWS / 2 + 1
    grid_x = column * OVERSAMPLE / dots.shape[-1] * 2 - 1
    grid_y = row * OVERSAMPLE / dots.shape[-2] * 2 - 1
    grid = torch.stack(torch.broadcast_tensors(grid_x, grid_y), dim=-1)
    ink = F.grid_sample(dots, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    ink = ((ink - where[:, 7, None, None, None]) * 3 + 0.5).clamp(0, 1) * (letters[:, :1, None, None] >= 0)
    return torch.lerp(picture, where[:, 4:7, None, None], ink)


def to_tensors(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    return {name: to_device(array, device) for name, array in arrays.items()}


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Through pinned memory, so that the host goes on while the device works."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


@cache
def _glyphs(device: torch.device) -> Tensor:
    """Made once for each device: copying it there makes the host wait."""
    return torch.from_numpy(font.glyphs()).to(device)
