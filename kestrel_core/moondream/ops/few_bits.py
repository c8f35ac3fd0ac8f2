"""Weights in 8 or 4 bits, for products whose inputs stay as they are: what they mean, in plain torch.

Decoding a few sequences takes as long as reading the weights does, so fewer bits are less time; and a small
GPU holds a model that it could not hold otherwise. `ops.few_bits_kernels` computes the same on CUDA.

fp8: float8 numbers as they are, and one scale for each row. int4: (nibble - 8) * scale, with a scale for each
group of 64 numbers of a row. Four groups, which are 256 numbers, lie together in 128 bytes that hold 64 words
of 16 bits: word j has number j of the first group in its lowest four bits, that of the second group in the
next four, and so on. So 32 bits, which are two words, become pairs of bfloat16 by a mask for each group, and
what is computed from such a mask belongs to one scale. A row's end is filled up to 256 numbers, with zeros.
"""

from functools import partial
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import Pairs, StepAdapters

Kind = Literal["fp8", "int4"]
KINDS: tuple[Kind, ...] = ("fp8", "int4")

GROUP = 64  # numbers with one scale
TOGETHER = 256  # numbers of four groups, whose nibbles share words
WORDS = TOGETHER // 4
# Scales that are tried, as parts of the one that loses no number of a group: rounding the many numbers near
# zero better may be worth more than the largest one.
SHRINKS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
PACKED_AT_ONCE = 2**22  # numbers; packing takes some 30 bytes for each, which a small GPU must have


class FewBits(NamedTuple):
    """Matrices [..., out, in] in few bits."""

    values: Tensor  # fp8: float8 [..., out, in]; int4: uint8 [..., out, padded in / 2]
    scales: Tensor  # fp8: float32 [..., out]; int4: bfloat16 [..., out, padded in / 64]
    kind: Kind
    in_dim: int

    @property
    def out_dim(self) -> int:
        return self.values.shape[-2]

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the matrices."""
        return (*self.values.shape[:-1], self.in_dim)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.scales.nbytes


def num_bytes(shape: tuple[int, ...], kind: Kind) -> int:
    """What matrices of this shape take when they are packed."""
    *rows, in_dim = shape
    num_rows = torch.Size(rows).numel()
    if kind == "fp8":
        return num_rows * (in_dim + 4)
    padded = padded_dim(in_dim)
    return num_rows * (padded // 2 + 2 * padded // GROUP)


def padded_dim(in_dim: int) -> int:
    return -(-in_dim // TOGETHER) * TOGETHER


def out_rows(w: FewBits, start: int, stop: int) -> FewBits:
    """Some outputs of a matrix or of each matrix of a stack, as views."""
    if w.kind == "fp8":
        return w._replace(values=w.values[..., start:stop, :], scales=w.scales[..., start:stop])
    return w._replace(values=w.values[..., start:stop, :], scales=w.scales[..., start:stop, :])


@torch.no_grad()
def pack_weights(weight: Tensor, kind: Kind) -> FewBits:
    """Matrices [..., out, in] in few bits, on their device. Large ones are packed in pieces."""
    *rows, in_dim = weight.shape
    flat = weight.reshape(-1, in_dim)
    pack = partial(plain.quantise, gelu=False) if kind == "fp8" else _pack_int4
    pieces = [pack(piece) for piece in flat.split(max(1, PACKED_AT_ONCE // in_dim))]
    values, scales = (torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*pieces, strict=True))
    of_row = rows if kind == "fp8" else [*rows, -1]
    return FewBits(values.view(*rows, -1), scales.view(of_row), kind, in_dim)


def _pack_int4(weight: Tensor) -> tuple[Tensor, Tensor]:
    filling = padded_dim(weight.shape[1]) - weight.shape[1]
    groups = F.pad(weight.float(), (0, filling)).unflatten(1, (-1, GROUP))
    scales = _best_scales(groups)
    steps = _steps(groups, scales).to(torch.int16).unflatten(1, (-1, 4))  # [out, blocks, 4 groups, 64]
    first, second, third, fourth = steps.unbind(2)
    words = first | second << 4 | third << 8 | fourth << 12
    return words.flatten(1).contiguous().view(torch.uint8), scales


def _best_scales(groups: Tensor) -> Tensor:
    """[out, groups, 64] to bfloat16 [out, groups]: of each group the scale with the smallest squared error.

    A scale has the sign that gives the largest number the one step more that a nibble has on that side.
    """
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))[..., 0]
    best, least = None, None
    for shrink in SHRINKS:
        scales = (largest * (shrink / -8)).to(torch.bfloat16)
        error = ((_steps(groups, scales) - 8) * scales.float()[..., None] - groups).square().sum(-1)
        if best is None or least is None:
            best, least = scales, error
        else:
            better = error < least
            best, least = torch.where(better, scales, best), torch.where(better, error, least)
    assert best is not None
    return best


def _steps(groups: Tensor, scales: Tensor) -> Tensor:
    wide = scales.float()[..., None]
    # A group of zeros has the scale 0, and any step does; tiny numbers may have it after rounding.
    steps = (groups / wide).round().clamp(-8, 7) + 8
    return torch.where(wide == 0, 8.0, steps)


def unpack(w: FewBits, dtype: torch.dtype) -> Tensor:
    """The matrices [..., out, in]. Multiplied in float32, rounded once."""
    if w.kind == "fp8":
        return (w.values.float() * w.scales[..., None]).to(dtype)
    words = w.values.view(torch.int16).unflatten(-1, (-1, 1, WORDS)).int()
    shifts = torch.arange(0, 16, 4, device=words.device, dtype=torch.int32)[:, None]
    steps = ((words >> shifts) & 15).flatten(-3, -2)  # [..., out, groups, 64]
    groups: Tensor = (steps - 8) * w.scales.float()[..., None]
    return groups.flatten(-2)[..., : w.in_dim].to(dtype)


def unpack_into(w: FewBits, out: Tensor) -> None:
    out.copy_(unpack(w, out.dtype))


def linear(x: Tensor, w: FewBits, bias: Tensor | None) -> Tensor:
    return F.linear(x, unpack(w, x.dtype), bias)


def linear_beside(x: Tensor, w: FewBits, other: FewBits, bias: Tensor) -> Tensor:
    """The products of x with w and with other, one's columns behind the other's, and the bias."""
    return F.linear(x, torch.cat((unpack(w, x.dtype), unpack(other, x.dtype))), bias)


def linear_sum(x: Tensor, w: FewBits, y: Tensor, other: FewBits, bias: Tensor) -> Tensor:
    """The sum of two products, x with w and y with other, and the bias. Their kinds may differ."""
    return F.linear(x, unpack(w, x.dtype), bias).addmm_(y, unpack(other, x.dtype).T)


def experts_few(
    h: Tensor,
    ids: Tensor,
    weights: Tensor,
    fc1: FewBits,
    fc2: FewBits,
    adapters: StepAdapters | None = None,
) -> Pairs:
    return plain.experts(h, ids, weights, unpack(fc1, h.dtype), unpack(fc2, h.dtype), adapters)
