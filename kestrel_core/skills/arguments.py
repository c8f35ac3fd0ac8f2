"""A skill's arguments out of a request: present, of the right type, and within their limits."""

import math
from typing import TypeVar

from kestrel_core.loop.step import Coord, Input, Size
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request

MAX_SPATIAL_REFS = 100

T = TypeVar("T")


def argument(request: Request, name: str, kind: type[T], default: T | None = None) -> T:
    """The named argument, or `default`; without a default it is required."""
    value = request.arguments.get(name)
    if value is None:
        value = default
    if value is None:
        raise InvalidRequest(f"{name.upper()} is required for {request.skill}")
    if not isinstance(value, kind):
        raise InvalidRequest(f"{name.upper()} is a {type(value).__name__}; it must be a {kind.__name__}")
    if isinstance(value, str) and not value.strip():
        raise InvalidRequest(f"{name.upper()} is empty; say what is meant")
    return value


def spatial_inputs(request: Request) -> tuple[Input, ...]:
    """A point is fed as its two coordinates, a box as its centre's two and its size."""
    refs = request.arguments.get("spatial_refs")
    if refs is None:
        return ()
    try:
        rows = [[float(number) for number in ref] for ref in refs]
    except (TypeError, ValueError):
        raise InvalidRequest("SPATIAL_REFS must be rows of 2 or 4 numbers") from None
    if len(rows) > MAX_SPATIAL_REFS:
        raise InvalidRequest(f"SPATIAL_REFS has {len(rows)} rows; at most {MAX_SPATIAL_REFS} are taken")
    return tuple(part for row in rows for part in _spatial_ref(row))


def _spatial_ref(row: list[float]) -> tuple[Input, ...]:
    if any(not math.isfinite(number) or not 0 <= number <= 1 for number in row):
        raise InvalidRequest(f"SPATIAL_REFS holds {row}; numbers are fractions of the picture, from 0 to 1")
    if len(row) == 2:
        return Coord(row[0]), Coord(row[1])
    if len(row) != 4:
        raise InvalidRequest(f"SPATIAL_REFS has a row of {len(row)} numbers; a point has 2, a box has 4")
    x_min, y_min, x_max, y_max = row
    if x_max < x_min or y_max < y_min:
        raise InvalidRequest(f"SPATIAL_REFS has the box {row}; it must be x_min, y_min, x_max, y_max")
    return Coord((x_min + x_max) / 2), Coord((y_min + y_max) / 2), Size(x_max - x_min, y_max - y_min)
