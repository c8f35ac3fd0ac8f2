"""FlashInfer compiled beside a start, which waits for its decodes alone; large steps change over later."""

import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch
from fake_flashinfer import FlashInferJit, Prefill
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model

from kestrel_core.loop.step import StepPlan
from kestrel_core.moondream.ops.plain import FLOAT8
from kestrel_core.runtime.attention import choose
from kestrel_core.runtime.attention.late_prefills import Compiler
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.readouts.captured import SamplesInFlight
from kestrel_core.runtime.torch_runtime import TorchRuntime

HEAD_DIM = tiny_config(2).text.head_dim
CUDA = torch.device("cuda")


def begun(flashinfer: str = "auto", stored: torch.dtype | None = None) -> Compiler:
    config = tiny_config(2).text
    compiler = choose.prepare_flashinfer(config, CUDA, torch.float32, flashinfer, stored)
    assert compiler is not None
    return compiler


@pytest.mark.parametrize(
    ("flashinfer", "stored", "is_together"),
    [("auto", None, False), ("required", None, True), ("auto", FLOAT8, True)],
)
def test_it_is_compiled_ahead_of_its_use_and_only_once(
    jit: FlashInferJit, flashinfer: str, stored: torch.dtype | None, is_together: bool
) -> None:
    dtypes, dim = f"torch.float32 {stored or torch.float32} torch.float32 torch.int32", HEAD_DIM
    numbers = f"{dtypes} {dim} {dim} 0 False False"
    for at_once in (2, 0):
        jit.calls.clear()
        begun(flashinfer, stored).join()
        together = [f"compile {at_once} together"] if is_together else []
        assert jit.calls == [*together, f"load decode {numbers}", f"load prefill fa2 {numbers} False"]


@pytest.mark.parametrize(("flashinfer", "stored"), [("required", None), ("auto", FLOAT8)])
def test_where_nothing_else_may_serve_both_are_waited_for(
    jit: FlashInferJit, flashinfer: str, stored: torch.dtype | None
) -> None:
    jit.released.clear()
    compiler = begun(flashinfer, stored)
    assert not compiler.ready
    jit.released.set()
    compiler.wait()
    assert len(jit.compiled) == 2 and not late(compiler, stored)


def test_a_start_waits_for_decodes_alone_unless_prefills_are_compiled(jit: FlashInferJit) -> None:
    jit.released.clear()
    compiler = begun()
    compiler.wait()
    assert len(jit.compiled) == 1 and late(compiler)
    jit.released.set()
    compiler.join()
    assert len(jit.compiled) == 2 and not late(compiler)
    again = begun()
    again.wait()
    assert jit.calls[-1].startswith("load prefill") and not late(again)


def late(compiler: Compiler, stored: torch.dtype | None = None) -> bool:
    return compiler.still_compiles_prefills((HEAD_DIM, torch.float32, stored or torch.float32))


def test_prefills_of_other_heads_than_were_guessed_are_waited_for(jit: FlashInferJit) -> None:
    jit.released.clear()
    compiler = begun()
    compiler.wait()
    threading.Timer(0.05, jit.released.set).start()
    assert not compiler.still_compiles_prefills((2 * HEAD_DIM, torch.float32, torch.float32))
    assert not compiler.is_alive()


@pytest.mark.parametrize("broken", ["decode", "prefill"])
@pytest.mark.parametrize("flashinfer", ["auto", "required"])
def test_what_cannot_be_compiled_ahead_is_told_later(
    jit: FlashInferJit, broken: str, flashinfer: str
) -> None:
    jit.broken = broken
    compiler = begun(flashinfer)
    compiler.join()
    compiler.wait()
    assert str(compiler.error) == "there is no nvcc" and not late(compiler)


def test_nothing_is_compiled_ahead_where_it_will_not_serve() -> None:
    assert choose.prepare_flashinfer(tiny_config(2).text, torch.device("cpu"), torch.bfloat16, "auto") is None


class CountedPrefill(Prefill):
    """Counts its plans: two for trying it out, and those of steps."""

    num_plans = 0

    def plan(self, *arguments: Any, **others: Any) -> None:
        type(self).num_plans += 1
        super().plan(*arguments, **others)


class BrokenPrefill(Prefill):
    def plan(self, *arguments: Any, **others: Any) -> None:
        raise RuntimeError("no kernel image")


def run_storm(compiler: Compiler, midway: Callable[[], None]) -> None:
    """Steps before and after `midway`, all of which give what SDPA gives."""
    model = tiny_model(tiny_config(2), seed=4)
    pictures = Pictures(model.config, model.text.wte)
    ours = CudaRuntime(model, NUM_PAGES, 5, 5, 64, pictures, compiler=compiler)  # type: ignore[arg-type]
    assert ours.in_use()["attention"] == "flashinfer"
    theirs = TorchRuntime(model, NUM_PAGES, 5)
    theirs.encode_image = pictures  # type: ignore[assignment]
    launch, num_steps = ours.launch, count(1)

    def launch_and_arrive(plan: StepPlan) -> SamplesInFlight:
        if next(num_steps) == 25:
            midway()
        return launch(plan)

    ours.launch = launch_and_arrive  # type: ignore[method-assign]
    storm = Storm(model.config, ours, theirs, seed=11, max_batch=5, overlaps=True)
    storm.run(60)
    assert len(storm.pairs) > 80 and next(num_steps) > 25
    for span, mine, other in storm.pairs:
        assert mine.finite == other.finite
        if mine.finite:
            assert (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size), span


def test_large_steps_change_to_flashinfer_once_it_is_compiled(
    jit: FlashInferJit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["flashinfer"], "BatchPrefillWithPagedKVCacheWrapper", CountedPrefill)
    monkeypatch.setattr(CountedPrefill, "num_plans", 0)
    jit.released.clear()
    compiler = begun()
    compiler.wait()

    def arrive() -> None:
        assert CountedPrefill.num_plans == 0
        jit.released.set()
        compiler.join()

    run_storm(compiler, arrive)
    assert CountedPrefill.num_plans > 2


@pytest.mark.parametrize("broken", ["compiler", "kernels"])
def test_prefills_that_fail_late_leave_large_steps_to_sdpa(
    broken: str, jit: FlashInferJit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jit.released.clear()
    if broken == "compiler":
        jit.broken = "prefill"
    else:
        monkeypatch.setattr(sys.modules["flashinfer"], "BatchPrefillWithPagedKVCacheWrapper", BrokenPrefill)
    compiler = begun()
    compiler.wait()

    def arrive() -> None:
        assert not caplog.records
        jit.released.set()
        compiler.join()

    run_storm(compiler, arrive)
    [record] = caplog.records
    assert record.message.startswith(
        "large steps are computed without FlashInfer, span by span: RuntimeError"
    )
    assert ("there is no nvcc" in record.message) == (broken == "compiler")
