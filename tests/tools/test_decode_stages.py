from dataclasses import replace

import pytest
import torch
from rich.console import Console
from tiny import tiny_config

from decode_rows import PAGE_SIZE, copied, difference, fill, filled_cache, rows_of
from decode_stages import cases, lazily
from decode_steps import Steps, ways_of
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from stages import Case, Place, Report, Work, compile_share, distance

CPU = torch.device("cpu")


def test_attention_is_measured_as_it_is_now_and_as_it_could_be() -> None:
    for case in cases(Place(CPU, torch.float32), ["attention"]):
        assert case.stage == "attention" and case.floor_ms > 0
        assert "flashinfer" in case.ways and len(case.ways) >= 8


def test_a_way_is_made_when_it_is_called() -> None:
    made: list[str] = []

    def make() -> Work:
        made.append("made")
        return lambda: made.append("called")

    work = lazily(make)
    assert made == []
    work()
    work()
    assert made == ["made", "called", "called"]


@pytest.mark.parametrize(("share", "called"), [("0/2", ["a", "c"]), ("1/2", ["b"])])
def test_a_share_of_the_ways_is_compiled(
    monkeypatch: pytest.MonkeyPatch, share: str, called: list[str]
) -> None:
    found: list[str] = []

    def broken() -> None:
        found.append("b")
        raise RuntimeError("cannot")

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    first = Case("x", 1, 0.0, {"a": lambda: found.append("a"), "b": broken})
    second = Case("y", 1, 0.0, {"c": lambda: found.append("c")})
    compile_share(iter([first, second]), share)
    assert found == called


def test_rows_lie_on_pages_of_their_own() -> None:
    config = replace(MOONDREAM2.text, n_layers=1, dim=32, n_heads=2, n_kv_heads=2)
    cache = filled_cache(config, 30, CPU, torch.float32)
    rows = rows_of([1, 25, 30], cache)
    assert rows.indptr.tolist() == [0, 1, 4, 7] and rows.last_page_len.tolist() == [1, 5, PAGE_SIZE]
    assert len(set(rows.indices[:7].tolist())) == 7
    saved = copied(rows)
    fill(rows, rows_of([3, 3, 3], cache))
    assert rows.indptr.tolist() == [0, 1, 2, 3] and saved.indptr.tolist() == [0, 1, 4, 7]
    decode = PagedSdpaAttention(cache, 40).for_decode(saved, captured=True)
    new = torch.randn(3, 2, 16)
    decode.begin()(0, torch.randn(3, 2, 16), new, new)
    assert torch.equal(cache.k[0, saved.cells], new)


def test_what_needs_no_compiled_library_is_measured_first_and_int4_last() -> None:
    assert ways_of(("off", "early"), ("off", "fp8", "int4")) == [
        ("early", "off"),
        ("early", "fp8"),
        ("off", "off"),
        ("off", "fp8"),
        ("off", "int4"),
        ("early", "int4"),
    ]


@torch.inference_mode()
def test_a_network_is_packed_in_every_number_of_bits_in_turn() -> None:
    shape = tiny_config(3, dim=64, ff_dim=96)
    assert shape.text.moe is not None
    moe = replace(shape.text.moe, expert_inner_dim=32)
    steps = Steps(replace(shape, text=replace(shape.text, moe=moe)), CPU, [1])
    seeded = torch.Generator().manual_seed(0)  # no router has a near tie there, which rounding would turn
    x, made = torch.randn(1, 64, generator=seeded).bfloat16(), []
    for quantize in ("off", "fp8", "off", "int4"):
        text = steps.text(quantize)
        made.append(text(x, torch.arange(1), lambda layer, q, k, v: q + k + v).float())
        assert isinstance(steps.model.text.lm_head, torch.nn.Linear) == (quantize == "off")
    wide, in_8, again, in_4 = made
    assert torch.equal(again, wide)
    assert 0 < (in_8 - wide).norm() < 0.1 * wide.norm() and 0 < (in_4 - wide).norm() < 0.4 * wide.norm()


def test_what_differs_too_much_fails() -> None:
    assert difference(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0])) == 0.25
    assert distance(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])) == 2.0
    report = Report(Console(quiet=True))
    for name, off in (("near", 0.25), ("far", 0.35), ("nowhere", float("nan"))):
        report.say(name, off, 0.3)
    assert report.failed == ["far", "nowhere"]
