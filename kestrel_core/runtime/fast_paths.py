"""Faster ways to compute a network, made once for all engines over it, of which one computes at a time."""

from collections.abc import Callable

from torch import Tensor

from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.fast_vision import FastVision
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.memory import affordable_crops, free_bytes
from kestrel_core.runtime.vision.crop_batches import CropBatches


class FastPaths:
    """The options are those of `RuntimeConfig`: `compile` and `cuda_graphs` are auto, off or required."""

    def __init__(self, network: Moondream) -> None:
        self._network = network
        self._device = network.text.wte.device
        self._fused: dict[tuple[str, str], Fused] = {}
        self._text: FastText | None = None
        self._batches: dict[tuple[str, str, str], CropBatches] = {}

    def fused(self, compile: str, decode_kernels: str = "off") -> Fused:
        """Kernels of our own, or plain torch. What the choice costs is said once."""
        options = compile, decode_kernels
        if options not in self._fused:
            self._fused[options] = choose_fused(self._device, *options)
        return self._fused[options]

    def text(self, compile: str, decode_kernels: str = "off") -> FastText | None:
        """None: the network's own forward. Otherwise the network's matrices become views of packed ones."""
        if compile == "off":
            return None
        fused = self.fused(compile, decode_kernels)
        if self._text is None:
            self._text = FastText(self._network.text, fused)
        return self._text.computed_by(fused)

    def crop_batches(self, compile: str, vision_dtype: str, cuda_graphs: str) -> CropBatches:
        options = (compile, vision_dtype, cuda_graphs)
        if options not in self._batches:
            vision = self._network.vision
            self._batches[options] = CropBatches(
                vision,
                self._encode(compile, vision_dtype),
                max_crops=affordable_crops(vision.config, free_bytes(self._device)),
                graphs=Graphs.wanted(self._device, cuda_graphs),
            )
        return self._batches[options]

    def _encode(self, compile: str, vision_dtype: str) -> Callable[[Tensor], Tensor] | None:
        if compile == "off" and vision_dtype != "fp8":
            return None
        return FastVision(self._network.vision, self.fused(compile), float8=vision_dtype == "fp8")
