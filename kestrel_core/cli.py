"""The `kestrel` command. Each subcommand calls one function; heavy imports wait until one is chosen."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from kestrel_core.errors import KestrelError


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console(stderr=options.json, soft_wrap=False)
    try:
        return int(options.run(options, console))
    except KestrelError as error:
        print(f"kestrel: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kestrel", description="Serve and check Moondream models.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

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
    parity.set_defaults(run=_parity)
    return parser


def _parity(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.commands.parity.command import parity

    return 0 if parity(options.folder, options.device, options.dtype, console, options.engine) else 1


if __name__ == "__main__":
    sys.exit(main())
