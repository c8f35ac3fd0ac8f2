"""What serves on this machine: told by the engine, and refused to go without where it is required.

The device half runs on a CPU here, as if it were a CUDA device. `tests/gpu` has the real one.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import tiny_config, tiny_model

from kestrel_core import build
from kestrel_core.build import LoadedModel, assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.tokenizer import Tokenizer
from kestrel_core.loop.step import Kind, Readout, Running, Span, StepPlan
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.protocol.errors import BadCheckpoint, EngineFailed, InvalidRequest
from kestrel_core.runtime import quantising
from kestrel_core.runtime.attention import sdpa
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.graphs import Graphs, Work
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.skills.spec import Language

ALL = float("inf")
CPU, CUDA = torch.device("cpu"), torch.device("cuda")
ONE_STEP = StepPlan([Span(Running(1, [1]), 0, 2, (0, 7), None, Readout(Kind.TOKEN))])


class Replays(Graphs):
    """In place of CUDA graphs; so many captures work."""

    def __init__(self, captures: float, choice: str) -> None:
        self._required = choice == "required"
        self._left = captures

    def capture(self, work: Work) -> Work:
        if self._left == 0:
            raise RuntimeError("there is a wait in it")
        self._left -= 1
        return work


def allow_captures(monkeypatch: pytest.MonkeyPatch, pictures: float, steps: float) -> None:
    """So many captures work, where batches of pictures are captured first and steps after them."""
    left = iter((pictures, steps))
    monkeypatch.setattr(Graphs, "wanted", lambda device, choice: Replays(next(left), choice))


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> LoadedModel:
    """One that is taken to be on a CUDA device with all of its memory free."""
    monkeypatch.setattr(build, "free_bytes", lambda device: 2**40)
    config = tiny_config(2, vocab_size=300)
    return LoadedModel(tiny_model(config), Language(config, Tokenizer.of_bytes(config)), CUDA)


def configured(**options: Any) -> RuntimeConfig:
    return RuntimeConfig(**{"device": "cpu", "max_batch_size": 2, "cuda_graphs": "off", **options})


def test_two_engines_over_one_model_compute_each_in_its_own_way(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, compute = list[FastText](), FastText.__call__

    def counting(self: FastText, *arguments: Any) -> torch.Tensor:
        calls.append(self)
        return compute(self, *arguments)

    monkeypatch.setattr(FastText, "__call__", counting)
    engines = [assemble_engine(model, configured(compile=choice)) for choice in ("auto", "off", "auto")]
    used = []
    for engine in engines:
        calls.clear()
        sample = engine.runtime.launch(ONE_STEP).collect()[1]
        used.append((len(calls), sample.token))
        engine.close()
    token = used[0][1]
    assert used == [(1, token), (0, token), (1, token)]


def test_the_weights_are_packed_once_for_all_engines_over_a_model(model: LoadedModel) -> None:
    packed = model.fast_paths.text("auto")
    assert packed is not None and model.fast_paths.text("auto") is packed


def test_an_engine_on_a_cpu_says_that_it_is_one() -> None:
    engine = assemble_engine(
        open_model(RuntimeConfig(model="moondream-tiny", device="cpu")),
        configured(model="moondream-tiny", vision_dtype="fp8"),
    )
    assert engine.in_use() == {
        "model": "moondream-tiny",
        "generation": "3",
        "device": "cpu",
        "dtype": "float32",
        "vision_dtype": "float32",
        "kv_dtype": "float32",
        "quantize": "off",
        "kernels": "torch",
        "runtime": "torch",
        "attention": "sdpa",
        "graphs": "off",
        "adapters": "8 x rank 32, 42 MiB",
    }
    engine.close()


@pytest.fixture
def wide_model(monkeypatch: pytest.MonkeyPatch) -> LoadedModel:
    """One whose widths float8 products take, in 16 bits."""
    monkeypatch.setattr(build, "free_bytes", lambda device: 2**40)
    monkeypatch.setattr(quantising, "capability", lambda network: (9, 0))
    config = tiny_config(2, vocab_size=300)
    config = replace(config, vision=replace(config.vision, enc_ff_dim=32))
    network = tiny_model(config, dtype=torch.bfloat16)
    return LoadedModel(network, Language(config, Tokenizer.of_bytes(config)), CUDA)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")
@pytest.mark.parametrize("kind", ["fp8", "int4"])
def test_an_engine_computes_in_few_bits_and_says_so(wide_model: LoadedModel, kind: str) -> None:
    engine = assemble_engine(wide_model, configured(quantize=kind, compile="off"))
    vision_dtype = "float8" if kind == "fp8" else "bfloat16"
    assert (engine.in_use()["quantize"], engine.in_use()["vision_dtype"]) == (kind, vision_dtype)
    assert engine.runtime.launch(ONE_STEP).collect()[1].finite
    kept = wide_model.network.text.named_parameters()
    assert not any(weight.numel() for name, weight in kept if name.endswith("attn.qkv.weight"))
    engine.close()
    with pytest.raises(EngineFailed, match=f"packed as {kind} already"):
        assemble_engine(wide_model, configured())


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")
def test_scales_are_taken_from_the_file_that_is_named(wide_model: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no such file; kestrel quantize writes it"):
        assemble_engine(wide_model, configured(quantize="fp8", scales_path="nowhere.json"))
    (tmp_path / "kestrel_scales.json").write_text("{}")
    beside = LoadedModel(wide_model.network, wide_model.language, CUDA, tmp_path)
    with pytest.raises(BadCheckpoint, match="holds no scales"):
        assemble_engine(beside, configured(quantize="fp8"))


def test_weights_that_an_engine_uses_are_not_packed_for_another(wide_model: LoadedModel) -> None:
    assemble_engine(wide_model, configured()).close()
    with pytest.raises(EngineFailed, match="quantize is fp8, and another engine computes"):
        assemble_engine(wide_model, configured(quantize="fp8"))


def test_an_old_gpu_serves_without_float8(
    wide_model: LoadedModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(quantising, "capability", lambda network: (8, 0))
    engine = assemble_engine(wide_model, configured(quantize="fp8"))
    assert engine.in_use()["quantize"] == "off"
    assert "compute capability is 8.0" in caplog.text
    engine.close()


@pytest.mark.parametrize("option", ["flashinfer", "cuda_graphs", "compile"])
@pytest.mark.parametrize(("device", "runtime"), [(CPU, "auto"), (CUDA, "torch")])
def test_the_plain_runtime_refuses_what_only_the_fast_one_has(
    model: LoadedModel, option: str, device: torch.device, runtime: str
) -> None:
    placed = LoadedModel(model.network, model.language, device)
    with pytest.raises(EngineFailed, match=f'{option} is required, .* device is "{device}" and runtime is'):
        assemble_engine(placed, configured(runtime=runtime, **{option: "required"}))


def test_flashinfer_where_it_is_required_is_not_replaced_by_sdpa() -> None:
    config = tiny_config(2).text
    kv_cache = KVCache(config, 4, 4, CPU, torch.float32)
    assert choose_attention(kv_cache, config, 16, "auto").name == "sdpa"
    with pytest.raises(
        EngineFailed, match="FlashInfer is required, and cannot serve: it needs a CUDA device"
    ):
        choose_attention(kv_cache, config, 16, "required")


def test_kernels_where_they_are_required_are_not_replaced_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_fused(CPU) is plain and plain.name == "torch"
    with pytest.raises(EngineFailed, match="they need a CUDA device; this one is cpu"):
        choose_fused(CPU, "required")
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in ("kernels", "expert_kernels", "head_kernels"):
        monkeypatch.delitem(sys.modules, f"kestrel_core.moondream.ops.{name}", raising=False)
        monkeypatch.delattr(f"kestrel_core.moondream.ops.{name}", raising=False)
    with pytest.raises(EngineFailed, match="our own kernels are required, and cannot be imported"):
        choose_fused(CUDA, "required")


@pytest.mark.parametrize(
    ("pictures", "steps", "told"),
    [(ALL, ALL, "on"), (ALL, 3, "partly"), (3, ALL, "partly"), (0, ALL, "partly"), (0, 0, "off")],
)
def test_the_engine_tells_whether_graphs_are_in_use(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch, pictures: float, steps: float, told: str
) -> None:
    allow_captures(monkeypatch, pictures, steps)
    engine = assemble_engine(model, configured(cuda_graphs="auto", compile="off"))
    found = engine.in_use()
    assert (found["graphs"], found["runtime"], found["kernels"]) == (told, "cuda", "torch")
    engine.close()


@pytest.mark.parametrize(("pictures", "steps"), [(ALL, 3), (3, ALL)])
def test_graphs_where_they_are_required_are_not_left_out(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch, pictures: float, steps: float
) -> None:
    allow_captures(monkeypatch, pictures, steps)
    with pytest.raises(EngineFailed, match="CUDA graphs are required, and a capture failed: there is a wait"):
        assemble_engine(model, configured(cuda_graphs="required"))


def test_graphs_are_required_for_every_step_there_can_be(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_captures(monkeypatch, ALL, ALL)
    engine = assemble_engine(model, configured(cuda_graphs="required"))
    assert engine.in_use()["graphs"] == "on"
    engine.close()
    allow_captures(monkeypatch, ALL, ALL)
    monkeypatch.setattr(sdpa, "MAX_GATHERED_BYTES", 0)
    with pytest.raises(EngineFailed, match="without FlashInfer the largest steps cannot be captured"):
        assemble_engine(LoadedModel(model.network, model.language, CUDA), configured(cuda_graphs="required"))
