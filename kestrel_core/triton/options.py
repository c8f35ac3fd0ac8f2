"""What `kestrel serve` was asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServeOptions:
    http_port: int
    grpc_port: int
    metrics_port: int
    repository: Path
    exit_timeout_s: int
    host: str = "127.0.0.1"
    demo: bool = False
    flags: Sequence[str] = ()  # for tritonserver
    engine: Mapping[str, str] = field(default_factory=dict)  # options of the engine, by name

    @property
    def ports(self) -> dict[str, int]:
        return {"http": self.http_port, "grpc": self.grpc_port, "metrics": self.metrics_port}
