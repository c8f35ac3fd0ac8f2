"""What `kestrel serve` takes on the command line. The work is done by `kestrel_core.triton.serve`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli.options import add_engine_options, engine_options

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands


def add(commands: "Commands") -> None:
    serve = commands.add_parser(
        "serve",
        help="start Triton on the model repository and keep it running",
        description="Checks that a server can run here, starts it, waits until it answers, and starts it "
        "again if it dies. Every option of the engine also has a KESTREL_* variable and a parameter in "
        "the model's config.pbtxt; an option wins over the variable, and that over the parameter. SIGTERM or "
        "Ctrl-C lets requests under way finish. Exit code 0: all requests were answered, 1: some were not, "
        "2: it cannot be started as asked.",
    )
    serve.add_argument("--demo", action="store_true", help="serve the bundled model, on the CPU")
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where all ports listen; 0.0.0.0 is everywhere, and clients need no key (default: %(default)s)",
    )
    for name, protocol, port in (
        ("http", "HTTP", 8000),
        ("grpc", "gRPC", 8001),
        ("metrics", "Prometheus' metrics", 8002),
    ):
        serve.add_argument(
            f"--{name}-port",
            type=int,
            default=port,
            metavar="PORT",
            help=f"of {protocol} (default: %(default)s)",
        )
    serve.add_argument(
        "--model-repository",
        type=Path,
        metavar="DIR",
        help="default: the one that comes along with this package",
    )
    serve.add_argument(
        "--exit-timeout",
        type=int,
        default=30,
        metavar="SECONDS",
        help="for requests under way to finish after a signal (default: %(default)s)",
    )
    serve.add_argument("flags", nargs="*", metavar="-- TRITON_FLAG", help="passed on to tritonserver")
    add_engine_options(serve)
    serve.set_defaults(run=_serve)


def _serve(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.triton.options import ServeOptions
    from kestrel_core.triton.serve import REPOSITORY, serve

    chosen = ServeOptions(
        options.http_port,
        options.grpc_port,
        options.metrics_port,
        options.model_repository or REPOSITORY,
        options.exit_timeout,
        options.host,
        options.demo,
        options.flags,
        engine_options(options),
    )
    return serve(chosen, console)
