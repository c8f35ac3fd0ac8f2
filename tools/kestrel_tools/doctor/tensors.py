"""A checkpoint's tensors: names, shapes and types against the network, and numbers of plausible size.

A flipped top bit of an exponent multiplies a number below 2 by 2^128, so it is found by size alone. Of a gain
of 2 or more, which are common in norms alone, it leaves next to nothing, and no gain is trained to that.
Flips that change a number by a factor of 16 or less, or make another weight smaller, look like weights: only
a digest finds those.
"""

import math
from collections.abc import Callable, Collection, Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from kestrel_core.moondream.checkpoint.files import Checkpoint
from kestrel_core.moondream.checkpoint.weights import KV_CACHES, are_ignored, misfits
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.moondream.model import Moondream
from kestrel_tools.doctor.report import Finding, fault, first_names, ok, warning

AGAIN = "Download the weights again and compare their digests with the publisher's."
CHUNK = 2**20  # numbers looked at together: 4 MB in float32 stay in a cache
# float16 ends at 65,504 and no layer works with weights near that; a flipped exponent lands above 2^60.
MAX_WEIGHT = 1e4
VANISHED = 2.0**-100  # a flipped exponent lands below 2^-125

Kind = Literal["norm", "bias", "embedding", "features", "matrix", "scale", "float8", "packed"]


class Range(NamedTuple):
    least: float
    most: float
    measure: str


# What moondream-tiny, which is trained, has (and its first version, which set the limits): norm gains of 0.39
# to 2.0 (0.57 to 1.41), embeddings of 0.39 to 0.43 (0.16 to 0.25), matrices of 0.9 to 3.5 over sqrt(columns)
# (0.9 to 3.8), biases to 8.9 (4.6), Fourier features to 64. The published weights cannot be looked at here,
# so a factor of 30 was left on each side, and outside of it is a warning.
PLAUSIBLE: dict[Kind, Range] = {
    "norm": Range(0.02, 42.0, "mean size"),
    "embedding": Range(0.005, 7.5, "standard deviation"),
    "matrix": Range(0.03, 115.0, "standard deviation x sqrt(columns)"),
    "bias": Range(0.0, 140.0, "largest size"),
    "features": Range(0.0, 1_920.0, "largest size"),
    "scale": Range(1e-12, 1e3, "largest size"),
}


class Values(NamedTuple):
    """What was read of one tensor. Of one with NaN or infinity only their number counts."""

    kind: Kind
    columns: int
    num_bad: int  # NaN and infinities
    max_abs: float
    mean_abs: float
    std: float
    num_zero_rows: int
    num_vanished: int = 0  # gains of norms that are next to nothing, and not zero


def build_network(config: MoondreamConfig) -> Moondream:
    """Names and shapes alone: the meta device holds no numbers."""
    with torch.device("meta"):
        return Moondream(config)


def ignored(wrong: dict[str, list[str]], config: MoondreamConfig) -> list[str]:
    """Tensors that the model does not have and loads without, if those it has are named rightly."""
    named = _misnamed(wrong)
    return named["unexpected"] if are_ignored(named, config) else []


def _misnamed(wrong: dict[str, list[str]]) -> dict[str, list[str]]:
    return {what: wrong[what] for what in ("missing", "unexpected") if what in wrong}


def check_names(wrong: dict[str, list[str]], num_tensors: int, config: MoondreamConfig) -> Finding:
    if strange := ignored(wrong, config):
        told = f"{len(strange)} unexpected: {first_names(strange)}"
        return warning(told, "They are ignored. If answers are odd, take the checkpoint of one release.")
    return _judge_misfits(_misnamed(wrong), f"all {num_tensors:,} tensors are there, and no others")


def check_shapes(wrong: dict[str, list[str]]) -> Finding:
    others = {what: names for what, names in wrong.items() if what not in ("missing", "unexpected")}
    return _judge_misfits(others, "every shape and type is what the configuration asks for")


def _judge_misfits(wrong: dict[str, list[str]], fine: str) -> Finding:
    told = [f"{len(names)} {what}: {first_names(names)}" for what, names in wrong.items()]
    advice = "Take the checkpoint and the config.json of one release."
    return fault("; ".join(told), advice) if told else ok(fine)


def compare(config: MoondreamConfig, checkpoint: Checkpoint) -> dict[str, list[str]]:
    return misfits(build_network(config), config, checkpoint)


def read_values(
    checkpoint: Checkpoint, without: Collection[str], progress: Callable[[int, int], None]
) -> Iterator[tuple[str, Values]]:
    """Every tensor as it is stored, but for those that no model takes: they may hold anything.

    `progress` is told how many are done, and of how many.
    """
    names = [name for name in checkpoint.tensors if name not in without and not name.endswith(KV_CACHES)]
    for done, name in enumerate(names, 1):
        yield name, look_at(name, checkpoint.read(name))
        progress(done, len(names))
    checkpoint.close()


def kind_of(name: str, tensor: Tensor) -> Kind:
    leaf = name.rsplit(".", 1)[-1]
    if not tensor.is_floating_point():
        return "packed"
    if tensor.dtype.itemsize == 1:
        return "float8"  # its numbers mean something only times their scale
    if leaf in ("scale", "zero_point", "up_scale", "down_scale"):
        return "scale"
    if "features" in name:
        return "features"
    if leaf in ("wte", "pos_emb", "pos_embed") or "embd" in name:
        return "embedding"
    if tensor.ndim == 1:
        return "norm" if leaf == "weight" else "bias"
    return "matrix"


@torch.inference_mode()
def look_at(name: str, tensor: Tensor) -> Values:
    kind, columns = kind_of(name, tensor), tensor.shape[-1] if tensor.ndim else 1
    rows = tensor.reshape(-1, columns)
    step = max(1, CHUNK // columns)
    num_bad, max_abs, total, absolute, squares, num_zero_rows = 0, 0.0, 0.0, 0.0, 0.0, 0
    for start in range(0, len(rows), step):
        numbers = rows[start : start + step].float()
        sizes = numbers.abs()
        largest = sizes.amax(-1)  # NaN where a number of the row is
        if not torch.isfinite(largest).all():
            num_bad += int((~torch.isfinite(numbers)).sum())
        max_abs = max(max_abs, float(largest.max()))
        num_zero_rows += int((largest == 0).sum())
        # Rows are summed in float32 and their sums in float64: exact enough, and twice as fast.
        total += float(numbers.sum(-1).sum(dtype=torch.float64))
        absolute += float(sizes.sum(-1).sum(dtype=torch.float64))
        squares += float(numbers.square().sum(-1).sum(dtype=torch.float64))
    count = max(1, tensor.numel())
    variance = max(0.0, squares / count - (total / count) ** 2)
    sizes = tensor.float().abs() if kind == "norm" else torch.zeros(0)
    num_vanished = int(((sizes > 0) & (sizes < VANISHED)).sum())
    deviation = math.sqrt(variance)
    return Values(kind, columns, num_bad, max_abs, absolute / count, deviation, num_zero_rows, num_vanished)


def judge_finite(values: dict[str, Values]) -> Finding:
    bad = [f"{name} ({found.num_bad:,})" for name, found in values.items() if found.num_bad]
    if bad:
        return fault(f"NaN or infinite numbers in {len(bad)} tensors: {first_names(bad)}", AGAIN)
    return ok(f"no NaN and no infinity in {len(values):,} tensors")


def judge_size(values: dict[str, Values]) -> Finding:
    sound = {name: found for name, found in values.items() if not found.num_bad}
    huge = [
        f"{n} ({v.max_abs:.3g})" for n, v in sound.items() if v.max_abs > MAX_WEIGHT and v.kind != "packed"
    ]
    if huge:
        return fault(f"numbers above {MAX_WEIGHT:g} in {len(huge)} tensors: {first_names(huge)}", AGAIN)
    gone = [f"{name} ({found.num_vanished:,})" for name, found in sound.items() if found.num_vanished]
    if gone:
        return fault(f"gains of next to nothing in {len(gone)} norms: {first_names(gone)}", AGAIN)
    odd = [told for name, found in sound.items() if (told := _implausible(name, found))]
    if odd:
        return warning(f"{len(odd)} tensors of odd size: {first_names(odd)}", AGAIN)
    largest = max(sound, key=lambda name: sound[name].max_abs, default=None)
    if largest is None:
        return ok("there is nothing to look at")
    return ok(
        f"the largest number is {sound[largest].max_abs:.3g} in {largest}; every kind is within its range"
    )


def _implausible(name: str, values: Values) -> str:
    if values.kind not in PLAUSIBLE or values.max_abs == 0:
        return ""
    least, most, measure = PLAUSIBLE[values.kind]
    size = {
        "norm": values.mean_abs,
        "embedding": values.std,
        "matrix": values.std * math.sqrt(values.columns),
    }.get(values.kind, values.max_abs)
    return "" if least <= size <= most else f"{name} ({measure} {size:.3g}, not {least:g} to {most:g})"


def judge_zeros(values: dict[str, Values]) -> Finding:
    """Of a bias zero is a fair value, and of an embedding rows of words that never occur may be zero."""
    needed = {name: found for name, found in values.items() if found.kind not in ("bias", "packed")}
    empty = [name for name, found in needed.items() if found.max_abs == 0]
    if empty:
        return fault(f"{len(empty)} tensors are all zero: {first_names(empty)}", AGAIN)
    holes = [
        f"{name} ({found.num_zero_rows:,} rows)"
        for name, found in needed.items()
        if found.kind in ("matrix", "float8") and found.num_zero_rows and "lm_head" not in name
    ]
    if holes:
        return warning(f"rows that are all zero in {len(holes)} matrices: {first_names(holes)}", AGAIN)
    return ok("no tensor that has to hold something is zero, and no row of a matrix is")
