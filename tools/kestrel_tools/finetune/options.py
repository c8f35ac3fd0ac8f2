"""What `kestrel finetune` and `kestrel eval lines` take."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_tools.options import Option, check_writable
from kestrel_tools.scenes.options import Report

RANKS = (8, 16, 24, 32)
TARGETS = ("qkv", "proj", "mlp")  # mlp: the experts too


@dataclass(frozen=True, slots=True)
class FinetuneOptions:
    """train a LoRA adapter on questions and wanted answers

    Trains a LoRA adapter of the text model; pictures are encoded once, and the model itself stays as it is.
    Each line of the data is a JSON object: skill (query, caption, detect or point), image (a path relative to
    the file, or a data URL), question, length or object, and the wanted answer, caption, objects or points.
    All bad lines are named before anything is trained. Exit code 0: done, 2: it cannot be run as asked, 130:
    interrupted, and --resume goes on.
    """

    data: Annotated[Path, Option("JSONL: a question and its wanted answer a line", metavar="DATA.jsonl")]
    out: Annotated[
        Path, Option("where the adapter goes; its name is the adapter's", metavar="FOLDER", required=True)
    ] = Path()
    rank: Annotated[int, Option("of the adapter (default: %(default)s)", choices=RANKS)] = 16
    expert_rank: Annotated[
        int | None,
        Option("of each expert's matrices (default: RANK / experts of a token)", metavar="RANK"),
    ] = None
    targets: Annotated[
        str | None,
        Option(
            f"matrices to adapt, of {', '.join(TARGETS)} (default: those of Moondream's own format; "
            "with others the adapter is written as PEFT's alone)",
            metavar="NAMES",
        ),
    ] = None
    blocks: Annotated[
        int | None,
        Option("adapt so many of the last text blocks, which is faster (default: all)", metavar="N"),
    ] = None
    epochs: Annotated[int, Option("times that every line is seen (default: %(default)s)", metavar="N")] = 3
    steps: Annotated[int | None, Option("so many steps instead of epochs", metavar="N")] = None
    batch: Annotated[int, Option("lines in a step (default: %(default)s)", metavar="N")] = 16
    lr: Annotated[float, Option("highest learning rate (default: %(default)s)", metavar="RATE")] = 5e-4
    warmup: Annotated[
        float, Option("share of the steps in which the rate rises (default: %(default)s)", metavar="SHARE")
    ] = 0.05
    weight_decay: Annotated[float, Option("of AdamW (default: %(default)s)", metavar="DECAY")] = 0.0
    clip: Annotated[float, Option("longest gradient (default: %(default)s)", metavar="NORM")] = 1.0
    eval_share: Annotated[
        float, Option("share of the pictures kept for evaluation (default: %(default)s)", metavar="SHARE")
    ] = 0.1
    eval_data: Annotated[Path | None, Option("evaluate on this file instead", metavar="FILE")] = None
    eval_every: Annotated[
        int | None, Option("steps between evaluations (default: an epoch)", metavar="N")
    ] = None
    patience: Annotated[
        int,
        Option("stop after so many evaluations without a better loss; 0: never (%(default)s)", metavar="N"),
    ] = 3
    max_minutes: Annotated[float | None, Option("stop then, with the best so far", metavar="MINUTES")] = None
    max_positions: Annotated[
        int, Option("positions of one pass; larger steps take several (default: %(default)s)", metavar="N")
    ] = 16_384
    recompute: Annotated[
        str, Option("compute blocks again for gradients, which saves memory", choices=("auto", "on", "off"))
    ] = "auto"
    stored: Annotated[
        str, Option("dtype of the written adapter (default: %(default)s)", choices=("bfloat16", "float32"))
    ] = "bfloat16"
    seed: Annotated[int, Option("of first weights, order and split (default: %(default)s)")] = 0
    resume: Annotated[bool, Option("go on with the run in FOLDER, which was interrupted")] = False
    overwrite: Annotated[bool, Option("begin anew where FOLDER holds a run already")] = False
    scored: Annotated[
        int,
        Option(
            "evaluation lines that an engine answers without and with the adapter (%(default)s; 0: none)",
            metavar="N",
        ),
    ] = 200

    def __post_init__(self) -> None:
        least = {"epochs": 1, "batch": 1, "patience": 0, "max_positions": 1, "scored": 0}
        least |= {"steps": 1, "eval_every": 1, "blocks": 1, "expert_rank": 1}
        for name, smallest in least.items():
            if (number := getattr(self, name)) is not None and number < smallest:
                raise InvalidRequest(f"{name} is {number}; it must be at least {smallest}")
        if self.targets is not None and (others := set(self.targets.split(",")) - set(TARGETS)):
            raise InvalidRequest(
                f"targets has {', '.join(sorted(others))}; it can have {', '.join(TARGETS)}, by commas"
            )
        for name in ("lr", "clip", "max_minutes"):
            if (value := getattr(self, name)) is not None and not 0 < value < float("inf"):
                raise InvalidRequest(f"{name} is {value:g}; it must be above 0")
        for name in ("warmup", "eval_share"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidRequest(f"{name} is {getattr(self, name):g}; it is a share, from 0 to below 1")
        if not 0 <= self.weight_decay <= 1:
            raise InvalidRequest(f"weight_decay is {self.weight_decay:g}; it can be from 0 to 1")
        if not -(2**63) <= self.seed < 2**63:
            raise InvalidRequest("seed must fit 64 bits")


@dataclass(frozen=True, slots=True)
class EvalLinesOptions:
    """the lines of a data file, as kestrel finetune takes it, without and with an adapter

    Asks every line, without an adapter and with it, and prints one table: query and caption exactly, boxes at
    IoU 0.5, points by their distance. Exit code 0: done, 2: it cannot be run as asked.
    """

    data: Annotated[Path, Option("JSONL: a question and its wanted answer a line", metavar="DATA.jsonl")]
    adapter: Annotated[
        str | None,
        Option(
            "a folder or file of an adapter, or a name that the engine or the server knows", metavar="NAME"
        ),
    ] = None
    url: Annotated[
        str | None, Option("ask a server's gRPC; without, an engine here", metavar="HOST:PORT")
    ] = None
    lines: Annotated[int | None, Option("a sample of so many lines", metavar="N")] = None
    seed: Annotated[int, Option("of the sample (default: %(default)s)")] = 0
    report: Report = None

    def __post_init__(self) -> None:
        if self.lines is not None and self.lines < 1:
            raise InvalidRequest(f"lines is {self.lines}; it must be at least 1")
        check_writable(self.report)
