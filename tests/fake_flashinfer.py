"""FlashInfer as its documentation has it, on a CPU: wrappers that compute, and what compiles and loads."""

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kestrel_core.moondream.ops.plain import FLOAT8


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


MULTIPROCESSORS = 132


def partial_bytes(
    queries: list[int], pages: list[int], page_size: int, num_heads: int, num_kv_heads: int, head_dim: int
) -> int:
    """What the partial results of a prefill take: none, or so many that two thread blocks for each
    multiprocessor have a part. FlashInfer searches for the smallest part of which there are no more.
    """
    packed = [count * num_heads // num_kv_heads for count in queries]
    average = sum(packed) // len(packed)
    tile = 128 if average > 64 and head_dim < 256 else 64 if average > 16 else 16
    low, high = max(128 // page_size, 1), max(1, *pages)

    def num_blocks(part: int) -> int:
        return sum(-(-q // tile) * -(-max(count, 1) // part) for q, count in zip(packed, pages, strict=True))

    while low < high:
        middle = (low + high) // 2
        if num_blocks(middle) > 2 * MULTIPROCESSORS // num_kv_heads:
            low = middle + 1
        else:
            high = middle
    return num_heads * num_blocks(low) * tile * (head_dim + 1) * 4 if low < max(1, *pages) else 0


class Prefill:
    def __init__(self, workspace: Tensor, kv_layout: str, backend: str) -> None:
        assert kv_layout == "NHD" and workspace.dtype == torch.uint8
        self._workspace = workspace

    def reset_workspace_buffer(self, workspace: Tensor, plans: Tensor) -> None:
        assert plans.dtype == torch.uint8
        self._workspace = workspace

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
        needed = partial_bytes(
            qo_indptr.diff().tolist(), indptr.diff().tolist(), page_size, num_heads, num_kv_heads, head_dim
        )
        if needed > len(self._workspace):
            raise RuntimeError("Buffer overflow when allocating memory. Increase the workspace buffer size.")
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


class Spec:
    def __init__(self, name: str, compiled: set[str]) -> None:
        self.name = name
        self.is_compiled = name in compiled


class FlashInferJit:
    """What compiles and loads, in the place of FlashInfer's. Prefills wait until they are `released`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = list[str]()
        self.compiled = set[str]()
        self.broken = ""  # what cannot be compiled
        self.released = threading.Event()
        self.released.set()
        modules: dict[str, dict[str, Callable[..., Any]]] = {
            "jit": {
                "gen_batch_decode_module": partial(self._spec, "decode"),
                "gen_batch_prefill_module": partial(self._spec, "prefill"),
                "build_jit_specs": self._build_together,
            },
            "decode": {"get_batch_decode_module": partial(self._load, "decode")},
            "prefill": {"get_batch_prefill_module": partial(self._load, "prefill")},
        }
        for name, functions in modules.items():
            module = ModuleType(f"flashinfer.{name}")
            vars(module).update(functions)
            monkeypatch.setitem(sys.modules, f"flashinfer.{name}", module)

    def _spec(self, name: str, *kind: Any) -> Spec:
        return Spec(" ".join(map(str, (name, *kind))), self.compiled)

    def _build_together(self, specs: Sequence[Spec]) -> None:
        self.calls.append(f"compile {len(specs)} together")
        for spec in specs:
            self._compile(spec.name)

    def _load(self, name: str, *kind: Any) -> None:
        spec = self._spec(name, *kind)
        self.calls.append(f"load {spec.name}")
        if not spec.is_compiled:
            self._compile(spec.name)

    def _compile(self, name: str) -> None:
        if name.startswith("prefill"):
            assert self.released.wait(10)
        if self.broken and name.startswith(self.broken):
            raise RuntimeError("there is no nvcc")
        self.compiled.add(name)
