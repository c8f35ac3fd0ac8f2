"""What `kestrel parity` takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kestrel_tools.options import Option


@dataclass(frozen=True, slots=True)
class ParityOptions:
    """run a golden folder stage by stage and print the deviations

    Runs every stage of a golden folder and compares it with the values there. Prints a table and, as the last
    line, JSON. Exit code 0: all within tolerance, 1: a miss, 2: the folder cannot be run.
    """

    folder: Annotated[Path, Option("checkpoint with golden values", metavar="DIR")]
    device: Annotated[str, Option("cpu, cuda or cuda:N (default: %(default)s)")] = "cpu"
    dtype: Annotated[str, Option(choices=("float32", "bfloat16"))] = "float32"
    engine: Annotated[
        bool,
        Option("also run every golden decode through the whole engine: alone, mixed, cached, preempted"),
    ] = False
    json: Annotated[bool, Option("print nothing but the JSON line to stdout")] = False
