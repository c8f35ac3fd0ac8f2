"""The kernel for heads of 72, run on a CPU by an emulation of Hopper's instructions."""

import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from kestrel_core.moondream.fast_vision import attend
from kestrel_core.moondream.ops import vision_attention
from kestrel_core.moondream.ops.cubins import SWIZZLES, CannotBuild
from kestrel_core.moondream.ops.vision_attention import (
    FOLDER,
    NAME,
    Shape,
    Tiles,
    VisionAttention,
    boxes,
    check,
    macros,
    num_units,
    source,
)

HERE = Path(__file__).parent
REAL = Shape(num_heads=16, head_dim=72, num_patches=729)


def emulate(tmp_path: Path, shape: Shape, tiles: Tiles, qkv: Tensor, num_crops: int, blocks: int) -> Tensor:
    program, numbers, given, made = (tmp_path / name for name in ("program", "maps", "qkv", "made"))
    defined = [f"-D{name}={value}" for name, value in macros(shape, tiles).items()]
    options = ["-O2", "-std=c++17", "-w", *defined, f"-I{FOLDER}", f"-I{HERE}"]
    subprocess.run(["g++", *options, "-o", program, HERE / f"run_{NAME}.cpp"], check=True)
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
        Tiles(keys=96, stages=4, chained=False),
        Tiles(consumers=2, keys=160, stages=2),
        Tiles(turns=False, chained=False),
    ],
    ids=str,
)
def test_the_kernel_computes_attention(tmp_path: Path, tiles: Tiles) -> None:
    shape = Shape(num_heads=2 if tiles == Tiles() else 1, head_dim=72, num_patches=2 * tiles.keys + 41)
    qkv = torch.randn(2, shape.num_patches, 3 * shape.dim, generator=torch.Generator().manual_seed(0))
    qkv = (qkv * torch.tensor([1.0, 3.0])[:, None, None]).bfloat16().flatten(0, 1)  # flat and sharp weights
    made = emulate(tmp_path, shape, tiles, qkv, num_crops=2, blocks=3).double()
    expected = attend(qkv.double(), 2, shape.num_heads)
    assert made.isfinite().all()
    for ours, right in zip(made.chunk(2), expected.chunk(2), strict=True):
        assert (ours - right).square().mean().sqrt() < 5e-3 * right.square().mean().sqrt()
        assert (ours - right).abs().max() < 1e-2 * right.abs().max()


def test_only_hopper_and_heads_of_some_64_columns_are_served() -> None:
    check(REAL, (9, 0))
    for shape, capability in [
        (REAL, (8, 9)),
        (REAL, (10, 0)),
        (replace(REAL, head_dim=64), (9, 0)),
        (replace(REAL, head_dim=76), (9, 0)),
        (replace(REAL, num_patches=300), (9, 0)),
    ]:
        with pytest.raises(CannotBuild):
            check(shape, capability)


def test_other_choices_are_other_sources() -> None:
    made = {
        source(REAL, Tiles()),
        source(REAL, Tiles(keys=96)),
        source(REAL, Tiles(), float8=True),
        source(replace(REAL, num_heads=3), Tiles()),
    }
    assert len(made) == 4


def test_copies_are_cut_out_of_the_packed_product() -> None:
    for box in boxes(REAL, Tiles(), num_crops=5):
        assert box.sizes == (72, 48, 729, 5)
        assert box.strides == (144, 6912, 729 * 6912)
        assert 2 * box.box[0] == box.swizzle and box.box[1] == box.box[3] == 1


class Recorder:
    """Stands in for the driver."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[object, ...]]] = []

    def call(self, name: str, *arguments: object) -> None:
        self.calls.append((name, arguments))

    def named(self, name: str) -> list[tuple[object, ...]]:
        return [arguments for called, arguments in self.calls if called == name]


def test_launches_fill_the_device_and_maps_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, stream = Recorder(), SimpleNamespace(cuda_stream=7, synchronize=lambda: None)
    monkeypatch.setattr(vision_attention, "Driver", lambda: driver)
    monkeypatch.setattr(vision_attention, "build", lambda source, name: b"cubin")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=132)
    )
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    ours = VisionAttention(REAL, torch.device("cpu"))
    one, three = (torch.zeros(count * 729, 3 * 1152, dtype=torch.bfloat16) for count in (1, 3))
    for qkv, num_crops in ((one, 1), (three, 3), (one, 1), (three, 3)):
        made = ours(qkv, num_crops, 16)
        assert made.shape == (len(qkv), 1152) and made.dtype == torch.bfloat16
    blocks = [arguments[1].value for arguments in driver.named("cuLaunchKernel")]
    assert blocks == [64, 132, 64, 132]
    assert len(driver.named("cuTensorMapEncodeTiled")) == 2 * 5
    with pytest.raises(AssertionError):
        ours(one.float(), 1, 16)
