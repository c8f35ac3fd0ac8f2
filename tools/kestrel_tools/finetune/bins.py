"""Coordinates and sizes as the bins that the region model chooses from. Needs nothing but Python."""

import math


def nearest_coord(value: float, bins: int) -> float:
    """What decoding would feed: the value of the nearest bin."""
    return bin_of_coord(value, bins) / bins


def nearest_size(value: float, bins: int) -> float:
    return math.exp2(bin_of_size(value, bins) / (bins - 1) * 10.0 - 10.0)


def bin_of_coord(value: float, bins: int) -> int:
    return min(bins - 1, max(0, round(value * bins)))


def bin_of_size(value: float, bins: int) -> int:
    exponent = (math.log2(max(value, 2.0**-10)) + 10) / 10 * (bins - 1)
    return min(bins - 1, max(0, round(exponent)))
