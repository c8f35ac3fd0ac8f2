"""The CUDA runtime on a GPU, in all its forms, against the plain one on the same GPU."""

import copy
import importlib.util
import logging
import random
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from storms import NUM_PAGES, Pictures, Storm
from tiny import tiny_config, tiny_model

from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.loop.step import Kind, PreparedImage, Readout, Running, Sampling, Span, StepPlan
from kestrel_core.moondream.config import MOONDREAM2, MoEConfig
from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.ops.choose import choose_fused
from kestrel_core.moondream.text import Forward
from kestrel_core.runtime.attention.choose import choose_attention
from kestrel_core.runtime.attention.protocol import DecodeRows, SpanRows
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.cuda_runtime import CudaRuntime
from kestrel_core.runtime.graphs import Graphs, no_waiting
from kestrel_core.runtime.kv_cache import KVCache
from kestrel_core.runtime.torch_runtime import TorchRuntime

pytestmark = pytest.mark.gpu

HEADS = {"dim": 128, "n_heads": 2, "n_kv_heads": 2}  # of 64, as FlashInfer has kernels for
EXPERTS = MoEConfig(num_experts=8, start_layer=1, experts_per_token=2, expert_inner_dim=64)
CONFIGS = {"dense": tiny_config(2, **HEADS), "experts": tiny_config(3, **HEADS, moe=EXPERTS)}
DEVICE = torch.device("cuda")
TOKEN = Readout(Kind.TOKEN)
WORKS = {  # dtype, FlashInfer, graphs
    "bf16, flashinfer, graphs": (torch.bfloat16, "auto", True),
    "bf16, flashinfer": (torch.bfloat16, "auto", False),
    "bf16, graphs": (torch.bfloat16, "off", True),
    "bf16": (torch.bfloat16, "off", False),
    "f32, graphs": (torch.float32, "auto", True),
    "f32": (torch.float32, "auto", False),
}


def needs_flashinfer() -> None:
    if importlib.util.find_spec("flashinfer") is None:
        pytest.skip("FlashInfer is not installed here")


def make(
    model: Moondream,
    flashinfer: str = "auto",
    graphs: bool = True,
    max_batch: int = 6,
    forward: Forward | None = None,
) -> tuple[CudaRuntime, Pictures]:
    pictures = Pictures(model.config, model.text.wte)
    runtime = CudaRuntime(
        model,
        NUM_PAGES,
        5,
        max_batch,
        64,
        pictures,  # type: ignore[arg-type]
        forward=forward,
        flashinfer=flashinfer,
        graphs=Graphs(DEVICE) if graphs else None,
    )
    return runtime, pictures


@pytest.mark.parametrize("overlaps", [False, True], ids=["one by one", "overlapping"])
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("dtype", "flashinfer", "graphs"), WORKS.values(), ids=WORKS)
def test_a_storm_gives_what_the_plain_runtime_gives(
    name: str,
    dtype: torch.dtype,
    flashinfer: str,
    graphs: bool,
    overlaps: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if dtype != torch.float32 and flashinfer == "auto":
        needs_flashinfer()
    model = tiny_model(CONFIGS[name], seed=2, dtype=dtype).cuda()
    fast = copy.deepcopy(model)
    # The plain way to compute experts asks the host where each token goes, so it cannot be captured.
    forward = FastText(fast.text, choose_fused(DEVICE)) if graphs else None
    ours, pictures = make(fast, flashinfer, graphs, forward=forward)
    with caplog.at_level(logging.WARNING, "kestrel"):
        ours.warm_up(32)
    assert "CUDA graphs" not in caplog.text, "a capture failed"
    theirs = TorchRuntime(model, NUM_PAGES, 5)
    theirs.encode_image = pictures  # type: ignore[assignment]
    storm = Storm(model.config, ours, theirs, seed=5, max_batch=6, overlaps=overlaps)
    storm.run(120)
    assert storm.num_decodes > 30
    assert all(mine.finite == other.finite for _, mine, other in storm.pairs)
    sound = [(mine, other) for _, mine, other in storm.pairs if mine.finite]
    same = [
        (mine, other)
        for mine, other in sound
        if (mine.token, mine.coord, mine.size) == (other.token, other.coord, other.size)
    ]
    apart = [
        abs(mine.logprob - other.logprob)
        for mine, other in same
        if mine.logprob is not None and other.logprob is not None
    ]
    apart.sort()
    most = apart[len(apart) * 9 // 10]
    print(f"{len(same)} of {len(sound)} equal, log probabilities within {most:.1e}, at worst {apart[-1]:.1e}")
    # Logits spread by about 1, so a wrong key shows up as some tenths. In 16 bits rounding decides some ties,
    # and may send a token to other experts.
    if dtype == torch.float32:
        assert apart[-1] < 1e-3 and len(same) >= 0.99 * len(sound)
    else:
        assert most < 6e-2 and len(same) >= 0.85 * len(sound)


@pytest.mark.parametrize("page_size", [10, 1, 16])
@torch.inference_mode()
def test_flashinfer_sees_the_same_keys_as_sdpa(page_size: int) -> None:
    """Random pages, random lengths; images in both directions, texts causally, decodes of one position."""
    needs_flashinfer()
    from kestrel_core.runtime.attention.flashinfer import FlashInferAttention

    torch.manual_seed(page_size)
    rng, num_pages, room = random.Random(page_size), 400, 400
    text = replace(MOONDREAM2.text, n_layers=6)
    caches = [KVCache(text, num_pages, page_size, DEVICE, torch.bfloat16) for _ in range(2)]
    caches[0].k.normal_()
    caches[0].v.normal_()
    caches[1].k.copy_(caches[0].k)
    caches[1].v.copy_(caches[0].v)
    ours, theirs = FlashInferAttention(caches[0], text), PagedSdpaAttention(caches[1], room)
    free = rng.sample(range(1, num_pages), num_pages - 1)

    def inputs(tokens: int) -> list[torch.Tensor]:
        shape = (tokens, text.n_heads, text.head_dim)
        return [torch.randn(shape, device=DEVICE).bfloat16() for _ in range(3)]

    def int32(values: list[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device=DEVICE)

    def table(lengths: list[int]) -> tuple[list[int], list[int], list[int]]:
        counts = [-(-length // page_size) for length in lengths]
        indptr = [0, *np.cumsum(counts).tolist()]
        return indptr, [free.pop() for _ in range(indptr[-1])], [(n - 1) % page_size + 1 for n in lengths]

    lengths = [1, 17, page_size, 3 * page_size + 1, 40]
    indptr, indices, last = table(lengths)
    ends = [indices[stop - 1] * page_size + used - 1 for stop, used in zip(indptr[1:], last, strict=True)]
    rows = DecodeRows(int32(ends).long(), int32(indptr), int32([*indices, 0, 0]), int32(last))
    decodes = [attention.for_decode(rows, False) for attention in (ours, theirs)]
    for _ in range(2):  # a plan may be made anew
        for decode in decodes:
            decode.plan(np.array(indptr, np.int32))
            rows.last_page_len.copy_(int32(last))  # which a plan overwrites
        q, k, v = inputs(len(lengths))
        mine, other = (decode.begin()(3, q, k, v) for decode in decodes)
        torch.testing.assert_close(mine, other, atol=2e-2, rtol=2e-2)

    image = PreparedImage("", None, (1, 1))
    spans = [Span(Running(1, []), 0, 30, None, image), Span(Running(2, []), 0, 7, None, image)]
    spans += [
        Span(Running(3, []), 5, 26, None),
        Span(Running(4, []), 0, 9, None),
        Span(Running(5, []), 33, 34, None),
    ]
    indptr, indices, last = table([span.stop for span in spans])
    tokens = [span.stop - span.start for span in spans]
    starts = np.array([0, *np.cumsum(tokens)], np.int32)
    cells = [
        indices[first + at // page_size] * page_size + at % page_size
        for span, first in zip(spans, indptr, strict=False)
        for at in range(span.start, span.stop)
    ]
    packed = SpanRows(
        spans,
        2,
        starts,
        np.array(indptr, np.int32),
        np.array(last, np.int32),
        int32(indices),
        int32(cells).long(),
    )
    q, k, v = inputs(sum(tokens))
    mine, other = (attention.for_spans(packed)(5, q, k, v) for attention in (ours, theirs))
    torch.testing.assert_close(mine, other, atol=2e-2, rtol=2e-2)
    used = torch.tensor(indices, device=DEVICE)
    for cache in ("k", "v"):
        wrote = [getattr(c, cache)[5].unflatten(0, (num_pages, page_size))[used] for c in caches]
        assert torch.equal(*wrote), "both have stored the same"


@torch.inference_mode()
def test_partial_results_of_prefills_fit_what_is_planned(caplog: pytest.LogCaptureFixture) -> None:
    """The least that a small device gives them, and next to nothing, which grows."""
    needs_flashinfer()
    from kestrel_core.runtime.attention.flashinfer import FlashInferAttention, partial_bytes

    rng, page_size, num_pages = random.Random(2), 10, 500
    text = replace(MOONDREAM2.text, n_layers=1)
    caches = [KVCache(text, num_pages, page_size, DEVICE, torch.bfloat16) for _ in range(2)]
    for kept in (caches[0].k, caches[0].v):
        kept.normal_()
    caches[1].k.copy_(caches[0].k)
    caches[1].v.copy_(caches[0].v)
    theirs = PagedSdpaAttention(caches[1], num_pages * page_size)

    def rows() -> SpanRows:
        spans, indices, cells, indptr, last = list[Span](), list[int](), list[int](), [0], list[int]()
        for _ in range(rng.choice((1, 1, 2, 4))):
            stop = rng.randrange(200, 1200)
            start = stop - rng.choice((1, 5, 64, 100, 199))
            first = 1 + len(indices)
            indices += range(first, first + -(-stop // page_size))
            cells += [first * page_size + at for at in range(start, stop)]
            spans.append(Span(Running(len(spans) + 1, []), start, stop, None))
            indptr.append(len(indices))
            last.append((stop - 1) % page_size + 1)
        starts = np.array([0, *np.cumsum([span.stop - span.start for span in spans])], np.int32)
        tables = torch.tensor(indices, dtype=torch.int32, device=DEVICE)
        where = torch.tensor(cells, device=DEVICE)
        return SpanRows(spans, 0, starts, np.array(indptr, np.int32), np.array(last, np.int32), tables, where)

    for size, warnings in ((partial_bytes(text, DEVICE), 0), (4096, 1)):
        ours = FlashInferAttention(caches[0], text, workspace_bytes=size)
        for _ in range(20):
            packed = rows()
            shape = (int(packed.starts[-1]), text.n_heads, text.head_dim)
            q, k, v = (torch.randn(shape, device=DEVICE).bfloat16() for _ in range(3))
            mine, other = (attention.for_spans(packed)(0, q, k, v) for attention in (ours, theirs))
            torch.testing.assert_close(mine, other, atol=2e-2, rtol=2e-2)
        assert caplog.text.count("more of FlashInfer's workspace than was planned") == warnings


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_launching_never_waits_for_the_device(dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16:
        needs_flashinfer()
    model = tiny_model(CONFIGS["dense"], dtype=dtype).cuda()
    runtime, pictures = make(model)
    runtime.warm_up(32)
    image = PreparedImage("1", None, (1, 1))
    pictures(image)  # this one would wait, where the encoder does not
    prompt = [
        Span(Running(1, [1, 2, 3]), 0, 5, None, image),
        Span(Running(1, [1, 2, 3]), 5, 8, (1, 2, 3), None, TOKEN),
    ]
    other = Span(Running(2, [4, 5]), 0, 2, (0, 9), None, Readout(Kind.OBJECT))
    steps = [
        StepPlan(
            [
                Span(Running(1, [1, 2, 3], Sampling(1.0)), at, at + 1, None, None, Readout(kind), at),
                Span(Running(2, [4, 5]), at - 6, at - 5, None, None, Readout(Kind.SIZE)),
            ]
        )
        for at, kind in enumerate((Kind.TOKEN, Kind.COORD, Kind.GROUNDED), 8)
    ]
    with no_waiting():
        launched = [runtime.launch(plan) for plan in (StepPlan([*prompt, other]), *steps)]
    assert [step.collect().keys() for step in launched] == [{1, 2}] * 4


def test_memory_does_not_grow_after_warming_up() -> None:
    needs_flashinfer()
    model = tiny_model(CONFIGS["dense"], dtype=torch.bfloat16).cuda()
    ours, _ = make(model)
    ours.warm_up(64)
    for seed in (6, 7):  # its own reference: a step computed twice is the same step
        before = torch.cuda.memory_reserved()
        Storm(model.config, ours, ours, seed, max_batch=6, overlaps=False).run(100)
    assert torch.cuda.memory_reserved() <= 1.02 * before
    assert ours.used_bytes == pytest.approx(ours.planned_bytes, rel=0.05)


def test_a_host_without_flashinfer_still_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "flashinfer", None)  # as if it could not be imported
    monkeypatch.delitem(sys.modules, "kestrel_core.runtime.attention.flashinfer", raising=False)
    config = CONFIGS["dense"].text
    picked = choose_attention(KVCache(config, 8, 5, DEVICE, torch.bfloat16), config, 64, "auto")
    assert isinstance(picked, PagedSdpaAttention)
    [record] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "serving without FlashInfer" in record.message and "memory traffic" in record.message


def test_what_waits_for_the_device_is_not_captured_and_still_served(caplog: pytest.LogCaptureFixture) -> None:
    model = tiny_model(CONFIGS["dense"]).cuda()
    forward = model.text.post_ln.forward

    def waiting(x: torch.Tensor) -> torch.Tensor:
        x.sum().item()
        return forward(x)

    model.text.post_ln.forward = waiting  # type: ignore[method-assign]
    runtime, _ = make(model)
    runtime.warm_up(32)
    assert "decoding without CUDA graphs" in caplog.text
    model.text.post_ln.forward = forward  # type: ignore[method-assign]
    reference = TorchRuntime(model, NUM_PAGES, 5)
    plan = StepPlan([Span(Running(1, [1]), 0, 1, (7,), None, TOKEN)])
    assert runtime.launch(plan).collect() == reference.launch(plan).collect()


@pytest.mark.parametrize("name", ["moondream2", "moondream3-preview"])
def test_a_full_size_engine_is_planned_and_captured(name: str, caplog: pytest.LogCaptureFixture) -> None:
    needs_flashinfer()
    required = {"flashinfer": "required", "cuda_graphs": "required", "compile": "required"}
    config = RuntimeConfig(model=name, device="cuda", weights="random", max_batch_size=16, **required)
    seen: list[tuple[int, int]] = []
    with caplog.at_level(logging.WARNING, "kestrel"):
        engine = assemble_engine(open_model(config), config, warming=lambda *at: seen.append(at))
    assert seen == [(done, len(seen)) for done in range(1, len(seen) + 1)] and len(seen) > 20
    assert [record.message for record in caplog.records if record.name.startswith("kestrel")] == []
    assert engine.in_use() == {
        "model": name,
        "generation": name[len("moondream")],
        "device": "cuda",
        "dtype": "bfloat16",
        "vision_dtype": "bfloat16",
        "kv_dtype": "bfloat16",
        "quantize": "off",
        "kernels": "ours",
        "runtime": "cuda",
        "attention": "flashinfer",
        "graphs": "on",
        "adapters": "off",
    }
    metrics = engine.metrics()
    print(f"{name}: {metrics['device_bytes_planned'] / 2**30:.2f} GiB planned")
    assert metrics["device_bytes_used"] == pytest.approx(metrics["device_bytes_planned"], rel=0.05)
    engine.close()
    engine.runtime.close()
