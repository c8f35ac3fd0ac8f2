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
from .asking import scene_requests, wide_requests
from .atlas import FOLDER, Atlas, open_atlas
from .cards.draw import draw_cards
from .charts.draw import draw_chart
from .compose import draw_scene
from .pages.draw import draw_page
from .scene import Item, Placed, Scene

CHARTS = 0.25  # share of the pictures
WIDE_SORTS = {"pages": 35, "cards": 35, "charts": 15, "things": 15}


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    data: bytes  # the file's content
    width: int
    height: int
    scene: Scene
    outlines: Mapping[Boxed, Paths]  # as fractions of the picture
    sets: Mapping[Boxed, str]  # by whom each thing was drawn
    is_wide: bool = False

    @property
    def tiling(self) -> tuple[int, int]:
        return choose_tiling(self.height, self.width, MOONDREAM_TINY.vision)

    def requests(self, rng: Random) -> list[Asked]:
        return wide_requests(rng, self.scene) if self.is_wide else scene_requests(rng, self.scene, self.sets)


class NewPictures:
    """Made when asked for, so that not all of them are in memory."""

    def __init__(self, seed: int, count: int, atlas: Atlas, wide: bool = False) -> None:
        self._seed, self._count, self._atlas, self._wide = seed, count, atlas, wide

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Picture:
        rng = Random(f"{'wide' if self._wide else 'things'} {self._seed} {index}")
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
        return Picture(str(index), data, width, height, scene, outlines, sets, self._wide)

    def _scene(self, rng: Random, aspect: float, pixels: tuple[int, int]) -> Scene:
        room = (rng, self._atlas, aspect, pixels)
        if self._wide:
            return _wide_scene(*room)
        chart = draw_chart(*room) if rng.random() < CHARTS else None
        return chart or draw_scene(*room)

    @torch.inference_mode()
    def _draw(self, scene: Scene, width: int, height: int, seed: int, quality: int | None) -> bytes:
        arrays = render.to_tensors(paint.scene_arrays([scene], self._atlas.fonts), torch.device("cpu"))
        [picture] = self._painter.draw(arrays, height, width, torch.Generator().manual_seed(seed))
        return encode((picture.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy(), quality)

    @cached_property
    def _painter(self) -> paint.Painter:
        return paint.Painter(self._atlas, torch.device("cpu"))


def _wide_scene(rng: Random, atlas: Atlas, aspect: float, pixels: tuple[int, int]) -> Scene:
    """Long pictures have room for few pages and charts; then it is one of things."""
    room = (rng, atlas, aspect, pixels)
    [sort] = rng.choices(tuple(WIDE_SORTS), tuple(WIDE_SORTS.values()))
    match sort:
        case "pages":
            scene = draw_page(*room)
        case "cards":
            scene = draw_cards(*room)
        case "charts":
            scene = draw_chart(*room, various=1.0)
        case _:
            scene = None
    return scene or draw_scene(*room)


def outline_of(item: Item, scene: Scene, atlas: Atlas) -> Paths:
    """Closed paths as fractions of the picture."""
    if isinstance(item.drawn, Placed):
        return [item.drawn.on_picture(atlas.sprites.outlines[item.drawn.sprite], scene.unit)]
    return outline_on_picture(item.drawn, scene.unit)


def open_things(world: str, seed: int, count: int, folder: Path = FOLDER) -> NewPictures:
    """`things` and `wide` are drawn as in training, the others from sets and fonts that it never saw."""
    return NewPictures(seed, count, open_atlas(folder).part(world), world == "wide")
