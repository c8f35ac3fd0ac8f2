"""What both formats of golden folders have in common."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from kestrel_core.intake.tokenizer import TextStream
from kestrel_core.loop.step import Sampling
from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.crops.cutting import choose_tiling
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.runtime.readouts.plain import nucleus
from kestrel_core.skills.spec import Language
from kestrel_tools.parity.report import Report

TilingCase = tuple[int, int, int, int, tuple[int, int]]  # height, width, max_crops, overlap_margin, tiling


def picture(folder: Path, name: str) -> Path:
    """The file of a golden image, whatever its format."""
    found = sorted((folder / "images").glob(f"{name}.*"))
    if not found:
        raise BadCheckpoint(f"{folder} has crops of the image {name}, and no images/{name}.* beside them")
    return found[0]


class Golden:
    """Tensors of one golden file. A folder may be trimmed: what it does not hold is not compared."""

    def __init__(self, file: Path, report: Report) -> None:
        self.tensors = load_file(file) if file.is_file() else {}
        self.report = report

    def __contains__(self, key: str) -> bool:
        return key in self.tensors

    def __getitem__(self, key: str) -> Tensor:
        return self.tensors[key]

    def has(self, *keys: str) -> bool:
        """Whether all of these are there. To be asked before something is computed from them."""
        return all(key in self.tensors for key in keys)

    def close(self, stage: str, key: str, ours: Tensor, where: str | None = None) -> None:
        if key in self.tensors:
            self.report.close(stage, where or key, ours, self.tensors[key])


def embeddings(folder: Path, end: str) -> dict[str, Tensor]:
    """Golden embeddings by the image's name; `end` is what the keys have behind that name."""
    file = folder / "vision.safetensors"
    golden = load_file(file) if file.is_file() else {}
    return {key.removesuffix(end): value for key, value in golden.items() if key.endswith(end)}


def probabilities(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """The probability of each token after temperature and nucleus."""
    best, order = nucleus(logits, Sampling(temperature, top_p))
    return torch.zeros_like(best).scatter(0, order, best)


def check_tilings(cases: Sequence[TilingCase], vision: VisionConfig, report: Report) -> None:
    for height, width, max_crops, margin, tiling in cases:
        config = replace(vision, max_crops=max_crops, overlap_margin=margin)
        ours = choose_tiling(height, width, config)
        report.equal("tiling", f"{width}x{height}", list(ours), list(tiling))


def check_streaming(
    cases: Sequence[tuple[Sequence[int], Sequence[str]]], language: Language, report: Report
) -> None:
    for index, (ids, chunks) in enumerate(cases):
        stream = TextStream(language.tokenizer)
        ours = [*map(stream.feed, ids), stream.finish()]
        report.equal("streaming", f"case {index}", [chunk for chunk in ours if chunk], list(chunks))
