"""What `kestrel eval scenes` and `kestrel eval choices` take."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.options import Option, check_writable

Report = Annotated[Path | None, Option("write all of it here too", "--json", metavar="FILE")]

DEFAULT_SCENES, DEFAULT_SCENES_OF_SERVER = 500, 50


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """freshly drawn scenes of shapes, words or everyday things, every skill

    Draws scenes of coloured shapes and printed words (or, with --world, of everyday things and charts), asks
    about fifteen requests of every skill about each, and prints a table of scores beside their targets. Exit
    code 0: done, 1: with --require, a target was missed or an answer differed, 2: it cannot be run as asked.
    """

    scenes: Annotated[
        int | None,
        Option("(default: 500; 50 for a server)", metavar="N"),
    ] = None
    seed: Annotated[int, Option("the same one draws the same scenes (%(default)s)")] = 0
    url: Annotated[
        str | None, Option("ask a server's gRPC; without, an engine here", metavar="HOST:PORT")
    ] = None
    concurrency: Annotated[
        int | None, Option("callers at a time (8 for a server, else a full batch)", metavar="N")
    ] = None
    compare: Annotated[
        bool,
        Option(
            "ask one at a time, then batched, cached, preempted and streamed, and count differing answers"
        ),
    ] = False
    world: Annotated[
        str,
        Option(
            "things: drawn as in training; unseen: from drawings and fonts it never saw; line-art: from line "
            "drawings, which are unlike those of training; wide: pages of print, things in cells, other "
            "charts, asked in all ways that training asks (%(default)s)",
            choices=("shapes", "things", "unseen", "line-art", "wide"),
        ),
    ] = "shapes"
    atlas: Annotated[
        Path | None, Option("the drawings of things, made by examples.train_tiny.make_atlas", metavar="DIR")
    ] = None
    pictures: Annotated[
        Path | None, Option("somebody else's pictures instead, with a truth.json", metavar="DIR")
    ] = None
    report: Report = None
    sheet: Annotated[
        Path | None, Option("draw answers over the first pictures: .svg or .png", metavar="FILE")
    ] = None
    require: Annotated[bool, Option("exit with 1 when a target is missed")] = False
    record: Annotated[
        Path | None, Option("write every choice of the engine here, for eval choices", metavar="FILE")
    ] = None
    logprobs: Annotated[
        bool,
        Option("with --record: the two likeliest tokens of each choice too, read beside the CUDA graphs"),
    ] = False

    @property
    def num_scenes(self) -> int:
        return self.scenes or (DEFAULT_SCENES if self.url is None else DEFAULT_SCENES_OF_SERVER)

    def __post_init__(self) -> None:
        for name in ("scenes", "concurrency"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise InvalidRequest(f"{name} is {number}; it must be at least 1")
        if self.world != "shapes" and self.pictures is not None:
            raise InvalidRequest("--pictures has its own truth of shapes and words; leave out --world")
        check_writable(self.report, self.sheet, self.record)
        if self.sheet is not None:
            check_suffix(self.sheet)
        if self.record is not None and (self.url is not None or self.compare):
            raise InvalidRequest(
                "--record is for an engine here, asked in one way: leave out --url and --compare"
            )
        if self.logprobs and self.record is None:
            raise InvalidRequest("--logprobs are written into the record; give a --record")


@dataclass(frozen=True, slots=True)
class ChoicesOptions:
    """whether plain torch would choose as an engine did: a file of eval scenes --record

    Feeds what was recorded through plain torch, all positions known beforehand, and holds every choice
    (token, coordinate, size) against the logits there. Exit code 0: each is the reference's, or so near to it
    that rounding explains the difference, 1: some are not, or requests failed or are missing, 2: it cannot be
    run as asked.
    """

    file: Annotated[Path, Option("made by kestrel eval scenes --record", metavar="FILE")]
    device: Annotated[str, Option("of the reference: cpu, cuda or cuda:N (default: %(default)s)")] = "cpu"
    dtype: Annotated[str, Option(choices=("float32", "bfloat16"))] = "float32"
    model_path: Annotated[
        str | None, Option("the checkpoint, where it is not as it was recorded", metavar="PATH")
    ] = None
    atlas: Annotated[
        Path | None, Option("the drawings of things, where they are not where the record says", metavar="DIR")
    ] = None
    near: Annotated[
        float | None,
        Option(
            "a difference is explained by a gap of so many roundings of the row's largest logit in the "
            "engine's dtype (default: 64 for float32, 4 for 16 bits, 24 for fp8, 48 for int4)",
            metavar="ROUNDINGS",
        ),
    ] = None
    report: Report = None

    def __post_init__(self) -> None:
        check_writable(self.report)


def check_suffix(sheet: Path) -> None:
    if sheet.suffix not in (".svg", ".png"):
        raise InvalidRequest(f'a sheet is written as .svg or .png, not as "{sheet.suffix}"')
