"""The kernels for steps of few rows on the device: each against plain torch, and storms of all."""

import copy
import logging

import pytest
import torch
from rich.console import Console
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model

from decode_checks import check_attention, check_products
from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Graphs
from kestrel_core.runtime.torch_runtime import TorchRuntime
from stages import Report

pytestmark = pytest.mark.gpu

HEADS = {"dim": 128, "n_heads": 2, "n_kv_heads": 2}
EXPERTS = MoEConfig(num_experts=8, start_layer=1, experts_per_token=2, expert_inner_dim=64)
CONFIGS = {"dense": tiny_config(2, **HEADS), "experts": tiny_config(3, **HEADS, moe=EXPERTS)}
DEVICE = torch.device("cuda")


@torch.inference_mode()
@pytest.mark.parametrize("check", [check_attention, check_products])
def test_kernels_agree_with_plain_torch(check) -> None:  # type: ignore[no-untyped-def]
    report = Report(Console())
    check(DEVICE, report)
    assert report.failed == []


@pytest.mark.parametrize("level", ["attention", "products", "early"])
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("graphs", [True, False])
def test_a_storm_gives_what_the_plain_runtime_gives(
    level: str, name: str, dtype: torch.dtype, graphs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model(CONFIGS[name], seed=2, dtype=dtype).cuda()
    fast = copy.deepcopy(model)
    pictures = Pictures(model.config, model.text.wte)
    with caplog.at_level(logging.WARNING, "kestrel"):
        ours = CudaRuntime(
            fast,
            NUM_PAGES,
            5,
            6,
            64,
            pictures,  # type: ignore[arg-type]
            forward=FastText(fast.text, choose_fused(DEVICE, "required", level)),
            flashinfer="off",
            decode_kernels=level,
            graphs=Graphs(DEVICE) if graphs else None,
        )
        assert ours.in_use()["attention"] == "ours and sdpa"
        ours.warm_up(32)
    assert "CUDA graphs" not in caplog.text and "launch by launch" not in caplog.text
    theirs = TorchRuntime(model, NUM_PAGES, 5)
    theirs.encode_image = pictures  # type: ignore[assignment]
    storm = Storm(model.config, ours, theirs, seed=6, max_batch=6, overlaps=True)
    storm.run(100)
    assert storm.num_decodes > 25
    sound = [(mine, other) for _, mine, other in storm.pairs if other.finite]
    assert all(mine.finite for mine, _ in sound)
    same = [
        (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size) for mine, other in sound
    ]
    assert sum(same) >= (0.99 if dtype == torch.float32 else 0.85) * len(same), (sum(same), len(same))
