"""What `kestrel serve` takes on the command line. The work is done by `kestrel_core.triton.serve`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands


def add(commands: "Commands") -> None:
    serve = commands.add_parser(
        "serve",
        help="start Triton on the model repository and keep it running",
        description="Checks that a server can run here, starts it, waits until it answers, and starts it "
        "again should it die. What it serves is said by KESTREL_* variables or by the model's parameters in "
        "config.pbtxt. SIGTERM or Ctrl-C lets requests under way finish. Exit code 0: everybody was "
        "answered, 1: not so, 2: it cannot be started as asked.",
    )
    serve.add_argument("--demo", action="store_true", help="serve the bundled model, on the CPU")
    for name, port in (("http", 8000), ("grpc", 8001), ("metrics", 8002)):
        serve.add_argument(
            f"--{name}-port", type=int, default=port, metavar="PORT", help="(default: %(default)s)"
        )
    serve.add_argument(
        "--model-repository", type=Path, metavar="DIR", help="default: the one that came with this package"
    )
    serve.add_argument(
        "--exit-timeout",
        type=int,
        default=30,
        metavar="SECONDS",
        help="that requests under way have at the end (default: %(default)s)",
    )
    serve.add_argument("flags", nargs="*", metavar="-- TRITON_FLAG", help="passed on to tritonserver")
    serve.set_defaults(run=_serve)


def _serve(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.triton.serve import REPOSITORY, ServeOptions, serve

    chosen = ServeOptions(
        options.http_port,
        options.grpc_port,
        options.metrics_port,
        options.model_repository or REPOSITORY,
        options.exit_timeout,
        options.demo,
        options.flags,
    )
    return serve(chosen, console)
