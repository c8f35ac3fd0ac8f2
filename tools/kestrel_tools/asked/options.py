"""What `kestrel eval asked` takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.options import Option, check_writable
from kestrel_tools.scenes.options import Report


@dataclass(frozen=True, slots=True)
class AskedOptions:
    """hand-written questions, in a folder with their pictures

    Asks every question of a folder's questions.jsonl and judges each answer by the rule beside it: a number,
    yes or no, words that have to be named, boxes or points, or the admission that it cannot be told. Prints
    how many are right by kind and by drawing, and every wrong answer. Exit code 0: done, 1: fewer are right
    than --require says, 2: it cannot be run as asked.
    """

    folder: Annotated[
        Path, Option("with questions.jsonl, names.json, truth.json and pictures", metavar="FOLDER")
    ]
    url: Annotated[
        str | None, Option("ask a server's gRPC; without, an engine here", metavar="HOST:PORT")
    ] = None
    require: Annotated[float | None, Option("exit with 1 when a smaller share is right", metavar="SHARE")] = (
        None
    )
    report: Report = None

    def __post_init__(self) -> None:
        if self.require is not None and not 0 <= self.require <= 1:
            raise InvalidRequest(f"require is {self.require:g}; it is a share, from 0 to 1")
        check_writable(self.report)
