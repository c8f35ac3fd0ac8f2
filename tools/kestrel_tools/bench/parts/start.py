"""`kestrel bench start`: from the start of a process to its first answer, by parts.

Every start is a process of its own. A cold one finds an empty folder for compiled kernels, a warm one what
the last one left there. What a quick start puts off is waited for, and its answers are compared with those of
a whole start, right after the start and after all is captured.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.runtime.compiled import FOLDERS
from kestrel_tools.bench.options import Start
from kestrel_tools.bench.results import Bench, Row

LIMIT_S = 600.0  # of one start


def bench_start(run: Start, bench: Bench) -> None:
    rows: list[Row] = []
    with TemporaryDirectory(prefix="kestrel-start-") as made:
        parent = Path(bench.config.cache_folder or made)
        folder, config = bench.config.cache_folder, bench.config
        if run.saved:
            bench.console.print("writing random weights to disk", highlight=False)
            started({"config": asdict(config), "save": made}, dict(os.environ))
            config = replace(config, weights="checkpoint", model_path=made)
        for number, (start, cache) in enumerate(cases(run)):
            if cache == "cold":
                folder = str(parent / f"cold-{number}")
            bench.console.print(f"a {start} start, {cache}", highlight=False)
            row = measured(replace(config, quick_start=start == "quick", cache_folder=folder), run)
            rows.append({"start": start, "cache": cache, **row})
            compare(rows)
            parts = ", ".join(f"{name} {spent_s:.2f}" for name, spent_s in row["parts"].items())
            told = f"  ready after {row['ready_s']:.2f} s ({parts}), first answer after "
            bench.console.print(f"{told}{row['first_answer_s']:.2f}", highlight=False, soft_wrap=True)
    weights = "from disk, in the page cache" if config.weights == "checkpoint" else "random"
    workload = {
        "seconds": f"from the start of the process; weights {weights}",
        "answers": f"of {run.tokens} tokens, each about a new picture, one by one",
    }
    bench.finish("start", bench.config, workload, rows)


def cases(run: Start) -> list[tuple[str, str]]:
    """Kinds of starts, and whether the folder is empty: all cold ones first, which fill it."""
    return [(start, "cold") for start in run.cold] + [(start, "warm") for start in run.starts]


def measured(config: RuntimeConfig, run: Start) -> Row:
    """What one process says of its start."""
    environment = {name: text for name, text in os.environ.items() if name not in FOLDERS}
    if config.cache_folder is None:
        environment = dict(os.environ)
    asked = {"config": asdict(config), "tokens": run.tokens, "requests": run.requests}
    row: Row = json.loads(started(asked, environment).splitlines()[-1])
    return row


def started(task: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """What a process prints that does this task."""
    done = subprocess.run(
        [sys.executable, "-m", "kestrel_tools.bench.starts.run"],
        input=json.dumps({**task, "began_s": time.monotonic()}),
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise EngineFailed(f"the process that was started ended with {done.returncode}")
    return done.stdout


def compare(rows: Sequence[Row]) -> None:
    """Tell of each start whether it answers as the first one with all graphs does."""
    whole = next((row for row in rows if row["start"] == "whole"), None)
    for row in rows:
        for moment in ("first", "later"):
            expected = whole["answers"][moment] if whole is not None and whole is not row else None
            row[f"same_{moment}"] = None if expected is None else expected == row["answers"][moment]
