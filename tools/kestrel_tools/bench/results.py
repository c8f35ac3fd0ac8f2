"""A benchmark's result: one JSON document that names machine, versions, commit and workload, and its tables.

The columns of every benchmark stand here, so that the terminal, a committed file and its Markdown agree. No
torch: a document is rendered wherever it is read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.bench.machine.versions import provenance

Row = dict[str, Any]

WIDE = 200  # columns of a table in a log


class Column(NamedTuple):
    key: str  # in a row; a dot leads into a nested part
    title: str
    form: str = ",.1f"


class Section:
    def __init__(self, title: str, *columns: Column | Sequence[Column], rows: str = "measured") -> None:
        """Columns, or groups of them. `rows`: the document's entry that holds the rows."""
        self.title = title
        self.columns = tuple(chain(*([c] if isinstance(c, Column) else c for c in columns)))
        self.rows = rows

    @property
    def titles(self) -> list[str]:
        return [column.title for column in self.columns]

    def cells(self, document: Mapping[str, Any]) -> list[list[str]]:
        return [[shown(row, column) for column in self.columns] for row in document[self.rows]]


COUNT = ",d"
BATCH = Column("batch", "batch", "d")
WAY = (
    Column("through", "through", ""),
    Column("adapters", "adapters", ""),
    BATCH,
    Column("tokens", "tokens", "d"),
)
REQUESTS = Column("requests", "requests", COUNT)
LATENCIES = tuple(Column(f"p{share}_ms", f"P{share} ms") for share in (50, 95, 99))
TTFT_P95 = Column("ttft_p95_ms", "TTFT P95 ms")
MS = Column("ms", "ms", ",.3f")
FLOOR = (Column("floor_ms", "floor ms", ",.3f"), Column("of_floor", "of floor", ".0%"))
KIND_OF_START = (Column("start", "start", ""), Column("cache", "cache", ""))
PARTS_OF_START = (
    *("interpreter", "imports", "device", "tokenizer", "weights", "fast paths", "vision graphs"),
    *("text kernels", "FlashInfer's compiler", "FlashInfer", "step graphs", "largest step", "engine"),
)
STAGES = ("queue", "image_decode", "vision", "prefill", "decode", "delivery")
COMPUTED = {  # what an engine counts, by its name and by what the tables call it
    "steps": "steps",
    "output_tokens": "output tokens",
    "prompt_tokens": "prompt positions",
    "cached_tokens": "of them cached",
    "prefix_hits": "prefix hits",
    "prefix_misses": "misses",
    "images_encoded": "pictures encoded",
    "preemptions": "preemptions",
}


def computed(*names: str, part: str = "", prompt: str = "prompt_tokens") -> list[Column]:
    keys = {name: prompt if name == "prompt_tokens" else name for name in COMPUTED}
    return [Column(part + keys[name], COMPUTED[name], COUNT) for name in names]


SECTIONS: dict[str, tuple[Section, ...]] = {
    "chartqa": (
        Section(
            "Requests, closed loop",
            WAY,
            Column("requests_per_s", "requests/s", ",.2f"),
            LATENCIES,
            Column("ttft_p50_ms", "TTFT P50 ms"),
            TTFT_P95,
            Column("gpu_busy", "GPU busy", ".0%"),
            Column("of_engine", "of engine", ".1%"),
            REQUESTS,
            Column("seconds", "seconds"),
        ),
        Section(
            "Where a request's time goes, mean ms; the picture's two stages are of a picture that is new",
            WAY,
            [Column(f"stages.{name}_ms", name.replace("image_decode", "picture"), ",.2f") for name in STAGES],
        ),
        Section(
            "What was computed in the window",
            WAY,
            computed(*list(COMPUTED)[1:-1], "steps", "preemptions", part="counts.", prompt="input_tokens"),
            Column("planned_gib", "GiB planned", ",.2f"),
            Column("used_gib", "GiB used", ",.2f"),
            Column("grown_mib", "grown MiB"),
            Column("gpu_used_gib", "GiB of the GPU taken", ",.2f"),
        ),
    ),
    "adapters": (
        Section(
            "Requests for adapters while streams decode",
            Column("asked", "asked for", ""),
            REQUESTS,
            *(Column(f"ttft_{name}_ms", f"first token {name} ms") for name in ("min", "p50", "max")),
            Column("pause_p50_ms", "between tokens P50 ms", ",.2f"),
            Column("pause_max_ms", "longest pause ms"),
            Column("tokens_per_s", "streams' tokens/s", ",.0f"),
            Column("loads", "loads", COUNT),
            Column("evictions", "evictions", COUNT),
            Column("load_ms", "mean load ms"),
            Column("seconds", "seconds", ",.2f"),
        ),
    ),
    "pauses": (
        Section(
            "Streams beside pictures: pauses, and what becomes of the pictures",
            Column("policy", "pacing", ""),
            Column("streams", "streams", "d"),
            Column("offered_per_s", "pictures/s"),
            *(Column(f"quiet_p{share}_ms", f"alone P{share} ms", ",.2f") for share in (50, 99)),
            *(Column(f"pause_p{share}_ms", f"pause P{share} ms", ",.2f") for share in (50, 95, 99)),
            Column("pause_max_ms", "longest ms"),
            Column("tokens_per_s", "streams' tokens/s", ",.0f"),
            Column("requests_per_s", "answered/s"),
            LATENCIES,
            Column("closed_per_s", "closed loop/s"),
        ),
    ),
    "decode": (
        Section(
            "Decode steps",
            BATCH,
            Column("context", "context", COUNT),
            Column("tokens_per_s", "tokens/s", ",.0f"),
            Column("step_ms", "step ms", ",.3f"),
            Column("step_p95_ms", "P95 ms", ",.3f"),
            Column("launch_ms", "launch ms", ",.3f"),
            Column("collect_ms", "collect ms", ",.3f"),
            FLOOR,
        ),
    ),
    "prefill": (
        Section(
            "Prefill",
            Column("requests", "requests", "d"),
            Column("tokens", "tokens", COUNT),
            MS,
            Column("tokens_per_s", "tokens/s", ",.0f"),
            Column("vision", "vision", ""),
            FLOOR,
        ),
    ),
    "vision": (
        Section(
            "Vision encoder",
            Column("images", "pictures", "d"),
            Column("crops", "crops", COUNT),
            MS,
            Column("crops_per_s", "crops/s", ",.0f"),
            FLOOR,
        ),
    ),
    "load": (
        Section(
            "Requests, open loop",
            Column("offered_per_s", "offered/s", ",.2f"),
            Column("requests_per_s", "answered/s", ",.2f"),
            REQUESTS,
            Column("errors", "errors", COUNT),
            LATENCIES,
            TTFT_P95,
            Column("late_p99_ms", "sent late, P99 ms"),
            Column("held", "held", ""),
        ),
    ),
    "query": (
        Section(
            "One caller",
            Column("asked", "asked", ""),
            REQUESTS,
            Column("least_ms", "least ms"),
            LATENCIES,
            Column("ttft_p50_ms", "TTFT P50 ms"),
            Column("mean_tokens", "tokens"),
        ),
    ),
    "start": (
        Section(
            "Seconds from the start of the process",
            KIND_OF_START,
            Column("ready_s", "ready", ",.2f"),
            Column("first_answer_s", "first answer", ",.2f"),
            Column("captured_s", "all captured", ",.2f"),
            Column("compiled_s", "all compiled", ",.2f"),
            Column("put_off", "captured later", COUNT),
            Column("longest_capture_ms", "longest of them, ms"),
            Column("graphs", "graphs", ""),
            Column("planned_gib", "GiB planned", ",.3f"),
            Column("captured_gib", "after captures", ",.3f"),
            Column("used_gib", "at the end", ",.3f"),
            Column("same_first", "first answers as whole", ""),
            Column("same_later", "later ones", ""),
        ),
        Section(
            "Seconds of each part",
            KIND_OF_START,
            [Column(f"parts.{name}", name, ",.2f") for name in PARTS_OF_START],
        ),
    ),
    "attacks": (
        Section(
            "A normal user, while others attack",
            Column("attack", "attack", ""),
            Column("sent", "sent", COUNT),
            Column("not_as_it_must", "ended wrongly", COUNT),
            REQUESTS,
            LATENCIES[:2],
            Column("slower", "times undisturbed", ",.2f"),
            Column("wrong", "wrong", COUNT),
            Column("refused", "refused", COUNT),
            Column("hung", "hung", COUNT),
            Column("held", "held", ""),
        ),
    ),
    "soak": (
        Section(
            "Requests, by what was asked",
            Column("kind", "kind", ""),
            REQUESTS,
            Column("answered", "answered", COUNT),
            Column("left", "left by the caller", COUNT),
            Column("refused", "refused as expected", COUNT),
            Column("failed", "failed", COUNT),
            Column("mean_ms", "mean ms"),
        ),
        Section("What was computed", computed(*COMPUTED), rows="computed"),
        Section(
            "Memory, GiB",
            Column("memory", "of", ""),
            Column("planned_gib", "planned", ",.3f"),
            Column("settled_gib", "settled", ",.3f"),
            Column("end_gib", "at the end", ",.3f"),
            Column("largest_gib", "largest", ",.3f"),
            Column("grown_mib", "grown MiB"),
            Column("grown_share", "grown", ".2%"),
            Column("of_planned", "used/planned", ".2%"),
            rows="summary",
        ),
        Section(
            "Memory over time, MiB",
            Column("at_s", "seconds"),
            Column("device_mib", "device"),
            Column("allocator_mib", "torch's allocator"),
            Column("host_mib", "host"),
            rows="timeline",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """What a benchmark runs with, and where its result goes."""

    config: RuntimeConfig
    console: Console
    file: Path | None = None
    commit: str | None = None

    def finish(
        self,
        name: str,
        config: RuntimeConfig | None,
        workload: Mapping[str, Any],
        measured: Sequence[Row],
        **more: Any,
    ) -> dict[str, Any]:
        """Make the document and show it. `config` is None for a server, whose machine is not known."""
        origin = provenance(config.device if config is not None else "cpu")
        document = {
            "bench": name,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "commit": self.commit or origin["commit"],
            "machine": origin["machine"],
            "versions": origin["versions"],
            "config": asdict(config) if config is not None else None,
            "workload": dict(workload),
            **more,
            "measured": list(measured),
        }
        show(document, self.console, self.file)
        return document


def show(document: Mapping[str, Any], console: Console, file: Path | None) -> None:
    """Print the tables, and write the document into `file`."""
    console = wide(console)
    for line in headlines(document):
        console.print(line, markup=False, highlight=False)
    for section in SECTIONS[document["bench"]]:
        console.print(f"\n{section.title}", style="bold", highlight=False)
        table = Table()
        for column in section.columns:
            table.add_column(column.title, justify="right" if column.form else "left")
        for cells in section.cells(document):
            table.add_row(*cells)
        console.print(table)
    write_document(file, document)


def wide(console: Console) -> Console:
    """A log has no edge, and rich would cut columns at the 80th letter."""
    if console.is_terminal:
        return console
    return Console(file=console.file, width=WIDE, quiet=console.quiet)


def write_document(file: Path | None, document: Mapping[str, Any]) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def markdown(document: Mapping[str, Any]) -> str:
    """A committed document as a page: the same lines and tables."""
    parts = [f"## {document['bench']}", "\n".join(f"- {line}" for line in headlines(document))]
    for section in SECTIONS[document["bench"]]:
        head, *rows = (f"| {' | '.join(cells)} |" for cells in (section.titles, *section.cells(document)))
        parts.append(f"**{section.title}**")
        parts.append("\n".join((head, "|" + "---|" * len(section.columns), *rows)))
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
    """The smallest of the values that at least this share of all do not exceed."""
    assert values and 0 < share <= 1
    return sorted(values)[ceil(share * len(values)) - 1]
