"""A full-size checkpoint goes straight onto the device: the host holds a shard of it and little more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from kestrel_core.build import open_model
from kestrel_core.config import RuntimeConfig

pytestmark = pytest.mark.gpu

MEASURE = """
import sys, torch
from pathlib import Path
from kestrel_core.moondream.checkpoint.files import open_checkpoint
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.checkpoint.weights import load_weights

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

torch.ones(1, device="cuda").sum().item()  # the driver's own memory is there before and after
with torch.device("meta"):
    network = Moondream(MOONDREAM2)
Path("/proc/self/clear_refs").write_text("5")  # begin the peak anew
before = status("VmRSS")
load_weights(network, MOONDREAM2, open_checkpoint(Path(sys.argv[1])), torch.device("cuda"), torch.bfloat16)
print(status("VmHWM") - before, network.text.wte.float().std().item())
"""


def test_loading_a_sharded_checkpoint_takes_a_shard_and_a_gib_of_the_host_at_most(tmp_path: Path) -> None:
    config = RuntimeConfig(model="moondream2", device="cuda", weights="random")
    tensors = {f"model.{name}": t.cpu() for name, t in open_model(config).network.state_dict().items()}
    names = sorted(tensors)
    index: dict[str, str] = {}
    for number in range(4):
        shard = names[number::4]
        save_file({name: tensors[name] for name in shard}, tmp_path / f"model-{number}.safetensors")
        index |= dict.fromkeys(shard, f"model-{number}.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    largest = max(file.stat().st_size for file in tmp_path.glob("*.safetensors"))
    spread = tensors["model.text.wte"].float().std().item()
    del tensors
    torch.cuda.empty_cache()
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, tmp_path], capture_output=True, text=True, check=True
    )
    peak, loaded = done.stdout.split()
    print(f"host peak {int(peak) / 2**30:.2f} GiB, largest shard {largest / 2**30:.2f} GiB")
    assert int(peak) <= largest + 2**30
    assert float(loaded) == pytest.approx(spread, rel=1e-3)
