"""Commands and their options, declared once: a command is a dataclass, and each of its fields is an option.

    seconds: Annotated[float, Option("of a window", metavar="S")] = 20.0

is the option `--seconds S`. A field without a default is given by its position and not by a flag. The first
lines of the dataclass' docstring are what a list of commands says of it, the rest is its description.
"""

import argparse
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from rich.console import Console

from kestrel_core.protocol.errors import InvalidRequest

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

T = TypeVar("T")
Run = Callable[[argparse.Namespace, Console], int]


class Option:
    def __init__(self, help: str = "", name: str | None = None, **how: Any) -> None:
        """`name`: the flag, if it is not the field's name; `how`: as argparse takes it."""
        self.name = name
        self.how = {"help": help, **how}


def numbers(text: str) -> Sequence[int]:
    return tuple(int(part) for part in text.split(","))


def words(text: str) -> Sequence[str]:
    return tuple(text.split(",")) if text else ()


def several(help: str, name: str | None = None) -> Option:
    """An option that takes numbers with commas between them."""
    return Option(help, name, type=numbers, metavar="N,...")


def add_command(
    commands: "Commands", name: str, run: Run, *kinds: type, more: str = ""
) -> argparse.ArgumentParser:
    """A command with the options of all `kinds`. The docstring of the first, and `more`, describe it."""
    help, _, description = (inspect.getdoc(kinds[0]) or "").partition("\n\n")
    command = commands.add_parser(
        name, help=help.replace("\n", " "), description=f"{description.replace(chr(10), ' ')} {more}".strip()
    )
    for kind in kinds:
        add_options(command, kind)
    command.set_defaults(run=run)
    return command


def add_options(command: argparse.ArgumentParser, kind: type) -> None:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        annotated, option = get_args(hints[field.name])
        [type_, *_] = get_args(annotated) or [annotated]  # of `float | None`, float
        flag = option.name or f"--{field.name.replace('_', '-')}"
        if field.default is MISSING:
            command.add_argument(field.name, **{"type": type_, **option.how})
        elif annotated is bool:
            command.add_argument(flag, dest=field.name, action="store_true", **option.how)
        else:
            how = {"type": type_, "default": field.default, **option.how}
            command.add_argument(flag, dest=field.name, **how)


def read_options(kind: type[T], options: argparse.Namespace) -> T:
    """Make the dataclass from what was parsed. Its own checks run here, before anything is loaded."""
    return kind(**{field.name: getattr(options, field.name) for field in fields(kind)})  # type: ignore[arg-type]


def check_writable(*paths: Path | None) -> None:
    for path in paths:
        if path is not None and not os.path.isdir(path.absolute().parent):
            raise InvalidRequest(f"{path} cannot be written: there is no such folder")
    check_no_folder(*paths)


def check_no_folder(*paths: Path | None) -> None:
    """Said at the start, since a report is written after all the work."""
    for path in paths:
        try:
            is_folder = path is not None and path.is_dir()
        except OSError as error:  # a name that no file system takes
            raise InvalidRequest(f"{path} cannot be written: {error.strerror}") from None
        if is_folder:
            raise InvalidRequest(f"{path} cannot be written: it is a folder; name a file")
