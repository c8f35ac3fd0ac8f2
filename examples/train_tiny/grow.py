"""Gives a checkpoint another text block: `python -m examples.train_tiny.grow FOLDER --at 4 --out FOLDER`.

The new block adds nothing to its input at first, since its last products are zero. So the checkpoint answers
as before, and a training goes on from there with `--resume`.
"""

import argparse
import re
from pathlib import Path

import torch

from kestrel_core.moondream.config import MOONDREAM_TINY, MoondreamConfig

from . import checkpoints, network

BLOCK = re.compile(r"(?<=^text\.blocks\.)\d+")
LAST_PRODUCTS = ("attn.proj.weight", "mlp.fc2.weight")


@torch.no_grad()
def grow(before: Path, at: int, out: Path, config: MoondreamConfig = MOONDREAM_TINY) -> None:
    """`config` has one text block more than the checkpoint, and `at` is the new one's number."""
    weights = checkpoints.weights_of(before)
    blocks = 1 + max(int(found[0]) for name in weights if (found := BLOCK.search(name)))
    if blocks + 1 != config.text.n_layers or not 0 <= at <= blocks:
        raise SystemExit(
            f"{before} has {blocks} text blocks: no block {at} makes {config.text.n_layers} of them"
        )
    moved = {BLOCK.sub(lambda n: str(int(n[0]) + (int(n[0]) >= at)), name): w for name, w in weights.items()}
    model = network.new_model(config, torch.device("cpu"), seed=blocks)
    if not moved.keys() <= dict(model.named_parameters()).keys():
        raise SystemExit(f"a block {at} makes a dense block one of experts; those come after the dense ones")
    for name, parameter in model.named_parameters():
        if name in moved:
            parameter.copy_(moved[name])
        elif name.endswith(LAST_PRODUCTS):
            parameter.zero_()
    out.mkdir(parents=True, exist_ok=True)
    checkpoints.save(model, out, checkpoints.trained_steps(before))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="a checkpoint or a training, of one block less")
    parser.add_argument("--at", type=int, required=True, help="number of the new block, from 0")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    grow(options.before, options.at, options.out)


if __name__ == "__main__":
    main()
