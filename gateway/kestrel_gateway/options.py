"""What the gateway was asked for: where it listens, who answers, and its limits."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.limits import DEFAULTS, InputLimits
from kestrel_core.protocol.names import nearest, shown

KIB = 2**10
MIB = 2**20


def _limit(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    upstreams: tuple[str, ...]  # HOST:PORT of Triton's gRPC
    host: str = "127.0.0.1"
    port: int = 8080
    kserve_http_port: int | None = (
        None  # KServe v2 beside the rest, for Triton's own clients; None: nobody listens
    )
    kserve_grpc_port: int | None = None  # the same over gRPC
    workers: int = 1
    api_keys: Path | None = None
    drain_s: float = 3.0  # new requests are still served so long after SIGTERM
    exit_timeout_s: float = 30.0  # for requests under way to finish after that
    log_format: Literal["text", "json"] = "text"
    image_hosts: tuple[str, ...] = ()  # whose pictures may be fetched
    secret: str = ""  # that Triton asks for
    engine_metrics: str | None = None  # where Triton tells what the engine counts; None: not told here
    inputs: InputLimits = DEFAULTS  # as the model has them
    run_status: Path | None = None  # a file in which `kestrel serve` tells what it keeps running
    shared: Path | None = None  # a folder for what several workers count together; each alone without it

    timeout_s: float = _limit(60.0, "deadline of a request that names none")
    max_connections: int = _limit(4000, "open connections; more are refused")
    max_caller_requests: int = _limit(256, "open requests of a key, or of an address where there are no keys")
    max_hang_ups_per_s: float = _limit(
        10.0, "hang-ups a caller is forgiven each second; others keep places among its open requests"
    )
    max_calls: int = _limit(1000, "gRPC calls open at once, of one caller three quarters; more are refused")
    max_calls_of_connection: int = _limit(256, "gRPC calls of one connection; more wait at their client")
    max_asked_of_call: int = _limit(64, "requests that are answered at once on one gRPC stream; more wait")
    call_idle_s: float = _limit(300.0, "a gRPC stream on which nothing is asked is ended after that")
    max_header_bytes: int = _limit(64 * KIB, "of a request's line and headers")
    max_headers: int = _limit(100, "headers of a request")
    max_target_bytes: int = _limit(8 * KIB, "of a request's path and query")
    header_timeout_s: float = _limit(10.0, "from the first byte of a request to the end of its headers")
    # Longer than balancers keep a connection (60 s is usual): theirs must be the side that closes it.
    idle_timeout_s: int = _limit(75, "without a request after the last one was answered")
    max_body_bytes: int = _limit(64 * MIB, "of a request's body")
    max_open_bytes: int = _limit(512 * MIB, "of all bodies and pictures that are in memory at once")
    body_timeout_s: float = _limit(60.0, "from the first byte of a body to its last")
    max_values: int = _limit(20_000, "values in a JSON body")
    max_image_bytes: int = _limit(32 * MIB, "of a picture's file")
    max_fetched_bytes: int = _limit(10 * MIB, "of a picture that is fetched from its address")
    fetch_timeout_s: float = _limit(8.0, "to fetch a picture")
    max_fetches: int = _limit(8, "pictures that are fetched at once; others wait")
    write_timeout_s: float = _limit(30.0, "a client that does not read its answer is left after that")
    keep_alive_s: float = _limit(10.0, "silence in a stream after which a comment is sent")


LIMITS: dict[str, Any] = {it.name: it.default for it in fields(GatewayOptions) if it.metadata}


def read_limits(given: Iterable[str]) -> dict[str, Any]:
    """From `name=number`, as the command line has them. Seconds may be fractions, counts may not."""
    limits: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        if name not in LIMITS:
            raise InvalidRequest(f'there is no limit "{shown(name)}"{nearest(name, LIMITS)}')
        kind = type(LIMITS[name])
        try:
            limits[name] = kind(value)
        except ValueError:
            limits[name] = 0
        if not 0 < limits[name] < 2**53:
            wanted = "a whole number" if kind is int else "a number of seconds"
            raise InvalidRequest(f'--limit {name} is "{shown(value)}"; it must be {wanted}, more than 0')
    return limits
