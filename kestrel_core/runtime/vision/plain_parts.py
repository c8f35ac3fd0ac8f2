"""Pictures in parts on the plain path: what `CropBatches` does for them, a picture at a time."""

import sys
from collections.abc import Sequence
from functools import partial
from time import perf_counter

import torch

from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.vision import Vision, num_crops
from kestrel_core.runtime.vision.crop_batches import Encoded, Partial


class PlainParts:
    max_crops = sys.maxsize

    def __init__(self, vision: Vision) -> None:
        self._vision = vision

    def begin(self, image: PreparedImage) -> Partial:
        embedded = self._vision.pos_emb
        crops = torch.from_numpy(image.crops[: num_crops(image.tiling)]).to(embedded.device)
        return Partial(image.tiling, crops, embedded.new_empty((len(crops), *embedded.shape[1:])))

    @torch.inference_mode()
    def advance(self, parts: Sequence[tuple[Partial, int]], in_turn: bool) -> None:
        """Nothing is computed beside anything else here, so it is always in turn."""
        for picture, count in parts:
            began_s, some = perf_counter(), slice(picture.num_done, picture.num_done + count)
            picture.features[some] = self._vision.encode(picture.crops[some])
            picture.num_done += count
            picture.seconds.append(partial(float, perf_counter() - began_s))

    @torch.inference_mode()
    def finish(self, picture: Partial, in_turn: bool) -> Encoded:
        began_s, features = perf_counter(), picture.features
        if len(features) == 1:  # the only tile equals the global crop
            features = features.expand(2, -1, -1)
        embeddings = self._vision.project(features, picture.tiling)
        took_s = perf_counter() - began_s + sum(seconds() for seconds in picture.seconds)
        return Encoded(embeddings, None, partial(float, took_s))
