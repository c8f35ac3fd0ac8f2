"""Marks, sprites and printed lines of a batch in one pass over its pictures.

`paint` is the specification: it takes a pass over all pictures for each slot. Here a program has a small tile
of one picture in registers and passes over what does not reach it, which is most of what is on the picture.
"""

from collections.abc import Mapping

import torch
import triton
import triton.language as tl
from torch import Tensor

from .atlas import CHARACTERS, LETTER, SPRITE
from .lettering import MOST_LETTERS, ORIGIN

Layers = tuple[Tensor, Tensor, int]  # as `paint.Layers`: pixels, offsets of the copies, side

ROWS, COLS = 16, 32  # pixels of a tile
PAD = 2.0  # pixels around what is drawn


def put_all(picture: Tensor, scenes: Mapping[str, Tensor], sprites: Layers, letters: Layers) -> None:
    """picture: [pictures, 3, height, width], contiguous, changed in place."""
    count, _, height, width = picture.shape
    assert picture.is_contiguous() and all(
        scenes[name].is_contiguous() for name in ("unit", "marks", "sprites", "lines", "text", "starts")
    )
    tiles = triton.cdiv(height, ROWS) * triton.cdiv(width, COLS)
    if not max(scenes[name].shape[1] for name in ("marks", "sprites", "lines")):
        return
    _put_all[(tiles, count)](
        picture,
        height,
        width,
        scenes["unit"],
        _filled(scenes["marks"]),
        scenes["marks"].shape[1],
        _filled(scenes["sprites"]),
        scenes["sprites"].shape[1],
        sprites[0],
        sprites[1],
        _filled(scenes["lines"]),
        scenes["lines"].shape[1],
        _filled(scenes["text"]),
        _filled(scenes["starts"]),
        letters[0],
        letters[1],
        SPRITE=SPRITE,
        SPRITE_LEVELS=len(sprites[1]),
        LETTER=LETTER,
        LETTER_LEVELS=len(letters[1]),
        CHARACTERS=len(CHARACTERS),
        MOST_LETTERS=MOST_LETTERS,
        ORIGIN=ORIGIN,
        PAD=PAD,
        ROWS=ROWS,
        COLS=COLS,
        num_warps=8,
    )


def _filled(slots: Tensor) -> Tensor:
    """A tensor without elements has no address to hand on."""
    return slots if slots.numel() else torch.zeros(1, device=slots.device)


@triton.jit
def _level(size: tl.tensor, side: tl.constexpr, levels: tl.constexpr) -> tl.tensor:
    """Which copy of the atlas has about a pixel for each of the picture's."""
    level = tl.floor(tl.log2(side / tl.maximum(size, 1e-3)) + 0.5)
    return tl.minimum(tl.maximum(level, 0.0), levels - 1.0).to(tl.int32)


@triton.jit
def _share(past: tl.tensor, second: tl.constexpr) -> tl.tensor:
    """Of the first of two neighbours, or the second, for a place `past` the first."""
    return past if second == 1 else 1 - past


@triton.jit
def _put_all(
    picture: tl.tensor,
    height: tl.tensor,
    width: tl.tensor,
    unit: tl.tensor,
    marks: tl.tensor,
    num_marks: tl.tensor,
    sprites: tl.tensor,
    num_sprites: tl.tensor,
    sprite_pixels: tl.tensor,
    sprite_offsets: tl.tensor,
    lines: tl.tensor,
    num_lines: tl.tensor,
    text: tl.tensor,
    starts: tl.tensor,
    letter_pixels: tl.tensor,
    letter_offsets: tl.tensor,
    SPRITE: tl.constexpr,
    SPRITE_LEVELS: tl.constexpr,
    LETTER: tl.constexpr,
    LETTER_LEVELS: tl.constexpr,
    CHARACTERS: tl.constexpr,
    MOST_LETTERS: tl.constexpr,
    ORIGIN: tl.constexpr,
    PAD: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
) -> None:
    across = tl.cdiv(width, COLS)
    top, left = tl.program_id(0) // across * ROWS, tl.program_id(0) % across * COLS
    number = tl.program_id(1)
    rows, cols = top + tl.arange(0, ROWS)[:, None], left + tl.arange(0, COLS)[None, :]
    there = (rows < height) & (cols < width)
    # In 64 bits: a batch of pictures has more numbers than 32 can count.
    at = picture + number.to(tl.int64) * 3 * height * width + rows * width + cols
    plane = height * width
    red = tl.load(at, there, 0.0)
    green = tl.load(at + plane, there, 0.0)
    blue = tl.load(at + 2 * plane, there, 0.0)
    x, y = (cols + 0.5) / width, (rows + 0.5) / height
    unit_x, unit_y = tl.load(unit + 2 * number), tl.load(unit + 2 * number + 1)
    x_least, x_most = (left - PAD) / width, (left + COLS + PAD) / width
    y_least, y_most = (top - PAD) / height, (top + ROWS + PAD) / height

    for slot in range(num_marks):
        mark = marks + (number * num_marks + slot) * 9
        x1, y1, x2, y2 = tl.load(mark), tl.load(mark + 1), tl.load(mark + 2), tl.load(mark + 3)
        wide, rounded = tl.load(mark + 4), tl.load(mark + 5)
        reach_x, reach_y = wide * unit_x / 2, wide * unit_y / 2
        near_x = (tl.minimum(x1, x2) - reach_x < x_most) & (tl.maximum(x1, x2) + reach_x > x_least)
        near_y = (tl.minimum(y1, y2) - reach_y < y_most) & (tl.maximum(y1, y2) + reach_y > y_least)
        if (wide > 0) & near_x & near_y:
            u, v = (x - x1) / unit_x, (y - y1) / unit_y
            along_x, along_y = (x2 - x1) / unit_x, (y2 - y1) / unit_y
            length = tl.sqrt(along_x * along_x + along_y * along_y)
            along_x, along_y = along_x / tl.maximum(length, 1e-6), along_y / tl.maximum(length, 1e-6)
            along, aside = u * along_x + v * along_y, v * along_x - u * along_y
            beyond = tl.abs(along - length / 2) - length / 2
            flat = tl.maximum(beyond, tl.abs(aside) - wide / 2)
            off = tl.where(length > 0, aside * aside, u * u + v * v)
            outside = tl.maximum(beyond, 0.0)
            distance = tl.where(rounded > 0, tl.sqrt(outside * outside + off) - wide / 2, flat)
            pixel = 0.5 * (1 / (width * unit_x) + 1 / (height * unit_y))
            covered = tl.minimum(tl.maximum(0.5 - distance / pixel, 0.0), 1.0)
            red += covered * (tl.load(mark + 6) - red)
            green += covered * (tl.load(mark + 7) - green)
            blue += covered * (tl.load(mark + 8) - blue)

    for slot in range(num_sprites):
        sprite = sprites + (number * num_sprites + slot) * 6
        index, at_x, at_y = tl.load(sprite), tl.load(sprite + 1), tl.load(sprite + 2)
        radius, angle, flip = tl.abs(tl.load(sprite + 3)), tl.load(sprite + 4), tl.load(sprite + 5)
        reach_x, reach_y = 1.4143 * radius * unit_x, 1.4143 * radius * unit_y
        near_x = (at_x - reach_x < x_most) & (at_x + reach_x > x_least)
        near_y = (at_y - reach_y < y_most) & (at_y + reach_y > y_least)
        if (index >= 0) & near_x & near_y:
            u, v = (x - at_x) / (unit_x * radius), (y - at_y) / (unit_y * radius)
            cos, sin = tl.cos(angle), tl.sin(angle)
            level = _level(2 * radius * tl.minimum(unit_x * width, unit_y * height), SPRITE, SPRITE_LEVELS)
            side = SPRITE >> level
            column = ((u * cos + v * sin) * flip + 1) / 2 * side - 0.5
            row = (v * cos - u * sin + 1) / 2 * side - 0.5
            begin = tl.load(sprite_offsets + level) + index.to(tl.int64) * side * side
            r, c = tl.floor(row), tl.floor(column)
            down, right = row - r, column - c
            r, c = r.to(tl.int32), c.to(tl.int32)
            over_red = tl.zeros((ROWS, COLS), tl.float32)
            over_green = tl.zeros((ROWS, COLS), tl.float32)
            over_blue = tl.zeros((ROWS, COLS), tl.float32)
            alpha = tl.zeros((ROWS, COLS), tl.float32)
            for corner in tl.static_range(4):
                inside = (
                    (r + corner // 2 >= 0)
                    & (r + corner // 2 < side)
                    & (c + corner % 2 >= 0)
                    & (c + corner % 2 < side)
                )
                value = tl.load(sprite_pixels + begin + (r + corner // 2) * side + c + corner % 2, inside, 0)
                share = _share(down, corner // 2) * _share(right, corner % 2) / 255
                over_red += share * (value & 255).to(tl.float32)
                over_green += share * ((value >> 8) & 255).to(tl.float32)
                over_blue += share * ((value >> 16) & 255).to(tl.float32)
                alpha += share * ((value >> 24) & 255).to(tl.float32)
            red = red * (1 - alpha) + over_red
            green = green * (1 - alpha) + over_green
            blue = blue * (1 - alpha) + over_blue

    for slot in range(num_lines):
        line = lines + (number * num_lines + slot) * 9
        font, at_x, at_y = tl.load(line), tl.load(line + 1), tl.load(line + 2)
        tall, angle, long = tl.abs(tl.load(line + 3)), tl.load(line + 4), tl.load(line + 8)
        reach = tl.sqrt(long * long / (LETTER * LETTER) + 1) / 2 * tall
        near_x = (at_x - reach * unit_x < x_most) & (at_x + reach * unit_x > x_least)
        near_y = (at_y - reach * unit_y < y_most) & (at_y + reach * unit_y > y_least)
        if (font >= 0) & near_x & near_y:
            cos, sin = tl.cos(angle), tl.sin(angle)
            a, b = (x - at_x) / (unit_x * tall), (y - at_y) / (unit_y * tall)
            u, v = (a * cos + b * sin) * LETTER + long / 2, (b * cos - a * sin + 0.5) * LETTER
            first = (number * num_lines + slot) * MOST_LETTERS
            letter = tl.zeros((ROWS, COLS), tl.int32)
            for n in tl.static_range(1, MOST_LETTERS):
                letter += (u >= tl.load(starts + first + n)).to(tl.int32)
            glyph = tl.load(text + first + letter)
            start = tl.load(starts + first + letter)
            level = _level(tall * tl.minimum(unit_x * width, unit_y * height), LETTER, LETTER_LEVELS)
            side = LETTER >> level
            scale = side / LETTER
            column, row = (u - start + ORIGIN) * scale - 0.5, v * scale - 0.5
            cell = font * CHARACTERS + tl.maximum(glyph, 0.0)
            begin = tl.load(letter_offsets + level) + cell.to(tl.int64) * side * side
            shown = (glyph >= 0) & (u > -ORIGIN)
            # Far from the line a column is too large for a whole number; nothing is there.
            shown = shown & (tl.abs(column) < 1e6) & (tl.abs(row) < 1e6)
            r, c = tl.floor(row), tl.floor(column)
            down, right = row - r, column - c
            r, c = r.to(tl.int32), c.to(tl.int32)
            ink = tl.zeros((ROWS, COLS), tl.float32)
            for corner in tl.static_range(4):
                inside = (
                    shown
                    & (r + corner // 2 >= 0)
                    & (r + corner // 2 < side)
                    & (c + corner % 2 >= 0)
                    & (c + corner % 2 < side)
                )
                value = tl.load(letter_pixels + begin + (r + corner // 2) * side + c + corner % 2, inside, 0)
                share = _share(down, corner // 2) * _share(right, corner % 2) / 255
                ink += share * value.to(tl.float32)
            red += ink * (tl.load(line + 5) - red)
            green += ink * (tl.load(line + 6) - green)
            blue += ink * (tl.load(line + 7) - blue)

    tl.store(at, red, there)
    tl.store(at + plane, green, there)
    tl.store(at + 2 * plane, blue, there)
