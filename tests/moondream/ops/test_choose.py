import logging
import sys

import pytest
import torch

from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose import choose_fused


def test_plain_torch_serves_where_kernels_cannot_or_shall_not() -> None:
    assert choose_fused(torch.device("cpu")) is plain
    assert choose_fused(torch.device("cuda"), "off") is plain


def test_a_gpu_without_the_kernel_language_serves_and_says_what_it_costs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in ("kernels", "expert_kernels", "head_kernels"):
        monkeypatch.delitem(sys.modules, f"kestrel_core.moondream.ops.{name}", raising=False)
        monkeypatch.delattr(f"kestrel_core.moondream.ops.{name}", raising=False)
    with caplog.at_level(logging.WARNING):
        assert choose_fused(torch.device("cuda")) is plain
    assert "one by one" in caplog.text
