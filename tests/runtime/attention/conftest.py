import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest
import torch
from fake_flashinfer import MULTIPROCESSORS, Decode, Event, FlashInferJit, Prefill

from kestrel_core.runtime.attention import choose


@pytest.fixture
def jit(monkeypatch: pytest.MonkeyPatch) -> Iterator[FlashInferJit]:
    package = ModuleType("flashinfer")
    package.BatchPrefillWithPagedKVCacheWrapper = Prefill  # type: ignore[attr-defined]
    package.BatchDecodeWithPagedKVCacheWrapper = Decode  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer", package)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    device = SimpleNamespace(multi_processor_count=MULTIPROCESSORS)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: device)
    monkeypatch.setattr(choose, "_reason_against_flashinfer", lambda *_: None)
    yield FlashInferJit(monkeypatch)
    sys.modules.pop("kestrel_core.runtime.attention.flashinfer")
