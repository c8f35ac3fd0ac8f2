"""Options that several commands have: those of the engine, which are the fields of `RuntimeConfig`."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from kestrel_core.config import RuntimeConfig

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # which has no public name


def add_engine_options(
    command: argparse.ArgumentParser, only: Sequence[str] = (), defaults: Mapping[str, str] | None = None
) -> None:
    """All fields of `RuntimeConfig`, or `only` these. Called last, so that a command's own come first.

    `defaults` are what the help says by field, where the command takes something else than the field has.
    """
    group = command.add_argument_group("options of the engine")
    for field in fields(RuntimeConfig):
        if only and field.name not in only:
            continue
        name = field.name if field.name != "seed" else "weights_seed"  # an answer has a seed as well
        default = (defaults or {}).get(field.name, field.default)
        is_switch = isinstance(field.default, bool)  # its name alone means yes
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"engine_{field.name}",
            metavar="VALUE",
            nargs="?" if is_switch else None,
            const="true" if is_switch else None,
            help=field.metadata["meaning"] + (f" (default: {default})" if default is not None else ""),
        )


def engine_options(options: argparse.Namespace) -> dict[str, str]:
    """What the command line says about the engine, by field name."""
    said = {field.name: getattr(options, f"engine_{field.name}", None) for field in fields(RuntimeConfig)}
    return {name: text for name, text in said.items() if text is not None}


def engine_config(options: argparse.Namespace) -> RuntimeConfig:
    """From the environment; the command line wins over it."""
    return RuntimeConfig.from_environment(None, **engine_options(options))
