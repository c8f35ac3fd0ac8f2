"""Training batches: many scenes, and as many tasks behind each image prefix as fit its row.

Worker processes think up scenes and tasks; step `n` is the same batch however many of them there are. What
they send through their pipes is small: pictures are drawn where the model is.
"""

import gc
import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from queue import Queue
from random import Random
from threading import Thread

import numpy as np
from numpy.typing import NDArray

from kestrel_core.loop.step import Coord, Size
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_tools.scenes.facts import facts, spatial_fact, target
from kestrel_tools.scenes.render import Arrays, scene_arrays
from kestrel_tools.scenes.world import MAX_OBJECTS, Scene, draw_scene
from kestrel_tools.things.language.rewording import put_otherwise
from kestrel_tools.things.language.talk import talk

from .teacher import Task, Teacher

# Tasks lie one after another behind each image. With its 197 positions they make 512, blocks of 128 in which
# attention leaves out what is not seen.
LENGTH = 315
LEAST_TASK = 10  # positions that are worth looking for a task that fits them
TALKS = 8  # every so many pictures have a task beside theirs that sees no picture
TALK_LENGTH = 64
# How much a kind of task counts, by what its name begins with; others 1. Reading is the slowest to be learnt,
# of what is listed and counted all is wrong with one thing overlooked, and places are seldom asked for.
COUNTED = {
    **dict.fromkeys(("beside", "between", "nearest", "all beside", "text colour"), 3.0),
    "count": 2.5,
    **dict.fromkeys(("read", "chart ", "relation", "reason count", "list"), 2.0),
    **dict.fromkeys(("caption", "describe"), 1.5),
}
REPLACED = 10**9  # steps that no training reaches: where the batches come from that replace others
AHEAD = 2000  # batches of 2 MB that may wait: what is made while the trainer compiles

# Share of batches with each tiling, and its aspect ratios: as `choose_tiling` does it for common sizes.
TILINGS: dict[tuple[int, int], tuple[float, float, float]] = {
    (1, 1): (0.33, 0.33, 3.0),
    (2, 2): (0.20, 0.6, 1.65),
    (1, 2): (0.20, 1.0, 2.8),
    (2, 1): (0.14, 0.36, 1.0),
    (1, 3): (0.05, 1.85, 4.0),
    (3, 1): (0.04, 0.25, 0.54),
    (1, 4): (0.02, 3.2, 5.0),
    (4, 1): (0.02, 0.2, 0.31),
}

# Easy batches (one tile, few shapes) become rare over these steps: the model first learns places from them.
EASY_STEPS = 1500
EASY_OBJECTS = 3


@dataclass(frozen=True, slots=True)
class Rows:
    """Tasks laid into rows: what is fed, and what is read where. Indices are into rows * length, flat."""

    ids: NDArray[np.int32]  # [rows, length]; 0 where a coordinate or a size is fed, and after the end
    begin: NDArray[np.int32]  # [rows, length], where the task of each position begins in its row
    alone: NDArray[np.bool_]  # [rows, length], whether that task sees no picture
    coord_at: NDArray[np.int32]
    coord_in: NDArray[np.float32]
    size_at: NDArray[np.int32]
    size_in: NDArray[np.float32]  # [n, 2]
    token_from: NDArray[np.int32]
    tokens: NDArray[np.int32]
    token_weights: NDArray[np.float32]
    coord_from: NDArray[np.int32]
    coords: NDArray[np.int32]  # bins
    size_from: NDArray[np.int32]
    sizes: NDArray[np.int32]  # [n, 2], bins


@dataclass(frozen=True, slots=True)
class Batch:
    tiling: tuple[int, int]
    zoom: float  # size of the drawn picture relative to the encoder's: below 1, a small picture is enlarged
    scenes: Arrays
    rows: Rows  # behind the image prefix
    filled: float  # share of the rows' positions that a task takes


def make_batch(step: int, seed: int, size: int, config: MoondreamConfig, teacher: Teacher) -> Batch:
    rng = Random(f"{seed} {step}")
    easy = rng.random() > step / EASY_STEPS
    tiling = (1, 1) if easy else draw_tiling(rng)
    zoom = rng.choices((1.0, 0.7, 1.25), (70, 24, 6))[0]
    scenes = draw_scenes(rng, tiling, zoom, size, config, EASY_OBJECTS if easy else MAX_OBJECTS)
    rows = []
    for index, scene in enumerate(scenes):
        alone = [short_talk(rng, teacher, False)] if index % TALKS == 0 else []
        rows.append(fill(rng, partial(shape_task, scene=scene, teacher=teacher), ORDER, alone))
    return Batch(tiling, zoom, scene_arrays(scenes), lay(rows, LENGTH, config), filled(rows))


def fill(
    rng: Random, draw: Callable[[Random, str], Task | None], order: Sequence[str], first: Sequence[Task]
) -> list[Task]:
    """Tasks for one picture, in that order of their sorts, then short ones until there is no more room."""
    tasks, room = list(first), LENGTH - sum(task.length for task in first)
    for sort in order:
        task = draw(rng, sort)
        if task is not None and task.length <= room:
            tasks.append(task)
            room -= task.length
    misses = 0
    while room >= LEAST_TASK and misses < 4:
        task = draw(rng, "short")
        if task is None or task.length > room:
            misses += 1
            continue
        tasks.append(task)
        room -= task.length
    return tasks


def filled(rows: Sequence[Sequence[Task]]) -> float:
    return sum(task.length for tasks in rows for task in tasks) / (len(rows) * LENGTH)


def draw_tiling(rng: Random) -> tuple[int, int]:
    [tiling] = rng.choices(tuple(TILINGS), [share for share, _, _ in TILINGS.values()])
    return tiling


def draw_scenes(
    rng: Random, tiling: tuple[int, int], zoom: float, count: int, config: MoondreamConfig, most: int
) -> list[Scene]:
    """`zoom` below 1: a picture of few pixels, which is enlarged."""
    pixels = seen_pixels(tiling, zoom, config)
    return [draw_scene(rng, draw_aspect(rng, tiling), pixels, most) for _ in range(count)]


def draw_aspect(rng: Random, tiling: tuple[int, int]) -> float:
    _, low, high = TILINGS[tiling]
    return float(low * (high / low) ** rng.random())


def seen_pixels(tiling: tuple[int, int], zoom: float, config: MoondreamConfig) -> tuple[int, int]:
    """Height and width of what there is to see of a picture."""
    vision = config.vision
    height, width = (int(min(1.0, zoom) * (n * vision.window_px + 2 * vision.margin_px)) for n in tiling)
    return height, width


# Questions; lists and reasoning; captions and outlines. A row has room for these, and some short ones more.
ORDER = ("long", "short", "short", "middle", "short", "long", "short", "short", "middle", "short")


def shape_task(rng: Random, sort: str, scene: Scene, teacher: Teacher) -> Task | None:
    return {"short": _short_task, "middle": _middle_task, "long": _long_task}[sort](rng, scene, teacher)


def _short_task(rng: Random, scene: Scene, teacher: Teacher) -> Task | None:
    kind = rng.random()
    if kind < 0.7:
        return teacher.query(rng, facts(rng, scene))
    if kind < 0.8:
        spatial = spatial_fact(rng, scene)
        return teacher.query(rng, spatial[0], refs=spatial[1]) if spatial else None
    if kind < 0.89:
        return teacher.point(*target(rng, scene))
    if kind < 0.99:
        return teacher.detect(*target(rng, scene))
    return short_talk(rng, teacher, True)


def _middle_task(rng: Random, scene: Scene, teacher: Teacher) -> Task | None:
    kind = rng.random()
    if kind < 0.23:
        return teacher.detect(*target(rng, scene))
    if kind < 0.38:
        return teacher.point(*target(rng, scene))
    if kind < 0.66:
        return teacher.query(rng, facts(rng, scene), reasoning=True)
    if kind < 0.9:
        return teacher.caption(scene, "short")
    return teacher.query(rng, facts(rng, scene))


def _long_task(rng: Random, scene: Scene, teacher: Teacher) -> Task | None:
    kind = rng.random()
    if kind < 0.35:
        return teacher.caption(scene, "normal")
    if kind < 0.55:
        return teacher.caption(scene, "long")
    if kind < 0.9:
        return teacher.segment(*target(rng, scene), scene.unit)
    if kind < 0.95:
        return teacher.query(rng, facts(rng, scene), reasoning=True)
    return teacher.detect("all shapes" if rng.random() < 0.5 else "shape", scene.things)


def short_talk(rng: Random, teacher: Teacher, with_picture: bool, length: int = TALK_LENGTH) -> Task:
    for _ in range(20):
        _, question, answer = talk(rng, with_picture)
        task = teacher.talk(put_otherwise(rng, question), answer, with_picture)
        if task.length <= length:
            return task
    return teacher.talk("Bye!", "Goodbye!", with_picture)


def lay(tasks: Sequence[Sequence[Task]], length: int, config: MoondreamConfig) -> Rows:
    """Put the tasks of each row one after another."""
    ids = [0] * (len(tasks) * length + 1)
    begin = np.tile(np.arange(length, dtype=np.int32), (len(tasks), 1))
    alone = np.zeros((len(tasks), length), np.bool_)
    coord_at: list[int] = []
    coord_in: list[float] = []
    size_at: list[int] = []
    size_in: list[Size] = []
    token_from: list[int] = []
    tokens: list[int] = []
    counts: list[int] = []
    weights: list[float] = []
    coord_from: list[int] = []
    coords: list[float] = []
    size_from: list[int] = []
    sizes: list[Size] = []
    for row, row_tasks in enumerate(tasks):
        at = row * length
        for task in row_tasks:
            start = at - row * length
            begin[row, start : start + task.length] = start
            alone[row, start : start + task.length] = task.alone
            before = len(tokens)
            for value in task.prompt:
                if isinstance(value, Coord):
                    coord_at.append(at)
                    coord_in.append(value.value)
                elif isinstance(value, Size):
                    size_at.append(at)
                    size_in.append(value)
                else:
                    ids[at] = value
                at += 1
            for sample in task.answer:
                token, coord, size = sample[:3]
                # Read off the position before, and fed at this one; the last is read and never fed.
                if size is not None:
                    size_from.append(at - 1)
                    sizes.append(size)
                    size_at.append(at)
                    size_in.append(size)
                elif coord is not None:
                    coord_from.append(at - 1)
                    coords.append(coord)
                    coord_at.append(at)
                    coord_in.append(coord)
                if token is not None:
                    token_from.append(at - 1)
                    tokens.append(token)
                    if coord is None and size is None:
                        ids[at] = token
                at += 1
            at -= 1
            ids[at] = 0  # the next task's, or padding
            counts.append(len(tokens) - before)
            weights.append(next((much for kind, much in COUNTED.items() if task.kind.startswith(kind)), 1.0))
            assert task.answer[-1].coord is None and at <= (row + 1) * length
    # A word of many counts less, since most of these are easy.
    number = np.array(counts)
    return Rows(
        np.array(ids[:-1], np.int32).reshape(len(tasks), length),
        begin,
        alone,
        np.array(coord_at, np.int32),
        np.array(coord_in, np.float32),
        np.array(size_at, np.int32),
        np.array(size_in, np.float32).reshape(-1, 2),
        np.array(token_from, np.int32),
        np.array(tokens, np.int32),
        np.repeat(np.array(weights, np.float32) / np.sqrt(number, dtype=np.float32), number),
        np.array(coord_from, np.int32),
        bins_of_coords(np.array(coords), config.region.coord_out_dim),
        np.array(size_from, np.int32),
        bins_of_sizes(np.array(sizes).reshape(-1, 2), config.region.num_size_bins),
    )


def bins_of_coords(values: NDArray[np.float64], bins: int) -> NDArray[np.int32]:
    return np.clip(np.rint(values * bins), 0, bins - 1).astype(np.int32)


def bins_of_sizes(values: NDArray[np.float64], bins: int) -> NDArray[np.int32]:
    exponents = (np.log2(np.maximum(values, 2.0**-10)) + 10) / 10 * (bins - 1)
    return np.clip(np.rint(exponents), 0, bins - 1).astype(np.int32)


def stream(make: Callable[[int], Batch], workers: int, first: int = 0) -> Generator[Batch, None, None]:
    """Batches in order from step `first`, for ever. Start it before CUDA is touched: workers are forked."""
    if workers == 0:
        step = first
        while True:
            yield make(step)
            step += 1
    context = multiprocessing.get_context("fork")
    pipes = []
    for index in range(workers):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(theirs, first + index, workers, make), daemon=True)
        worker.start()
        theirs.close()
        pipes.append(ours)
    ahead: Queue[bytes | None] = Queue(AHEAD)
    Thread(target=_read, args=(pipes, ahead), daemon=True).start()
    while (made := ahead.get()) is not None:
        yield pickle.loads(made)
    raise RuntimeError("a worker that makes batches has ended; what it said is above")


def _read(pipes: Sequence[Connection], ahead: "Queue[bytes | None]") -> None:
    """Take what the workers make, also while the trainer is busy compiling: pipes hold less than a batch."""
    try:
        while True:
            for pipe in pipes:
                ahead.put(pipe.recv_bytes())
    except (EOFError, OSError):
        ahead.put(None)


def _made(make: Callable[[int], Batch], step: int) -> Batch:
    """The batch of a step. A picture in millions may be one that nothing was made ready for: that is told,
    and other pictures take the place of its batch, so that hours of training do not end with it.
    """
    try:
        return make(step)
    except Exception:
        print(f"batch {step} cannot be made, and is replaced", flush=True)
        traceback.print_exc()
        return make(step + REPLACED)


def _work(pipe: Connection, first: int, stride: int, make: Callable[[int], Batch]) -> None:
    step = first
    os.nice(5)  # the trainer launches its kernels first: more batches are made than it takes
    # Nothing made here refers to itself in a circle, and looking for circles takes a sixth of the time.
    gc.freeze()
    gc.disable()
    try:
        while True:
            pipe.send_bytes(pickle.dumps(_made(make, step), protocol=5))
            step += stride
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the trainer has enough
