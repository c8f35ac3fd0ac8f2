"""Scenes of the wider world to pixels, a batch at a time on any device, without loops over pictures.

Shapes and grounds are drawn as in `kestrel_tools.scenes.render`. Sprites and letters are read from the atlas:
each pixel of a picture finds its place in a cell and takes the mean of the four pixels there, from a reduced
copy of the atlas where the drawing is small. Compiled, that is one pass over the pictures for each slot, or
one for all on CUDA (`paint_kernel`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from kestrel_tools.scenes import render
from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.render import Arrays

from .atlas import CHARACTERS, LETTER, SPRITE, Atlas, Fonts
from .lettering import MOST_LETTERS, ORIGIN, starts_of
from .scene import Placed, Scene

SPRITE_LEVELS, LETTER_LEVELS = 4, 3  # each half as large as the one before
NOWHERE = 1e6
SLOTS = ("marks", "sprites", "lines")


def scene_arrays(scenes: Sequence[Scene], fonts: Fonts) -> Arrays:
    """What is drawn, as numbers: one row for each picture, -1 in a slot that is empty."""
    simple = [
        shapes.Scene(scene.aspect, scene.background, _shapes_of(scene), None)  # its print is drawn here
        for scene in scenes
    ]
    arrays = render.scene_arrays(simple)
    arrays["things"] = arrays["things"][:, : max(len(scene.things) for scene in simple)]
    most_sprites = max(
        len(scene.items) - len(alone.things) for scene, alone in zip(scenes, simple, strict=True)
    )
    most_lines, most_marks = (
        max(len(getattr(scene, name)) for scene in scenes) for name in ("lines", "marks")
    )
    arrays["sprites"] = np.full((len(scenes), most_sprites, 6), -1, np.float32)
    arrays["lines"] = np.full((len(scenes), most_lines, 9), -1, np.float32)
    arrays["text"] = np.full((len(scenes), most_lines, MOST_LETTERS), -1, np.float32)
    arrays["starts"] = np.full((len(scenes), most_lines, MOST_LETTERS), NOWHERE, np.float32)
    arrays["marks"] = np.full((len(scenes), most_marks, 9), -1, np.float32)
    for row, scene in enumerate(scenes):
        placed = [item.drawn for item in scene.items if isinstance(item.drawn, Placed)]
        for slot, p in enumerate(placed):
            arrays["sprites"][row, slot] = p.sprite, p.x, p.y, p.radius, p.angle, -1 if p.mirrored else 1
        for slot, line in enumerate(scene.lines):
            starts = starts_of(fonts, line.font, line.text)
            where = (line.font, line.x, line.y, line.height, line.angle, *line.rgb, starts[-1])
            arrays["lines"][row, slot] = where
            arrays["text"][row, slot, : len(line.text)] = [CHARACTERS.index(letter) for letter in line.text]
            arrays["starts"][row, slot, : len(line.text)] = starts[:-1]
        for slot, m in enumerate(scene.marks):
            arrays["marks"][row, slot] = (*m.start, *m.end, m.width, m.rounded, *m.rgb)
    return arrays


def _shapes_of(scene: Scene) -> tuple[shapes.Thing, ...]:
    return tuple(item.drawn for item in scene.items if isinstance(item.drawn, shapes.Thing))


class Layers(NamedTuple):
    """Cells and their reduced copies, one after another, and where each copy begins."""

    pixels: Tensor
    offsets: Tensor
    side: int  # of the first copy's cells


class Painter:
    """Draws batches of scenes from one atlas. If compiled, each part is one program for every size."""

    def __init__(self, atlas: Atlas, device: torch.device, compiled: bool = False) -> None:
        def part(function: Callable[..., Any]) -> Callable[..., Any]:
            return torch.compile(function, dynamic=True) if compiled else function

        self._shapes = render.Painter(compiled)
        self._mark, self._sprite, self._line = part(_mark), part(_sprite), part(_line)
        packed = np.ascontiguousarray(atlas.sprites.pixels).view(np.int32)[
            ..., 0
        ]  # four bytes, alpha the last
        self._sprites = _layers(packed, SPRITE_LEVELS, _halved_colours, device)
        self._put_all = _kernel() if compiled and device.type == "cuda" else None
        letters = atlas.fonts.pixels.reshape(-1, LETTER, LETTER)
        self._letters = _layers(letters, LETTER_LEVELS, _halved, device)

    def draw(
        self, scenes: Mapping[str, Tensor], height: int, width: int, generator: Generator | None
    ) -> Tensor:
        """[pictures, 3, height, width], from 0 to 1. Marks lie on the ground, shapes on those."""

        def put_marks(picture: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return self._put(picture, x, y, scenes, ("marks",))

        beneath = put_marks if scenes["marks"].shape[1] else None
        picture, x, y = self._shapes.draw_shapes(scenes, height, width, generator, beneath)
        return self._put(picture, x, y, scenes, ("sprites", "lines"))

    def _put(
        self, picture: Tensor, x: Tensor, y: Tensor, scenes: Mapping[str, Tensor], sorts: tuple[str, ...]
    ) -> Tensor:
        """What the scenes have of these sorts, onto the pictures."""
        shown = {name: scenes[name] if name in sorts else scenes[name][:, :0] for name in SLOTS}
        scenes = {**scenes, **shown}
        if self._put_all is not None:
            picture = picture.contiguous()
            try:
                self._put_all(picture, scenes, self._sprites, self._letters)
                return picture
            except Exception as error:  # whatever the kernel's compiler raises; nothing is drawn then
                print(f"a pass for each slot, since the kernel fails: {str(error)[:500]}", flush=True)
                self._put_all = None
        height, width = picture.shape[-2:]
        canvas = Canvas(picture, x, y, scenes["unit"], (height, width))
        for mark in scenes["marks"].unbind(1):
            canvas.put(self._mark, mark, _mark_reach)
        for sprite in scenes["sprites"].unbind(1):
            canvas.put(self._sprite, sprite, _sprite_reach, self._sprites)
        for slot in range(scenes["lines"].shape[1]):
            line, text, starts = (scenes[name][:, slot] for name in ("lines", "text", "starts"))
            canvas.put(self._line, line, _line_reach, self._letters, text, starts)
        return canvas.picture


def _kernel() -> Callable[..., None] | None:
    """All slots in one pass, where the kernel language is installed."""
    try:
        from .paint_kernel import put_all
    except ImportError:
        return None
    return put_all


Reach = tuple[float, float, float, float]  # least and most x and y, as fractions of the picture


class Canvas:
    """The pictures, and where their pixels lie. A single one on the CPU is touched only where it changes."""

    def __init__(self, picture: Tensor, x: Tensor, y: Tensor, unit: Tensor, pixels: tuple[int, int]) -> None:
        self.picture = picture
        self._x, self._y, self._unit, self._pixels = x, y, unit, pixels
        self._alone = len(picture) == 1 and picture.device.type == "cpu"

    def put(
        self,
        draw: Callable[..., Tensor],
        slot: Tensor,
        reach: Callable[[list[float], list[float]], Reach],
        *more: Layers | Tensor,
    ) -> None:
        """Let `draw` put what the slot holds onto each picture."""
        where = (self._unit, self._pixels)
        if not self._alone:
            self.picture = draw(self.picture, self._x, self._y, *where, slot, *more)
            return
        left, right, top, bottom = reach(slot[0].tolist(), self._unit[0].tolist())
        (height, width), pad = self._pixels, 2
        rows = slice(max(0, int(top * height) - pad), max(0, int(bottom * height) + pad))
        columns = slice(max(0, int(left * width) - pad), max(0, int(right * width) + pad))
        window = self.picture[..., rows, columns]
        if window.numel():
            drawn = draw(window, self._x[..., columns], self._y[:, rows], *where, slot, *more)
            self.picture[..., rows, columns] = drawn


def _mark_reach(mark: list[float], unit: list[float]) -> Reach:
    x1, y1, x2, y2, width = mark[:5]
    across, down = max(width, 0) * unit[0] / 2, max(width, 0) * unit[1] / 2
    return min(x1, x2) - across, max(x1, x2) + across, min(y1, y2) - down, max(y1, y2) + down


def _sprite_reach(sprite: list[float], unit: list[float]) -> Reach:
    return _around(sprite[1:3], math.sqrt(2) * sprite[3], unit)


def _line_reach(line: list[float], unit: list[float]) -> Reach:
    return _around(line[1:3], math.hypot(line[8] / LETTER, 1) / 2 * line[3], unit)


def _around(at: list[float], radius: float, unit: list[float]) -> Reach:
    (x, y), across, down = at, radius * unit[0], radius * unit[1]
    return x - across, x + across, y - down, y + down


def _mark(
    picture: Tensor, x: Tensor, y: Tensor, unit: Tensor, pixels: tuple[int, int], mark: Tensor
) -> Tensor:
    unit_x, unit_y = unit[:, 0, None, None], unit[:, 1, None, None]
    x1, y1, x2, y2, width, rounded = (mark[:, i, None, None] for i in range(6))
    u, v = (x - x1) / unit_x, (y - y1) / unit_y
    along_x, along_y = (x2 - x1) / unit_x, (y2 - y1) / unit_y
    length = torch.hypot(along_x, along_y)
    along_x, along_y = along_x / length.clamp(min=1e-6), along_y / length.clamp(min=1e-6)
    along, aside = u * along_x + v * along_y, v * along_x - u * along_y
    beyond = (along - length / 2).abs() - length / 2
    flat = torch.maximum(beyond, aside.abs() - width / 2)
    round_ = torch.hypot(beyond.clamp(min=0), torch.where(length > 0, aside, torch.hypot(u, v))) - width / 2
    distance = torch.where(rounded > 0, round_, flat)
    pixel = 0.5 * (1 / (pixels[1] * unit_x) + 1 / (pixels[0] * unit_y))
    covered = (0.5 - distance / pixel).clamp(0, 1) * (width > 0)
    return torch.lerp(picture, mark[:, 6:9, None, None], covered[:, None])


def _sprite(
    picture: Tensor,
    x: Tensor,
    y: Tensor,
    unit: Tensor,
    pixels: tuple[int, int],
    sprite: Tensor,
    atlas: Layers,
) -> Tensor:
    index, at_x, at_y, radius, angle, flip = (sprite[:, i, None, None] for i in range(6))
    a, b = _within(at_x, at_y, radius.abs(), angle, unit, x, y)
    level = _level(2 * radius[:, 0, 0].abs(), unit, pixels, atlas)
    side = SPRITE >> level
    column, row = (a * flip + 1) / 2 * side - 0.5, (b + 1) / 2 * side - 0.5
    red, green, blue, alpha = _taken(atlas, level, index, row, column, 4, index >= 0)
    return picture * (1 - alpha[:, None]) + torch.stack((red, green, blue), 1)


def _line(
    picture: Tensor,
    x: Tensor,
    y: Tensor,
    unit: Tensor,
    pixels: tuple[int, int],
    line: Tensor,
    atlas: Layers,
    text: Tensor,
    starts: Tensor,
) -> Tensor:
    font, at_x, at_y, height, angle = (line[:, i, None, None] for i in range(5))
    a, b = _within(at_x, at_y, height.abs(), angle, unit, x, y)
    u, v = a * LETTER + line[:, 8, None, None] / 2, (b + 0.5) * LETTER  # pixels of the cells
    letter = torch.zeros_like(u, dtype=torch.int64)
    for number in range(1, MOST_LETTERS):
        letter += u >= starts[:, number, None, None]
    glyph = text.gather(1, letter.flatten(1)).view_as(u)
    start = starts.gather(1, letter.flatten(1)).view_as(u)
    level = _level(height[:, 0, 0].abs(), unit, pixels, atlas)
    scale = torch.pow(2.0, -level)
    column, row = (u - start + ORIGIN) * scale - 0.5, v * scale - 0.5
    cell = font.clamp(min=0) * len(CHARACTERS) + glyph.clamp(min=0)
    shown = (font >= 0) & (glyph >= 0) & (u > -ORIGIN)
    [ink] = _taken(atlas, level, cell, row, column, 1, shown)
    return torch.lerp(picture, line[:, 5:8, None, None], ink[:, None])


def _within(
    at_x: Tensor, at_y: Tensor, radius: Tensor, angle: Tensor, unit: Tensor, x: Tensor, y: Tensor
) -> tuple[Tensor, Tensor]:
    """Where each pixel lies in a drawing about (at_x, at_y), turned back."""
    u = (x - at_x) / (unit[:, 0, None, None] * radius)
    v = (y - at_y) / (unit[:, 1, None, None] * radius)
    cos, sin = angle.cos(), angle.sin()
    return u * cos + v * sin, v * cos - u * sin


def _level(size: Tensor, unit: Tensor, pixels: tuple[int, int], atlas: Layers) -> Tensor:
    """Which copy of the atlas has about a pixel for each of the picture's: [pictures, 1, 1]."""
    drawn = size * torch.minimum(unit[:, 0] * pixels[1], unit[:, 1] * pixels[0])
    level = torch.log2(atlas.side / drawn.clamp(min=1e-3)).round().clamp(0, len(atlas.offsets) - 1)
    return level.long()[:, None, None]


def _taken(
    atlas: Layers, level: Tensor, cell: Tensor, row: Tensor, column: Tensor, bands: int, shown: Tensor
) -> list[Tensor]:
    """The mean of the four pixels around (row, column) of a cell, from 0 to 1 in each band; 0 outside."""
    side = atlas.side >> level
    # Whole numbers: with a thousand sprites an index is too large for a float to be exact.
    begin = atlas.offsets[level] + cell.clamp(min=0).long() * side * side
    top, left = row.floor(), column.floor()
    down, right = row - top, column - left
    sums = [torch.zeros_like(row * column) for _ in range(bands)]
    for dy in (0, 1):
        for dx in (0, 1):
            r, c = top + dy, left + dx
            inside = shown & (r >= 0) & (r < side) & (c >= 0) & (c < side)
            value = atlas.pixels[torch.where(inside, begin + r.long() * side + c.long(), 0)]
            weight = (down if dy else 1 - down) * (right if dx else 1 - right) * inside / 255
            for band in range(bands):
                part = value if bands == 1 else (value >> (8 * band)) & 255
                sums[band] = sums[band] + part * weight
    return sums


def _layers(
    cells: NDArray[Any], count: int, halve: Callable[[NDArray[Any]], NDArray[Any]], device: torch.device
) -> Layers:
    """cells: [n, side, side]."""
    parts = [cells]
    for _ in range(count - 1):
        parts.append(halve(parts[-1]))
    offsets = np.cumsum([0, *(part.size for part in parts[:-1])])
    pixels = torch.from_numpy(np.concatenate([part.ravel() for part in parts]))
    return Layers(pixels.to(device), torch.from_numpy(offsets).to(device), cells.shape[1])


def _halved(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    count, side, _ = pixels.shape
    blocks = pixels.reshape(count, side // 2, 2, side // 2, 2).astype(np.uint16)
    halves: NDArray[np.uint8] = ((blocks.sum((2, 4)) + 2) // 4).astype(np.uint8)
    return halves


def _halved_colours(packed: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each number is four bytes, which are halved apart."""
    count, side, _ = packed.shape
    bands = np.ascontiguousarray(packed).view(np.uint8).reshape(count, side, side, 4)
    halves = np.stack([_halved(bands[..., band]) for band in range(4)], axis=-1)
    numbers: NDArray[np.int32] = np.ascontiguousarray(halves).view(np.int32)[..., 0]
    return numbers
