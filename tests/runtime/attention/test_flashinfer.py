"""What FlashInfer is told, checked on a CPU against a plain reading of its documentation.

`tests/gpu` holds the real one against SDPA.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.moondream.ops.plain import FLOAT8
from kestrel_core.runtime.attention import choose
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.kv_cache import KVScales
from kestrel_core.runtime.torch_runtime import TorchRuntime


def attended(q: Tensor, kv: tuple[Tensor, Tensor], pages: Tensor, last: int, causal: bool) -> Tensor:
    """Queries [tokens, heads, head_dim] at the end of a sequence that lies on these pages."""
    page_size = kv[0].shape[1]
    assert 1 <= last <= page_size
    length = (len(pages) - 1) * page_size + last
    k, v = (part[pages.long()].flatten(0, 1)[:length].transpose(0, 1) for part in kv)
    mask = torch.ones(len(q), length, dtype=torch.bool).tril(length - len(q)) if causal else None
    out = F.scaled_dot_product_attention(
        q.transpose(0, 1)[None], k[None], v[None], attn_mask=mask, enable_gqa=q.shape[1] != k.shape[0]
    )
    return out[0].transpose(0, 1)


def multiplied(
    kv: tuple[Tensor, Tensor], k_scale: float | None = None, v_scale: float | None = None
) -> tuple[Tensor, Tensor]:
    assert (k_scale is not None) == (v_scale is not None) == (kv[0].dtype == FLOAT8)
    return (kv[0].float() * k_scale, kv[1].float() * v_scale) if k_scale and v_scale else kv


class Prefill:
    def __init__(self, workspace: Tensor, kv_layout: str, backend: str) -> None:
        assert kv_layout == "NHD" and workspace.dtype == torch.uint8

    def plan(
        self,
        qo_indptr: Tensor,
        indptr: Tensor,
        indices: Tensor,
        last: Tensor,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        causal: bool,
        **dtypes: Any,
    ) -> None:
        assert qo_indptr[0] == indptr[0] == 0 and indptr[-1] == len(indices)
        assert {t.dtype for t in (qo_indptr, indptr, indices, last)} == {torch.int32}
        self._planned = qo_indptr.tolist(), indptr.tolist(), indices, last.tolist(), causal

    def run(self, q: Tensor, kv: tuple[Tensor, Tensor], out: Tensor, **scales: float) -> None:
        kv = multiplied(kv, **scales)
        starts, indptr, indices, last, causal = self._planned
        assert starts[-1] == len(q)
        for row, length in enumerate(last):
            tokens, pages = slice(starts[row], starts[row + 1]), indices[indptr[row] : indptr[row + 1]]
            out[tokens] = attended(q[tokens], kv, pages, length, causal)


class Decode:
    """With fixed buffers: a plan fills them in part, a run reads what is in them then."""

    def __init__(
        self,
        workspace: Tensor,
        kv_layout: str,
        use_cuda_graph: bool,
        paged_kv_indptr_buffer: Tensor,
        paged_kv_indices_buffer: Tensor,
        paged_kv_last_page_len_buffer: Tensor,
    ) -> None:
        assert kv_layout == "NHD" and use_cuda_graph
        self._indptr, self._indices = paged_kv_indptr_buffer, paged_kv_indices_buffer
        self._last = paged_kv_last_page_len_buffer
        assert len(self._indptr) == len(self._last) + 1

    def reset_workspace_buffer(self, workspace: Tensor, plans: Tensor) -> None:
        pass

    def plan(self, indptr: Tensor, indices: Tensor, last: Tensor, *shape: int, **dtypes: Any) -> None:
        assert len(last) == len(self._last) and indptr.dtype == torch.int32
        self._counts = indptr.diff().tolist()
        self._indptr.copy_(indptr)
        self._last.copy_(last)
        self._indices[: len(indices)].copy_(indices)

    def run(self, q: Tensor, kv: tuple[Tensor, Tensor], **scales: float) -> Tensor:
        kv = multiplied(kv, **scales)
        assert self._indptr.diff().tolist() == self._counts, "planned for something else"
        ends = self._indptr.tolist()
        return torch.cat(
            [
                attended(q[i : i + 1], kv, self._indices[ends[i] : ends[i + 1]], int(self._last[i]), True)
                for i in range(len(q))
            ]
        )


class Event:
    def synchronize(self) -> None: ...

    def record(self) -> None: ...


@pytest.fixture
def flashinfer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = ModuleType("flashinfer")
    package.BatchPrefillWithPagedKVCacheWrapper = Prefill  # type: ignore[attr-defined]
    package.BatchDecodeWithPagedKVCacheWrapper = Decode  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer", package)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(choose, "_reason_against_flashinfer", lambda *_: None)
    yield
    sys.modules.pop("kestrel_core.runtime.attention.flashinfer")


@pytest.mark.usefixtures("flashinfer")
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


@pytest.mark.usefixtures("flashinfer")
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


@pytest.mark.usefixtures("flashinfer")
def test_decodes_that_read_float8_wrongly_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys.modules["flashinfer"], "BatchDecodeWithPagedKVCacheWrapper", WrongDecode)
    model = tiny_model(tiny_config(2, n_kv_heads=2), seed=4)
    pictures = Pictures(model.config, model.text.wte)
    float8 = [KVScales()] * model.config.text.n_layers
    runtime = CudaRuntime(model, NUM_PAGES, 5, 5, 64, pictures, kv_float8=float8)  # type: ignore[arg-type]
    assert runtime.in_use()["attention"] == "sdpa"


class Spec:
    def __init__(self, uri: str, folder: Path, built: list[str]) -> None:
        self.is_aot = False
        self.jit_library_path = folder / uri
        self._built = built

    def build(self, verbose: bool) -> None:
        self._built.append(self.jit_library_path.name)
        if "broken" in self._built:
            raise RuntimeError("there is no nvcc")
        self.jit_library_path.write_text("")


def compilers(monkeypatch: pytest.MonkeyPatch, folder: Path, built: list[str]) -> None:
    jit = ModuleType("flashinfer.jit")

    def spec(kind: str, *of: Any) -> Spec:
        return Spec(f"{kind} {' '.join(str(one) for one in of)}", folder, built)

    jit.gen_batch_decode_module = partial(spec, "decode")  # type: ignore[attr-defined]
    jit.gen_batch_prefill_module = partial(spec, "prefill")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer.jit", jit)


@pytest.mark.usefixtures("flashinfer")
def test_it_is_compiled_ahead_of_its_use_and_only_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built = list[str]()
    compilers(monkeypatch, tmp_path, built)
    config, cuda = tiny_config(2).text, torch.device("cuda")
    for stored in (torch.bfloat16, FLOAT8):
        built.clear()
        for _ in range(2):
            thread = choose.prepare_flashinfer(config, cuda, torch.bfloat16, "auto", stored)
            assert thread is not None
            thread.join()
        dtypes, dim = f"torch.bfloat16 {stored} torch.bfloat16 torch.int32", config.head_dim
        numbers = f"{dtypes} {dim} {dim} 0 False False"
        assert sorted(built) == [f"decode {numbers}", f"prefill fa2 {numbers} False"]


@pytest.mark.usefixtures("flashinfer")
def test_what_cannot_be_compiled_ahead_is_told_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built = ["broken"]
    compilers(monkeypatch, tmp_path, built)
    thread = choose.prepare_flashinfer(tiny_config(2).text, torch.device("cuda"), torch.bfloat16, "auto")
    assert thread is not None
    thread.join()
    assert len(built) > 1


def test_nothing_is_compiled_ahead_where_it_will_not_serve() -> None:
    assert choose.prepare_flashinfer(tiny_config(2).text, torch.device("cpu"), torch.bfloat16, "auto") is None
