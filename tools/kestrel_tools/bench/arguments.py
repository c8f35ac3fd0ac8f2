"""What `kestrel bench` takes on the command line. No benchmark is imported before it is chosen."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.config import RuntimeConfig

if TYPE_CHECKING:
    Parts = argparse._SubParsersAction[argparse.ArgumentParser]  # which has no public name

EXACT = "Weights are random unless --weights says otherwise."


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the command line adds the engine's options to a command, and reads them back."""

    add: Callable[[argparse.ArgumentParser], None]
    read: Callable[[argparse.Namespace], RuntimeConfig]


def add_parts(parts: "Parts", engine: EngineOptions) -> None:
    _add_host_parts(parts)
    chartqa = _add_part(
        parts,
        engine,
        _chartqa,
        "chartqa",
        "whole requests, closed loop: the engine and the real Triton",
        "Charts of four sizes, five questions over every three, answers of exactly so many tokens, and a "
        f"caller for each sequence of the batch. {EXACT}",
    )
    chartqa.add_argument("--batch", type=_numbers, default=(1, 4, 16, 64), metavar="N,...", help=BATCH_HELP)
    chartqa.add_argument("--tokens", type=_numbers, default=(3,), metavar="N,...", help="of an answer (3)")
    chartqa.add_argument("--seconds", type=float, default=20.0, help="of each window (%(default)g)")
    chartqa.add_argument("--warm-up", type=int, metavar="N", help="requests (20, and 4 a caller)")
    chartqa.add_argument(
        "--through", default="engine", metavar="WAY,...", help="engine, triton, or both (%(default)s)"
    )
    decode = _add_part(
        parts,
        engine,
        _decode,
        "decode",
        "decode steps over batch sizes, beside their floor",
        f"Tokens/s of decode steps, what the host does in them, and the least they could take. {EXACT}",
    )
    decode.add_argument("--batch", type=_numbers, default=(1, 4, 16, 64), metavar="N,...", help=BATCH_HELP)
    decode.add_argument("--context", type=int, default=800, help="positions of a sequence (%(default)s)")
    decode.add_argument("--steps", type=int, default=200, help="to measure (%(default)s)")
    vision = _add_part(
        parts,
        engine,
        _vision,
        "vision",
        "the vision encoder over numbers of crops, beside its floor",
        f"Crops/s from pixels on the host, and the least they could take. {EXACT}",
    )
    vision.add_argument(
        "--crops", type=_numbers, default=(1, 2, 7, 14, 28, 56), metavar="N,...", help="(1 to 56)"
    )
    prefill = _add_part(
        parts,
        engine,
        _prefill,
        "prefill",
        "prompts of a picture and a question, beside their floor",
        f"Milliseconds of a step that prefills so many prompts, and the least it could take. {EXACT}",
    )
    prefill.add_argument("--requests", type=_numbers, default=(1, 4, 16), metavar="N,...", help="(1,4,16)")
    for part in (vision, prefill):
        part.add_argument("--repeats", type=int, default=20, help="of which the median counts (%(default)s)")
    _add_load(parts, engine)
    _add_soak(parts, engine)
    report = parts.add_parser(
        "report",
        help="results as Markdown",
        description="Prints files that --json wrote as one page of Markdown.",
    )
    report.add_argument("files", nargs="+", type=Path, metavar="FILE", help="as --json wrote it")
    report.set_defaults(run=_report)


BATCH_HELP = "sequences decoded together (1,4,16,64)"


def _add_load(parts: "Parts", engine: EngineOptions) -> None:
    load = _add_part(
        parts,
        engine,
        _load,
        "load",
        "open loop: how many requests a second before thresholds are missed",
        "Requests arrive at random, at a rate that rises until a threshold is missed. Exit code 0, or 1 when "
        f"one is missed at --rate. {EXACT}",
    )
    load.add_argument(
        "--url", metavar="HOST:PORT", help="a server's gRPC; without, an engine is started here"
    )
    load.add_argument("--rate", type=float, metavar="R", help="requests/s at which the thresholds must hold")
    load.add_argument("--start", type=float, default=1.0, metavar="R", help="first requests/s (%(default)g)")
    load.add_argument("--factor", type=float, default=1.5, help="from step to step (%(default)g)")
    load.add_argument(
        "--steps", type=int, default=12, metavar="N", help="at most; 0: --rate alone (%(default)s)"
    )
    load.add_argument("--seconds", type=float, default=15.0, help="of a step (%(default)g)")
    load.add_argument("--tokens", type=int, default=3, metavar="N", help="of an answer (%(default)s)")
    load.add_argument("--timeout", type=float, default=30.0, metavar="S", help="of a request (%(default)g)")
    load.add_argument("--p95-ms", type=float, default=1000.0, metavar="MS", help="of latency (%(default)g)")
    load.add_argument("--ttft-p95-ms", type=float, metavar="MS", help="to the first token (no limit)")
    load.add_argument("--errors", type=float, default=0.01, metavar="SHARE", help="(%(default)g)")
    load.add_argument("--html", type=Path, metavar="FILE", help="write a page with plots")


def _add_soak(parts: "Parts", engine: EngineOptions) -> None:
    soak = _add_part(
        parts,
        engine,
        _soak,
        "soak",
        "mixed requests for minutes: memory that grows, pages that are lost, answers that never come",
        "A closed loop of all skills, with pictures of many sizes, callers who leave and requests that are "
        "wrong. Exit code 1 when a request fails or hangs, pages or slots are lost, or device memory grows "
        f"by over 1 % after settling or is over 5 % off its plan. {EXACT}",
    )
    soak.add_argument("--seconds", type=float, default=300.0, help="of load (%(default)g)")
    soak.add_argument(
        "--settle",
        type=float,
        default=30.0,
        metavar="S",
        help="after which memory must not grow (%(default)g)",
    )
    soak.add_argument("--callers", type=int, metavar="N", help="that ask at a time (max_batch_size)")
    soak.add_argument("--deadline", type=float, default=120.0, metavar="S", help="of an answer (%(default)g)")
    soak.add_argument("--seed", type=int, default=0, help="of what is asked (%(default)s)")


def _add_part(
    parts: "Parts",
    engine: EngineOptions,
    run: Callable[[argparse.Namespace, RuntimeConfig, Console], int],
    name: str,
    help: str,
    description: str,
) -> argparse.ArgumentParser:
    """A benchmark that builds an engine, and whose result names machine, versions and commit."""

    def call(options: argparse.Namespace, console: Console) -> int:
        return run(options, engine.read(options), console)

    part = parts.add_parser(name, help=help, description=description)
    part.add_argument("--json", dest="report", type=Path, metavar="FILE", help="write the result here too")
    part.add_argument("--commit", metavar="ID", help="to be named in the result; else what git says here")
    engine.add(part)
    part.set_defaults(run=call, engine_weights="random")
    return part


def _chartqa(options: argparse.Namespace, config: RuntimeConfig, console: Console) -> int:
    from kestrel_tools.bench.chartqa import ChartQA, bench_chartqa

    ways = tuple(options.through.split(","))
    run = ChartQA(options.batch, options.tokens, ways, options.seconds, options.warm_up)
    bench_chartqa(run, config, options.report, options.commit, console)
    return 0


def _decode(options: argparse.Namespace, config: RuntimeConfig, console: Console) -> int:
    from kestrel_tools.bench.decode import bench_decode

    bench_decode(
        config, options.batch, options.context, options.steps, options.report, options.commit, console
    )
    return 0


def _vision(options: argparse.Namespace, config: RuntimeConfig, console: Console) -> int:
    from kestrel_tools.bench.vision import bench_vision

    bench_vision(config, options.crops, options.repeats, options.report, options.commit, console)
    return 0


def _prefill(options: argparse.Namespace, config: RuntimeConfig, console: Console) -> int:
    from kestrel_tools.bench.prefill import bench_prefill

    bench_prefill(config, options.requests, options.repeats, options.report, options.commit, console)
    return 0


def _load(options: argparse.Namespace, config: RuntimeConfig, console: Console) -> int:
    from kestrel_tools.bench.load import Ramp, Thresholds, bench_load

    ramp = Ramp(
        options.start,
        options.factor,
        options.steps,
        options.seconds,
        options.rate,
        options.tokens,
        options.timeout,
    )
    thresholds = Thresholds(options.p95_ms, options.ttft_p95_ms, options.errors)
    held = bench_load(
        ramp, thresholds, options.url, config, options.report, options.html, options.commit, console
    )
    return 0 if held else 1


def _soak(options: argparse.Namespace, config: RuntimeConfig, console: Console) -> int:
    from kestrel_tools.bench.soak import Soak, bench_soak

    callers = options.callers if options.callers is not None else config.max_batch_size
    run = Soak(options.seconds, options.settle, callers, options.deadline, options.seed)
    return 0 if bench_soak(run, config, options.report, options.commit, console) else 1


def _report(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.bench.results import markdown, read_document

    print("\n".join(markdown(read_document(file)) for file in options.files), end="")
    return 0


def _add_host_parts(parts: "Parts") -> None:
    scheduler = parts.add_parser(
        "scheduler",
        help="the host's share of a decode step",
        description="Measures what the host does in a decode step, plan, commit and publish, with a runtime "
        "that takes no time: without a queue, and with one.",
    )
    scheduler.add_argument("--running", type=int, default=64, help="sequences that decode (%(default)s)")
    scheduler.add_argument("--waiting", type=int, default=1000, help="requests that wait (%(default)s)")
    scheduler.add_argument("--steps", type=int, default=2000, help="to measure in each case (%(default)s)")
    scheduler.add_argument("--json", action="store_true", help="print nothing but one JSON line to stdout")
    scheduler.set_defaults(run=_scheduler)
    serving = parts.add_parser(
        "serving",
        help="what Triton costs: engine alone, gRPC and HTTP side by side",
        description="Asks the same of the engine alone and of a server started for it, over gRPC and over "
        "HTTP, whole and streaming, with the tiny model on the CPU.",
    )
    serving.add_argument("--concurrency", type=int, default=16, help="callers at a time (%(default)s)")
    serving.add_argument("--seconds", type=float, default=10.0, help="to measure each way (%(default)s)")
    serving.add_argument("--json", action="store_true", help="print nothing but one JSON line to stdout")
    serving.set_defaults(run=_serving)


def _scheduler(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.bench.scheduler import bench_scheduler

    bench_scheduler(options.running, options.waiting, options.steps, options.json, console)
    return 0


def _serving(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.bench.serving import bench_serving

    bench_serving(options.concurrency, options.seconds, options.json, console)
    return 0


def _numbers(text: str) -> Sequence[int]:
    return tuple(int(part) for part in text.split(","))
