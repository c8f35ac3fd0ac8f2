"""The kernel of heads of 72, run on a CPU by an emulation of Hopper's instructions, against plain attention."""

import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kestrel_core.moondream.fast_vision import attend
from kestrel_core.moondream.ops.cubins import SWIZZLES
from kestrel_core.moondream.ops.vision_attention import FOLDER, NAME, Shape, Tiles, boxes, macros, num_units

HERE = Path(__file__).parent
SHAPE = Shape(num_heads=2, head_dim=72, num_patches=421)


def emulate(tmp_path: Path, shape: Shape, tiles: Tiles, qkv: Tensor, num_crops: int, blocks: int) -> Tensor:
    program, numbers, given, made = (tmp_path / name for name in ("program", "maps", "qkv", "made"))
    defined = [f"-D{name}={value}" for name, value in macros(shape, tiles).items()]
    subprocess.run(
        ["g++", "-O2", "-std=c++17", "-w", *defined, f"-I{FOLDER}", f"-I{HERE}", "-o", program]
        + [HERE / f"run_{NAME}.cpp"],
        check=True,
    )
    numbers.write_bytes(
        b"".join(
            struct.pack("12Q", *box.sizes, *box.strides, *box.box, SWIZZLES[box.swizzle])
            for box in boxes(shape, tiles, num_crops)
        )
    )
    given.write_bytes(qkv.view(torch.int16).numpy().tobytes())
    units = num_units(shape, tiles, num_crops)
    size = len(qkv) * shape.dim
    subprocess.run([program, numbers, given, made, str(size), str(units), str(blocks)], check=True)
    result = torch.frombuffer(bytearray(made.read_bytes()), dtype=torch.bfloat16)
    return result.view(len(qkv), shape.dim)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    "tiles",
    [
        Tiles(),
        Tiles(keys=96, queries_held=True, overlap=2, value_span=32, value_width=80),
        Tiles(consumers=2, keys=160, stages=2, queries_held=True, overlap=2),
        Tiles(queries_held=True, overlap=0, turns=False, value_span=64),
    ],
    ids=str,
)
def test_the_kernel_computes_attention(tmp_path: Path, tiles: Tiles) -> None:
    qkv = torch.randn(2 * SHAPE.num_patches, 3 * SHAPE.dim, generator=torch.Generator().manual_seed(0))
    qkv = (1.5 * qkv).bfloat16()
    made = emulate(tmp_path, SHAPE, tiles, qkv, num_crops=2, blocks=3).double()
    expected = attend(qkv.double(), 2, SHAPE.num_heads)
    assert made.isfinite().all()
    assert (made - expected).square().mean().sqrt() < 5e-3 * expected.square().mean().sqrt()
    assert (made - expected).abs().max() < 0.03
