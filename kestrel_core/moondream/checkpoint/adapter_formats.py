"""Moondream's own formats of adapters: how their tensors are named. All of them must be there.

Moondream 2's have a pair A, B for the four matrices of every block, and the one named `proj` reads the
block's input. Moondream 3's have `up` and `down` for the MLP of every block, counted apart by dense and moe.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from kestrel_core.moondream.checkpoint.adapter_tensors import Matrix, Place
from kestrel_core.moondream.checkpoint.weights import current_name, fold
from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.lora import Target
from kestrel_core.protocol.errors import BadAdapter
from kestrel_core.protocol.names import shown

PARTS: tuple[Literal["a", "b"], ...] = ("a", "b")
MOONDREAM2_MATRICES: dict[Target, tuple[str, str]] = {  # as they are named today, and as files name them
    "qkv": ("attn.qkv", "mixer.Wqkv"),
    "input_proj": ("attn.proj", "mixer.out_proj"),
    "fc1": ("mlp.fc1", "mlp.fc1"),
    "fc2": ("mlp.fc2", "mlp.fc2"),
}
PARAMETRIZED = ".parametrizations.weight.0"
MOONDREAM3_NAME = re.compile(r"(?:^|\.)((?:dense|moe)\.\d+\.(?:up|down)_[ab])$")
SHOWN_NAMES = 4  # of those that are missing


@dataclass(frozen=True)
class Format:
    """Names in files, and what they are called in `names`."""

    title: str
    called: Callable[[str], str | None]  # None: not of this format
    names: Callable[[TextConfig], dict[Place, str]]
    written: Callable[[TextConfig], dict[Place, str]]


def moondream_matrices(tensors: Mapping[str, Tensor], config: TextConfig) -> Iterator[Matrix]:
    """What each tensor is. Raises if one is missing or is nothing."""
    known = format_of(tensors)
    if known is MOONDREAM2 and config.moe is not None:
        raise BadAdapter("this is an adapter for Moondream 2, and this model is a Moondream 3")
    places = {name: place for place, name in known.names(config).items()}
    found: dict[str, str] = {}
    for raw in tensors:
        name = known.called(raw)
        if name not in places:
            raise BadAdapter(
                f"{shown(raw)} belongs to no matrix of this model, which has {config.n_layers} blocks; "
                "the adapter was made for another model"
            )
        if name in found:
            raise BadAdapter(
                f"the same matrix is there under two names, {shown(found[name])} and {shown(raw)}"
            )
        found[name] = raw
    if missing := fold(name for name in places if name not in found):
        more = f" and {len(missing) - SHOWN_NAMES} more" if len(missing) > SHOWN_NAMES else ""
        raise BadAdapter(
            f"{known.title} needs {', '.join(missing[:SHOWN_NAMES])}{more}, which are not there; "
            "save all of it, or use the adapter with the model that it was made for"
        )
    return (Matrix(raw, places[name], tensors[raw]) for name, raw in found.items())


def format_of(names: Mapping[str, object]) -> Format:
    for known in FORMATS:
        if any(known.called(name) is not None for name in names):
            return known
    if any(".lora_A." in name for name in names):
        raise BadAdapter("this is a file of PEFT: name its folder, in which adapter_config.json lies too")
    first = shown(next(iter(names), "nothing"))
    raise BadAdapter(f"this is no adapter: its tensors, {first} first, are named as in no known format")


def _moondream2_called(raw: str) -> str | None:
    if not raw.endswith((".A", ".B")):
        return None
    return current_name(raw.replace(PARAMETRIZED, ""))


def _moondream2_names(config: TextConfig) -> dict[Place, str]:
    return {
        Place(layer, target, part): f"text.blocks.{layer}.{name}.{part.upper()}"
        for layer in range(config.n_layers)
        for target, (name, _) in MOONDREAM2_MATRICES.items()
        for part in PARTS
    }


def _moondream2_written(config: TextConfig) -> dict[Place, str]:
    return {
        place: f"text_model.transformer.h.{place.layer}.{MOONDREAM2_MATRICES[place.target][1]}"
        f"{PARAMETRIZED}.{place.part.upper()}"
        for place in _moondream2_names(config)
    }


def _moondream3_called(raw: str) -> str | None:
    match = MOONDREAM3_NAME.search(raw)
    return match[1] if match else None


def _moondream3_names(config: TextConfig) -> dict[Place, str]:
    num_dense = config.n_layers if config.moe is None else config.moe.start_layer
    names: dict[Place, str] = {}
    for layer in range(config.n_layers):
        dense = layer < num_dense
        block = f"dense.{layer}" if dense else f"moe.{layer - num_dense}"
        up, down = _MLP if dense else _EXPERTS
        for part in PARTS:
            names[Place(layer, up, part)] = f"{block}.up_{part}"
            names[Place(layer, down, part)] = f"{block}.down_{part}"
    return names


_MLP: tuple[Target, Target] = ("fc1", "fc2")
_EXPERTS: tuple[Target, Target] = ("expert_fc1", "expert_fc2")

MOONDREAM2 = Format("an adapter for Moondream 2", _moondream2_called, _moondream2_names, _moondream2_written)
MOONDREAM3 = Format("an adapter for Moondream 3", _moondream3_called, _moondream3_names, _moondream3_names)
FORMATS = (MOONDREAM3, MOONDREAM2)
