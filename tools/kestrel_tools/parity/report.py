"""Deviations of one run against golden values, gathered by stage, with the tolerance of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from rich.table import Table
from torch import Tensor

Measure = Literal[
    "relative L2",  # of each tensor; the worst one counts
    "relative RMS",  # over all values of a stage, since in bfloat16 a single expert's choice may flip
    "max |a-b| / (1+|b|)",
    "grey levels",
    "mean grey levels",
    "differences",
    "max |a-b|",
    "gap / largest logit",  # how far, by plain torch, a choice lies below the best one
    "mean gap / largest logit",
]


@dataclass
class Stage:
    name: str
    measure: Measure
    tolerance: float
    worst: float = 0.0
    where: str = ""
    count: int = 0
    note: str = ""
    squared_error: float = 0.0
    squared_golden: float = 0.0

    @property
    def passed(self) -> bool:
        return self.worst <= self.tolerance


@dataclass
class Report:
    """`measure` and `tolerance` are the folder's own for tensors in the dtype of this run."""

    measure: Measure
    tolerance: float
    stages: dict[str, Stage] = field(default_factory=dict)
    absences: dict[str, str] = field(default_factory=dict)  # stages that could not be run, and why

    def absent(self, stage: str, why: str) -> None:
        """The folder does not have what this stage compares with: neither passed nor missed."""
        self.absences[stage] = why

    def close(self, stage: str, where: str, ours: Tensor, golden: Tensor) -> None:
        a, b = ours.detach().to("cpu", torch.float64), golden.to(torch.float64)
        if a.shape != b.shape:
            self.add(stage, f"{where}: shape {tuple(a.shape)} for {tuple(b.shape)}", float("inf"))
        elif self.measure == "relative L2":
            self.add(stage, where, float((a - b).norm() / b.norm().clamp_min(1e-30)))
        elif self.measure == "relative RMS":
            self.add(stage, where, 0.0)
            kept = self.stages[stage]
            kept.squared_error += float((a - b).square().sum())
            kept.squared_golden += float(b.square().sum())
            overall = math.sqrt(kept.squared_error / max(kept.squared_golden, 1e-30))
            kept.worst = kept.worst if kept.worst == math.inf else overall
        else:
            self.add(stage, where, float(((a - b).abs() / (1 + b.abs())).max()))

    def equal(self, stage: str, where: str, ours: object, golden: object, note: str = "") -> None:
        """Both must be the same, or each item of two sequences of the same length."""
        if isinstance(ours, Sequence) and isinstance(golden, Sequence) and not isinstance(golden, str):
            wrong = sum(a != b for a, b in zip(ours, golden, strict=False)) + abs(len(ours) - len(golden))
        else:
            wrong = int(ours != golden)
        self.add(stage, where, wrong, "differences", 0.0, note)

    def add(
        self,
        stage: str,
        where: str,
        deviation: float,
        measure: Measure | None = None,
        tolerance: float | None = None,
        note: str = "",
    ) -> None:
        measure, tolerance = measure or self.measure, self.tolerance if tolerance is None else tolerance
        kept = self.stages.setdefault(stage, Stage(stage, measure, tolerance))
        kept.count += 1
        kept.note = note or kept.note
        if not deviation <= kept.worst:  # true for NaN as well
            kept.worst, kept.where = deviation if deviation == deviation else float("inf"), where

    @property
    def passed(self) -> bool:
        return all(stage.passed for stage in self.stages.values())

    def table(self, title: str) -> Table:
        table = Table(title=title, title_justify="left")
        table.add_column("stage", no_wrap=True)
        table.add_column("values", justify="right")
        table.add_column("largest deviation", justify="right", no_wrap=True)
        table.add_column("tolerance", justify="right", no_wrap=True)
        table.add_column("measure")
        table.add_column("worst at")
        table.add_column("", no_wrap=True)
        for stage in self.stages.values():
            verdict = "[green]pass[/]" if stage.passed else "[bold red]MISS[/]"
            numbers = f"{stage.worst:.2g}", f"{stage.tolerance:.2g}"
            where = stage.where + (f" ({stage.note})" if stage.note else "")
            table.add_row(stage.name, str(stage.count), *numbers, stage.measure, where, verdict)
        for name, why in self.absences.items():
            table.add_row(name, "0", "", "", "", why, "[yellow]absent[/]")
        return table

    def document(self) -> dict[str, Any]:
        """The last line of output. A deviation that is infinite or NaN, which JSON cannot say, is null."""
        return {
            "passed": self.passed,
            "absent": [{"stage": name, "why": why} for name, why in self.absences.items()],
            "stages": [
                {
                    "stage": stage.name,
                    "values": stage.count,
                    "deviation": stage.worst if math.isfinite(stage.worst) else None,
                    "tolerance": stage.tolerance,
                    "measure": stage.measure,
                    "worst_at": stage.where,
                    "passed": stage.passed,
                }
                for stage in self.stages.values()
            ],
        }
