"""The vision encoder as a CUDA device runs it best. `Vision.encode` says what it computes.

Residuals are added where the next norm reads them, and biases and GELU are part of the products. Attention is
the fastest at the odd head size of 72, of torch's implementations and our own. In float8 the four products of
a block are taken in 8 bits: weights are rounded once, row by row, and their inputs when they are written,
token by token.
"""

import logging
import math
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from kestrel_core.moondream.ops.cubins import CannotBuild
from kestrel_core.moondream.ops.plain import gelu_linear, quantise, round_float8, scaled_linear
from kestrel_core.moondream.ops.protocol import Fused, Norm, Scaled
from kestrel_core.moondream.ops.vision_attention import Shape, VisionAttention
from kestrel_core.moondream.vision import Vision, VisionBlock

log = logging.getLogger("kestrel")

AttentionBackend = Literal["auto", "default", "cudnn", "flash", "efficient", "ours"]
Attend = Callable[[Tensor, int, int], Tensor]  # as `attend` below
Float8Attend = Callable[[Tensor, int, int, float], Tensor]  # the same, multiplied by a number, in float8
BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
TRIED_CROPS = 9  # the most common picture: eight tiles and the global crop
TRIALS = 5
AGREEMENT = 1e-2  # of the root mean square: results of bfloat16 differ by 3e-3
# In float8 a number that falls to the other side is off by a twelfth, and one in forty does.
FLOAT8_AGREEMENT = 4e-2
TRIED_FACTOR = 64.0  # makes the means of random numbers large enough for float8's digits

# From x, what is to be added to it, and the number of crops, to the same of the next block.
FastBlock = Callable[..., tuple[Tensor, Tensor | None]]
MakeBlock = Callable[[int, VisionBlock], FastBlock]


class FastVision:
    def __init__(
        self,
        vision: Vision,
        fused: Fused,
        float8: bool = False,
        attention: AttentionBackend = "auto",
        make_block: MakeBlock | None = None,
    ) -> None:
        """`make_block` makes other blocks than those of this module."""
        make = Float8VisionBlock if float8 else FastVisionBlock
        self._vision = vision
        self._fused = fused
        self._blocks: list[FastBlock] = [
            make_block(at, block) if make_block is not None else make(block, fused)
            for at, block in enumerate(vision.blocks)
            if isinstance(block, VisionBlock)
        ]
        self._last = Norm.of(vision.post_ln)
        ours = our_attention(vision) if attention in ("auto", "ours") else None
        if attention == "auto":
            attention = fastest_attention(vision, ours)
        elif attention == "ours" and ours is None:
            attention = fastest_attention(vision)
        self.attention: AttentionBackend = attention
        self._attend: Attend = ours if ours is not None and attention == "ours" else attend

    def __call__(self, crops: Tensor) -> Tensor:
        """uint8 [crops, size, size, 3] to features [crops, patches, enc_dim]."""
        vision = self._vision
        x = (vision.patch_emb(vision.patches(crops)) + vision.pos_emb).flatten(0, 1)
        y: Tensor | None = None
        with attention_by(self.attention):
            for block in self._blocks:
                x, y = block(x, y, len(crops), self._attend)
        _, features = self._fused.add_norm(x, y, None, self._last)
        return features.view(len(crops), -1, features.shape[1])


class FastVisionBlock:
    """A block whose result the next block adds: it returns x and what is to be added, both [rows, dim]."""

    def __init__(self, block: VisionBlock, fused: Fused) -> None:
        self._block = block
        self._fused = fused
        self._norms = Norm.of(block.ln1), Norm.of(block.ln2)

    def __call__(self, x: Tensor, y: Tensor | None, num_crops: int, attend: Attend) -> tuple[Tensor, Tensor]:
        attn, mlp = self._block.attn, self._block.mlp
        x, h = self._fused.add_norm(x, y, None, self._norms[0])
        mixed = attn.proj(attend(attn.qkv(h), num_crops, attn.num_heads))
        x, h = self._fused.add_norm(x, mixed, None, self._norms[1])
        return x, mlp.fc2(gelu_linear(h, mlp.fc1))


class Float8VisionBlock:
    def __init__(self, block: VisionBlock, fused: Fused) -> None:
        self._fused = fused
        self._norms = Norm.of(block.ln1), Norm.of(block.ln2)
        self._num_heads = block.attn.num_heads
        layers = (block.attn.qkv, block.attn.proj, block.mlp.fc1, block.mlp.fc2)
        self._qkv, self._proj, self._fc1, self._fc2 = (Float8Linear(layer) for layer in layers)

    def __call__(self, x: Tensor, y: Tensor | None, num_crops: int, attend: Attend) -> tuple[Tensor, Tensor]:
        fused = self._fused
        x, h = fused.add_norm_float8(x, y, self._norms[0])
        mixed = attend(self._qkv(h), num_crops, self._num_heads)
        x, h = fused.add_norm_float8(x, self._proj(fused.quantise(mixed, gelu=False)), self._norms[1])
        return x, self._fc2(fused.quantise(self._fc1(h), gelu=True))


class Float8Linear:
    def __init__(self, layer: nn.Linear) -> None:
        self._weight = quantise(layer.weight, gelu=False)
        self._bias = layer.bias

    def __call__(self, x: Scaled) -> Tensor:
        return scaled_linear(x, self._weight, self._bias)


def attend(qkv: Tensor, num_crops: int, num_heads: int) -> Tensor:
    """[crops * patches, 3 * dim] to [crops * patches, dim]. A patch sees all patches of its crop."""
    q, k, v = qkv.view(num_crops, -1, 3, num_heads, qkv.shape[1] // (3 * num_heads)).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(q, k, v)  # [crops, heads, patches, head_dim]
    return mixed.transpose(1, 2).reshape(len(qkv), -1)


def attention_by(name: AttentionBackend) -> AbstractContextManager[object]:
    """Use one of torch's implementations of attention, and others where it cannot serve."""
    if name not in BACKENDS:
        return nullcontext()
    others = [backend for other, backend in BACKENDS.items() if other != name]
    return sdpa_kernel([BACKENDS[name], *others, SDPBackend.MATH], set_priority=True)


def our_attention(vision: Vision) -> Attend | None:
    """Our own kernel for this encoder's shape, where it can be built and gives what torch's give."""
    return _our_own(vision, AGREEMENT)


def our_float8_attention(vision: Vision) -> Float8Attend | None:
    """The same kernel with its results in float8, where they are those of torch's, rounded."""
    return _our_own(vision, FLOAT8_AGREEMENT, float8=True)


@torch.inference_mode()
def _our_own(vision: Vision, limit: float, float8: bool = False) -> VisionAttention | None:
    config, weight = vision.config, vision.pos_emb
    if weight.device.type != "cuda" or weight.dtype != torch.bfloat16:
        return None
    shape = Shape(config.enc_n_heads, config.enc_dim // config.enc_n_heads, config.num_patches)
    factor = (TRIED_FACTOR,) if float8 else ()
    try:
        device = weight.device
        ours = VisionAttention(shape, device, float8=True) if float8 else VisionAttention(shape, device)
        qkv = _tried_input(vision)
        expected = attend(qkv, TRIED_CROPS, shape.num_heads)
        if float8:
            expected = round_float8(expected, 1 / TRIED_FACTOR, gelu=False)
        difference = ours(qkv, TRIED_CROPS, shape.num_heads, *factor).float() - expected.float()
        distance = float(difference.square().mean().sqrt() / expected.float().square().mean().sqrt())
    except CannotBuild as error:
        log.info("vision attention is torch's, not our own: %s", error)
        return None
    if not distance < limit:  # nor where it is not a number
        log.warning("vision attention is torch's: our own is off by %.2g of the RMS", distance)
        return None
    return ours


@torch.inference_mode()
def fastest_attention(vision: Vision, ours: Attend | None = None) -> AttentionBackend:
    """The implementation that is fastest at this encoder's shape; without CUDA, torch's own choice."""
    weight = vision.pos_emb
    if weight.device.type != "cuda" or weight.dtype not in (torch.bfloat16, torch.float16):
        return "default"
    qkv, num_heads = _tried_input(vision), vision.config.enc_n_heads
    times: dict[AttentionBackend, float] = {}
    names: tuple[AttentionBackend, ...] = ("cudnn", "flash", "efficient")
    for name in names:
        try:
            with warnings.catch_warnings(), sdpa_kernel(BACKENDS[name]):
                warnings.simplefilter("ignore")  # an implementation that cannot serve says at length why
                times[name] = _milliseconds(attend, qkv, num_heads)
        except RuntimeError:
            continue
    if ours is not None:
        times["ours"] = _milliseconds(ours, qkv, num_heads)
    return min(times, key=lambda name: times[name], default="default")


def _tried_input(vision: Vision) -> Tensor:
    config, weight = vision.config, vision.pos_emb
    shape = TRIED_CROPS * config.num_patches, 3 * config.enc_dim
    return torch.randn(shape, device=weight.device, dtype=weight.dtype)


def _milliseconds(attend: Attend, qkv: Tensor, num_heads: int) -> float:
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for trial in range(2 * TRIALS):
        if trial == TRIALS:  # the first trials make plans
            began.record()
        attend(qkv, TRIED_CROPS, num_heads)
    ended.record()
    ended.synchronize()
    return float(began.elapsed_time(ended))


@torch.inference_mode()
def deviation(vision: Vision, other: FastVision, crops: Tensor) -> float:
    """How far another encoder's features are from the plain ones: the RMS of the difference over the RMS."""
    expected = vision.encode(crops).float()
    difference = other(crops).float() - expected
    return math.sqrt(float(difference.square().sum()) / float(expected.square().sum()))
