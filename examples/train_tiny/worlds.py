"""The worlds there are to learn: what each needs for a training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Generator, Tensor

from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_tools.scenes import render
from kestrel_tools.things import paint
from kestrel_tools.things.atlas import FOLDER

from . import batches, things_batches
from .batches import Batch
from .teacher import Teacher
from .words import Words


class Painter(Protocol):
    def draw(
        self, scenes: Mapping[str, Tensor], height: int, width: int, generator: Generator | None
    ) -> Tensor: ...


@dataclass(frozen=True)
class World:
    easy_steps: int
    make: Callable[..., Batch]  # step, seed, size, config, teacher
    painter: Callable[[torch.device, bool, int], Painter]  # device, compiled, seed
    open: Callable[[int], object] = lambda seed: None  # what all worker processes share

    def maker(self, seed: int, size: int) -> Callable[[int], Batch]:
        """Makes the batch of a step. Worker processes take it along."""
        self.open(seed)
        teacher = Teacher(MOONDREAM_TINY.tokenizer, Words())
        return partial(self.make, seed=seed, size=size, config=MOONDREAM_TINY, teacher=teacher)


class BothPainters:
    """Draws batches of the wider world, and those of the small world that are among them."""

    def __init__(self, device: torch.device, compiled: bool, seed: int) -> None:
        self._things = paint.Painter(things_batches.training_atlas(FOLDER, seed), device, compiled)
        self._shapes = render.Painter(compiled)

    def draw(
        self, scenes: Mapping[str, Tensor], height: int, width: int, generator: Generator | None
    ) -> Tensor:
        painter = self._things if "sprites" in scenes else self._shapes
        return painter.draw(scenes, height, width, generator)


SHAPES = World(
    batches.EASY_STEPS,
    batches.make_batch,
    lambda device, compiled, seed: render.Painter(compiled),
)
THINGS = World(
    things_batches.EASY_STEPS,
    partial(things_batches.make_batch, folder=FOLDER),
    BothPainters,
    partial(things_batches.training_atlas, FOLDER),
)
WORLDS = {"shapes": SHAPES, "things": THINGS}
