"""Mixes two checkpoints of one training: `python -m examples.train_tiny.average BEFORE AFTER --out FOLDER`.

Weights that a run went on from and those it came to lie in one valley: a mean of both is about as good, and
a little of the earlier ones keeps answers that the last steps have just tipped over.
"""

import argparse
import shutil
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file

WEIGHTS = "model.safetensors"


def average(before: Path, after: Path, share: float, out: Path) -> None:
    """`share` of the weights before, and the rest of those after, whose types and other files are kept."""
    earlier, later = load_file(before / WEIGHTS), load_file(after / WEIGHTS)
    if earlier.keys() != later.keys():
        raise SystemExit(f"{before} and {after} are not of one network")
    mixed = {
        name: (share * earlier[name].float() + (1 - share) * weight.float()).to(weight.dtype)
        for name, weight in later.items()
    }
    with safe_open(after / WEIGHTS, "pt") as opened:
        metadata = opened.metadata()
    out.mkdir(parents=True, exist_ok=True)
    save_file(mixed, out / WEIGHTS, metadata)
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(after / name, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="a folder with model.safetensors")
    parser.add_argument("after", type=Path, help="that of a run that went on from there")
    parser.add_argument("--share", type=float, default=0.2, help="of the weights before (0.2)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if not 0 <= options.share <= 1:
        parser.error("--share is between 0 and 1")
    average(options.before, options.after, options.share, options.out)


if __name__ == "__main__":
    main()
