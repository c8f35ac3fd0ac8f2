"""What `kestrel parity` takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kestrel_tools.options import Option

DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True, slots=True)
class ParityOptions:
    folder: Annotated[Path, Option("checkpoint with golden values", metavar="DIR")]
    device: Annotated[str, Option("cpu, cuda or cuda:N (default: %(default)s)")] = "cpu"
    dtype: Annotated[str, Option(choices=DTYPES)] = "float32"
    engine: Annotated[
        bool,
        Option("also run every golden decode through the whole engine: alone, mixed, cached, preempted"),
    ] = False
    json: Annotated[bool, Option("print nothing but the JSON line to stdout")] = False
