"""How large the inputs of a network's products get, which fixes their scales in float8.

Measured by running pictures and words through the plain network, and kept in a small file beside the
checkpoint. It names the weights that it was measured with: scales of other weights would cut off numbers.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kestrel_core.moondream.config import MoondreamConfig, VisionConfig
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.moe import MoE
from kestrel_core.moondream.text import Attend, Block
from kestrel_core.moondream.vision import VisionBlock
from kestrel_core.protocol.errors import BadCheckpoint

FILE = "kestrel_scales.json"
VERSION = 1
# Lets other pictures go beyond the measured ones, and costs two of float8's fifteen powers of two. Drawn
# scenes went beyond the made up pictures by up to 2.1 times (moondream-tiny).
MARGIN = 4.0


@dataclass(frozen=True)
class InputScales:
    """The largest numbers that were measured, by the name of the layer that they entered."""

    weights: str  # which they were measured with, as `identify` says
    pictures: int
    largest: Mapping[str, float]

    def __call__(self, *names: str) -> float:
        """The largest number that is expected in an input that these layers share."""
        return MARGIN * max(self.largest[name] for name in names)

    def largest_kv(self, layer: int) -> tuple[float, float] | None:
        """Of keys and values as they enter the cache. None: they were not measured, as in older files."""
        k, v = _kv_names(layer)
        return (self.largest[k], self.largest[v]) if k in self.largest and v in self.largest else None

    def write(self, file: Path) -> None:
        document = {"version": VERSION, **asdict(self)}
        file.write_text(json.dumps(document, indent=1) + "\n")


def read_scales(file: Path, network: Moondream) -> InputScales:
    """Refuses what is no such file, and scales of other weights."""
    again = "measure them again: kestrel quantize MODEL"
    try:
        found = json.loads(file.read_text())
        if found.pop("version") != VERSION:
            raise ValueError("it is of another version")
        scales = InputScales(
            str(found["weights"]),
            int(found["pictures"]),
            {str(name): float(value) for name, value in found["largest"].items()},
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadCheckpoint(f"{file} holds no scales ({error}); {again}") from error
    if scales.weights != identify(network):
        raise BadCheckpoint(f"{file} holds the scales of other weights than these; {again}")
    missing = set(dict(measured_layers(network))) - set(scales.largest)
    if missing:
        raise BadCheckpoint(f"{file} has no scale for {min(missing)}; {again}")
    return scales


def identify(network: Moondream) -> str:
    """A digest of a row of each block and of the last norms: enough to tell checkpoints apart, and quick."""
    digest = hashlib.sha256()
    blocks = [*network.vision.blocks, *network.text.blocks]
    rows = [block.attn.qkv.weight[:1] for block in blocks]
    for row in (*rows, network.vision.post_ln.weight, network.text.post_ln.weight):
        digest.update(row.detach().to("cpu", torch.bfloat16).contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def measured_layers(network: Moondream) -> Iterator[tuple[str, nn.Module]]:
    """Every layer whose input is rounded, by name. Experts of a block share theirs."""
    for at, block in enumerate(network.vision.blocks):
        assert isinstance(block, VisionBlock)
        yield from _layers(f"vision.blocks.{at}", {"attn": block.attn, "mlp": block.mlp})
    for at, block in enumerate(network.text.blocks):
        assert isinstance(block, Block)
        yield from _layers(f"text.blocks.{at}", {"attn": block.attn, "mlp": block.mlp})


def _layers(block: str, parts: Mapping[str, nn.Module]) -> Iterator[tuple[str, nn.Module]]:
    for part, names in (("attn", ("qkv", "proj")), ("mlp", ("fc1", "fc2"))):
        for name in names:
            if not (isinstance(parts[part], MoE) and name == "fc1"):  # experts are given what qkv is given
                yield f"{block}.{part}.{name}", getattr(parts[part], name)


@contextmanager
def measuring(network: Moondream) -> Iterator[Callable[[], dict[str, float]]]:
    """While open, the plain network's inputs are watched. What it yields tells the largest so far."""
    largest: dict[str, Tensor] = {}

    def watch(name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def look(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
            seen = inputs[0].detach().abs().amax().float()
            largest[name] = torch.maximum(largest[name], seen) if name in largest else seen

        return look

    hooks = [layer.register_forward_pre_hook(watch(name)) for name, layer in measured_layers(network)]
    try:
        yield lambda: {name: float(seen) for name, seen in largest.items()}
    finally:
        for hook in hooks:
            hook.remove()


@torch.inference_mode()
def measure_scales(
    network: Moondream,
    pictures: Sequence[tuple[Tensor, tuple[int, int]]],
    prompts: Sequence[Sequence[int]],
    progress: Callable[[int, int], None] | None = None,
) -> InputScales:
    """Pictures are crops, the global one first, and their tiling. Each is read with one of the prompts."""
    config, device = network.config, network.text.wte.device
    kv_largest: dict[str, Tensor] = {}
    with measuring(network) as measured:
        for at, (crops, tiling) in enumerate(pictures):
            embeddings = network.vision.project(network.vision.encode(crops.to(device)), tiling)
            prompt = torch.tensor(prompts[at % len(prompts)], dtype=torch.long, device=device)
            first = network.text.embed(torch.tensor([config.tokenizer.bos_id], device=device))
            x = torch.cat((first, embeddings, network.text.embed(prompt)))
            positions = torch.arange(len(x), device=device)
            network.text(x, positions, _attend(config.image_prefix_length, len(x), device, kv_largest))
            if progress is not None:
                progress(at + 1, len(pictures))
        largest = measured() | {name: float(seen) for name, seen in kv_largest.items()}
    broken = [name for name, value in largest.items() if not value < float("inf")]
    if broken:
        raise BadCheckpoint(f"the inputs of {broken[0]} are no finite numbers; the weights are damaged")
    # An expert that nobody chose says nothing; without any input there is nothing to cut off either.
    names = [*dict(measured_layers(network)), *kv_largest]
    return InputScales(identify(network), len(pictures), {name: largest.get(name, 1.0) for name in names})


def _kv_names(layer: int) -> tuple[str, str]:
    return f"text.blocks.{layer}.attn.k", f"text.blocks.{layer}.attn.v"


def _attend(prefix: int, length: int, device: torch.device, largest: dict[str, Tensor]) -> Attend:
    """One sequence, all of it new: the image's positions see each other, the others what is before them.

    The largest key and value of each layer are noted.
    """
    at = torch.arange(length, device=device)
    mask = (at[None] <= at[:, None]) | ((at[:, None] < prefix) & (at[None] < prefix))

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        for name, new in zip(_kv_names(layer), (k, v), strict=True):
            seen = new.abs().amax().float()
            largest[name] = torch.maximum(largest[name], seen) if name in largest else seen
        q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=q.shape[1] != k.shape[1])
        return mixed[0].transpose(0, 1)

    return attend


def sample_pictures(config: VisionConfig) -> list[tuple[Tensor, tuple[int, int]]]:
    """Made up ones, where there are no others: flat, smooth, striped, drawn and noisy, of three crops."""
    side, seeded = config.crop_size, torch.Generator().manual_seed(0)
    at = torch.arange(side)
    across, down = (at * 255.0 / side).expand(side, side), (at * 255.0 / side)[:, None].expand(side, side)
    noise = torch.rand(side, side, generator=seeded) * 255
    cells = torch.rand(side // 14 + 1, side // 14 + 1, generator=seeded)
    boxes = (cells > 0.5)[at // 14][:, at // 14] * 255.0
    stripes = (at // 3 % 2 * 255.0).expand(side, side)
    disc = ((across - 128) ** 2 + (down - 128) ** 2 < 70**2) * 255.0
    planes = (0 * noise, across, down, stripes, disc, boxes, noise, 0 * noise + 255)

    def crop(index: int) -> Tensor:
        return torch.stack([planes[(index * step) % len(planes)] for step in (1, 3, 5)], -1).byte()

    return [(torch.stack([crop(index + tile) for tile in range(3)]), (1, 2)) for index in range(0, 8, 2)]


def sample_prompts(config: MoondreamConfig) -> list[list[int]]:
    """The templates' own tokens, and some of the vocabulary between them."""
    templates, seeded = config.tokenizer.templates, torch.Generator().manual_seed(1)
    words = torch.randint(0, config.text.vocab_size, (3, 12), generator=seeded).tolist()
    asked = [[*templates.query.prefix, *some, *templates.query.suffix] for some in words]
    return [*asked, list(templates.caption.normal)]
