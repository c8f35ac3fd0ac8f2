"""Makes `model.safetensors` of `resume_*.safetensors`: `python -m examples.train_tiny.export runs/tiny`.

For a training on another machine, of which only the parts came back.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from .checkpoints import trained_steps


def main(folder: Path) -> None:
    parts = [load_file(path) for path in sorted(folder.glob("resume_*.safetensors"))]
    weights = {name: weight.to(torch.bfloat16) for part in parts for name, weight in part.items()}
    save_file(weights, folder / "model.safetensors", metadata={"steps": str(trained_steps(folder))})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
