"""What `kestrel schedule` takes on the command line. The work is done by `kestrel_core.cli.local_answers`."""

import argparse
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli.options import add_engine_options, engine_config

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

SETTINGS: tuple[tuple[str, type, str], ...] = (
    ("temperature", float, "0 is always the likeliest token"),
    ("top-p", float, "choose among the likeliest tokens that make up this share"),
    ("max-tokens", int, "of an answer"),
    ("max-objects", int, "to detect or point at"),
    ("seed", int, "the same one gives the same answer again"),
)


def add(commands: "Commands") -> None:
    schedule = commands.add_parser(
        "schedule",
        help="answer prompts from the shell, without a server",
        description="Starts an engine, asks all prompts at once and prints the answers. Every option of the "
        "engine also has a KESTREL_* variable. Exit code 0: all were answered, 1: some were not, 2: the "
        "engine could not be started as asked.",
    )
    schedule.add_argument("prompts", nargs="*", metavar="PROMPT", help="a question, or an object to look for")
    schedule.add_argument(
        "--image", action="append", default=[], metavar="FILE", help="one for all prompts, or one for each"
    )
    schedule.add_argument(
        "--skill",
        default="query",
        choices=("query", "caption", "detect", "point"),
        help="what to ask for (default: %(default)s)",
    )
    schedule.add_argument("--stream", action="store_true", help="show answers while they are given")
    schedule.add_argument("--reasoning", action="store_true", help="query: think first")
    schedule.add_argument("--length", choices=("short", "normal", "long"), help="caption: how long")
    schedule.add_argument("--repeat", type=int, default=1, metavar="N", help="ask everything N times")
    schedule.add_argument(
        "--json", action="store_true", help="print one JSON line an answer, and nothing else"
    )
    settings = schedule.add_argument_group("settings of the answers", "Without them, the model's own.")
    for name, kind, meaning in SETTINGS:
        settings.add_argument(f"--{name}", type=kind, metavar=kind.__name__.upper(), help=meaning)
    settings.add_argument("--stop", action="append", metavar="TEXT", help="end before this text; repeatable")
    add_engine_options(schedule)
    schedule.set_defaults(run=_schedule)


def _schedule(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.cli.local_answers import pair, schedule

    names = [*(name.replace("-", "_") for name, _, _ in SETTINGS), "stop"]
    questions = pair(
        options.prompts, options.image, options.skill, options.reasoning, options.length, options.repeat
    )
    answered = schedule(
        questions,
        options.skill,
        {name: getattr(options, name) for name in names},
        engine_config(options),
        options.stream,
        options.json,
        console,
    )
    return 0 if answered else 1
