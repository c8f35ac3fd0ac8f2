"""What `kestrel serve` takes on the command line. The work is done by `kestrel_core.triton.serve`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli.options import add_engine_options, engine_options
from kestrel_core.cli.values import count, image_hosts, seconds, whole_seconds

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands
    from kestrel_core.triton.options import ServeOptions


def add(commands: "Commands") -> None:
    serve = commands.add_parser(
        "serve",
        help="start Triton on the model repository, with a gateway in front, and keep them running",
        description="Checks that a server can run here, starts it and the gateway, waits until they answer, "
        "and starts again whichever of them dies. Every option of the engine also has a KESTREL_* variable "
        "and a parameter in the model's config.pbtxt; an option wins over the variable, and that over the "
        "parameter. SIGTERM or Ctrl-C lets requests under way finish: the gateway's /readyz says 503 at "
        "once, and Triton goes on until the gateway has ended; with --port 0 nothing tells balancers, and "
        "Triton is asked to end after --drain-s. A second signal does not wait. SIGHUP lets the gateway "
        "read its keys again; without a gateway, or when the terminal was closed, it ends the server as "
        "SIGTERM does. Exit code 0: all requests were answered, 1: some were not, 2: it cannot be started "
        "as asked.",
    )
    serve.add_argument("--demo", action="store_true", help="serve the bundled model, on the CPU")
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="who can reach it: 127.0.0.1 is this machine, 0.0.0.0 everybody, and without --api-keys "
        "clients need no key. On any other address than this machine's own the gateway answers at all "
        "ports, and Triton stays behind it (default: %(default)s)",
    )
    reach = serve.add_mutually_exclusive_group()
    reach.add_argument(
        "--expose-triton",
        action="store_true",
        help="let Triton itself listen on --host, where one bad request can crash it: for trusted networks",
    )
    reach.add_argument(
        "--guard-triton",
        action="store_true",
        help="let the gateway answer at all ports on 127.0.0.1 too: for a balancer on this machine",
    )
    _add_gateway_options(serve)
    for name, protocol, port in (
        ("http", "KServe v2 over HTTP", 8000),
        ("grpc", "KServe v2 over gRPC", 8001),
        ("metrics", "Triton's metrics, on this machine alone unless --expose-triton", 8002),
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
        type=whole_seconds,
        default=30,
        metavar="SECONDS",
        help="for requests under way to finish after a signal (default: %(default)s)",
    )
    serve.add_argument(
        "--drain-s",
        type=seconds,
        default=3.0,
        metavar="SECONDS",
        help="so long requests are still taken after a signal, while balancers notice (default: %(default)g)",
    )
    serve.add_argument("flags", nargs="*", metavar="-- TRITON_FLAG", help="passed on to tritonserver")
    add_engine_options(serve)
    serve.set_defaults(run=_serve)


def _serve(options: argparse.Namespace, console: Console) -> int:
    from kestrel_core.triton.serve import serve

    return serve(options_of(options), console)


def options_of(options: argparse.Namespace) -> "ServeOptions":
    from kestrel_core.triton.options import ServeOptions
    from kestrel_core.triton.serve import REPOSITORY

    return ServeOptions(
        http_port=options.http_port,
        grpc_port=options.grpc_port,
        metrics_port=options.metrics_port,
        repository=options.model_repository or REPOSITORY,
        exit_timeout_s=options.exit_timeout,
        expose_triton=options.expose_triton,
        guard_triton=options.guard_triton,
        demo=options.demo,
        flags=options.flags,
        engine=engine_options(options),
        host=options.host,
        port=options.port,
        gateway_workers=options.gateway_workers,
        api_keys=options.api_keys,
        drain_s=options.drain_s,
        log_format=options.log_format,
        allow_image_hosts=options.allow_image_hosts,
        limits=options.limit,
    )


def _add_gateway_options(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--port",
        type=int,
        default=8080,
        metavar="PORT",
        help="of the gateway: the page, REST and OpenAI's API; 0: no gateway (default: %(default)s)",
    )
    serve.add_argument(
        "--gateway-workers",
        type=count,
        default=1,
        metavar="N",
        help="processes of the gateway (default: %(default)s)",
    )
    serve.add_argument(
        "--api-keys",
        type=Path,
        metavar="FILE",
        help="TOML with the keys that the gateway asks for; Triton itself then answers the gateway alone",
    )
    serve.add_argument(
        "--allow-image-hosts",
        type=image_hosts,
        metavar="HOST,...",
        help="from which the gateway may fetch pictures that are given by URL (default: none)",
    )
    serve.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="another limit of the gateway's; `kestrel gateway --help` names them",
    )
    serve.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="of the gateway's log (default: %(default)s)",
    )
