"""Who listens where: Triton never faces a network, unless somebody says that it shall.

On this machine alone (the default) Triton has its own ports beside the gateway's. On any other host the
gateway takes the ports of KServe v2 as well, and Triton moves behind it, to ports of 127.0.0.1 that nobody is
told of. Requests that crash, freeze or fill Triton are refused by the gateway before they reach it.
"""

import random
import socket
from collections.abc import Container, Sequence
from dataclasses import replace
from ipaddress import ip_address

from rich.console import Console

from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.triton.options import ServeOptions

LOOPBACK = "127.0.0.1"
# Below those that the kernel gives to outgoing connections: after a crash Triton finds its own free again.
HIDDEN_PORTS = range(20_000, 32_000)
# Flags of tritonserver that are options of ours. If both were given, readiness would be asked for elsewhere.
OURS = {
    "--http-address": "--host",
    "--grpc-address": "--host",
    "--metrics-address": "--host",
    "--http-port": "--http-port",
    "--grpc-port": "--grpc-port",
    "--metrics-port": "--metrics-port",
    "--exit-timeout-secs": "--exit-timeout",
}
NEEDED = ("--allow-http", "--allow-grpc", "--allow-metrics")  # by us, to ask how Triton is
OPENING = ("--allow-sagemaker", "--sagemaker-port", "--allow-vertex-ai", "--vertex-ai-port")


def check_flags(flags: Sequence[str], expose_triton: bool = False) -> None:
    """Refuse what would put Triton elsewhere than we ask it. It takes names that are cut short as well."""
    if flags and not flags[0].startswith("-"):
        raise InvalidRequest(f'"{flags[0]}" is no flag of tritonserver, which all begin with a dash')
    for name in (flag.partition("=")[0] for flag in flags):
        for ours, option in OURS.items():
            if _means(name, ours):
                raise InvalidRequest(f"{name} is set by kestrel itself; give {option} before the --")
        if any(_means(name, needed) for needed in NEEDED):
            raise InvalidRequest(f"{name} cannot be given: kestrel asks Triton over all three how it is")
        if not expose_triton and any(_means(name, opening) for opening in OPENING):
            raise InvalidRequest(
                f"{name} would let Triton listen on one more port, on every network of this machine; "
                "leave it out, or say --expose-triton before the --"
            )


def _means(given: str, flag: str) -> bool:
    return len(given) > 2 and flag.startswith(given)


def arranged(options: ServeOptions, console: Console) -> ServeOptions:
    """The options with the ports of everybody settled."""
    is_private = is_loopback(options.host)
    if options.expose_triton and is_private:
        raise InvalidRequest(
            f"--expose-triton opens Triton to a network, and --host {options.host} is this machine alone; "
            "give another --host, or leave it out"
        )
    if options.expose_triton:
        console.print(
            f"--expose-triton: Triton itself listens on {options.host}, where one request of a stranger can "
            "crash it or freeze it for all. Let nobody reach its ports whom you do not trust.",
            soft_wrap=True,
            markup=False,
        )
    if options.expose_triton or (is_private and not options.guard_triton):
        return replace(options, triton_host=options.host)
    if not options.port:
        raise InvalidRequest(
            f"without a gateway nothing stands between Triton and those who reach {options.host}; "
            f"give the gateway a --port{'' if is_private else ', or say --expose-triton if you trust them'}"
        )
    http_port, grpc_port = hidden_ports(2, {port for _, port in options.listeners.values()})
    return replace(
        options,
        triton_host=LOOPBACK,
        http_port=http_port,
        grpc_port=grpc_port,
        kserve_http_port=options.http_port,
        kserve_grpc_port=options.grpc_port,
    )


def is_loopback(host: str) -> bool:
    """A name that we cannot be sure of is not."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def hidden_ports(count: int, taken: Container[int]) -> list[int]:
    """So many of 127.0.0.1 that are free, at random, so that two servers rarely want the same."""
    found: list[int] = []
    for port in random.sample(HIDDEN_PORTS, len(HIDDEN_PORTS)):
        if port not in taken and _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise KestrelError(
        f"no port of {LOOPBACK} is free for Triton, from {HIDDEN_PORTS[0]} to {HIDDEN_PORTS[-1]}"
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
