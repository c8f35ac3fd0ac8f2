import torch
from tiny import tiny_config

from kestrel_core.moondream.config import MOONDREAM2, MoEConfig
from kestrel_tools.bench.stages import STAGES, Place, cases, floor_ms, vision_cost


@torch.inference_mode()
def test_every_stage_is_measured_in_every_way() -> None:
    moe = MoEConfig(num_experts=6, start_layer=1, experts_per_token=2, expert_inner_dim=8)
    place = Place(torch.device("cpu"), torch.float32, seconds=0)
    stages = [stage for stage in STAGES if stage != "products"]  # float8 products want bfloat16 biases
    all_cases = cases(place, stages, tiny_config(2), tiny_config(3, moe=moe), crops=(1, 2), tokens=(1, 3))
    found = [one for case in all_cases for one in place.measured(case)]
    ways = {(one.stage, one.variant) for one in found}
    assert {stage for stage, _ in ways} == {"vision", "experts"}
    assert ("experts", "loop") in ways and ("vision", "plain") in ways
    assert len(found) == 2 * len(ways)
    assert all(one.ms > 0 and one.floor_ms > 0 for one in found)


def test_the_floor_of_vision_is_that_of_the_description() -> None:
    num_bytes, flops = vision_cost(MOONDREAM2.vision, 1)
    assert round(flops / 1e12, 3) == 0.666
    assert round(num_bytes / 2e6) == 412
    assert round(floor_ms(num_bytes, 56 * flops)) == 49
