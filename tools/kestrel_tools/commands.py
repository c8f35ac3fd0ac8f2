"""The commands that measure and judge, as the `kestrel` command line takes them in.

What each takes is declared by a dataclass; the work itself is imported when a command is chosen.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli import main as command_line
from kestrel_core.cli.options import add_engine_options, engine_config, engine_options
from kestrel_core.config import RuntimeConfig, variable
from kestrel_core.intake.models import DEMO
from kestrel_tools.asked.options import AskedOptions
from kestrel_tools.bench.options import add_parts
from kestrel_tools.doctor.options import DoctorOptions
from kestrel_tools.finetune.options import EvalLinesOptions, FinetuneOptions
from kestrel_tools.options import add_command, read_options
from kestrel_tools.parity.options import ParityOptions
from kestrel_tools.quantize.options import QuantizeOptions
from kestrel_tools.scenes.options import ChoicesOptions, EvalOptions

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

# They may differ, and must not change an answer.
DEVICE_HALF = (
    "runtime",
    "flashinfer",
    "decode_kernels",
    "cuda_graphs",
    "compile",
    "vision_attention",
    "vision_pacing",
)
ROUNDED = ("quantize", "scales_path", "kv_dtype")  # changes answers by rounding, which the judge allows for
QUANTIZE_READS = ("revision", "tokenizer_path", "weights", "seed", "device", "dtype")
TRAINING_READS = (
    "model",
    "model_path",
    "revision",
    "tokenizer_path",
    "weights",
    "device",
    "dtype",
    "max_image_bytes",
    "max_image_pixels",
)
DOCTOR_CHOOSES = {"model": DEMO, "device": "cuda where there is a GPU, else cpu"}  # where nobody says


def add_parity(commands: "Commands") -> None:
    add_engine_options(add_command(commands, "parity", _parity, ParityOptions), (*DEVICE_HALF, *ROUNDED))


def add_bench(commands: "Commands") -> None:
    told = "Measures a part of the engine, or all of it."
    bench = commands.add_parser("bench", help="measure a part of the engine", description=told)
    add_parts(bench.add_subparsers(title="what to measure", required=True, metavar="PART"))


def add_eval(commands: "Commands") -> None:
    evaluate = commands.add_parser(
        "eval",
        help="score a model, or hold an engine's choices against plain torch",
        description="Scores a model, or holds an engine's choices against plain torch.",
    )
    parts = evaluate.add_subparsers(title="on what", required=True, metavar="WHAT")
    add_engine_options(add_command(parts, "asked", _eval_asked, AskedOptions))
    add_command(parts, "choices", _eval_choices, ChoicesOptions)
    add_engine_options(add_command(parts, "lines", _eval_lines, EvalLinesOptions))
    add_engine_options(add_command(parts, "scenes", _eval_scenes, EvalOptions))


def _parity(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.parity.command import parity

    config = RuntimeConfig.from_strings(engine_options(options))
    return 0 if parity(read_options(ParityOptions, options), config, console) else 1


def _eval_asked(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.asked.command import eval_asked

    return 0 if eval_asked(read_options(AskedOptions, options), engine_config(options), console) else 1


def _eval_choices(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.scenes.choices import eval_choices

    return 0 if eval_choices(read_options(ChoicesOptions, options), console) else 1


def _eval_lines(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.finetune.eval_lines import eval_lines

    eval_lines(read_options(EvalLinesOptions, options), engine_config(options), console)
    return 0


def _eval_scenes(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.scenes.command import eval_scenes

    asked = read_options(EvalOptions, options)
    return 0 if eval_scenes(asked, engine_config(options), console) or not asked.require else 1


def add_doctor(commands: "Commands") -> None:
    command = add_command(commands, "doctor", _doctor, DoctorOptions)
    add_engine_options(command, defaults=DOCTOR_CHOOSES)


def _doctor(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.doctor.command import doctor

    said = engine_options(options)
    model, model_path, device = (
        name in said or bool(os.environ.get(variable(name))) for name in ("model", "model_path", "device")
    )
    chosen, config = read_options(DoctorOptions, options), engine_config(options)
    if not model and not model_path:
        config = replace(config, model=DEMO)
    return 0 if doctor(chosen, config, device, console) else 1


def add_finetune(commands: "Commands") -> None:
    add_engine_options(add_command(commands, "finetune", _finetune, FinetuneOptions), TRAINING_READS)


def _finetune(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.finetune.command import finetune

    finetune(read_options(FinetuneOptions, options), engine_config(options), console)
    return 0


def add_quantize(commands: "Commands") -> None:
    add_engine_options(add_command(commands, "quantize", _quantize, QuantizeOptions), QUANTIZE_READS)


def _quantize(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.quantize.command import quantize

    quantize(read_options(QuantizeOptions, options), engine_config(options), console)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole command line of a checkout that is not installed, and so has no entry points."""
    more = (add_parity, add_bench, add_eval, add_doctor, add_finetune, add_quantize)
    return command_line.main(arguments, more=more)
