"""The commands that measure and judge, as the `kestrel` command line takes them in."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli import main as command_line
from kestrel_core.cli.options import add_engine_options, engine_config, engine_options
from kestrel_core.config import RuntimeConfig

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

DEVICE_HALF = ("runtime", "flashinfer", "cuda_graphs", "compile")  # what may differ and must not show
DOCTOR_CHOOSES = ("model", "model_path", "device")  # where nobody says
BUNDLED = "moondream-tiny"


def add_parity(commands: "Commands") -> None:
    parity = commands.add_parser(
        "parity",
        help="run a golden folder stage by stage and print the deviations",
        description="Runs every stage of a golden folder and compares it with the values there. "
        "Prints a table and, as the last line, JSON. Exit code 0: all within tolerance, 1: a miss, "
        "2: the folder cannot be run.",
    )
    parity.add_argument("folder", type=Path, metavar="DIR", help="checkpoint with golden values")
    parity.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: %(default)s)")
    parity.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parity.add_argument(
        "--engine",
        action="store_true",
        help="also run every golden decode through the whole engine: alone, mixed, cached, preempted",
    )
    parity.add_argument("--json", action="store_true", help="print nothing but the JSON line to stdout")
    add_engine_options(parity, DEVICE_HALF)
    parity.set_defaults(run=_parity)


def _parity(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.parity.command import parity

    config = RuntimeConfig.from_strings(engine_options(options))
    engine = config if options.engine else None
    return 0 if parity(options.folder, options.device, options.dtype, console, engine) else 1


def add_bench(commands: "Commands") -> None:
    from kestrel_tools.bench.arguments import EngineOptions, add_parts

    bench = commands.add_parser(
        "bench",
        help="measure a part of the engine",
        description="Measures a part of the engine, or all of it.",
    )
    parts = bench.add_subparsers(title="what to measure", required=True, metavar="PART")
    add_parts(parts, EngineOptions(add_engine_options, engine_config))


def add_eval(commands: "Commands") -> None:
    evaluate = commands.add_parser(
        "eval",
        help="score a model, or hold an engine's choices against plain torch",
        description="Scores a model, or holds an engine's choices against plain torch.",
    )
    parts = evaluate.add_subparsers(title="on what", required=True, metavar="WHAT")
    _add_eval_choices(parts)
    scenes = parts.add_parser(
        "scenes",
        help="freshly drawn scenes of coloured shapes and words, every skill",
        description="Draws scenes of coloured shapes and printed words, asks about fifteen requests of every "
        "skill about each, and prints a table of scores beside the targets of moondream-tiny. Exit code 0: "
        "done, 1: with --require, a target was missed or an answer differed, 2: it cannot be run as asked.",
    )
    scenes.add_argument("--scenes", type=int, default=500, metavar="N", help="(default: %(default)s)")
    scenes.add_argument(
        "--seed", type=int, default=0, help="the same one draws the same scenes (%(default)s)"
    )
    scenes.add_argument("--url", metavar="HOST:PORT", help="ask a server's gRPC; without, an engine here")
    scenes.add_argument(
        "--concurrency", type=int, metavar="N", help="callers at a time (8 for a server, else a full batch)"
    )
    scenes.add_argument(
        "--compare",
        action="store_true",
        help="ask one at a time, then batched, cached, preempted and streamed, and count differing answers",
    )
    scenes.add_argument(
        "--pictures", type=Path, metavar="DIR", help="somebody else's pictures instead, with a truth.json"
    )
    scenes.add_argument("--json", dest="report", type=Path, metavar="FILE", help="write all of it here too")
    scenes.add_argument(
        "--sheet", type=Path, metavar="FILE", help="draw answers over the first pictures: .svg or .png"
    )
    scenes.add_argument("--require", action="store_true", help="exit with 1 when a target is missed")
    scenes.add_argument(
        "--record", type=Path, metavar="FILE", help="write every choice of the engine here, for eval choices"
    )
    scenes.add_argument(
        "--logprobs",
        action="store_true",
        help="with --record: the two likeliest tokens of each choice too, read beside the CUDA graphs",
    )
    add_engine_options(scenes)
    scenes.set_defaults(run=_eval_scenes)


def _eval_scenes(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.scenes.command import EvalOptions, eval_scenes

    chosen = EvalOptions(
        options.scenes,
        options.seed,
        options.url,
        options.concurrency,
        options.compare,
        options.pictures,
        options.report,
        options.sheet,
        options.record,
        options.logprobs,
    )
    passed = eval_scenes(chosen, engine_config(options), console)
    return 0 if passed or not options.require else 1


def _add_eval_choices(parts: "Commands") -> None:
    choices = parts.add_parser(
        "choices",
        help="whether plain torch would choose as an engine did: a file of eval scenes --record",
        description="Feeds what was recorded through plain torch, all positions known beforehand, and holds "
        "every choice (token, coordinate, size) against the logits there. Exit code 0: each is the "
        "reference's, or so near to it that rounding explains the difference, 1: some are not, or requests "
        "failed or are missing, 2: it cannot be run as asked.",
    )
    choices.add_argument("file", type=Path, metavar="FILE", help="made by kestrel eval scenes --record")
    choices.add_argument(
        "--device", default="cpu", help="of the reference: cpu, cuda or cuda:N (default: %(default)s)"
    )
    choices.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    choices.add_argument(
        "--model-path", metavar="PATH", help="the checkpoint, where it is not as it was recorded"
    )
    choices.add_argument(
        "--near",
        type=float,
        metavar="ROUNDINGS",
        help="a difference is explained by a gap of so many roundings of the row's largest logit in the "
        "engine's dtype (default: 64 for float32, 4 for 16 bits)",
    )
    choices.add_argument("--json", dest="report", type=Path, metavar="FILE", help="write all of it here too")
    choices.set_defaults(run=_eval_choices)


def _eval_choices(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.scenes.choices import ChoicesOptions, eval_choices

    chosen = ChoicesOptions(
        options.file, options.device, options.dtype, options.model_path, options.near, options.report
    )
    return 0 if eval_choices(chosen, console) else 1


def add_doctor(commands: "Commands") -> None:
    doctor = commands.add_parser(
        "doctor",
        help="check this machine and a model, and say what to do",
        description="Checks the machine (GPU, FlashInfer, kernels, Triton, shared memory, ports), then a "
        "model (files, tensors, words), then asks it questions whose answers are known. Without --model and "
        "--model-path it is the bundled model. Exit code 0: no fault, 1: a fault, 2: it cannot be run as "
        "asked.",
    )
    doctor.add_argument("--machine-only", action="store_true", help="leave the model alone")
    doctor.add_argument("--json", action="store_true", help="print one JSON document, and nothing else")
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        doctor.add_argument(
            f"--{name}-port", type=int, default=port, metavar="PORT", help="(default: %(default)s)"
        )
    add_engine_options(doctor)
    doctor.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.doctor.command import DoctorOptions, doctor

    said = engine_options(options)
    is_said = {
        name: name in said or bool(os.environ.get(f"KESTREL_{name.upper()}")) for name in DOCTOR_CHOOSES
    }
    config = engine_config(options)
    if not is_said["model"] and not is_said["model_path"]:
        config = replace(config, model=BUNDLED)
    chosen = DoctorOptions(
        {name: getattr(options, f"{name}_port") for name in ("http", "grpc", "metrics")},
        options.machine_only,
        is_said["device"],
        options.json,
    )
    return 0 if doctor(chosen, config, console) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole command line of a checkout that is not installed, and so has no entry points."""
    return command_line.main(arguments, more=(add_parity, add_bench, add_eval, add_doctor))
