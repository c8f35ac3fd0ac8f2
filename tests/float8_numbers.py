"""Comparing float8 numbers that the interpreter of the kernel language made."""

from torch import Tensor


def same_float8(ours: Tensor, expected: Tensor) -> bool:
    """But for two faults of the interpreter: it forgets the carry of a number that rounds up to a power of
    two, and cuts off the smallest instead of rounding them. The device does neither. One in a hundred may be
    the neighbour: numbers halfway between two fall to either side by the last bit of a function."""
    wide, right = ours.float(), expected.float()
    excused = (2 * wide == right) | ((wide - right).abs() <= 2**-9) | (wide == right)
    neighbours = (wide - right).abs() <= right.abs() / 8
    few = (~excused).float().mean() <= 0.01
    return bool((excused | neighbours).all() and few and (wide == right).float().mean() > 0.9)
