"""Arguments that have a tensor of their own, and points and boxes as inputs of the model."""

import math
from typing import Any

from kestrel_core.loop.step import Coord, Input, Size
from kestrel_core.protocol.arguments import Argument, to_float
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.fields import ARGUMENTS
from kestrel_core.protocol.messages import Request
from kestrel_core.protocol.names import shown


def takes(name: str, required: bool = False) -> Argument:
    """One of the arguments that have a tensor of their own."""
    argument = ARGUMENTS[name].argument
    return Argument(**{**{key: getattr(argument, key) for key in Argument.__slots__}, "required": required})


def spatial_inputs(request: Request) -> tuple[Input, ...]:
    """A point is fed as its two coordinates; a box as the two of its centre, and its size."""
    refs = request.arguments.get("spatial_refs")
    return () if refs is None else tuple(part for row in refs for part in _spatial_ref(row))


def _spatial_ref(row: Any) -> tuple[Input, ...]:
    if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
        raise InvalidRequest("SPATIAL_REFS must be rows of 2 or 4 numbers")
    if len(row) not in (2, 4):
        raise InvalidRequest(f"SPATIAL_REFS has a row of {len(row):,} numbers; a point has 2, a box has 4")
    try:
        numbers = [to_float(number) for number in row]
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest("SPATIAL_REFS must be rows of 2 or 4 numbers") from None
    if any(not math.isfinite(number) or not 0 <= number <= 1 for number in numbers):
        raise InvalidRequest(
            f"SPATIAL_REFS holds {shown(numbers)}; numbers are fractions of the picture, from 0 to 1"
        )
    if len(numbers) == 2:
        return Coord(numbers[0]), Coord(numbers[1])
    x_min, y_min, x_max, y_max = numbers
    if x_max < x_min or y_max < y_min:
        raise InvalidRequest(
            f"SPATIAL_REFS has the box {shown(numbers)}; it must be x_min, y_min, x_max, y_max"
        )
    return Coord((x_min + x_max) / 2), Coord((y_min + y_max) / 2), Size(x_max - x_min, y_max - y_min)
