"""What `kestrel quantize` takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.options import Option, check_writable


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """measure the scales that KESTREL_QUANTIZE=fp8 computes with

    Runs pictures through the plain network, notes how large the inputs of every product get, and writes that
    as a small file, beside the checkpoint unless --out says where. An engine with KESTREL_QUANTIZE=fp8 reads
    it; without such a file it measures at start, with made up pictures. Pictures like those that will be
    asked about are best. Also says how far the vision encoder in float8 is off. Exit code 0: done, 2: it
    cannot be run as asked.
    """

    model: Annotated[str, Option("a known name, or a checkpoint: a folder, a file", metavar="MODEL")]
    out: Annotated[Path | None, Option("(kestrel_scales.json beside the checkpoint)", metavar="FILE")] = None
    pictures: Annotated[
        Path | None, Option("a folder of pictures; without, charts and scenes are drawn", metavar="FOLDER")
    ] = None
    count: Annotated[int, Option("pictures that are run at most (%(default)s)", metavar="N")] = 64

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InvalidRequest(f"count is {self.count}; there must be a picture, at least")
        if self.pictures is not None and not self.pictures.is_dir():
            raise InvalidRequest(f"{self.pictures} is not a folder; --pictures takes one with pictures")
        check_writable(self.out)
