"""Pictures of the wider world as files, freshly drawn from what training sees, or from what it does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

import torch

from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_core.moondream.crops.cutting import choose_tiling
from kestrel_tools.scenes import render
from kestrel_tools.scenes.asking import Asked
from kestrel_tools.scenes.pictures import Paths, draw_size, encode, legible_pixels
from kestrel_tools.scenes.world import Boxed, outline_on_picture

from . import paint
from .asking import scene_requests
from .atlas import FOLDER, Atlas, open_atlas
from .charts.draw import draw_chart
from .compose import draw_scene
from .scene import Item, Placed, Scene

CHARTS = 0.25  # share of the pictures


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    data: bytes  # the file's content
    width: int
    height: int
    scene: Scene
    outlines: Mapping[Boxed, Paths]  # as fractions of the picture
    sets: Mapping[Boxed, str]  # by whom each thing was drawn

    @property
    def tiling(self) -> tuple[int, int]:
        return choose_tiling(self.height, self.width, MOONDREAM_TINY.vision)

    def requests(self, rng: Random) -> list[Asked]:
        return scene_requests(rng, self.scene, self.sets)


class NewPictures:
    """Made when asked for, so that not all of them are in memory."""

    def __init__(self, seed: int, count: int, atlas: Atlas) -> None:
        self._seed, self._count, self._atlas = seed, count, atlas

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Picture:
        rng = Random(f"things {self._seed} {index}")
        width, height = draw_size(rng)
        scene = self._scene(rng, width / height, legible_pixels(width, height))
        quality = None if rng.random() < 0.5 else rng.randint(60, 95)
        data = self._draw(scene, width, height, rng.getrandbits(32), quality)
        outlines: dict[Boxed, Paths] = {item: outline_of(item, scene, self._atlas) for item in scene.items}
        sets: dict[Boxed, str] = {
            item: self._atlas.sprites.sets[item.drawn.sprite]
            for item in scene.items
            if isinstance(item.drawn, Placed)
        }
        return Picture(str(index), data, width, height, scene, outlines, sets)

    def _scene(self, rng: Random, aspect: float, pixels: tuple[int, int]) -> Scene:
        chart = draw_chart(rng, self._atlas, aspect, pixels) if rng.random() < CHARTS else None
        return chart or draw_scene(rng, self._atlas, aspect, pixels)

    @torch.inference_mode()
    def _draw(self, scene: Scene, width: int, height: int, seed: int, quality: int | None) -> bytes:
        arrays = render.to_tensors(paint.scene_arrays([scene], self._atlas.fonts), torch.device("cpu"))
        [picture] = self._painter.draw(arrays, height, width, torch.Generator().manual_seed(seed))
        return encode((picture.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy(), quality)

    @cached_property
    def _painter(self) -> paint.Painter:
        return paint.Painter(self._atlas, torch.device("cpu"))


def outline_of(item: Item, scene: Scene, atlas: Atlas) -> Paths:
    """Closed paths as fractions of the picture."""
    if isinstance(item.drawn, Placed):
        return [item.drawn.on_picture(atlas.sprites.outlines[item.drawn.sprite], scene.unit)]
    return outline_on_picture(item.drawn, scene.unit)


def open_things(world: str, seed: int, count: int, folder: Path = FOLDER) -> NewPictures:
    """`things` is drawn as in training, `unseen` and `line-art` from sets and fonts that it never saw."""
    return NewPictures(seed, count, open_atlas(folder).part(world))
