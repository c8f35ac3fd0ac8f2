"""Near ties of a router go either way, and only they do."""

import json
from pathlib import Path

import torch
from goldens import golden_embeddings, lay_out
from torch import Tensor

from kestrel_core.build import load_model
from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.moe import MoE
from kestrel_tools.parity import md3
from kestrel_tools.parity.adapters import read_golden_adapter
from kestrel_tools.parity.report import Report
from kestrel_tools.parity.rounding import RoundedProducts
from kestrel_tools.parity.stages import Golden
from kestrel_tools.parity.subject import Subject
from kestrel_tools.parity.ties import turned, ways


def router_of(logits: Tensor) -> MoE:
    """Gives these logits to the rows of an identity matrix."""
    moe = MoE(len(logits), MoEConfig(logits.shape[1], experts_per_token=2, expert_inner_dim=8))
    moe.router.weight.copy_(logits.T)
    moe.router.bias.zero_()
    return moe


def chosen(moe: MoE) -> list[set[int]]:
    return [set(ids) for ids in moe.route(torch.eye(moe.router.in_features))[0].tolist()]


@torch.no_grad()
def test_only_near_ties_behind_the_picture_are_turned() -> None:
    near, far = [3.0, 1.0, 0.99, -2.0], [3.0, 1.0, 0.5, -2.0]
    moe = router_of(torch.tensor([near, near, far]))
    assert chosen(moe) == [{0, 1}, {0, 1}, {0, 1}]
    with turned((moe,), first=1, near=0.05):
        assert chosen(moe) == [{0, 1}, {0, 2}, {0, 1}]
    assert chosen(moe) == [{0, 1}, {0, 1}, {0, 1}]


@torch.inference_mode()
def test_an_adapted_answer_behind_a_near_tie_agrees_in_bfloat16(tmp_path: Path) -> None:
    folder = lay_out("md3", tmp_path)
    model = load_model(folder, None, torch.device("cpu"), torch.bfloat16)
    report = Report("relative RMS", 5e-2)
    adapter = read_golden_adapter(
        md3.adapter_files(folder), model.network.config.text, torch.bfloat16, report
    )
    encode = golden_embeddings(folder)
    subject = Subject(model.network, model.device, lambda image: encode(image).bfloat16(), adapter=adapter)
    golden = Golden(folder / "first_logits.safetensors", report)
    prepared = md3.images(folder, subject)
    asked = json.loads((folder / "runs.json").read_text())["adapter"]["query"]
    with RoundedProducts():
        hidden = subject.prefill(prepared[asked["image"]], asked["prompt_tokens"], subject.adapted())
        md3._check_adapter(folder, golden, prepared, subject)
    wanted, ours = golden["adapter_query"], subject.logits(hidden[-1]).float()
    assert float((ours - wanted).norm() / wanted.norm()) > 5e-2, "rounding turns no tie here"
    assert 1e-3 < report.stages["adapter first logits"].worst < 5e-2
    assert len([*ways(model.network)]) > 2
