"""Faster ways to compute a network, made once for all engines over it, of which one computes at a time."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

from torch import Tensor

from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.fast_vision import AttentionBackend, FastVision
from kestrel_core.moondream.few_bits_layers import OutputLayer8, is_packed, pack_network
from kestrel_core.moondream.few_bits_text import few_bits_text
from kestrel_core.moondream.float8_text import float8_text
from kestrel_core.moondream.float8_vision import float8_vision
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.ops.choose_few_bits import choose_few_bits, choose_float8, choose_products
from kestrel_core.moondream.ops.protocol import Fused
from kestrel_core.moondream.scales import InputScales
from kestrel_core.protocol.errors import EngineFailed
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.kv_cache import KVScales
from kestrel_core.runtime.memory import affordable_crops, free_bytes, wanted_crops
from kestrel_core.runtime.quantising import (
    find_scales,
    kv_scales,
    settle_quantize,
    stores_float8,
    written_scales,
)
from kestrel_core.runtime.vision.crop_batches import MAX_BATCH_CROPS, CropBatches


class FastPaths:
    """The options are those of `RuntimeConfig`: `compile` and `cuda_graphs` are auto, off or required."""

    def __init__(self, network: Moondream) -> None:
        self._network = network
        self._device = network.text.wte.device
        self._fused: dict[tuple[str, str], Fused] = {}
        self._text: FastText | None = None
        self._batches: dict[tuple[str, str, str, str, int], CropBatches] = {}
        self._scales: InputScales | None = None
        self._vision: FastVision | None = None  # in float8 with these scales
        self.quantised = "int4" if is_packed(network) else "off"  # or fp8

    def quantise(self, kind: str, scales: str | None, folder: Path | None) -> None:
        """Settle in how many bits all engines over this network compute: the first says it, since the
        network's own matrices are given up. `scales` is the file that is named, `folder` may have one.
        """
        settled = settle_quantize(kind, self.quantised, self._network)
        if settled != self.quantised and (self._text is not None or self._batches):
            raise EngineFailed(
                f"quantize is {kind}, and another engine computes with this model's weights as they are; "
                "load it again"
            )
        if settled == "fp8" and self._scales is None:
            self._scales = find_scales(self._network, scales, folder)
        if settled == "int4" and not is_packed(self._network):
            pack_network(self._network)
        self.quantised = settled

    def kv_float8(self, kv_dtype: str, scales: str | None, folder: Path | None) -> list[KVScales] | None:
        """How layers of the KV cache are stored in float8; None: as they are computed."""
        if not stores_float8(kv_dtype, self._network):
            return None
        measured = self._scales or written_scales(self._network, scales, folder)
        return kv_scales(self._network.config.text.n_layers, measured)

    def fused(self, compile: str, decode_kernels: str = "off") -> Fused:
        """Kernels of our own, or plain torch. What the choice costs is said once."""
        options = compile, decode_kernels
        if options not in self._fused:
            self._fused[options] = choose_fused(self._device, *options)
        return self._fused[options]

    def text(self, compile: str, decode_kernels: str = "off") -> FastText | None:
        """None: the network's own forward. Otherwise the network's matrices become views of packed ones."""
        if compile == "off" and self.quantised == "off":
            return None
        fused = self.fused(compile, decode_kernels)
        if self._text is None:
            self._text = self._make_text(fused)
        return self._text.computed_by(fused)

    def _make_text(self, fused: Fused) -> FastText:
        text = self._network.text
        if self._scales is not None:
            ops = choose_float8(fused, self._device, text.wte.dtype)
            text.add_module("lm_head", OutputLayer8(text.lm_head))
            return float8_text(text, ops, self._scales, free=True)
        if self.quantised == "int4":
            return few_bits_text(text, choose_few_bits(fused), "int4", free=True)
        return FastText(text, fused)

    def crop_batches(
        self,
        compile: str,
        vision_dtype: str,
        cuda_graphs: str,
        attention: str = "auto",
        most_images: int = MAX_BATCH_CROPS,
    ) -> CropBatches:
        """`most_images`: of one step. In float8 the first to ask says which attention all have."""
        vision = self._network.vision
        wanted = wanted_crops(vision.config, most_images)
        options = (compile, vision_dtype, cuda_graphs, attention, wanted)
        if options not in self._batches:
            self._batches[options] = CropBatches(
                vision,
                self._encode(compile, vision_dtype, cast(AttentionBackend, attention)),
                max_crops=affordable_crops(vision.config, free_bytes(self._device), wanted),
                graphs=Graphs.wanted(self._device, cuda_graphs),
            )
        return self._batches[options]

    def _encode(
        self, compile: str, vision_dtype: str, attention: AttentionBackend
    ) -> Callable[[Tensor], Tensor] | None:
        if self._scales is not None:
            return self._float8_vision(compile, self._scales, attention)
        if compile == "off" and vision_dtype != "fp8":
            return None
        float8 = vision_dtype == "fp8"
        return FastVision(self._network.vision, self.fused(compile), float8, attention)

    def _float8_vision(self, compile: str, scales: InputScales, attention: AttentionBackend) -> FastVision:
        if self._vision is None:
            vision, fused = self._network.vision, self.fused(compile)
            products = choose_products(fused, self._device, vision.pos_emb.dtype)
            self._vision = float8_vision(vision, fused, products, scales, attention, free=True)
        return self._vision
