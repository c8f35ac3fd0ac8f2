"""What tools that measure stages share: timing in a graph, floors, checks beside them, and the table.

A stage is some work in several ways. A way that fails is told and leaves the others alone.
"""

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from kestrel_tools.bench.machine.floors import median_ms
from kestrel_tools.bench.machine.versions import find_commit, version_of

log = logging.getLogger(__name__)

BYTES_PER_S = 4.17e12  # an H200: a large copy
FLOPS = 769e12  # a large product in bfloat16
FLOAT8_FLOPS = 1.25e15  # and in float8
SECONDS = 0.25  # that each measurement is repeated for

Work = Callable[[], object]


@dataclass(frozen=True)
class Measured:
    stage: str
    size: int
    variant: str
    ms: float
    floor_ms: float
    remark: str = ""


class Case(NamedTuple):
    """The same work in several ways."""

    stage: str
    size: int
    floor_ms: float
    ways: Mapping[str, Work]
    remark: Callable[[float], str] = lambda ms: ""  # of its milliseconds
    graphed: bool = True
    calls: int = 1  # that a way makes of the work, which is why its time is divided


@dataclass(frozen=True)
class Place:
    """Where stages run, and for how long."""

    device: torch.device
    dtype: torch.dtype
    seconds: float = SECONDS

    def randn(self, *shape: int) -> Tensor:
        return torch.randn(shape, device=self.device).to(self.dtype)

    def measured(self, case: Case) -> Iterator[Measured]:
        for way, work in case.ways.items():
            ms = self._ms(work, case.graphed) / case.calls
            yield Measured(case.stage, case.size, way, ms, case.floor_ms, case.remark(ms))

    def _ms(self, work: Work, graphed: bool) -> float:
        """Median time of one call. NaN where it fails, so that the other measurements go on."""
        try:
            return self._median_ms(work, graphed)
        except Exception:
            log.exception("this way fails")
            return math.nan

    def _median_ms(self, work: Work, graphed: bool) -> float:
        waited_ms = median_ms(work, self.device, 3)
        if self.device.type != "cuda":
            return waited_ms
        return device_ms(captured(work, 10), self.seconds) / 10 if graphed else device_ms(work, self.seconds)


def device_ms(work: Work, seconds: float) -> float:
    """Median time between an event before and one behind it."""
    times: list[float] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        work()
        ended.record()
        ended.synchronize()
        times.append(began.elapsed_time(ended))
    return median(times)


def captured(work: Work, calls: int) -> Work:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            work()
    return graph.replay


def floor_ms(num_bytes: float, flops: float, flops_per_s: float = FLOPS) -> float:
    return 1e3 * max(num_bytes / BYTES_PER_S, flops / flops_per_s)


def distance(ours: Tensor, expected: Tensor) -> float:
    """The RMS of the difference, as a share of the RMS."""
    wide = expected if expected.dtype == torch.float64 else expected.float()
    return float((ours.to(wide.dtype) - wide).norm() / wide.norm().clamp(min=1e-9))


class Report:
    """Checks as they are made: how far each result is off."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.failed: list[str] = []

    def say(self, what: str, off: float, limit: float, more: str = "") -> None:
        verdict = "ok" if off < limit else "WRONG"
        if verdict != "ok":
            self.failed.append(what)
        self._console.print(f"check {what:52} off {off:8.5f} (limit {limit:g}) {verdict} {more}")

    def sum_up(self) -> None:
        self._console.print(f"{len(self.failed)} checks failed: {'; '.join(self.failed) or 'none'}")


@torch.inference_mode()
def compile_share(all_cases: Iterator[Case], share: str) -> None:
    """`share`, I/N: call every Nth way once, from the Ith on, so that what it compiles is kept.

    Compiling takes longer than measuring, and several processes can do it at once.
    """
    first, step = map(int, share.split("/"))
    at = 0
    for case in all_cases:
        for name, way in case.ways.items():
            if at % step == first:
                try:
                    way()
                except Exception:
                    log.exception("%s, %s fails", case.stage, name)
            at += 1
    torch.cuda.synchronize()


@torch.inference_mode()
def print_stages(place: Place, all_cases: Iterator[Case], as_json: bool, console: Console) -> None:
    began, found = perf_counter(), []
    for case in all_cases:
        for one in place.measured(case):
            found.append(one)
            console.print(
                f"{one.stage:20} {one.size:6} {one.variant:24} {one.ms:9.4f} ms "
                f"(floor {one.floor_ms:8.4f}) {one.remark}"
            )
    name = torch.cuda.get_device_name(place.device) if place.device.type == "cuda" else "CPU"
    versions = f"torch {torch.__version__}, kernel language {version_of('triton')}, commit {find_commit()}"
    table = Table(title=f"Stages, milliseconds; {name}, {versions}, {perf_counter() - began:.0f} s")
    for column in ("stage", "size", "variant", "ms", "floor", "of floor", "remark"):
        table.add_column(column, justify="left" if column in ("stage", "variant", "remark") else "right")
    for one in found:
        times = f"{one.ms:.4f}", f"{one.floor_ms:.4f}", f"{one.floor_ms / one.ms:.0%}"
        table.add_row(one.stage, str(one.size), one.variant, *times, one.remark)
    console.print(table)
    if as_json:
        json.dump([asdict(one) for one in found], sys.stdout)
