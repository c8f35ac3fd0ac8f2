"""What happens to a drawn picture before the encoder sees it: wear, as of cameras and formats, and the crops.

The encoder sees every picture squeezed to its crops, so training draws the squeezed picture at once.
"""

import math
from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from kestrel_core.moondream.config import VisionConfig


def worn(picture: Tensor, generator: Generator | None, wear: Callable[..., Tensor]) -> Tensor:
    """Some are blurred, some grainy, some were a JPEG. Rounded to 8 bits. `wear` may be compiled."""
    count, device = len(picture), picture.device
    much = torch.rand(3, count, 1, 1, 1, generator=generator, device=device)
    grain = torch.randn(picture.shape, generator=generator, device=device)
    picture = wear(picture, much[0], much[1], grain)
    compressed = count * 2 // 5
    if compressed:
        picture = torch.cat((jpeg(picture[:compressed], much[2, :compressed]), picture[compressed:]))
    return picture


def wear(picture: Tensor, blur: Tensor, noise: Tensor, grain: Tensor) -> Tensor:
    soft = F.avg_pool2d(picture, 3, 1, 1, count_include_pad=False)
    picture = torch.lerp(picture, soft, (blur * 3 - 2).clamp(0, 1))
    picture = picture + (noise * 4 - 3).clamp(0, 1) * 0.03 * grain
    return (picture.clamp(0, 1) * 255).round() / 255


LUMA = (
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
)  # fmt: skip

TO_YCC = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))


def jpeg(picture: Tensor, much: Tensor) -> Tensor:
    """Rounds as a JPEG does: blocks of 8 in luma, 16 in chroma. `much` is 0 (quality 95) to 1 (40)."""
    height, width = picture.shape[-2:]
    padded = F.pad(picture, (0, -width % 16, 0, -height % 16), mode="replicate")
    planes = torch.einsum("ij,njhw->nihw", _constant("to_ycc", picture.device), padded)
    table = _constant("luma", picture.device)
    scale = (0.1 + 1.15 * much) / 255
    luma = _round_blocks(planes[:, :1], table * scale)
    chroma = _round_blocks(F.avg_pool2d(planes[:, 1:], 2), (table * 1.3).clamp(max=99) * scale)
    chroma = F.interpolate(chroma, scale_factor=2, mode="bilinear", align_corners=False)
    rgb = torch.einsum("ij,njhw->nihw", _constant("from_ycc", picture.device), torch.cat((luma, chroma), 1))
    return rgb[..., :height, :width]


def _round_blocks(planes: Tensor, steps: Tensor) -> Tensor:
    """Both directions of the cosine transform as one product of 64 x 64, over all blocks at once."""
    waves = _constant("waves", planes.device)
    blocks = planes.unflatten(3, (-1, 8)).unflatten(2, (-1, 8)).transpose(3, 4)  # [n, c, rows, cols, 8, 8]
    steps = steps.flatten(-2)[:, :, None, None]
    rounded = (blocks.flatten(4) @ waves.T / steps).round() * steps
    planes = (rounded @ waves).unflatten(-1, (8, 8)).transpose(3, 4).flatten(4, 5).flatten(2, 3)
    return planes


def cut_crops(picture: Tensor, tiling: tuple[int, int], vision: VisionConfig) -> Tensor:
    """As `moondream.crops.cutting` cuts them: uint8 [pictures, crops, size, size, 3], the global first.

    One tile is the global crop again, so it is left out here.
    """
    rows, cols = tiling
    size, window, margins = vision.crop_size, vision.window_px, 2 * vision.margin_px
    crops = [_resize(picture, size, size)]
    if rows * cols > 1:
        working = _resize(picture, rows * window + margins, cols * window + margins)
        places = [(row * window, col * window) for row in range(rows) for col in range(cols)]
        crops += [working[..., top : top + size, left : left + size] for top, left in places]
    return torch.stack(crops, 1).permute(0, 1, 3, 4, 2)


def _resize(picture: Tensor, height: int, width: int) -> Tensor:
    """As `F.interpolate` does it, bicubic and antialiased; its kernel has one thread for a place in all
    pictures, where two products fill the device."""
    levels = picture * 255
    for side, wanted in ((-2, height), (-1, width)):
        if picture.shape[side] != wanted:
            weights = _weights(picture.shape[side], wanted, picture.device)
            levels = weights @ levels if side == -2 else levels @ weights.T
    return levels.clamp(0, 255).round().to(torch.uint8)


@cache
def _weights(side: int, wanted: int, device: torch.device) -> Tensor:
    """What each pixel of a line of `wanted` takes of each of a line of `side`: [wanted, side]."""
    lines = torch.eye(side)[None, None]
    taken = F.interpolate(lines, (wanted, side), mode="bicubic", antialias=True, align_corners=False)
    return taken[0, 0].to(device)


@cache
def _constant(name: str, device: torch.device) -> Tensor:
    """Made once for each device: copying it there makes the host wait."""
    match name:
        case "luma":
            return torch.tensor(LUMA, dtype=torch.float32).view(8, 8).to(device)
        case "to_ycc":
            return torch.tensor(TO_YCC).to(device)
        case "from_ycc":
            return torch.tensor(TO_YCC).inverse().to(device)
        case "waves":
            k = torch.arange(8, dtype=torch.float32)
            basis = torch.cos((2 * k[None] + 1) * k[:, None] * math.pi / 16) * 0.5
            basis[0] *= math.sqrt(0.5)
            return torch.kron(basis, basis).to(device)
    raise AssertionError(name)
