"""The model under test, seen from inside: whole passes over one sequence, every state in view."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from kestrel_core.loop.step import Input, PreparedImage, Running, Span
from kestrel_core.moondream.lora import Adapter
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_tools.reference import Adapted, hidden_states, image_span


@dataclass
class Subject:
    model: Moondream
    device: torch.device
    encode_image: Callable[[PreparedImage], Tensor]
    # Golden embeddings by image, for runs in which text must not inherit the rounding of vision.
    embeddings: Mapping[str, Tensor] = field(default_factory=dict)
    adapter: Adapter | None = None  # the folder's

    def __post_init__(self) -> None:
        weight = self.model.text.wte
        context = self.model.config.text.max_context
        self._kv_cache = KVCache(self.model.config.text, 2, context, self.device, weight.dtype)

    def adapted(self, on_image: bool = True) -> Adapted:
        """By the folder's adapter."""
        assert self.adapter is not None
        return Adapted.by(self.adapter, self.model.text.wte, on_image)

    def prefill(
        self, image: PreparedImage | None, inputs: Sequence[Input], adapted: Adapted | None = None
    ) -> Tensor:
        """Hidden states [positions, dim] of a fresh sequence: the image prefix, if any, then the inputs."""
        spans, start = [], 0
        if image is not None:
            start = self.model.config.image_prefix_length
            spans.append(image_span(image, start, [1], adapted))
        if inputs:
            sequence = Running(0, [1], adapter=1 if adapted is not None else 0)
            spans.append(Span(sequence, start, start + len(inputs), inputs))
        return hidden_states(self.model, self._kv_cache, spans, self._embeddings, adapted)

    def _embeddings(self, image: PreparedImage) -> Tensor:
        if image.key in self.embeddings:
            return self.embeddings[image.key].to(self.device, self.model.text.wte.dtype)
        return self.encode_image(image)

    def cached(self, layer: int, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the last prefill: [kv_heads, positions, head_dim]."""
        cells = positions.to(self.device) + self._kv_cache.page_size
        return self._kv_cache.k[layer][cells].transpose(0, 1), self._kv_cache.v[layer][cells].transpose(0, 1)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.model.text.logits(hidden)


def interleaved(heads: Tensor, rotary_dim: int) -> Tensor:
    """Rotated heads in the order the references store them: our pairs (k, k + half) side by side."""
    rotated, rest = heads[..., :rotary_dim], heads[..., rotary_dim:]
    pairs = rotated.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)
    return torch.cat((pairs, rest), dim=-1)


@contextmanager
def recorded(modules: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """The first positional input of each module, in order of the calls made inside the block."""
    seen: list[Tensor] = []
    hooks = [m.register_forward_pre_hook(lambda _, args: seen.append(args[0].detach())) for m in modules]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
