"""What a GPU is tried out with, on a CPU: stand-ins for FlashInfer and the kernels, right and wrong ones."""

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from kestrel_core.moondream.config import TextConfig
from kestrel_core.moondream.ops import plain
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_tools.doctor import device
from kestrel_tools.doctor.report import Verdict

CPU = torch.device("cpu")


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    module = ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)
    package, _, leaf = name.rpartition(".")
    monkeypatch.setattr(sys.modules[package], leaf, module, raising=False)


@pytest.mark.parametrize(("error", "verdict"), [(0.0, Verdict.OK), (0.5, Verdict.FAULT)])
def test_flashinfer_is_held_against_sdpa(
    monkeypatch: pytest.MonkeyPatch, error: float, verdict: Verdict
) -> None:
    class StandIn(PagedSdpaAttention):
        def __init__(self, kv_cache: KVCache, config: TextConfig) -> None:
            super().__init__(kv_cache, 80)

        def try_out(self) -> None:
            pass

        def for_spans(self, rows: Any) -> Any:
            attend = super().for_spans(rows)
            return lambda *arguments: attend(*arguments) + error

    pretend(monkeypatch, "kestrel_core.runtime.attention.flashinfer", FlashInferAttention=StandIn)
    assert device.try_flashinfer(CPU).verdict is verdict


@pytest.mark.parametrize(("error", "verdict"), [(0.0, Verdict.OK), (float("nan"), Verdict.FAULT)])
def test_our_kernels_are_held_against_plain_torch(
    monkeypatch: pytest.MonkeyPatch, error: float, verdict: Verdict
) -> None:
    def add_norm(*arguments: Any) -> tuple[Tensor, Tensor]:
        total, normed = plain.add_norm(*arguments)
        return total, normed + error

    pretend(monkeypatch, "kestrel_core.moondream.ops.kernels", add_norm=add_norm)
    assert device.try_kernels(CPU).verdict is verdict
