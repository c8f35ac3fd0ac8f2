import torch
from tiny import tiny_config

from few_bits_stages import all_cases
from stages import Place


@torch.inference_mode()
def test_every_stage_is_measured_in_every_kind() -> None:
    place = Place(torch.device("cpu"), torch.float32, seconds=0)
    found = [
        one
        for case in all_cases(place, tiny_config(2), tiny_config(3), rows=(1, 3), many=5)
        for one in place.measured(case)
    ]
    stages = {one.stage for one in found}
    assert stages == {"first", "second", "qkv", "proj", "output", "experts", "experts, many", "745 rows"}
    assert {one.variant for one in found if one.stage == "experts"} == {"bf16", "fp8 plain", "int4 plain"}
    assert all(one.ms > 0 and one.floor_ms > 0 for one in found)
