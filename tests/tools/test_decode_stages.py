import torch

from decode_checks import verdict
from decode_rows import PAGE_SIZE, copied, difference, fill, filled_cache, rows_of
from decode_stages import STAGES, ways
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
    from dataclasses import replace

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


def test_what_differs_too_much_fails() -> None:
    assert difference(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0])) == 0.25
    assert verdict("x", 0.25, 0.3).startswith("ok") and verdict("x", 0.25, 0.2).startswith("FAIL")
