"""Answers in a line each, for people."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from kestrel_core.protocol.errors import KestrelError, UnsupportedSkill
from kestrel_core.protocol.messages import EngineResult
from kestrel_core.protocol.names import harmless
from kestrel_core.protocol.results import Answer, Caption, Detection, Points, Segments

HEAD = ("skill", "answer", "time", "first text", "tokens")
MAX_SHOWN = 4
MAX_LETTERS = 300


def show(rows: Sequence[tuple[str, ...]]) -> None:
    """A table, by rich where it is installed."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        for row in (HEAD, *rows):
            print("  ".join((row[0].ljust(8), *(cell.rjust(10) for cell in row[2:]), row[1])).rstrip())
        return
    table = Table()
    for name in HEAD:
        table.add_column(name, justify="left" if name in ("skill", "answer") else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as Text: an answer may hold what rich reads as markup
    Console().print(table)


def summary(result: EngineResult | KestrelError) -> str:
    match result:
        case Answer() | Caption():
            return " ".join(harmless(result.text).split())
        case Detection():
            return _several(
                f"({b.x_min:.2f}, {b.y_min:.2f})-({b.x_max:.2f}, {b.y_max:.2f})" for b in result.objects
            )
        case Points():
            others = [f"{key} {value}" for key, value in result.output.items() if key != "points"]
            points = _several(f"({point.x:.2f}, {point.y:.2f})" for point in result.points)
            return harmless("; ".join([*others, points]))
        case Segments():
            return _outlines(
                [part.svg_path.count("M") + part.svg_path.count("L") for part in result.segments]
            )
        case UnsupportedSkill():
            return "not a skill of this model"
        case KestrelError():
            return f"failed: {result.code}: {harmless(str(result))}"
        case _:
            return harmless(", ".join(f"{key}: {value}" for key, value in result.output.items()))[
                :MAX_LETTERS
            ]


def response(result: EngineResult) -> dict[str, Any]:
    """The answer as the JSON document of the contract."""
    head = {"request_id": result.request_id, "finish_reason": result.finish_reason}
    return {**head, **result.output, "metrics": asdict(result.metrics)}


def _outlines(vertices: Sequence[int]) -> str:
    """Their number and how fine they are: a path itself is hundreds of letters."""
    if not vertices:
        return "none found"
    few, many = min(vertices), max(vertices)
    count = f"{few} to {many}" if few != many else str(few)
    return f"{len(vertices)} outline{'s' * (len(vertices) > 1)}, {count} vertices"


def _several(parts: Iterable[str]) -> str:
    found = list(parts)
    if not found:
        return "none found"
    more = ", ..." if len(found) > MAX_SHOWN else ""
    return f"{len(found)}: {', '.join(found[:MAX_SHOWN])}{more}"
