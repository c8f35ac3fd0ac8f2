"""The tool's ways against plain torch, interpreted: what it measures is what it says."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch
from rich.console import Console
from tiny import tiny_config

import one_row_stages
from one_row_stages import NARROW, OF_EXPERTS, all_calls, case, check, ways
from stages import Place, Report


@pytest.fixture
def interpreted() -> Iterator[None]:
    if find_spec("triton") is None or torch.cuda.is_available():
        pytest.skip("needs the kernel language, and no GPU")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        yield


def test_every_way_has_a_name_of_its_own() -> None:
    of_experts, narrow = ways(OF_EXPERTS), ways([(cut, cut) for cut in NARROW])
    assert len({way.name for way in of_experts}) == len(of_experts) == 4 * len(OF_EXPERTS)
    assert "fp8 4/2048/8 convert" in {way.name for way in narrow}
    assert "fp8 8/512/4 16/512/4 early" in {way.name for way in of_experts}


@pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
@torch.inference_mode()
def test_the_ways_of_every_stage_give_what_plain_torch_gives(
    interpreted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cuts in ("NARROW", "WIDE", "OF_EXPERTS"):
        monkeypatch.setattr(one_row_stages, cuts, getattr(one_row_stages, cuts)[:2])
    late = [way for way in ways([(NARROW[0], NARROW[0])]) if not way.early]  # a device alone launches early
    monkeypatch.setattr(one_row_stages, "ways", lambda cuts: [way for way in ways(cuts) if not way.early])
    place, report = Place(torch.device("cpu"), torch.float32), Report(Console())
    stages = list(all_calls(place, tiny_config(2).text, tiny_config(3).text, sets=1))
    assert {name for name, _, _ in stages} == {"first", "second", "qkv", "proj", "output", "experts"}
    check(iter(stages), report)
    assert report.failed == [] and len(late) == 2
    found = [one for stage in stages for one in case(*stage)]
    assert all(one.floor_ms > 0 and one.ways for one in found) and len(found) == 12
