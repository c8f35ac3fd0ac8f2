"""What `kestrel schedule` takes on the command line. The work is done by `kestrel_core.cli.local_answers`."""

import argparse
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli.options import add_engine_options, engine_config
from kestrel_core.protocol.fields import SETTINGS

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands


def add(commands: "Commands") -> None:
    schedule = commands.add_parser(
        "schedule",
        help="answer prompts from the shell, without a server",
        description="Starts an engine, asks all prompts at once and prints the answers. Every option of the "
        "engine also has a KESTREL_* variable. Exit code 0: all were answered, 1: some were not, 2: a "
        "mistake in what was asked, which is told before a model is loaded.",
    )
    schedule.add_argument("prompts", nargs="*", metavar="PROMPT", help="a question, or an object to look for")
    schedule.add_argument(
        "--image", action="append", default=[], metavar="FILE", help="one for all prompts, or one for each"
    )
    schedule.add_argument(
        "--skill",
        default="query",
        metavar="NAME",
        help="what to ask for: query, caption, detect, ..., or a skill of your own (default: %(default)s)",
    )
    schedule.add_argument("--stream", action="store_true", help="show answers while they are given")
    schedule.add_argument("--reasoning", action="store_true", help="query: think first")
    schedule.add_argument("--length", metavar="LENGTH", help="caption: short, normal or long")
    schedule.add_argument(
        "--argument",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other argument of the skill; repeatable",
    )
    schedule.add_argument("--repeat", type=int, default=1, metavar="N", help="ask everything N times")
    schedule.add_argument(
        "--json", action="store_true", help="print one JSON line an answer, and nothing else"
    )
    settings = schedule.add_argument_group("settings of the answers", "Without them, the model's own.")
    for field in SETTINGS.values():
        option, meaning = f"--{field.key.replace('_', '-')}", field.argument.meaning
        kind = field.argument.kind
        if kind is list:
            settings.add_argument(option, action="append", metavar="TEXT", help=f"{meaning}; repeatable")
        else:
            settings.add_argument(option, type=kind, metavar=kind.__name__.upper(), help=meaning)
    add_engine_options(schedule)
    schedule.set_defaults(run=_schedule)


def _schedule(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.cli.local_answers import parse_arguments, requests_for, schedule
    from kestrel_core.protocol.messages import parse_settings
    from kestrel_core.skills.registry import installed_skills

    config = engine_config(options)
    skills = installed_skills(config.skills)
    skill = skills[options.skill]
    arguments = parse_arguments(options.argument, skill)
    if options.reasoning:
        arguments["reasoning"] = True
    if options.length is not None:
        arguments["length"] = options.length
    settings = parse_settings({name: getattr(options, name) for name in SETTINGS})
    requests = requests_for(
        skill, options.prompts, options.image, arguments, settings, options.stream, options.repeat
    )
    for request in requests:
        skills.check(request)
    answered = schedule(requests, skills, config, options.stream, options.json, console)
    return 0 if answered else 1
