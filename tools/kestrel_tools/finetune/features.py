"""What the vision encoder makes of each picture: computed once, since it is not trained, and kept on disk.

A file a picture, named by its key, so that a training of any size needs the memory of a few, and one that is
resumed does not compute them again.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.vision.image_encoder import encode_image

from .lines import Line, Prepare


class Features:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, picture: str) -> Tensor:
        """[patches, dim]"""
        return load_file(self._path(picture))["features"]

    @torch.no_grad()
    def compute(
        self,
        network: Moondream,
        pictures: Mapping[str, object],
        prepare: Prepare,
        advance: Callable[[int], None],
    ) -> None:
        """Those that are not there yet. `advance` is told how many pictures were done."""
        for picture, source in pictures.items():
            if not self._path(picture).is_file():
                image = prepare(source)
                features = encode_image(network.vision, torch.from_numpy(image.crops), image.tiling)
                fresh = self._path(picture).with_suffix(".new")
                save_file({"features": features.cpu().contiguous()}, fresh)
                fresh.replace(self._path(picture))
            advance(1)

    def _path(self, picture: str) -> Path:
        return self._folder / f"{picture}.features"


def pictures_of(lines: Iterable[Line]) -> dict[str, object]:
    """Each picture's key, and where it comes from."""
    return {
        line.lesson.picture: line.asked.request.image for line in lines if line.lesson.picture is not None
    }
