"""The worlds there are to learn: what each needs for a training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Generator, Tensor

from kestrel_core.moondream.config import MOONDREAM_TINY, MoEConfig, MoondreamConfig
from kestrel_tools.scenes import render
from kestrel_tools.things import paint
from kestrel_tools.things.atlas import FOLDER

from . import batches, things_batches
from .batches import Batch
from .teacher import Teacher
from .words import THINGS_TOKENIZER, TOKENIZER, Words

# The model after the bundled one: a wider encoder, larger experts, twice the words. Heads of the text model
# stay at 64, which every attention backend takes. A query takes about 146 ms on two cores, of 150 allowed;
# with 640 in the encoder and 16 experts of 96 it took 163 to 168, where the bundled one takes 138.
MOONDREAM_TINY2 = replace(
    MOONDREAM_TINY,
    text=replace(
        MOONDREAM_TINY.text,
        ff_dim=576,
        vocab_size=1536,
        moe=MoEConfig(num_experts=8, start_layer=2, experts_per_token=2, expert_inner_dim=128),
    ),
    vision=replace(MOONDREAM_TINY.vision, enc_dim=192, enc_ff_dim=512, proj_inner_dim=512),
)


class Painter(Protocol):
    def draw(
        self, scenes: Mapping[str, Tensor], height: int, width: int, generator: Generator | None
    ) -> Tensor: ...


@dataclass(frozen=True)
class World:
    config: MoondreamConfig
    tokenizer: Path
    easy_steps: int
    make: Callable[..., Batch]  # step, seed, size, config, teacher
    painter: Callable[[torch.device, bool], Painter]
    open: Callable[[], object] = lambda: None  # what all worker processes share

    def maker(self, seed: int, size: int) -> Callable[[int], Batch]:
        """Makes the batch of a step. Worker processes take it along."""
        self.open()
        teacher = Teacher(self.config.tokenizer, Words(self.tokenizer))
        return partial(self.make, seed=seed, size=size, config=self.config, teacher=teacher)


class BothPainters:
    """Draws batches of the wider world, and those of the small world that are among them."""

    def __init__(self, device: torch.device, compiled: bool) -> None:
        self._things = paint.Painter(things_batches.training_atlas(FOLDER), device, compiled)
        self._shapes = render.Painter(compiled)

    def draw(
        self, scenes: Mapping[str, Tensor], height: int, width: int, generator: Generator | None
    ) -> Tensor:
        painter = self._things if "sprites" in scenes else self._shapes
        return painter.draw(scenes, height, width, generator)


SHAPES = World(
    MOONDREAM_TINY,
    TOKENIZER,
    batches.EASY_STEPS,
    batches.make_batch,
    lambda device, compiled: render.Painter(compiled),
)
THINGS = World(
    MOONDREAM_TINY2,
    THINGS_TOKENIZER,
    things_batches.EASY_STEPS,
    partial(things_batches.make_batch, folder=FOLDER),
    BothPainters,
    partial(things_batches.training_atlas, FOLDER),
)
WORLDS = {"shapes": SHAPES, "things": THINGS}
