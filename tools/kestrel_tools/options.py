"""Options of a command as the fields of a dataclass: declared once, added to a parser, read back as one.

    seconds: Annotated[float, Option("of a window", metavar="S")] = 20.0

is the option `--seconds S`. A field without a default is given by its position and not by a flag.
"""

import argparse
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")


class Option:
    def __init__(self, help: str = "", name: str | None = None, **how: Any) -> None:
        """`name`: the flag, if it is not the field's name; `how`: as argparse takes it."""
        self.name = name
        self.how = {"help": help, **how}


def add_options(command: argparse.ArgumentParser, *kinds: type) -> None:
    for kind in kinds:
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
    """The dataclass, whose own checks are made here: before anything is loaded."""
    return kind(**{field.name: getattr(options, field.name) for field in fields(kind)})  # type: ignore[arg-type]
