"""Comparing float8 numbers that the interpreter of the kernel language made."""

from torch import Tensor


def same_float8(ours: Tensor, expected: Tensor) -> bool:
    """But for two faults of the interpreter: it forgets the carry of a number that rounds up to a power of
    two, and cuts off the smallest instead of rounding them. The device does neither."""
    wide, right = ours.float(), expected.float()
    excused = (2 * wide == right) | ((wide - right).abs() <= 2**-9)
    return bool(((wide == right) | excused).all() and (wide == right).float().mean() > 0.9)
