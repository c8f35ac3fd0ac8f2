"""Pictures of charts: bars or lines over years, with axes, grid, numbers and a legend, as PNG files.

Drawn from a number alone, so that every run asks about the same ones, and no two are equal. The sizes are
those at which the tiling rule of both generations gives 9, 9, 9 and 2 crops.
"""

import numpy as np
import pyvips
from numpy.typing import NDArray

SIZES = ((850, 600), (800, 557), (420, 600), (310, 440))  # width, height; in equal shares
COLOURS = ((31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189), (140, 86, 75))
GREY, BLACK = (221, 221, 221), (34, 34, 34)
# Digits of 3 x 5 dots, row by row, the first dot the highest bit.
DIGITS = (0x7B6F, 0x2C97, 0x73E7, 0x72CF, 0x5BC9, 0x79CF, 0x79EF, 0x7252, 0x7BEF, 0x7BCF)

Pixels = NDArray[np.uint8]


def draw_chart(number: int) -> bytes:
    """The PNG file of chart `number`; its size is the next of `SIZES`."""
    width, height = SIZES[number % len(SIZES)]
    rng = np.random.default_rng(number)
    pixels = np.full((height, width, 3), 255, np.uint8)
    left, right, top, bottom = width // 8, width - 20, height // 8, height - height // 10
    _write(pixels, f"{number}", (width // 2 - 20, 12), 3)  # the title
    ticks = int(rng.integers(4, 8))
    step = int(rng.choice((5, 10, 20, 25, 50)))
    for tick in range(ticks + 1):
        y = bottom - tick * (bottom - top) // ticks
        pixels[y, left:right] = GREY
        _write(pixels, str(tick * step), (left - 36, y - 5), 2)
    num_years, num_series = int(rng.integers(5, 10)), int(rng.integers(1, 4))
    values = rng.uniform(0.05, 1.0, (num_series, num_years))
    lines = rng.random() < 0.3
    room = (right - left) // num_years
    first = int(rng.integers(1990, 2015))
    for year in range(num_years):
        x = left + year * room
        _write(pixels, str(first + year)[2:], (x + room // 2 - 8, bottom + 8), 2)
        for series in range(num_series):
            tall = int(values[series, year] * (bottom - top))
            if lines:
                following = int(values[series, min(year + 1, num_years - 1)] * (bottom - top))
                for offset in range(room):
                    y = bottom - tall - (following - tall) * offset // room
                    pixels[y - 2 : y + 1, x + offset] = COLOURS[series]
            else:
                bar = max(room * 4 // (5 * num_series), 2)
                at = x + room // 10 + series * bar
                pixels[bottom - tall : bottom, at : at + bar - 1] = COLOURS[series]
    pixels[bottom : bottom + 2, left:right] = BLACK
    pixels[top:bottom, left : left + 2] = BLACK
    for series in range(num_series):
        pixels[14 + 14 * series : 24 + 14 * series, 14:24] = COLOURS[series]
        _write(pixels, str(series + 1), (30, 14 + 14 * series), 2)
    image = pyvips.Image.new_from_memory(pixels, width, height, 3, "uchar")
    return bytes(image.pngsave_buffer(compression=6))


def _write(pixels: Pixels, digits: str, at: tuple[int, int], scale: int) -> None:
    """Writes to the right of the corner `at` (x, y). What lies outside the picture is left out."""
    x, y = max(at[0], 0), max(at[1], 0)
    for digit in digits:
        bits = np.array([DIGITS[int(digit)] >> (14 - dot) & 1 for dot in range(15)], bool).reshape(5, 3)
        dots = bits.repeat(scale, axis=0).repeat(scale, axis=1)
        part = pixels[y : y + dots.shape[0], x : x + dots.shape[1]]
        part[dots[: part.shape[0], : part.shape[1]]] = BLACK
        x += 4 * scale
