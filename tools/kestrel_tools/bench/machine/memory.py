"""What memory does while something runs: the device's, that of torch's allocator, this process's on the host.

None is what cannot be seen: a CPU has no device memory, and only Linux tells the resident size in passing.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from kestrel_tools.bench.results import Row

GROWTH_SHARE = 0.01  # allowed, of what was in use after settling
PLAN_SHARE = 0.05  # allowed deviation from the plan, up or down
RESIDENT = Path("/proc/self/statm")


class Moment(NamedTuple):
    """Bytes."""

    at_s: float
    device: int | None  # in use by any process, as the runtime sees it
    allocator: int | None  # taken from the device by torch in this process, in use or not
    host: int | None


WHAT = {"device": "the device", "allocator": "torch's allocator", "host": "the host, this process"}


def look(at_s: float, metrics: Mapping[str, Any], device: torch.device) -> Moment:
    """`metrics` are the engine's."""
    reserved = torch.cuda.memory_reserved(device) if device.type == "cuda" else None
    return Moment(at_s, metrics.get("device_bytes_used"), reserved, _resident())


def summary(moments: Sequence[Moment], settle_s: float, planned: int | None) -> list[Row]:
    """A row for each kind of memory. If the run ended before memory settled, only the last moment counts.

    Growth of the device's is up to the largest: what grew and was given back was needed nevertheless. The
    host's goes up and down with the pictures that are decoded at the moment: there the medians of the first
    and the last quarter are compared. Of the plan it is the moment furthest from it that counts.
    """
    settled = [moment for moment in moments if moment.at_s >= settle_s] or list(moments[-1:])
    rows = []
    for field, title in WHAT.items():
        seen: list[int] = [size for moment in settled if (size := getattr(moment, field)) is not None]
        plan = planned if field == "device" else None
        row: Row = {"memory": title, "planned_gib": _gib(plan)}
        if seen:
            grown = _trend(seen) if field == "host" else max(seen) - seen[0]
            row |= {
                "settled_gib": _gib(seen[0]),
                "end_gib": _gib(seen[-1]),
                "largest_gib": _gib(max(seen)),
                "grown_mib": grown / 2**20,
                "grown_share": grown / seen[0],
            }
            if plan:
                row["of_planned"] = max((size / plan for size in seen), key=lambda share: abs(share - 1))
        rows.append(row)
    return rows


def _trend(sizes: Sequence[int]) -> float:
    quarter = max(len(sizes) // 4, 1)
    return median(sizes[-quarter:]) - median(sizes[:quarter])


def complaints(rows: Sequence[Row], shared: bool = False) -> list[str]:
    """What is wrong in a summary. Only the device's memory was promised.

    Of a device that others use too, what torch took for this process is all that can be told apart.
    """
    device, found = rows[1 if shared else 0], []
    if device.get("grown_share", 0.0) > GROWTH_SHARE:
        found.append(
            f"device memory grew by {device['grown_mib']:,.0f} MiB ({device['grown_share']:.1%}) after "
            f"settling; {GROWTH_SHARE:.0%} is allowed"
        )
    if abs(device.get("of_planned", 1.0) - 1) > PLAN_SHARE:
        found.append(
            f"device memory in use was {device['of_planned']:.1%} of what was planned; "
            f"{PLAN_SHARE:.0%} more or less is allowed"
        )
    return found


def timeline(moments: Sequence[Moment], count: int = 12) -> list[Row]:
    """About `count` of the moments, the first and the last included: what fits in a table."""
    chosen = [*moments[: -1 : max(len(moments) // count, 1)], *moments[-1:]]
    return [
        {"at_s": moment.at_s, **{f"{field}_mib": _mib(getattr(moment, field)) for field in WHAT}}
        for moment in chosen
    ]


def columns(moments: Sequence[Moment]) -> dict[str, list[float | None]]:
    """All of them, for a file."""
    mib = {f"{field}_mib": [_mib(getattr(moment, field)) for moment in moments] for field in WHAT}
    return {"at_s": [round(moment.at_s, 1) for moment in moments], **mib}


def _resident() -> int | None:
    try:
        return int(RESIDENT.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def _gib(size: int | None) -> float | None:
    return size / 2**30 if size is not None else None


def _mib(size: int | None) -> float | None:
    return round(size / 2**20, 1) if size is not None else None
