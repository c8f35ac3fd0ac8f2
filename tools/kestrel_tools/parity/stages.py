"""Stages that both formats have."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kestrel_core.intake.tokenizer import TextStream
from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.crops.cutting import choose_tiling
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.skills.spec import Language
from kestrel_tools.parity.report import Report

TilingCase = tuple[int, int, int, int, tuple[int, int]]  # height, width, max_crops, overlap_margin, tiling


def picture(folder: Path, name: str) -> Path:
    """The file of a golden image, whatever its format."""
    found = sorted((folder / "images").glob(f"{name}.*"))
    if not found:
        raise BadCheckpoint(f"{folder} has crops of the image {name}, and no images/{name}.* beside them")
    return found[0]


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
