"""What was found: a row for each check, as a table or as one JSON document."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

NAMED = 10  # names in a row, before the rest is only counted


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"
    SKIPPED = "skipped"


COLOURS = dict(zip(Verdict, ("green", "yellow", "bold red", "dim"), strict=True))


class Finding(NamedTuple):
    """The outcome of one check. `advice` is one sentence: what to do next."""

    verdict: Verdict
    found: str
    advice: str = ""


def ok(found: str) -> Finding:
    return Finding(Verdict.OK, found)


def warning(found: str, advice: str) -> Finding:
    return Finding(Verdict.WARNING, found, advice)


def fault(found: str, advice: str) -> Finding:
    return Finding(Verdict.FAULT, found, advice)


def skipped(reason: str, advice: str = "") -> Finding:
    return Finding(Verdict.SKIPPED, reason, advice)


def first_names(names: list[str]) -> str:
    """The first ten, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


@dataclass(frozen=True, slots=True)
class Row:
    section: str
    check: str
    verdict: Verdict
    found: str
    advice: str


T = TypeVar("T")


class Report:
    """Collects the rows. `say` is told the section and the check that comes next."""

    def __init__(self, say: Callable[[str, str], None] = lambda section, check: None) -> None:
        self.rows: list[Row] = []
        self._say = say

    def add(self, section: str, check: str, finding: Finding) -> None:
        self.rows.append(Row(section, check, *finding))

    def check(self, section: str, check: str, look: Callable[[], Finding], advice: str) -> None:
        """Run one check. Whatever it raises is a fault, and then `advice` says what to do."""
        self.learn(section, check, look, lambda finding: finding, advice)

    def learn(
        self, section: str, check: str, look: Callable[[], T], judge: Callable[[T], Finding], advice: str
    ) -> T | None:
        """As `check`, for a value that later checks need. None after an exception."""
        self._say(section, check)
        try:
            value = look()
            finding = judge(value)
        except Exception as error:  # a doctor must not die of the patient
            lines = str(error).strip().splitlines()
            self.add(section, check, fault(": ".join((type(error).__name__, *lines[:1])), advice))
            return None
        self.add(section, check, finding)
        return value

    def count(self, verdict: Verdict) -> int:
        return Counter(row.verdict for row in self.rows)[verdict]

    @property
    def is_healthy(self) -> bool:
        return self.count(Verdict.FAULT) == 0

    def summary(self, took_s: float) -> str:
        names = ("ok", "warnings", "faults", "skipped")
        counts = [f"{self.count(verdict)} {name}" for verdict, name in zip(Verdict, names, strict=True)]
        state = "healthy" if self.is_healthy else "not healthy"
        return f"{state}: {', '.join(counts)} in {took_s:.1f} s"

    def document(self, took_s: float, **more: Any) -> dict[str, Any]:
        return {
            "healthy": self.is_healthy,
            "counts": {verdict.value: self.count(verdict) for verdict in Verdict},
            "took_s": round(took_s, 2),
            **more,
            "rows": [{**asdict(row), "verdict": row.verdict.value} for row in self.rows],
        }

    def print(self, console: Console) -> None:
        table = Table(show_lines=False, pad_edge=False)
        table.add_column("section")
        table.add_column("check", max_width=32, overflow="fold")
        table.add_column("verdict")
        table.add_column("found", ratio=3, overflow="fold")
        with_advice = any(row.advice for row in self.rows)
        if with_advice:
            table.add_column("what to do", ratio=2, overflow="fold")
        before = None
        for row in self.rows:
            if before not in (None, row.section):
                table.add_section()
            shown = Text(row.section if row.section != before else "")
            verdict = Text(row.verdict.value, style=COLOURS[row.verdict])
            table.add_row(shown, Text(row.check), verdict, Text(row.found), *[Text(row.advice)] * with_advice)
            before = row.section
        console.print(table)
