"""`kestrel warm`: compile what an engine needs on this GPU, and keep it for later starts."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli.options import add_engine_options, engine_config
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands


def add(commands: "Commands") -> None:
    warm = commands.add_parser(
        "warm",
        help="compile all kernels for this GPU, for later starts",
        description="Starts an engine with random weights, so that all its kernels are compiled, and ends. "
        "Give it the options that the server has: the model, its dtype, --adapters if there are any, and the "
        "--cache-folder, which a volume or an image can carry to other machines with the same GPU.",
    )
    add_engine_options(warm, defaults={"weights": "random"})
    warm.set_defaults(run=_warm, engine_weights="random")


def _warm(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.build import build_engine, parse_device

    config = replace(engine_config(options), quick_start=False)  # all graphs, and so all kernels
    try:
        parse_device("cuda")
    except BadCheckpoint:  # its advice is to use a CPU, for which there is nothing to compile
        raise InvalidRequest(
            "there is no NVIDIA GPU here that torch can use; kernels are compiled on a machine that has one, "
            "and a CPU needs none"
        ) from None
    if not config.device.startswith("cuda"):
        raise InvalidRequest(
            f"there is nothing to compile for the device {config.device}; use cuda or cuda:N"
        )
    engine = build_engine(config)
    engine.close()
    console.print(f"ready after {engine.timeline}", markup=False, highlight=False)
    kept = config.cache_folder or "the libraries' own folders"
    console.print(f"The kernels are in {kept}.", markup=False, highlight=False)
    return 0
