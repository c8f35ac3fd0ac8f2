"""Attention of the vision encoder on Hopper, for heads that torch's implementations pad to 128 columns.

The kernel is vision_attention.cu. Here it is written out for an encoder's shape and a choice of tiles, and
launched. Torch's implementations serve wherever this one cannot be built.
"""

import ctypes
import math
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from kestrel_core.moondream.ops.cubins import Box, CannotBuild, Driver, Kernel, TensorMaps, build

FOLDER = Path(__file__).parent
NAME = "vision_attention"
MAIN_COLUMNS, TAIL_COLUMNS = 64, 16  # of a head: the parts of q and k that are copied
SHARED_BYTES = 232448  # all that a block can have: there is one at a time on a multiprocessor
MAX_MAPS = 256  # that are kept: graphs have a few addresses, and steps without graphs come back to theirs


@dataclass(frozen=True)
class Tiles:
    """What vision_attention.cu can be compiled for; its first lines say what they mean."""

    consumers: int = 3
    keys: int = 128
    stages: int = 3
    turns: bool = True
    chained: bool = True


@dataclass(frozen=True)
class Shape:
    num_heads: int
    head_dim: int
    num_patches: int

    @property
    def dim(self) -> int:
        return self.num_heads * self.head_dim


def source(shape: Shape, tiles: Tiles, float8: bool = False) -> str:
    """All that is compiled."""
    return "\n".join(
        (
            *(f"#define {name} {value}" for name, value in macros(shape, tiles, float8).items()),
            (FOLDER / "hopper.cuh").read_text(),
            *products(shape, tiles),
            (FOLDER / f"{NAME}.cu").read_text(),
        )
    )


def macros(shape: Shape, tiles: Tiles, float8: bool = False) -> dict[str, str]:
    numbers = {
        "HEADS": shape.num_heads,
        "PATCHES": shape.num_patches,
        "WIDTH": shape.head_dim,
        "CONSUMERS": tiles.consumers,
        "KEYS": tiles.keys,
        "STAGES": tiles.stages,
        "TURNS": int(tiles.turns),
        "CHAINED": int(tiles.chained),
        "FLOAT8": int(float8),
        "SHARED_BYTES": SHARED_BYTES,
    }
    return {name: str(value) for name, value in numbers.items()} | {
        "SCALE": f"{1 / math.sqrt(shape.head_dim):.9g}f"
    }


def products(shape: Shape, tiles: Tiles) -> list[str]:
    """Functions for one instruction each: scores of a whole and of the last tile, and weights times v."""
    last = -(-(shape.num_patches % tiles.keys) // 16) * 16
    return [*(_product(n) for n in sorted({tiles.keys, last})), _product(shape.head_dim, across=True)]


def _product(columns: int, across: bool = False) -> str:
    """d (+)= a b, 64 rows by `columns`, 16 deep. b lies in shared memory, and so does a.

    `across`, a is in registers, and rows of b are those of the memory; else those of its transpose."""
    count = columns // 2  # registers of d in every thread
    d = ", ".join(f"%{i}" for i in range(count))
    if across:
        name, parameters = "product_across", "u32 a0, u32 a1, u32 a2, u32 a3"
        inputs = [f'"r"(a{i})' for i in range(4)]
        a, ways = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}", "1"
    else:
        name, parameters, inputs = "product", "u64 a", ['"l"(a)']
        a, ways = f"%{count}", "0, 0"
    b = count + len(inputs)
    inputs += ['"l"(b)', '"r"(int(add))']
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return (
        f"__device__ __forceinline__ void {name}(float (&d)[{count}], {parameters}, u64 b, bool add) {{\n"
        f'  asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{b + 1}, 0; "\n'
        f'    "wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{d}}}, "\n'
        f'    "{a}, %{b}, p, 1, 1, {ways}; }}"\n'
        f"    : {outputs} : {', '.join(inputs)});\n}}\n"
    )


def boxes(shape: Shape, tiles: Tiles, num_crops: int) -> list[Box]:
    """How q, q's tail, k, k's tail and v are cut out of the packed product of all three."""
    row = 3 * shape.dim * 2
    sizes = (shape.head_dim, 3 * shape.num_heads, shape.num_patches, num_crops)
    strides = (shape.head_dim * 2, row, shape.num_patches * row)

    def box(columns: int, rows: int) -> Box:
        return Box(sizes, strides, (columns, 1, rows, 1), 2 * columns)

    queries = 64 * tiles.consumers
    return [
        box(MAIN_COLUMNS, queries),
        box(TAIL_COLUMNS, queries),
        box(MAIN_COLUMNS, tiles.keys),
        box(TAIL_COLUMNS, tiles.keys),
        box(MAIN_COLUMNS, tiles.keys),
    ]


def num_units(shape: Shape, tiles: Tiles, num_crops: int) -> int:
    """A unit is what a block does at a time: some queries of one head of one crop."""
    return num_crops * shape.num_heads * -(-shape.num_patches // (64 * tiles.consumers))


class VisionAttention:
    """`fast_vision.attend` for one shape. With float8, results are multiplied by `scale` and are e4m3."""

    def __init__(
        self, shape: Shape, device: torch.device, tiles: Tiles | None = None, float8: bool = False
    ) -> None:
        check(shape, torch.cuda.get_device_capability(device))
        self._shape = shape
        self._tiles = tiles or Tiles()
        self._dtype = torch.float8_e4m3fn if float8 else torch.bfloat16
        self._blocks = torch.cuda.get_device_properties(device).multi_processor_count
        torch.cuda.current_stream(device).synchronize()  # makes the context, if nothing has yet
        self._driver = Driver()
        cubin = build(source(shape, self._tiles, float8), NAME)
        self._kernel = Kernel(self._driver, cubin, NAME, SHARED_BYTES)
        self._maps: OrderedDict[tuple[int, int], TensorMaps] = OrderedDict()

    def __call__(self, qkv: Tensor, num_crops: int, num_heads: int, scale: float = 1.0) -> Tensor:
        shape, rows = self._shape, num_crops * self._shape.num_patches
        assert num_heads == shape.num_heads and qkv.shape == (rows, 3 * shape.dim)
        assert qkv.dtype == torch.bfloat16 and qkv.is_contiguous()
        out = torch.empty((rows, shape.dim), dtype=self._dtype, device=qkv.device)
        units = num_units(shape, self._tiles, num_crops)
        self._kernel.launch(
            min(units, self._blocks),
            128 * (self._tiles.consumers + 1),
            torch.cuda.current_stream(qkv.device).cuda_stream,
            self._maps_of(qkv, num_crops).addresses,
            ctypes.c_void_p(out.data_ptr()),
            ctypes.c_int(units),
            ctypes.c_float(scale),
        )
        return out

    def _maps_of(self, qkv: Tensor, num_crops: int) -> TensorMaps:
        key = qkv.data_ptr(), num_crops
        if key not in self._maps:
            self._maps[key] = TensorMaps(self._driver, key[0], boxes(self._shape, self._tiles, num_crops))
            if len(self._maps) > MAX_MAPS:
                self._maps.popitem(last=False)
        return self._maps[key]


def check(shape: Shape, capability: tuple[int, int]) -> None:
    if capability != (9, 0):
        raise CannotBuild(f"it is written for compute capability 9.0, and this is {capability}")
    if not 64 < shape.head_dim <= 80 or shape.head_dim % 8 or shape.num_patches < 400:
        raise CannotBuild(f"it is written for heads of 72 and crops of 729 patches, not {shape}")
