"""Mixes checkpoints of one training: `python -m examples.train_tiny.average BEFORE... AFTER --out FOLDER`.

Weights that a run went on from and those it came to lie in one valley: a mean of both is about as good, and
a little of the earlier ones keeps answers that the last steps have just tipped over.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file

WEIGHTS = "model.safetensors"


def average(before: Sequence[Path], after: Path, shares: Sequence[float], out: Path) -> None:
    """A share of each of the weights before, and the rest of those after, whose types and files are kept."""
    later = load_file(after / WEIGHTS)
    mixed = {name: (1 - sum(shares)) * weight.float() for name, weight in later.items()}
    for folder, share in zip(before, shares, strict=True):
        earlier = load_file(folder / WEIGHTS)
        if earlier.keys() != later.keys():
            raise SystemExit(f"{folder} and {after} are not of one network")
        for name, weight in earlier.items():
            mixed[name] += share * weight.float()
    with safe_open(after / WEIGHTS, "pt") as opened:
        metadata = opened.metadata()
    out.mkdir(parents=True, exist_ok=True)
    save_file({name: mixed[name].to(weight.dtype) for name, weight in later.items()}, out / WEIGHTS, metadata)
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(after / name, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, nargs="+", help="folders with model.safetensors")
    parser.add_argument("after", type=Path, help="that of a run that went on from there")
    parser.add_argument(
        "--share", type=float, nargs="+", default=[0.2], help="of each of the weights before (0.2)"
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if len(options.share) != len(options.before):
        parser.error("give a --share for each of the weights before")
    if min(options.share) < 0 or sum(options.share) > 1:
        parser.error("each --share is 0 or more, and all of them are 1 at most")
    average(options.before, options.after, options.share, options.out)


if __name__ == "__main__":
    main()
