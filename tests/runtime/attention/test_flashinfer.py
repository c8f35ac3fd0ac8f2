"""What FlashInfer is told, checked on a CPU against a plain reading of its documentation.

`tests/gpu` holds the real one against SDPA.
"""

import random
import sys
from dataclasses import replace

import fake_flashinfer
import numpy as np
import pytest
import torch
from fake_flashinfer import Decode, Prefill
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.loop.step import Running, Span
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_core.runtime.attention.protocol import SpanRows
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.kv_cache import KVCache, KVScales
from kestrel_core.runtime.torch_runtime import TorchRuntime


@pytest.mark.usefixtures("jit")
@pytest.mark.parametrize(("page_size", "overlaps"), [(5, True), (3, False)])
def test_a_storm_through_flashinfer_gives_what_sdpa_gives(page_size: int, overlaps: bool) -> None:
    model = tiny_model(tiny_config(2, n_kv_heads=2), seed=4)
    pictures = Pictures(model.config, model.text.wte)
    ours = CudaRuntime(model, NUM_PAGES, page_size, 5, 64, pictures)  # type: ignore[arg-type]
    assert type(ours._attention).__name__ == "FlashInferAttention"
    theirs = TorchRuntime(model, NUM_PAGES, page_size)
    theirs.encode_image = pictures  # type: ignore[assignment]
    storm = Storm(model.config, ours, theirs, seed=11, max_batch=5, overlaps=overlaps)
    storm.run(60)
    assert len(storm.pairs) > 80
    for span, mine, other in storm.pairs:
        assert mine.finite == other.finite
        if mine.finite:
            assert (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size), span


class WrongPrefill(Prefill):
    """One that cannot read float8, and does not say so."""

    def run(self, q: Tensor, kv: tuple[Tensor, Tensor], out: Tensor, **scales: float) -> None:
        super().run(q, kv, out, **scales)
        if scales:
            out[:, :, 1::2] = 0


class WrongDecode(Decode):
    def run(self, q: Tensor, kv: tuple[Tensor, Tensor], **scales: float) -> Tensor:
        return super().run(q, kv, **scales).flip(-1)


@pytest.mark.usefixtures("jit")
@pytest.mark.parametrize("prefill", [Prefill, WrongPrefill])
@pytest.mark.parametrize("most", [2**30, 20_000])
def test_a_storm_in_float8_gives_what_sdpa_gives(
    prefill: type[Prefill], most: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys.modules["flashinfer"], "BatchPrefillWithPagedKVCacheWrapper", prefill)
    from kestrel_core.runtime.attention import flashinfer

    monkeypatch.setattr(flashinfer, "MAX_GATHERED_BYTES", most)
    model = tiny_model(tiny_config(2, n_kv_heads=2), seed=4)
    pictures = Pictures(model.config, model.text.wte)
    float8 = [KVScales(0.5, 2.0)] * model.config.text.n_layers
    ours = CudaRuntime(model, NUM_PAGES, 5, 5, 64, pictures, kv_float8=float8)  # type: ignore[arg-type]
    assert type(ours._attention).__name__ == "FlashInferAttention"
    assert ("large steps unpack" in caplog.text) == (prefill is WrongPrefill)
    theirs = TorchRuntime(model, NUM_PAGES, 5, kv_float8=float8)
    theirs.encode_image = pictures  # type: ignore[assignment]
    storm = Storm(model.config, ours, theirs, seed=11, max_batch=5, overlaps=True)
    storm.run(40)
    assert len(storm.pairs) > 50
    for span, mine, other in storm.pairs:
        assert mine.finite == other.finite
        if mine.finite:
            assert (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size), span


@pytest.mark.usefixtures("jit")
def test_decodes_that_read_float8_wrongly_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys.modules["flashinfer"], "BatchDecodeWithPagedKVCacheWrapper", WrongDecode)
    model = tiny_model(tiny_config(2, n_kv_heads=2), seed=4)
    pictures = Pictures(model.config, model.text.wte)
    float8 = [KVScales()] * model.config.text.n_layers
    runtime = CudaRuntime(model, NUM_PAGES, 5, 5, 64, pictures, kv_float8=float8)  # type: ignore[arg-type]
    assert runtime.in_use()["attention"] == "sdpa"


@pytest.mark.usefixtures("jit")
def test_partial_results_of_any_prefill_fit_what_is_planned_for_them() -> None:
    from kestrel_core.runtime.attention.flashinfer import partial_bytes

    rng, largest = random.Random(5), dict[int, float]()
    for text in (MOONDREAM2.text, MOONDREAM3.text, replace(MOONDREAM2.text, n_kv_heads=8)):
        planned = partial_bytes(text, torch.device("cpu"))
        for _ in range(3000):
            count, page_size = rng.choice((1, 1, 2, 5, 40)), rng.choice((1, 10, 16))
            queries = [rng.choice((1, 16, 17, 200, rng.randrange(1, 900))) for _ in range(count)]
            pages = [-(-rng.randrange(n, 4096) // page_size) for n in queries]
            taken = fake_flashinfer.partial_bytes(
                queries, pages, page_size, text.n_heads, text.n_kv_heads, text.head_dim
            )
            assert taken <= planned
            largest[text.n_kv_heads] = max(largest.get(text.n_kv_heads, 0), taken / planned)
    assert all(share > 0.6 for share in largest.values()), "the bound says something"


def one_span(tokens: int, stop: int, page_size: int) -> SpanRows:
    """The last tokens of a sequence, whose pages lie one behind the other from the second on."""
    pages = -(-stop // page_size)
    return SpanRows(
        [Span(Running(1, []), stop - tokens, stop, None)],
        0,
        np.array([0, tokens], np.int32),
        np.array([0, pages], np.int32),
        np.array([(stop - 1) % page_size + 1], np.int32),
        torch.arange(1, pages + 1, dtype=torch.int32),
        page_size + torch.arange(stop - tokens, stop),
    )


@pytest.mark.usefixtures("jit")
@torch.inference_mode()
def test_a_plan_that_does_not_fit_gets_what_flashinfer_recommends(caplog: pytest.LogCaptureFixture) -> None:
    from kestrel_core.runtime.attention.flashinfer import WORKSPACE_BYTES, FlashInferAttention, partial_bytes

    torch.manual_seed(3)
    text, page_size = tiny_config(2, n_kv_heads=2).text, 5
    caches = [KVCache(text, 200, page_size, torch.device("cpu"), torch.float32) for _ in range(2)]
    for kept in (caches[0].k, caches[0].v):
        kept.normal_()
    caches[1].k.copy_(caches[0].k)
    caches[1].v.copy_(caches[0].v)
    theirs = PagedSdpaAttention(caches[1], 1000)
    for size, warnings in ((partial_bytes(text, torch.device("cpu")), 0), (1024, 1)):
        ours = FlashInferAttention(caches[0], text, workspace_bytes=size)
        for stop in (990, 700):
            rows = one_span(3, stop, page_size)
            heads = (text.n_heads, text.n_kv_heads, text.n_kv_heads)
            q, k, v = (torch.randn(3, n, text.head_dim) for n in heads)
            torch.testing.assert_close(ours.for_spans(rows)(0, q, k, v), theirs.for_spans(rows)(0, q, k, v))
        assert caplog.text.count("more of FlashInfer's workspace than was planned") == warnings
    assert len(ours._pages.workspace.full()) == WORKSPACE_BYTES


@pytest.mark.usefixtures("jit")
def test_another_error_of_a_plan_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from kestrel_core.runtime.attention.flashinfer import FlashInferAttention

    def plan(*_: object, **__: object) -> None:
        raise RuntimeError("an illegal memory access")

    text = tiny_config(2, n_kv_heads=2).text
    ours = FlashInferAttention(KVCache(text, 9, 5, torch.device("cpu"), torch.float32), text)
    monkeypatch.setattr(Prefill, "plan", plan)
    with pytest.raises(RuntimeError, match="illegal"):
        ours.for_spans(one_span(3, 20, 5))
