"""From prepared pictures to crops on the device, without waiting for it.

A picture that was left whole is sent once and cut there. Crops that were cut on the host go through pinned
buffers.
"""

import math
from collections import OrderedDict
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
from kestrel_core.runtime.staging import PinnedBuffers, send

MAX_TABLES = 16  # for the sizes of pictures that were cut last, up to 340 kB each


class CropUploads:
    def __init__(self, config: VisionConfig, max_crops: int, device: torch.device) -> None:
        shape = (max_crops, config.crop_size, config.crop_size, config.in_channels)
        self._config = config
        self._device = device
        # Written as arrays: torch would copy with as many threads as there are cores.
        self._hosts = PinnedBuffers(shape, device, lambda buffer: buffer.numpy())
        self._tables: OrderedDict[tuple[int, int], dict[str, Tensor]] = OrderedDict()
        self.crops = torch.zeros(shape, dtype=torch.uint8, device=device)

    def upload(self, images: Sequence[PreparedImage]) -> None:
        """Write the crops that need encoding to the first rows of `crops`."""
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
            self._send(cut)

    def warm_up(self) -> None:
        """Cut the largest picture that is cut here: no other needs more memory."""
        side = math.isqrt(MAX_PIXELS)
        rows, cols = choose_tiling(side, side, self._config)
        self._cut(np.zeros((side, side, 3), np.uint8), self.crops[: 1 + rows * cols])

    def _send(self, cut: Sequence[tuple[slice, NDArray[np.uint8]]]) -> None:
        """Each picture's crops to their rows."""
        pixels = self._hosts.open()
        for place, crops in cut:
            pixels[place] = crops
            self.crops[place].copy_(self._hosts.current[place], non_blocking=True)
        self._hosts.sent()

    def _cut(self, rgb: NDArray[np.uint8], crops: Tensor) -> None:
        height, width, _ = rgb.shape
        plan, tables = plan_crops(height, width, self._config), self._tables.pop((height, width), None)
        self._tables[height, width] = tables = tables or send(plan.tables, self._device)
        if len(self._tables) > MAX_TABLES:
            self._tables.popitem(last=False)
        cut_on_device(send({"rgb": rgb}, self._device)["rgb"], plan, tables, crops)
