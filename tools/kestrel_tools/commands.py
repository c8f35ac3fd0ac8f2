"""The commands that measure and judge, as the `kestrel` command line takes them in.

What each takes is declared by a dataclass of options; no work is imported before a command is chosen.
"""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli import main as command_line
from kestrel_core.cli.options import add_engine_options, engine_config, engine_options
from kestrel_core.config import RuntimeConfig
from kestrel_tools.bench.parts import add_parts
from kestrel_tools.options import add_options, read_options
from kestrel_tools.parity.options import ParityOptions
from kestrel_tools.scenes.options import ChoicesOptions, EvalOptions

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

DEVICE_HALF = ("runtime", "flashinfer", "cuda_graphs", "compile")  # what may differ and must not show


def add_parity(commands: "Commands") -> None:
    parity = commands.add_parser(
        "parity",
        help="run a golden folder stage by stage and print the deviations",
        description="Runs every stage of a golden folder and compares it with the values there. "
        "Prints a table and, as the last line, JSON. Exit code 0: all within tolerance, 1: a miss, "
        "2: the folder cannot be run.",
    )
    add_options(parity, ParityOptions)
    add_engine_options(parity, DEVICE_HALF)
    parity.set_defaults(run=_parity)


def _parity(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.parity.command import parity

    config = RuntimeConfig.from_strings(engine_options(options))
    return 0 if parity(read_options(ParityOptions, options), config, console) else 1


def add_bench(commands: "Commands") -> None:
    bench = commands.add_parser(
        "bench",
        help="measure a part of the engine",
        description="Measures a part of the engine, or all of it.",
    )
    add_parts(bench.add_subparsers(title="what to measure", required=True, metavar="PART"))


def add_eval(commands: "Commands") -> None:
    evaluate = commands.add_parser(
        "eval",
        help="score a model, or hold an engine's choices against plain torch",
        description="Scores a model, or holds an engine's choices against plain torch.",
    )
    parts = evaluate.add_subparsers(title="on what", required=True, metavar="WHAT")
    choices = parts.add_parser(
        "choices",
        help="whether plain torch would choose as an engine did: a file of eval scenes --record",
        description="Feeds what was recorded through plain torch, all positions known beforehand, and holds "
        "every choice (token, coordinate, size) against the logits there. Exit code 0: each is the "
        "reference's, or so near to it that rounding explains the difference, 1: some are not, or requests "
        "failed or are missing, 2: it cannot be run as asked.",
    )
    add_options(choices, ChoicesOptions)
    choices.set_defaults(run=_eval_choices)
    scenes = parts.add_parser(
        "scenes",
        help="freshly drawn scenes of coloured shapes and words, every skill",
        description="Draws scenes of coloured shapes and printed words, asks about fifteen requests of every "
        "skill about each, and prints a table of scores beside the targets of moondream-tiny. Exit code 0: "
        "done, 1: with --require, a target was missed or an answer differed, 2: it cannot be run as asked.",
    )
    add_options(scenes, EvalOptions)
    add_engine_options(scenes)
    scenes.set_defaults(run=_eval_scenes)


def _eval_choices(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.scenes.choices import eval_choices

    return 0 if eval_choices(read_options(ChoicesOptions, options), console) else 1


def _eval_scenes(options: argparse.Namespace, console: Console) -> int:
    from kestrel_tools.scenes.command import eval_scenes

    asked = read_options(EvalOptions, options)
    return 0 if eval_scenes(asked, engine_config(options), console) or not asked.require else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole command line of a checkout that is not installed, and so has no entry points."""
    return command_line.main(arguments, more=(add_parity, add_bench, add_eval))
