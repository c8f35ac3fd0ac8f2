"""What FlashInfer is told, checked on a CPU against a plain reading of its documentation.

`tests/gpu` holds the real one against SDPA.
"""

import sys

import pytest
from fake_flashinfer import Decode, Prefill
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.kv_cache import KVScales
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
