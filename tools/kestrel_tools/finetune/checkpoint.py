"""A run on disk, to go on from: one safetensors file, replaced as a whole, and never a pickle."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from kestrel_core.protocol.errors import InvalidRequest

from .training import State, Trainer

FILE = "training.state"  # safetensors, under a name that no adapter has
OF_ADAM = ("exp_avg", "exp_avg_sq", "step")


def save(
    folder: Path, trainer: Trainer, state: State, best: dict[str, Tensor], made_of: dict[str, Any]
) -> None:
    """`made_of` is all that decides what the run comes to; it goes on only with the same."""
    tensors = {f"weights.{name}": tensor for name, tensor in trainer.parameters.copy().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    for name, parameter in trainer.parameters.named():
        for key, value in trainer.optimiser.state.get(parameter, {}).items():
            tensors[f"{key}.{name}"] = value.detach().cpu().clone().contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{FILE}.new"
    notes = {"state": json.dumps(asdict(state)), "made_of": json.dumps(made_of)}
    save_file(tensors, fresh, metadata=notes)
    fresh.replace(folder / FILE)


def exists(folder: Path) -> bool:
    return os.path.isfile(folder / FILE)


@torch.no_grad()
def restore(folder: Path, trainer: Trainer, made_of: dict[str, Any]) -> tuple[State, dict[str, Tensor]]:
    """Puts weights and optimiser as they were. Returns the state and the best weights."""
    try:
        with safe_open(folder / FILE, "pt") as file:
            notes = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        was, state = json.loads(notes["made_of"]), State(**json.loads(notes["state"]))
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(
            f"the checkpoint cannot be read ({type(error).__name__}); begin anew with --overwrite"
        ) from None
    for name in sorted(was.keys() | made_of.keys()):
        if was.get(name) != made_of.get(name):
            raise InvalidRequest(
                f"the run was begun with {name} {was.get(name)}, which is {made_of.get(name)} now; resume it "
                "with what it was begun with, or begin anew with --overwrite"
            )
    parts: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        part, _, name = key.partition(".")
        parts.setdefault(part, {})[name] = tensor
    trainer.parameters.load(parts["weights"])
    for name, parameter in trainer.parameters.named():
        if name in parts.get("step", {}):
            trainer.optimiser.state[parameter] = {
                key: parts[key][name].to("cpu" if key == "step" else parameter.device) for key in OF_ADAM
            }
    state.training_losses = [(step, loss) for step, loss in state.training_losses]
    state.eval_losses = [(step, loss) for step, loss in state.eval_losses]
    return state, parts.get("best", {})
