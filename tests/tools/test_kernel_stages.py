import torch
from tiny import tiny_config

from kernel_stages import cases, few_rows_cases
from kestrel_core.moondream.config import MoEConfig
from kestrel_core.moondream.ops import plain
from stages import Place, floor_ms


@torch.inference_mode()
def test_experts_are_measured_in_every_way() -> None:
    moe = MoEConfig(num_experts=6, start_layer=1, experts_per_token=2, expert_inner_dim=8)
    place = Place(torch.device("cpu"), torch.float32, seconds=0)
    all_cases = cases(place, ["experts"], tiny_config(2), tiny_config(3, moe=moe), tokens=(1, 3))
    found = [one for case in all_cases for one in place.measured(case)]
    ways = {(one.stage, one.variant) for one in found}
    assert ways == {("experts", "loop"), ("experts", "no kernels")}
    assert len(found) == 2 * len(ways)
    assert all(one.ms > 0 and one.floor_ms > 0 for one in found)


def test_a_floor_is_the_longer_of_moving_and_computing() -> None:
    assert floor_ms(4.17e9, 0.0) == 1.0 == floor_ms(0.0, 769e9)
    assert floor_ms(4.17e9, 2 * 769e9) == 2.0


@torch.inference_mode()
def test_the_products_of_a_decode_are_measured() -> None:
    place = Place(torch.device("cpu"), torch.float32, seconds=0)
    found = [
        one
        for case in few_rows_cases(tiny_config(2).text, plain, place, (1, 3))
        for one in place.measured(case)
    ]
    assert [(one.stage, one.size) for one in found] == [
        (stage, rows) for rows in (1, 3) for stage in ("first products", "second products")
    ]
    assert all(one.ms > 0 and one.remark.endswith("TB/s") for one in found)
