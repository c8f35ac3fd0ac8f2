"""What `kestrel doctor` takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.ports import arranged
from kestrel_tools.options import Option

Port = Annotated[int, Option("(default: %(default)s)", metavar="PORT")]


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """check this machine and a model, and say what to do

    Checks the machine (GPU, FlashInfer, kernels, Triton, shared memory, ports), then a model (files, tensors,
    words), then asks it questions whose answers are known. Without --model and --model-path it is the bundled
    model. Exit code 0: no fault, 1: a fault, 2: it cannot be run as asked.
    """

    machine_only: Annotated[bool, Option("leave the model alone")] = False
    json: Annotated[bool, Option("print one JSON document, and nothing else")] = False
    host: Annotated[str, Option("of the ports (default: %(default)s)", metavar="ADDRESS")] = "127.0.0.1"
    expose_triton: Annotated[
        bool, Option("Triton itself is to listen on --host, as kestrel serve has it")
    ] = False
    port: Port = 8080
    http_port: Port = 8000
    grpc_port: Port = 8001
    metrics_port: Port = 8002

    @property
    def ports(self) -> dict[str, int]:
        triton = {"http": self.http_port, "grpc": self.grpc_port, "metrics": self.metrics_port}
        return {"gateway": self.port, **triton}

    @property
    def listeners(self) -> dict[str, tuple[str, int]]:
        """Host and port of each, as `kestrel serve` would have them: Triton's may stay on this machine."""
        asked = ServeOptions(
            http_port=self.http_port,
            grpc_port=self.grpc_port,
            metrics_port=self.metrics_port,
            repository=Path(),
            exit_timeout_s=0,
            host=self.host,
            port=self.port,
            expose_triton=self.expose_triton,
        )
        return arranged(asked, Console(quiet=True)).listeners

    def __post_init__(self) -> None:
        for name, port in self.ports.items():
            if not 0 <= port < 2**16:
                raise InvalidRequest(f"the port of {name} is {port}; a port is from 0 to 65535")
