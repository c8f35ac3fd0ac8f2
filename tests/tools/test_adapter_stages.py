import pytest
import torch
from tiny import tiny_config, tiny_model

from adapter_stages import adapter_cases, blocks_cost, rows_of
from kestrel_core.moondream.lora import Stacks
from kestrel_core.moondream.ops import plain
from stages import Place

LAUNCHES = ["shrink, first", "expand, first", "shrink, second", "expand, second"]


@torch.inference_mode()
@pytest.mark.parametrize("generation", [2, 3])
def test_blocks_are_measured_without_adapters_and_with(generation: int) -> None:
    place = Place(torch.device("cpu"), torch.float32, seconds=0)
    all_cases = adapter_cases(tiny_config(generation), plain, place, sizes=(9,))
    found = [one for case in all_cases for one in place.measured(case)]
    kind = "dense block" if generation == 2 else "experts' block"
    launches = LAUNCHES + ["experts, without", "experts"] * (generation == 3)
    assert [(one.stage.strip(), one.variant) for one in found] == [
        (kind, "without"),
        *((stage, name) for name in ("1 adapter", "8 adapters") for stage in (kind, *launches)),
    ]
    assert all(one.ms > 0 for one in found)
    without, *adapted = (one.floor_ms for one in found if one.stage == kind)
    assert without < adapted[0] < adapted[1], "more adapters, more bytes"


def test_adapters_share_the_tokens_in_tiles_of_their_own() -> None:
    stacks = Stacks(tiny_config(2).text, 8, 4, torch.device("cpu"), torch.float32)
    rows = rows_of(stacks, 50, 2)
    assert rows.tiles is not None and rows.tile_size == 16
    assert rows.tiles.tolist() == [[1, 0, 16], [1, 16, 25], [2, 25, 41], [2, 41, 50]]
    assert rows.of_token.tolist() == [1] * 25 + [2] * 25


def test_few_tokens_touch_few_experts() -> None:
    text = tiny_model(tiny_config(3)).text
    (few, few_flops), (many, many_flops) = blocks_cost(text, 1), blocks_cost(text, 1000)
    assert few < many == pytest.approx(sum(weight.nbytes for weight in text.blocks.parameters()))
    assert many_flops == pytest.approx(1000 * few_flops)
