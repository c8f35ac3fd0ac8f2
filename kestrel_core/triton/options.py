"""What `kestrel serve` was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """`host` is the gateway's and `triton_host` Triton's: who may reach the one need not reach the other.

    As they are given, `http_port` and `grpc_port` are where clients speak KServe v2. `arranged` (ports.py)
    makes them Triton's own, and where the gateway stands between, what was given becomes `kserve_*_port`.
    """

    http_port: int
    grpc_port: int
    metrics_port: int
    repository: Path
    exit_timeout_s: int
    triton_host: str = "127.0.0.1"
    kserve_http_port: int = 0  # of the gateway; 0: Triton answers KServe v2 itself
    kserve_grpc_port: int = 0
    expose_triton: bool = False
    guard_triton: bool = False
    demo: bool = False
    flags: Sequence[str] = ()  # for tritonserver
    engine: Mapping[str, str] = field(default_factory=dict)  # options of the engine, by name
    host: str = "127.0.0.1"
    port: int = 0  # of the gateway; 0: there is none
    gateway_workers: int = 1
    api_keys: Path | None = None
    drain_s: float = 0.0
    log_format: str = "text"
    allow_image_hosts: str | None = None  # by comma
    limits: Sequence[str] = ()  # of the gateway, NAME=NUMBER each

    @property
    def ports(self) -> dict[str, int]:
        """Triton's own."""
        return {"http": self.http_port, "grpc": self.grpc_port, "metrics": self.metrics_port}

    @property
    def is_guarded(self) -> bool:
        """Whether clients reach Triton through the gateway alone."""
        return self.kserve_http_port != 0

    @property
    def listeners(self) -> dict[str, tuple[str, int]]:
        """Every host and port that clients are told of, the gateway first."""
        gateway = {"gateway": (self.host, self.port)} if self.port else {}
        triton = {name: (self.triton_host, port) for name, port in self.ports.items()}
        if not self.is_guarded:
            return gateway | triton
        kserve = {"http": self.kserve_http_port, "grpc": self.kserve_grpc_port}
        return gateway | triton | {name: (self.host, port) for name, port in kserve.items()}
