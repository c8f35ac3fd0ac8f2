"""A benchmark's result: one JSON document that names machine, versions, commit and workload, and its tables.

The columns of every benchmark stand here, so that the terminal, a committed file and its Markdown agree. No
torch: a document is rendered wherever it is read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.machine import describe_machine, describe_versions, find_commit

Row = dict[str, Any]

WIDE = 200


class Column(NamedTuple):
    key: str  # of a row; a dot leads into a part of it
    title: str
    form: str = ",.1f"


class Section(NamedTuple):
    title: str
    columns: tuple[Column, ...]
    rows: str = "measured"  # where they stand in the document


BATCH = Column("batch", "batch", "d")
WAY = (Column("through", "through", ""), BATCH, Column("tokens", "tokens", "d"))
OPEN_LOOP = (
    Column("offered_per_s", "offered/s", ",.2f"),
    Column("requests_per_s", "answered/s", ",.2f"),
    Column("requests", "requests", ",d"),
    Column("errors", "errors", ",d"),
    Column("p50_ms", "P50 ms"),
    Column("p95_ms", "P95 ms"),
    Column("p99_ms", "P99 ms"),
    Column("ttft_p95_ms", "TTFT P95 ms"),
    Column("late_p99_ms", "sent late, P99 ms"),
    Column("held", "held", ""),
)
FLOOR = (Column("floor_ms", "floor ms", ",.3f"), Column("of_floor", "of floor", ".0%"))
SECTIONS: dict[str, tuple[Section, ...]] = {
    "chartqa": (
        Section(
            "Requests, closed loop",
            (
                *WAY,
                Column("requests_per_s", "requests/s", ",.2f"),
                Column("p50_ms", "P50 ms"),
                Column("p95_ms", "P95 ms"),
                Column("p99_ms", "P99 ms"),
                Column("ttft_p50_ms", "TTFT P50 ms"),
                Column("ttft_p95_ms", "TTFT P95 ms"),
                Column("gpu_busy", "GPU busy", ".0%"),
                Column("of_engine", "of engine", ".1%"),
                Column("requests", "requests", ",d"),
                Column("seconds", "seconds"),
            ),
        ),
        Section(
            "Where a request's time goes, mean ms; the picture's two stages are of a picture that is new",
            (
                *WAY,
                Column("stages.queue_ms", "queue", ",.2f"),
                Column("stages.image_decode_ms", "picture", ",.2f"),
                Column("stages.vision_ms", "vision", ",.2f"),
                Column("stages.prefill_ms", "prefill", ",.2f"),
                Column("stages.decode_ms", "decode", ",.2f"),
                Column("stages.delivery_ms", "delivery", ",.2f"),
            ),
        ),
        Section(
            "What was computed in the window",
            (
                *WAY,
                Column("counts.output_tokens", "output tokens", ",d"),
                Column("counts.input_tokens", "prompt positions", ",d"),
                Column("counts.cached_tokens", "of them cached", ",d"),
                Column("counts.prefix_hits", "prefix hits", ",d"),
                Column("counts.prefix_misses", "misses", ",d"),
                Column("counts.images_encoded", "pictures encoded", ",d"),
                Column("counts.steps", "steps", ",d"),
                Column("counts.preemptions", "preemptions", ",d"),
                Column("planned_gib", "GiB planned", ",.2f"),
                Column("used_gib", "GiB used", ",.2f"),
                Column("grown_mib", "grown MiB"),
                Column("gpu_used_gib", "GiB of the GPU taken", ",.2f"),
            ),
        ),
    ),
    "decode": (
        Section(
            "Decode steps",
            (
                BATCH,
                Column("context", "context", ",d"),
                Column("tokens_per_s", "tokens/s", ",.0f"),
                Column("step_ms", "step ms", ",.3f"),
                Column("step_p95_ms", "P95 ms", ",.3f"),
                Column("launch_ms", "launch ms", ",.3f"),
                Column("collect_ms", "collect ms", ",.3f"),
                *FLOOR,
            ),
        ),
    ),
    "prefill": (
        Section(
            "Prefill",
            (
                Column("requests", "requests", "d"),
                Column("tokens", "tokens", ",d"),
                Column("ms", "ms", ",.3f"),
                Column("tokens_per_s", "tokens/s", ",.0f"),
                Column("vision", "vision", ""),
                *FLOOR,
            ),
        ),
    ),
    "vision": (
        Section(
            "Vision encoder",
            (
                Column("images", "pictures", "d"),
                Column("crops", "crops", ",d"),
                Column("ms", "ms", ",.3f"),
                Column("crops_per_s", "crops/s", ",.0f"),
                *FLOOR,
            ),
        ),
    ),
    "load": (Section("Requests, open loop", OPEN_LOOP),),
    "soak": (
        Section(
            "Requests, by what was asked",
            (
                Column("kind", "kind", ""),
                Column("requests", "requests", ",d"),
                Column("answered", "answered", ",d"),
                Column("left", "left by the caller", ",d"),
                Column("refused", "refused as expected", ",d"),
                Column("failed", "failed", ",d"),
                Column("mean_ms", "mean ms"),
            ),
        ),
        Section(
            "What was computed",
            (
                Column("steps", "steps", ",d"),
                Column("output_tokens", "output tokens", ",d"),
                Column("prompt_tokens", "prompt positions", ",d"),
                Column("cached_tokens", "of them cached", ",d"),
                Column("prefix_hits", "prefix hits", ",d"),
                Column("prefix_misses", "misses", ",d"),
                Column("images_encoded", "pictures encoded", ",d"),
                Column("preemptions", "preemptions", ",d"),
            ),
            "computed",
        ),
        Section(
            "Memory, GiB",
            (
                Column("memory", "of", ""),
                Column("planned_gib", "planned", ",.3f"),
                Column("settled_gib", "settled", ",.3f"),
                Column("end_gib", "at the end", ",.3f"),
                Column("largest_gib", "largest", ",.3f"),
                Column("grown_mib", "grown MiB"),
                Column("grown_share", "grown", ".2%"),
                Column("of_planned", "used/planned", ".2%"),
            ),
            "summary",
        ),
        Section(
            "Memory over time, MiB",
            (
                Column("at_s", "seconds"),
                Column("device_mib", "device"),
                Column("allocator_mib", "torch's allocator"),
                Column("host_mib", "host"),
            ),
            "timeline",
        ),
    ),
}


def make_document(
    bench: str,
    config: RuntimeConfig | None,
    workload: Mapping[str, Any],
    measured: Sequence[Row],
    commit: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Without a `config`: of a server elsewhere, of which only the asking machine is known."""
    device = config.device if config is not None else "cpu"
    return {
        "bench": bench,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit or find_commit(),
        "machine": describe_machine(device),
        "versions": describe_versions(device),
        "config": asdict(config) if config is not None else None,
        "workload": dict(workload),
        **more,
        "measured": list(measured),
    }


def show(document: Mapping[str, Any], console: Console, file: Path | None) -> None:
    """The tables to the terminal, the document into `file`."""
    if not console.is_terminal:  # a log has no edge, and rich would cut columns at the 80th letter
        console = Console(file=console.file, width=WIDE)
    for line in headlines(document):
        console.print(line, markup=False, highlight=False)
    for section in SECTIONS[document["bench"]]:
        console.print(f"\n{section.title}", style="bold", highlight=False)
        table = Table()
        for column in section.columns:
            table.add_column(column.title, justify="right" if column.form else "left")
        for row in document[section.rows]:
            table.add_row(*(shown(row, column) for column in section.columns))
        console.print(table)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document, indent=1) + "\n")


def markdown(document: Mapping[str, Any]) -> str:
    """A committed document as a page: the same lines and tables."""
    parts = [f"## {document['bench']}", "\n".join(f"- {line}" for line in headlines(document))]
    for section in SECTIONS[document["bench"]]:
        head = "| " + " | ".join(column.title for column in section.columns) + " |"
        rule = "|" + "---|" * len(section.columns)
        rows = [
            "| " + " | ".join(shown(row, column) for column in section.columns) + " |"
            for row in document[section.rows]
        ]
        parts.append(f"**{section.title}**")
        parts.append("\n".join((head, rule, *rows)))
    return "\n\n".join(parts) + "\n"


def read_document(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text())
        known = document["bench"] in SECTIONS
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{file} is no result of kestrel bench ({type(error).__name__})") from None
    if not known:
        raise InvalidRequest(f"{file} is of a benchmark that has no tables: {document['bench']}")
    assert isinstance(document, dict)
    return document


def headlines(document: Mapping[str, Any]) -> list[str]:
    machine, versions, config = document["machine"], document["versions"], document["config"]
    gpu = f"{machine['gpu']} ({machine['gpu_memory_gib']:g} GiB), " if machine["gpu"] else ""
    workload, subject = document["workload"], "a running server, asked from this machine"
    if config is not None:
        subject = f"{config['model']}, {config['weights']} weights, {config['dtype']} on {config['device']}"
    return [
        f"{subject}; commit {document['commit'] or 'unknown'}, {document['date']}",
        f"{gpu}{machine['cores']} cores, {machine['cpu']}, {machine['memory_gib']:g} GiB",
        ", ".join(f"{name} {version}" for name, version in versions.items() if version),
        "; ".join(f"{name.replace('_', ' ')}: {value}" for name, value in workload.items()),
    ]


def shown(row: Mapping[str, Any], column: Column) -> str:
    value: Any = row
    for part in column.key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else format(value, column.form)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so large a share of all does not exceed: one that was really seen."""
    assert values and 0 < share <= 1
    return sorted(values)[ceil(share * len(values)) - 1]
