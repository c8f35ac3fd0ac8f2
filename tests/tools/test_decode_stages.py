from dataclasses import replace

import torch
from tiny import tiny_config

from decode_checks import verdict
from decode_rows import PAGE_SIZE, copied, difference, fill, filled_cache, rows_of
from decode_stages import STAGES, ways
from decode_steps import Steps, ways_of
from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention

CPU = torch.device("cpu")


def test_every_stage_has_what_there_is_now_and_what_could_be() -> None:
    found = [(way.stage, way.name) for way in ways(CPU, STAGES)]
    assert len(set(found)) == len(found)
    stages = {stage for stage, _ in found}
    assert {"attention, 1 rows", "tau and rotation, 1 rows"} <= stages
    assert all(sum(stage == one for one, _ in found) >= 3 for stage in stages)


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
    x, made = torch.randn(1, 64).bfloat16(), []
    for quantize in ("off", "fp8", "off", "int4"):
        text = steps.text(quantize)
        made.append(text(x, torch.arange(1), lambda layer, q, k, v: q + k + v).float())
        assert isinstance(steps.model.text.lm_head, torch.nn.Linear) == (quantize == "off")
    wide, in_8, again, in_4 = made
    assert torch.equal(again, wide)
    assert 0 < (in_8 - wide).norm() < 0.1 * wide.norm() and 0 < (in_4 - wide).norm() < 0.4 * wide.norm()


def test_what_differs_too_much_fails() -> None:
    assert difference(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0])) == 0.25
    assert verdict("x", 0.25, 0.3).startswith("ok") and verdict("x", 0.25, 0.2).startswith("FAIL")
