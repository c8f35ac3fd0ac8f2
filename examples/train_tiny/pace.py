"""Where the time of a training goes: `python -m examples.train_tiny.train --world things --profile 40`."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from kestrel_tools.things.compose import MOST_LINES

from .batches import Batch
from .trainer import Trainer

UNMEASURED = 12  # steps in which the last sizes are compiled
COUNTED_S = 5.0  # in which the workers' batches are counted


def report(trainer: Trainer, stream: Iterator[Batch], steps: int) -> None:
    """Print steps a second as in training, then each part of a step with the device waited for."""
    on_cuda = trainer.device.type == "cuda"
    settle = torch.cuda.synchronize if on_cuda else (lambda: None)
    start = time.monotonic()
    for batch in islice(stream, UNMEASURED):
        trainer.step(batch, 1.0)
    settle()
    print(f"{UNMEASURED} steps to compile what was left: {time.monotonic() - start:.1f} s", flush=True)

    waited, start, taken = 0.0, time.monotonic(), []
    for _ in range(steps):
        before = time.monotonic()
        taken.append(next(stream))
        waited += time.monotonic() - before
        trainer.step(taken[-1], 1.0)
    queued = time.monotonic() - start
    settle()
    took = time.monotonic() - start
    pictures = sum(len(batch.rows.ids) for batch in taken)
    filled = sum(batch.filled for batch in taken) / steps
    print(f"{steps / took:.2f} steps/s, {pictures / took:,.0f} pictures/s, positions {filled:.1%} filled")
    print(f"ms a step: {1e3 * took / steps:.1f}; launched in {1e3 * (queued - waited) / steps:.1f}, ", end="")
    print(f"waited for workers {1e3 * waited / steps:.1f} (many batches were made ahead)")
    _workers(stream)

    spent: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for batch in taken:
        sort = _sort(batch)
        last = time.monotonic()

        def mark(part: str, sort: str = sort) -> None:
            nonlocal last
            settle()
            now = time.monotonic()
            spent[sort][part] += 1e3 * (now - last)
            last = now

        trainer.mark = mark
        trainer.step(batch, 1.0)
        spent[sort]["steps"] += 1
    for sort, parts in sorted(spent.items()):
        count = parts.pop("steps")
        told = "  ".join(f"{part} {ms / count:.1f}" for part, ms in parts.items())
        print(f"{sort:20} {count:3.0f} steps, {sum(parts.values()) / count:.1f} ms: {told}", flush=True)
    if on_cuda:
        trainer.mark = lambda part: None
        _kernels(trainer, taken[:12])
        print(f"memory at most {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB", flush=True)


def _workers(stream: Iterator[Batch], most: int = 2500) -> None:
    """What the workers make when nothing was made ahead: take all there is, then count."""
    start = time.monotonic()
    for _ in range(most):
        before = time.monotonic()
        next(stream)
        if time.monotonic() - before > 0.01 or time.monotonic() - start > 3 * COUNTED_S:
            break
    start, count = time.monotonic(), 0
    while time.monotonic() - start < COUNTED_S:
        next(stream)
        count += 1
    print(f"workers make {count / (time.monotonic() - start):.1f} batches/s", flush=True)


def _sort(batch: Batch) -> str:
    rows, cols = batch.tiling
    names = batch.scenes
    sort = (
        "shapes" if "sprites" not in names else "charts" if names["lines"].shape[1] > MOST_LINES else "things"
    )
    return f"{sort} {rows}x{cols}"


def _kernels(trainer: Trainer, batches: Sequence[Batch], most: int = 25) -> None:
    """Which programs of the device take its time, over these steps."""
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile:
        for batch in batches:
            trainer.step(batch, 1.0)
        torch.cuda.synchronize()
    spent: dict[str, list[float]] = defaultdict(list)
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            spent[event.name].append(event.device_time / 1e3 / len(batches))
    rows = sorted(spent.items(), key=lambda row: -sum(row[1]))
    busy, count = sum(sum(each) for _, each in rows), sum(len(each) for _, each in rows) / len(batches)
    print(f"device busy for {busy:.1f} ms of a step, in {count:.0f} programs")
    for name, each in rows[:most]:
        print(f"{sum(each):8.2f} ms {len(each) / len(batches):6.1f} times  {name[:100]}", flush=True)
