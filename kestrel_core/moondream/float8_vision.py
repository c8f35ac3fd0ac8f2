"""The vision encoder in float8, with scales that were measured beforehand.

Norms write float8, and so does our own attention; what torch's gives takes a pass. GELU and its rounding are
part of a product where cuBLASLt can be called. `Vision.encode` says what is computed, and
`fast_vision.deviation` how far off.
"""

from torch import Tensor, nn

from kestrel_core.moondream.fast_vision import (
    Attend,
    AttentionBackend,
    FastVision,
    Float8Attend,
    our_float8_attention,
)
from kestrel_core.moondream.ops.float8_products import FixedScale, Matrix8, Products, pack_float8, release
from kestrel_core.moondream.ops.protocol import Fused, Norm
from kestrel_core.moondream.scales import InputScales
from kestrel_core.moondream.vision import Vision, VisionBlock


def float8_vision(
    vision: Vision,
    fused: Fused,
    products: Products,
    scales: InputScales,
    attention: AttentionBackend = "auto",
    free: bool = False,
    sum_in_products: bool = True,
) -> FastVision:
    """With `free` each block's own matrices are given up as soon as they are packed. With `sum_in_products`
    residuals are added where products write, so that norms read one tensor and write one; for cuBLASLt alone,
    as torch's call takes a pass to add."""
    summing = sum_in_products and products.name == "cublas"

    blocks: list[FixedScaleBlock] = []

    def make(at: int, block: VisionBlock) -> FixedScaleBlock:
        name = f"vision.blocks.{at}"
        blocks.append(FixedScaleBlock(block, fused, products, scales, name, free, summing))
        return blocks[-1]

    made = FastVision(vision, fused, attention=attention, make_block=make)
    if made.attention == "ours":
        float8_attend = our_float8_attention(vision)
        for block in blocks:
            block.float8_attend = float8_attend
    return made


class FixedScaleBlock:
    """A block whose result the next block adds, as `FastVisionBlock` is."""

    float8_attend: Float8Attend | None = None  # in place of the attention that it is handed, and a pass

    def __init__(
        self,
        block: VisionBlock,
        fused: Fused,
        products: Products,
        scales: InputScales,
        name: str,
        free: bool,
        summing: bool,
    ) -> None:
        self._summing = summing
        self._fused = fused
        self._products = products
        self._norms = Norm.of(block.ln1), Norm.of(block.ln2)
        self._num_heads = block.attn.num_heads

        def packed(part: str, layer: nn.Linear) -> tuple[FixedScale, Matrix8]:
            inputs = FixedScale.of(scales(f"{name}.{part}"), layer.weight.device)
            matrix = pack_float8(layer.weight, layer.bias, inputs)
            if free:
                release(layer)
            return inputs, matrix

        self._h1, self._qkv = packed("attn.qkv", block.attn.qkv)
        self._mixed, self._proj = packed("attn.proj", block.attn.proj)
        self._h2, self._fc1 = packed("mlp.fc1", block.mlp.fc1)
        self._inner, self._fc2 = packed("mlp.fc2", block.mlp.fc2)

    def __call__(
        self, x: Tensor, y: Tensor | None, num_crops: int, attend: Attend
    ) -> tuple[Tensor, Tensor | None]:
        fused, products = self._fused, self._products
        x, _, h = fused.add_norm_fixed(x, y, None, self._norms[0], self._h1.value, keep=False)
        qkv = products.linear(h, self._qkv)
        if self.float8_attend is not None:
            mixed = self.float8_attend(qkv, num_crops, self._num_heads, 1 / self._mixed.value)
        else:
            mixed = attend(qkv, num_crops, self._num_heads)
            mixed = fused.round_float8(mixed, self._mixed.value, gelu=False)
        x, y = self._sum(x, mixed, self._proj)
        x, _, h = fused.add_norm_fixed(x, y, None, self._norms[1], self._h2.value, keep=False)
        return self._sum(x, products.gelu_linear(h, self._fc1, self._inner), self._fc2)

    def _sum(self, x: Tensor, inputs: Tensor, matrix: Matrix8) -> tuple[Tensor, Tensor | None]:
        """x and what is to be added to it, or the sum and nothing."""
        if self._summing:
            return self._products.linear(inputs, matrix, add=x), None
        return x, self._products.linear(inputs, matrix)
