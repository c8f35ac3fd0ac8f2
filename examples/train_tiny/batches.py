"""Training batches: many scenes, several tasks behind each image prefix, laid into slots of fixed lengths.

Worker processes think up scenes and tasks; step `n` is the same batch however many of them there are. What
they send through their pipes is small: pictures are drawn where the model is.
"""

import multiprocessing
import pickle
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from random import Random

import numpy as np
from numpy.typing import NDArray

from kestrel_core.loop.step import Coord, Input, Size
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_tools.finetune.bins import bin_of_coord, bin_of_size
from kestrel_tools.scenes.facts import facts, spatial_fact, target
from kestrel_tools.scenes.render import Arrays, scene_arrays
from kestrel_tools.scenes.world import MAX_OBJECTS, Scene, draw_scene

from .teacher import Task, Teacher, small_talk

# One task a slot behind each image, and the positions it may take: questions; lists and reasoning; captions
# and outlines. With the image's 197 they make 560, a length at which attention with a mask is fast.
SLOTS = (20, 20, 20, 20, 24, 24, 32, 40, 64, 99)
TALK_LENGTH = 64

# Share of batches with each tiling, and its aspect ratios: as `choose_tiling` does it for common sizes.
TILINGS: dict[tuple[int, int], tuple[float, float, float]] = {
    (1, 1): (0.25, 0.33, 3.0),
    (2, 2): (0.24, 0.6, 1.65),
    (1, 2): (0.21, 1.0, 2.8),
    (2, 1): (0.17, 0.36, 1.0),
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
    """Sequences of one length: what is fed, and what is read where. Indices are into rows * length, flat."""

    ids: NDArray[np.int32]  # [rows, length]; 0 where a coordinate or a size is fed, and after the end
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
    rows: Rows  # behind the image prefix, the slots one after another
    talk: Rows  # without a picture


def make_batch(step: int, seed: int, size: int, config: MoondreamConfig, teacher: Teacher) -> Batch:
    rng = Random(f"{seed} {step}")
    easy = rng.random() > step / EASY_STEPS
    tiling = (1, 1) if easy else draw_tiling(rng)
    zoom = rng.choices((1.0, 0.7, 1.25), (70, 24, 6))[0]
    scenes = draw_scenes(rng, tiling, zoom, size, config, EASY_OBJECTS if easy else MAX_OBJECTS)
    tasks = [[slot_task(rng, scene, length, teacher) for length in SLOTS] for scene in scenes]
    talk = [[short_talk(rng, teacher)] for _ in range(max(1, size // 8))]
    return Batch(
        tiling, zoom, scene_arrays(scenes), lay(tasks, SLOTS, config), lay(talk, (TALK_LENGTH,), config)
    )


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


def slot_task(rng: Random, scene: Scene, length: int, teacher: Teacher) -> Task:
    """A random task that fits the slot."""
    choose = _short_task if length <= 24 else _middle_task if length <= 40 else _long_task
    for _ in range(8):
        task = choose(rng, scene, teacher)
        if task is not None and task.length <= length:
            return task
    return small_talk(rng, teacher, True)


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
    return small_talk(rng, teacher, True)


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


def short_talk(rng: Random, teacher: Teacher) -> Task:
    while True:
        task = small_talk(rng, teacher, False)
        if task.length <= TALK_LENGTH:
            return task


def lay(tasks: list[list[Task]], slots: tuple[int, ...], config: MoondreamConfig) -> Rows:
    """Put the tasks of each row into its slots."""
    length = sum(slots)
    starts = np.cumsum((0, *slots[:-1])).tolist()
    ids = np.zeros((len(tasks), length), np.int32)
    coord_at: list[int] = []
    coord_in: list[float] = []
    size_at: list[int] = []
    size_in: list[tuple[float, float]] = []
    tokens: list[tuple[int, int]] = []
    weights: list[float] = []
    coords: list[tuple[int, int]] = []
    sizes: list[tuple[int, int, int]] = []
    coord_bins, size_bins = config.region.coord_out_dim, config.region.num_size_bins

    def feed(at: int, value: Input) -> None:
        match value:
            case Coord(number):
                coord_at.append(at)
                coord_in.append(number)
            case Size(width, height):
                size_at.append(at)
                size_in.append((width, height))
            case token:
                ids.flat[at] = token

    for row, row_tasks in enumerate(tasks):
        for start, task in zip(starts, row_tasks, strict=True):
            at, weight = row * length + start, weight_of(task)
            for value in task.prompt:
                feed(at, value)
                at += 1
            for sample in task.answer:
                if sample.token is not None:
                    tokens.append((at - 1, sample.token))
                    weights.append(weight)
                if sample.coord is not None:
                    coords.append((at - 1, bin_of_coord(sample.coord, coord_bins)))
                if sample.size is not None:
                    width, height = (bin_of_size(side, size_bins) for side in sample.size)
                    sizes.append((at - 1, width, height))
                if sample is not task.answer[-1]:
                    feed(at, sample.feed)
                    at += 1
    token_rows, coord_rows = _table(tokens, 2), _table(coords, 2)
    size_rows = _table(sizes, 3)
    return Rows(
        ids,
        np.array(coord_at, np.int32),
        np.array(coord_in, np.float32),
        np.array(size_at, np.int32),
        np.array(size_in, np.float32).reshape(-1, 2),
        token_rows[:, 0],
        token_rows[:, 1],
        np.array(weights, np.float32),
        coord_rows[:, 0],
        coord_rows[:, 1],
        size_rows[:, 0],
        size_rows[:, 1:],
    )


def weight_of(task: Task) -> float:
    """Weight of each token of a task. Captions count less, having many easy words; reading counts double."""
    count = sum(sample.token is not None for sample in task.answer)
    weight: float = (2.0 if task.kind == "read" else 1.0) / count**0.5
    return weight


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> NDArray[np.int32]:
    return np.array(rows, np.int32).reshape(-1, columns)


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
    while True:
        for pipe in pipes:
            yield pickle.loads(pipe.recv_bytes())


def _work(pipe: Connection, first: int, stride: int, make: Callable[[int], Batch]) -> None:
    step = first
    try:
        while True:
            pipe.send_bytes(pickle.dumps(make(step), protocol=5))
            step += stride
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the trainer has enough
