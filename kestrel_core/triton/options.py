"""What `kestrel serve` was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """`host` is the gateway's and `triton_host` Triton's: who may reach the one need not reach the other."""

    http_port: int
    grpc_port: int
    metrics_port: int
    repository: Path
    exit_timeout_s: int
    triton_host: str = "127.0.0.1"
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
    def listeners(self) -> dict[str, tuple[str, int]]:
        """Every host and port that somebody will listen on, the gateway first."""
        gateway = {"gateway": (self.host, self.port)} if self.port else {}
        return gateway | {name: (self.triton_host, port) for name, port in self.ports.items()}
