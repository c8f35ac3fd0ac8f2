"""From prepared pictures to crops on the device, without waiting for it.

A picture that was left whole goes up once and is cut there. One cut on the host goes through one of two
pinned buffers, each of which is filled again only when the device has read it.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kestrel_core.loop.step import PreparedImage
from kestrel_core.moondream.config import VisionConfig
from kestrel_core.moondream.crops.cutting import choose_tiling
from kestrel_core.moondream.crops.on_device import cut_on_device
from kestrel_core.moondream.crops.resampling import MAX_PIXELS, plan_crops
from kestrel_core.moondream.vision import num_crops
from kestrel_core.runtime.staging import send

MAX_TABLES = 16  # for sizes of pictures lately cut, up to 340 kB each


class CropUploads:
    def __init__(self, config: VisionConfig, max_crops: int, device: torch.device) -> None:
        shape, on_cuda = (config.crop_size, config.crop_size, config.in_channels), device.type == "cuda"
        self._config = config
        self._device = device
        self._buffers = deque(PinnedCrops((max_crops, *shape), on_cuda) for _ in range(2))
        self._tables: OrderedDict[tuple[int, int], dict[str, Tensor]] = OrderedDict()
        self.crops = torch.zeros((max_crops, *shape), dtype=torch.uint8, device=device)

    def upload(self, images: Sequence[PreparedImage]) -> None:
        """The crops that need encoding into the first of `crops`."""
        start, cut = 0, list[tuple[slice, NDArray[np.uint8]]]()
        for image in images:
            count = num_crops(image.tiling)
            place = slice(start, start + count)
            if image.rgb is not None:
                self._cut(image.rgb, self.crops[place])
            else:
                cut.append((place, image.crops[:count]))
            start += count
        if cut:
            self._buffers[0].copy(cut, self.crops)
            self._buffers.rotate()

    def warm_up(self) -> None:
        """The largest picture that is cut here: no other needs more memory."""
        side = math.isqrt(MAX_PIXELS)
        rows, cols = choose_tiling(side, side, self._config)
        self._cut(np.zeros((side, side, 3), np.uint8), self.crops[: 1 + rows * cols])

    def _cut(self, rgb: NDArray[np.uint8], crops: Tensor) -> None:
        height, width, _ = rgb.shape
        plan, tables = plan_crops(height, width, self._config), self._tables.pop((height, width), None)
        self._tables[height, width] = tables = tables or send(plan.tables, self._device)
        if len(self._tables) > MAX_TABLES:
            self._tables.popitem(last=False)
        cut_on_device(send({"rgb": rgb}, self._device)["rgb"], plan, tables, crops)


class PinnedCrops:
    def __init__(self, shape: tuple[int, ...], on_cuda: bool) -> None:
        self._bytes = torch.empty(shape, dtype=torch.uint8, pin_memory=on_cuda)
        self._array = self._bytes.numpy()  # torch would copy with as many threads as there are cores
        self._read = torch.cuda.Event() if on_cuda else None

    def copy(self, crops: Sequence[tuple[slice, NDArray[np.uint8]]], out: Tensor) -> None:
        """Each to its place in `out`."""
        if self._read is not None:
            self._read.synchronize()
        for place, pixels in crops:
            self._array[place] = pixels
            out[place].copy_(self._bytes[place], non_blocking=True)
        if self._read is not None:
            self._read.record()
