"""Cuts crops on the device of the vision encoder: the decoded picture is sent once and resized there.

Carries out a `CropPlan` on tensors, and gives the same bytes as `cut_crops` on the host. Nothing here waits
for the device.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import prod

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from kestrel_core.moondream.crops.resampling import CropPlan, Pass


def cut_on_device(rgb: Tensor, plan: CropPlan, tables: Mapping[str, Tensor], crops: Tensor) -> None:
    """Fill `crops`, uint8 [1 + rows * cols, crop, crop, 3], from a picture, uint8 [height, width, 3].

    The only tile of a (1, 1) tiling may be left out, since it equals the global crop. `tables` are those of
    the plan, on the device. This takes about 25 launches; a kernel of our own, with a thread for every new
    value, would take one launch for each pass, over the same tables.
    """
    counts = [prod(step.shape) for step in (*plan.whole, *(plan.working or ()))]
    taps = zip(tables["indices"].split(counts), tables["weights"].split(counts), strict=True)
    whole = _resize(rgb, plan.whole, taps)
    crops[0].copy_(whole)
    if len(crops) == 1:
        return
    working = _resize(rgb, plan.working, taps) if plan.working is not None else whole
    size = crops.shape[1]
    windows = working.unfold(0, size, plan.window).unfold(1, size, plan.window)  # [rows, cols, 3, crop, crop]
    crops[1:].unflatten(0, plan.tiling).copy_(windows.permute(0, 1, 3, 4, 2))


def _resize(picture: Tensor, passes: Iterable[Pass], taps: Iterator[tuple[Tensor, Tensor]]) -> Tensor:
    """`picture`: uint8 [height, width, 3]. Takes as many of the taps as there are passes."""
    for (axis, shape, offset, clips), (indices, weights) in zip(passes, taps, strict=False):
        lines = picture.transpose(0, axis)
        # Cast and transposed in one copy; floats are not cast, so they are transposed by themselves.
        values = lines.to(torch.float32, memory_format=torch.contiguous_format).contiguous().flatten(1)
        sums = embedding_bag(indices.view(shape), values, per_sample_weights=weights.view(shape), mode="sum")
        sums.add_(offset)
        sums = sums.clamp_(0, 255).byte() if clips else sums.floor_()
        picture = sums.view(shape[0], *lines.shape[1:]).transpose(0, axis)
    return picture
