"""What the gateway was asked for: where it listens, who answers, and its limits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MIB = 2**20


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    upstreams: tuple[str, ...]  # HOST:PORT of Triton's gRPC
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    api_keys: Path | None = None
    drain_s: float = 3.0  # new requests are still served so long after SIGTERM
    exit_timeout_s: float = 30.0  # for requests under way to finish after that
    log_format: Literal["text", "json"] = "text"
    image_hosts: tuple[str, ...] = ()  # whose pictures may be fetched
    secret: str = ""  # that Triton asks for
    shared: Path | None = None  # a folder for what several workers count together; each alone without it

    timeout_s: float = 60.0  # of a request that names none
    max_body_bytes: int = 64 * MIB
    max_values: int = 20_000  # of a JSON body
    max_header_bytes: int = 64 * 1024
    header_timeout_s: float = 10.0
    body_timeout_s: float = 60.0  # a slow sender is told so after that
    write_timeout_s: float = 30.0  # a client that does not read is left after that
    keep_alive_s: float = 10.0  # silence in a stream after which a comment is sent
