"""The `kestrel` command: finds its commands, parses, runs one. Heavy imports wait until one is chosen.

All others wait until `main` listens for Ctrl-C: they take a part of a second, in which somebody may press it.

`serve`, `schedule` and `warm` are the product's own. Others come by entry points of the group
`kestrel.commands`: functions that are given the sub-parsers and add a command. So the product need not know
its tools.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

GROUP = "kestrel.commands"
DISTRIBUTION = "kestrel-triton"

Add = Callable[["Commands"], None]


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, which could mean another option as soon as one is added."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})


def main(arguments: Sequence[str] | None = None, more: Sequence[Add] = ()) -> int:
    """`more` are commands of a checkout that is not installed, and so has no entry points."""
    try:
        return _run(arguments, more)
    except KeyboardInterrupt:
        return 130


def _run(arguments: Sequence[str] | None, more: Sequence[Add]) -> int:
    from rich.console import Console

    from kestrel_core.protocol.errors import KestrelError

    options = make_parser(more).parse_args(arguments)
    console = Console(stderr=getattr(options, "json", False) is True, soft_wrap=False)
    try:
        return int(options.run(options, console))
    except KestrelError as error:
        print(f"kestrel: {error}", file=sys.stderr)
        return 2


def make_parser(more: Sequence[Add] = ()) -> argparse.ArgumentParser:
    from kestrel_core.cli import schedule, serve, warm

    parser = Parser(prog="kestrel", description="Serve and check Moondream models.")
    parser.add_argument("--version", action="version", version=f"kestrel {version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (serve.add, schedule.add, warm.add, *(more or installed())):
        add(commands)
    return parser


def installed() -> Iterator[Add]:
    from importlib import metadata

    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.load()


def version() -> str:
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "of a checkout that is not installed"


if __name__ == "__main__":
    sys.exit(main())
