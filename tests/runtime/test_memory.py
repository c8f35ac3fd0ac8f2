import pytest
import torch
from random_adapters import MAX_ADAPTERS, MAX_RANK, empty_stacks
from tiny import tiny_config

from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3, MoondreamConfig
from kestrel_core.moondream.lora import Stacks
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest
from kestrel_core.runtime.memory import (
    affordable_crops,
    affordable_slack,
    affordable_tokens,
    affordable_workspace,
    computing_bytes,
    require_room_for_adapters,
    wanted_crops,
)


def test_the_kv_cache_is_cut_to_what_the_device_has_left() -> None:
    gib = 2**30
    assert affordable_tokens(8_192, 4_096, 196_608, 100 * gib) == 8_192
    assert affordable_tokens(1_024, 4_096, 196_608, 100 * gib) == 1_024, "less than a context may be wanted"
    assert affordable_tokens(524_288, 4_096, 196_608, 100 * gib) == int(80 * gib) // 196_608
    with pytest.raises(BadCheckpoint, match=r"needs 0\.75 GiB and computing 1\.00, and 0\.50 GiB of the dev"):
        affordable_tokens(8_192, 4_096, 196_608, gib // 2)
    assert affordable_tokens(8_192, 4_096, 196_608, 2 * gib) == gib // 196_608, "a GiB is left in any case"


def test_slack_never_takes_more_than_is_left() -> None:
    gib, mib = 2**30, 2**20
    assert affordable_slack(free=60 * gib, total=140 * gib) == 256 * mib
    assert affordable_slack(free=2 * gib, total=8 * gib) == 64 * mib
    # Moondream 3 in 4 bits on an H200 of which it could have 8 GiB
    assert affordable_slack(free=204 * mib, total=140 * gib) == 51 * mib


def test_partial_results_have_what_they_need_and_no_more_than_is_wanted() -> None:
    mib, gib = 2**20, 2**30
    assert affordable_workspace(128 * mib, 17 * mib, free=20 * gib) == 128 * mib
    assert affordable_workspace(128 * mib, 17 * mib, free=gib) == 64 * mib
    assert affordable_workspace(128 * mib, 17 * mib, free=100 * mib) == 17 * mib
    assert affordable_workspace(128 * mib, 200 * mib, free=100 * mib) == 128 * mib, "as before"


def test_batches_of_crops_are_smaller_where_little_memory_is_left_or_few_are_wanted() -> None:
    vision, gib = MOONDREAM2.vision, 2**30
    assert affordable_crops(vision, 100 * gib) == 64
    assert affordable_crops(vision, 4 * gib) == 20
    assert affordable_crops(vision, 0) == 1
    assert affordable_crops(vision, 100 * gib, 13) == 13
    assert [wanted_crops(vision, images) for images in (1, 2, 5, 11)] == [13, 26, 64, 64]


@pytest.mark.parametrize("generation", [2, 3])
def test_what_is_planned_for_adapters_is_what_they_take(generation: int) -> None:
    text = tiny_config(generation).text
    stacks = empty_stacks(text)
    planned = Stacks.num_bytes(text, MAX_ADAPTERS, MAX_RANK, torch.float32)
    assert planned == stacks.numbers.nbytes + stacks.ranks.nbytes


def test_adapters_leave_half_of_the_memory_to_the_rest() -> None:
    needed = Stacks.num_bytes(MOONDREAM3.text, 8, 32, torch.bfloat16)
    assert 0.8 < needed / 2**30 < 1.0
    require_room_for_adapters(8, 32, needed, 2 * needed)
    with pytest.raises(InvalidRequest, match=r"8 adapters of rank 32 need .* lower max_adapters or"):
        require_room_for_adapters(8, 32, needed, 2 * needed - 2)


@pytest.mark.parametrize(("config", "gigabytes", "weights"), [(MOONDREAM2, 3, 1.57), (MOONDREAM3, 8, 5.41)])
def test_a_small_gpu_holds_one_context(config: MoondreamConfig, gigabytes: int, weights: float) -> None:
    """With steps of 1,024 positions, and half a GB for CUDA itself."""
    text, cell_bytes = config.text, 196_608
    free = int((gigabytes - 0.5 - weights) * 1e9)
    computing = computing_bytes(text, 1024, small=True)
    assert computing < computing_bytes(text, 1024, small=False) == 2**30
    assert affordable_tokens(10**6, text.max_context, cell_bytes, free, computing) >= text.max_context
