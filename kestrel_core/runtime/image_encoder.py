"""Crops to embeddings, with a small memory: a picture asked for again shortly after is not encoded again."""

from collections import OrderedDict
from time import perf_counter

import torch
from torch import Tensor

from kestrel_core.moondream.vision import Vision
from kestrel_core.step import PreparedImage


class ImageEncoder:
    def __init__(self, vision: Vision, max_remembered: int = 8) -> None:
        self._vision = vision
        self._remembered: OrderedDict[str, Tensor] = OrderedDict()
        self._max_remembered = max_remembered
        self.num_encoded = 0
        self.encode_s = 0.0

    def __call__(self, image: PreparedImage) -> Tensor:
        """Embeddings [patches, dim]."""
        known = self._remembered.get(image.key)
        if known is None:
            began = perf_counter()
            known = encode_image(self._vision, torch.from_numpy(image.crops), image.tiling)
            self.num_encoded += 1
            self.encode_s += perf_counter() - began
            self._remembered[image.key] = known
            while len(self._remembered) > self._max_remembered:
                self._remembered.popitem(last=False)
        self._remembered.move_to_end(image.key)
        return known


def encode_image(vision: Vision, crops: Tensor, tiling: tuple[int, int]) -> Tensor:
    crops = crops.to(vision.pos_emb.device)
    if tiling == (1, 1):  # the only tile equals the global crop
        return vision.project(vision.encode(crops[:1]).expand(2, -1, -1), tiling)
    return vision.project(vision.encode(crops), tiling)
