"""Which tiles make the vision encoder's own attention fastest on this GPU, and whether they compute it right.

For those who work on `vision_attention.cu`: `python tools/vision_attention_tiles.py`, which needs a Hopper
GPU and nvcc. Every choice of tiles is compiled, held against float64 and float32 attention of fresh numbers,
and timed beside torch's through cuDNN. A kernel that hangs or breaks the device's context ends its process
alone. Then whole encoders are measured, with cuDNN's attention and with the best tiles.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from threading import Timer
from time import perf_counter, sleep
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from kestrel_core.moondream.checkpoint.weights import random_weights
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.moondream.fast_vision import Attend, FastVision, attend, attention_by, deviation
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.cubins import CannotBuild, build
from kestrel_core.moondream.ops.vision_attention import NAME, Shape, Tiles, VisionAttention, source
from stages import Case, Place, Work, distance, floor_ms

CONFIG = MOONDREAM2.vision
SHAPE = Shape(CONFIG.enc_n_heads, CONFIG.enc_dim // CONFIG.enc_n_heads, CONFIG.num_patches)
CHECKED_CROPS = (1, 2, 9, 36, 56)
TIMED_CROPS = (9, 36, 56)
ENCODED_CROPS = (9, 37, 56)
CLOSE = 5e-3  # RMS of the difference over the RMS: weights and results are rounded to bfloat16
PATIENCE_S = 3.0
SECONDS = 0.1
WORK_S = 45.0
ENCODE_S = 30.0
HANGS = 3  # an exit code
FLOAT8_SCALE = 16.0

CHOICES = (
    Tiles(),
    Tiles(chained=False),
    Tiles(turns=False),
    Tiles(stages=2),
    Tiles(keys=112),
    Tiles(keys=96, stages=4),
    Tiles(consumers=2),
    Tiles(consumers=2, keys=160, stages=2),
)

Report = Callable[[dict[str, Any]], None]


def label(tiles: Tiles) -> str:
    return " ".join(f"{name}={int(value)}" for name, value in asdict(tiles).items())


def flops(num_crops: int) -> float:
    """Of two products, of real columns."""
    return 4.0 * num_crops * SHAPE.num_heads * SHAPE.num_patches**2 * SHAPE.head_dim


def numbers(num_crops: int, seed: int) -> Tensor:
    """Packed q, k and v, of another size in every crop: softmax is flat in some and sharp in others."""
    generator = torch.Generator("cuda").manual_seed(seed)
    shape = num_crops, SHAPE.num_patches, 3 * SHAPE.dim
    sizes = torch.linspace(0.5, 2.5, num_crops, device="cuda")[:, None, None]
    return (torch.randn(shape, device="cuda", generator=generator) * sizes).bfloat16().flatten(0, 1)


def expected_of(qkv: Tensor, num_crops: int) -> Tensor:
    wide = qkv.double() if num_crops <= 2 else qkv.float()
    with sdpa_kernel(SDPBackend.MATH):
        return attend(wide, num_crops, SHAPE.num_heads)


def poisoned(call: Callable[[], Tensor], size: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """The result, in memory that held no numbers: what is not written shows."""
    poison = torch.full(size, float("nan"), device="cuda").to(dtype)
    pointer = poison.data_ptr()
    del poison
    made = call()
    if made.data_ptr() != pointer:
        print("the result came to lie elsewhere, so unwritten elements might not show", file=sys.stderr)
    return made


def wait_or_leave(report: Report, index: int) -> None:
    done = torch.cuda.Event()
    done.record()
    end = perf_counter() + PATIENCE_S
    while not done.query():
        if perf_counter() > end:
            report({"index": index, "failure": "hangs"})
            os._exit(HANGS)
        sleep(0.001)


def timed(call: Attend, inputs: Mapping[int, Tensor]) -> dict[int, float]:
    """Milliseconds, by the number of crops."""
    place, times = Place(torch.device("cuda"), torch.bfloat16, SECONDS), {}
    for count in TIMED_CROPS:
        floor = floor_ms(2.0 * 4 * len(inputs[count]) * SHAPE.dim, flops(count))
        way: dict[str, Work] = {"": partial(call, inputs[count], count, SHAPE.num_heads)}
        [one] = place.measured(Case("vision attention", count, floor, way))
        times[count] = one.ms
    return times


@torch.inference_mode()
def work(choices: dict[int, Tiles], report: Report) -> None:
    """Time torch's own, and check and time the choices."""
    device = torch.device("cuda")
    inputs = {count: numbers(count, seed=count) for count in CHECKED_CROPS}
    expected = {count: expected_of(qkv, count) for count, qkv in inputs.items()}

    with attention_by("cudnn"):
        report({"index": -1, "ms": timed(attend, inputs)})
    for index, tiles in choices.items():
        try:
            ours = VisionAttention(SHAPE, device, tiles)
        except CannotBuild as error:
            report({"index": index, "failure": str(error)[:300]})
            continue
        worst = 0.0
        for count, qkv in inputs.items():
            size = len(qkv), SHAPE.dim
            made = poisoned(partial(ours, qkv, count, SHAPE.num_heads), size, torch.bfloat16)
            wait_or_leave(report, index)
            off = distance(made, expected[count])
            if not off < CLOSE:
                report({"index": index, "failure": f"WRONG at {count} crops: {where(made, expected[count])}"})
                break
            worst = max(worst, off)
        else:
            report({"index": index, "distance": worst, "ms": timed(ours, inputs)})


@torch.inference_mode()
def check_float8(tiles: Tiles) -> float:
    """How far results in e4m3 are from the rounded ones."""
    ours = VisionAttention(SHAPE, torch.device("cuda"), tiles, float8=True)
    qkv = numbers(9, seed=1)
    rounded = (expected_of(qkv, 9) * FLOAT8_SCALE).clamp(-448, 448).to(torch.float8_e4m3fn)
    return distance(ours(qkv, 9, SHAPE.num_heads, FLOAT8_SCALE).float(), rounded.float())


def where(made: Tensor, expected: Tensor) -> str:
    """Which part of a wrong result is wrong: columns of a head, and rows of the first crop."""
    heads = [x.view(-1, SHAPE.num_heads, SHAPE.head_dim) for x in (made, expected)]
    columns = [f"{distance(*(x[..., part] for x in heads)):.2g}" for part in (slice(64), slice(64, None))]
    pieces = zip(*(x[: SHAPE.num_patches].split(64) for x in (made, expected)), strict=True)
    rows = [f"{distance(*piece):.2g}" for piece in pieces]
    share = f"{float(made.isfinite().float().mean()):.4f} are numbers"
    return f"{share}, columns to 64 and above off by {' '.join(columns)}, rows by 64: {' '.join(rows)}"


@torch.inference_mode()
def encode(tiles: Tiles) -> Iterator[str]:
    """Whole encoders with cuDNN's attention and with ours."""
    device = torch.device("cuda")
    place = Place(device, torch.bfloat16, 4 * SECONDS)
    with torch.device("meta"):
        model = Moondream(replace(MOONDREAM2, text=replace(MOONDREAM2.text, n_layers=0)))
    random_weights(model, device, torch.bfloat16, seed=0)
    fused = choose_fused(device)
    encoders = {name: FastVision(model.vision, fused, attention="cudnn") for name in ("cuDNN", "ours")}
    encoders["ours"]._attend = VisionAttention(SHAPE, device, tiles)
    crops = torch.randint(0, 256, (max(ENCODED_CROPS), 378, 378, 3), dtype=torch.uint8, device=device)
    for name, encoder in encoders.items():
        off = deviation(model.vision, encoder, crops[:9])
        yield f"{name}: features are off the plain encoder's by {off:.4f} of the RMS"
    for count in ENCODED_CROPS:
        ways: dict[str, Work] = {name: partial(encoder, crops[:count]) for name, encoder in encoders.items()}
        for one in place.measured(Case("vision encoder", count, 0.0, ways)):
            speed = f"{one.ms:8.3f} ms, {1e3 * count / one.ms:6.0f} crops/s"
            yield f"vision encoder {count:3} crops, {one.variant:6} {speed}"


def supervise(choices: Sequence[Tiles], seconds: float = WORK_S) -> dict[int, dict[str, Any]]:
    """Work in a process of its own, and in another one with the rest where that breaks."""
    found: dict[int, dict[str, Any]] = {}
    left = dict(enumerate(choices))
    end = perf_counter() + seconds
    while left and perf_counter() < end:
        given = json.dumps({index: asdict(tiles) for index, tiles in left.items()})
        command = [sys.executable, __file__, "--work", given]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            late = Timer(end - perf_counter(), worker.kill)
            late.start()
            for line in worker.stdout:
                told = json.loads(line)
                found[told["index"]] = told
                left.pop(told["index"], None)
            late.cancel()
        if not found:
            break  # it does not even start
        if left and worker.returncode not in (0, HANGS):
            index = next(iter(left))
            found[index] = {"index": index, "failure": f"ended its process with {worker.returncode}"}
            left.pop(index)
    return found


def prepare(choices: Sequence[Tiles]) -> float:
    """Compile all of them, as many at a time as there are cores."""
    began = perf_counter()

    def one(tiles: Tiles) -> None:
        try:
            build(source(SHAPE, tiles), NAME)
        except CannotBuild as error:
            print(f"{label(tiles)}: {error}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, choices))
    return perf_counter() - began


def fastest(choices: Sequence[Tiles], found: dict[int, dict[str, Any]]) -> Tiles | None:
    """At as many crops as a full step has."""
    right = {index: told["ms"]["56"] for index, told in found.items() if index >= 0 and "ms" in told}
    return choices[min(right, key=lambda index: right[index])] if right else None


def speeds(times: Mapping[Any, float]) -> str:
    return "  ".join(f"{flops(int(count)) / ms / 1e9:4.0f} ({ms:.3f})" for count, ms in times.items())


def print_table(choices: Sequence[Tiles], found: dict[int, dict[str, Any]]) -> None:
    def rank(index: int) -> float:
        return float(found.get(index, {}).get("ms", {}).get("56", 1e9))

    print(f"TFLOP/s (ms) at {TIMED_CROPS} crops, and the RMS of errors over the RMS of results")
    print(f"{'cuDNN':50} {speeds(found.get(-1, {}).get('ms', {}))}")
    for index in sorted(range(len(choices)), key=rank):
        told = found.get(index, {"failure": "not reached"})
        end = told.get("failure") or f"{speeds(told['ms'])}  {told['distance']:.1e}"
        print(f"{label(choices[index]):50} {end}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--once", metavar="TILES", help="launch once at 56 crops, for a profiler")
    parser.add_argument("--encode", metavar="TILES", help="measure encoders alone, with tiles in JSON")
    asked = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO)
    if asked.work is not None:
        numbered = {int(index): Tiles(**tiles) for index, tiles in json.loads(asked.work).items()}
        work(numbered, lambda told: print(json.dumps(told), flush=True))
    elif asked.once is not None:
        ours = VisionAttention(SHAPE, torch.device("cuda"), Tiles(**json.loads(asked.once)))
        ours(numbers(56, seed=0), 56, SHAPE.num_heads)
        torch.cuda.synchronize()
    elif asked.encode is not None:
        tiles = Tiles(**json.loads(asked.encode))
        print(f"float8 results are off by {check_float8(tiles):.4f} of the RMS", flush=True)
        for line in encode(tiles):
            print(line, flush=True)
    else:
        print(f"compiled in {prepare(CHOICES):.1f} s", flush=True)
        found = supervise(CHOICES)
        print_table(CHOICES, found)
        sys.stdout.flush()
        if best := fastest(CHOICES, found):
            given = json.dumps(asdict(best))
            print(f"best: {given}", flush=True)
            subprocess.run([sys.executable, __file__, "--encode", given], timeout=ENCODE_S, check=False)


if __name__ == "__main__":
    main()
