"""What `kestrel gateway` takes on the command line."""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from kestrel_core.cli.values import image_hosts, seconds
from kestrel_core.config import variable
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.limits import InputLimits
from kestrel_core.triton.restrictions import SECRET_VARIABLE
from kestrel_core.triton.runs import STATUS_VARIABLE
from kestrel_gateway.options import LIMITS, GatewayOptions, read_limits

if TYPE_CHECKING:
    from kestrel_core.cli.options import Commands

UPSTREAM = re.compile(r"(dns:)?[^\s/]+:(\d{1,5})", re.ASCII)


def add(commands: "Commands") -> None:
    gateway = commands.add_parser(
        "gateway",
        help="HTTP for every client of the field, in front of one or more Tritons",
        description="Moondream's REST, OpenAI's API and a page to try them, answered by the Triton servers "
        "that --upstream names. `kestrel serve` starts one by itself. SIGTERM or Ctrl-C: /readyz says 503 at "
        "once, requests are served for --drain-s more seconds, and those under way finish.",
    )
    add_options(gateway)
    gateway.set_defaults(run=_run)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--upstream",
        type=_upstream,
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="gRPC of a Triton that answers; may be given several times. dns:NAME:PORT is as many as "
        "the name has addresses (default: localhost:8001)",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="to listen on (default: %(default)s)"
    )
    parser.add_argument("--port", type=int, default=8080, help="(default: %(default)s)")
    parser.add_argument(
        "--kserve-http-port",
        type=int,
        metavar="PORT",
        help="also listen here for Triton's own HTTP clients (default: the paths /v2 of --port only)",
    )
    parser.add_argument(
        "--kserve-grpc-port",
        type=int,
        metavar="PORT",
        help="also listen here for Triton's own gRPC clients (default: nobody listens)",
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes that answer (default: %(default)s)"
    )
    parser.add_argument(
        "--api-keys", type=Path, metavar="FILE", help="TOML: who may ask, and how much; read again on SIGHUP"
    )
    parser.add_argument(
        "--engine-metrics",
        metavar="URL",
        help="of Triton's metrics, which are then shown at /metrics/engine (default: they are not)",
    )
    parser.add_argument(
        "--drain-s",
        type=seconds,
        default=3.0,
        metavar="SECONDS",
        help="new requests are still served so long after a signal (default: %(default)s)",
    )
    parser.add_argument(
        "--exit-timeout",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="for requests under way to finish after that (default: %(default)s)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--allow-image-hosts",
        type=image_hosts,
        default="",
        metavar="HOST,...",
        help="whose pictures may be fetched, if a request names their address; *.example.com is every host "
        "below that one (default: nobody's)",
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="another limit than the default, as often as needed: " + ", ".join(LIMITS),
    )
    parser.add_argument(
        "--new-key",
        metavar="NAME",
        help="print a new key and the lines of --api-keys that let it in; start nothing",
    )


def options_from(given: argparse.Namespace) -> GatewayOptions:
    return GatewayOptions(
        upstreams=tuple(given.upstream) or ("localhost:8001",),
        host=given.host,
        port=given.port,
        kserve_http_port=given.kserve_http_port,
        kserve_grpc_port=given.kserve_grpc_port,
        workers=given.workers,
        api_keys=given.api_keys,
        drain_s=given.drain_s,
        exit_timeout_s=given.exit_timeout,
        log_format=given.log_format,
        image_hosts=tuple(host.strip() for host in given.allow_image_hosts.split(",") if host.strip()),
        secret=os.environ.get(SECRET_VARIABLE, ""),
        engine_metrics=given.engine_metrics,
        inputs=InputLimits.parse(os.environ.get(variable("input_limits"), "")),
        run_status=Path(status) if (status := os.environ.get(STATUS_VARIABLE)) else None,
        **read_limits(given.limit),
    )


def _upstream(text: str) -> str:
    found = UPSTREAM.fullmatch(text)
    if found is None or not 0 < int(found[2]) < 2**16:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no server; write HOST:PORT, as localhost:8001 or [::1]:8001, or dns:NAME:PORT"
        )
    return text


def _run(given: argparse.Namespace, console: Console) -> int:
    if given.new_key is not None:
        return _print_new_key(given.new_key, console)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write a line for every bad call
    from kestrel_gateway.process.serving import run

    if given.workers < 1:
        raise InvalidRequest(f"--workers is {given.workers}; it must be 1 or more")
    return run(options_from(given))


def _print_new_key(name: str, console: Console) -> int:
    from kestrel_gateway.admission.key_file import make_key

    key, lines = make_key(name)
    text = f"The key of {name}, which is shown once:\n\n{key}\n\nIn the file of --api-keys:\n\n{lines}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    return 0
