"""The kernels for weights in few bits on the device, at full widths, and a whole network kept in them."""

import gc
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from few_bits_stages import check
from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_core.moondream.few_bits_layers import PackedExperts, PackedLinear, is_packed, weights_bytes
from stages import Place, Report

pytestmark = pytest.mark.gpu


@torch.inference_mode()
def test_kernels_differ_from_plain_torch_by_rounding_only() -> None:
    place = Place(torch.device("cuda"), torch.bfloat16)
    report = Report(Console())
    check(MOONDREAM2.text, MOONDREAM3.text, place, report)
    assert report.failed == []


@pytest.mark.parametrize("model", ["moondream2", "moondream-tiny"])
def test_a_packed_network_takes_what_is_planned(model: str) -> None:
    gc.collect()  # an engine before this one
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    config = RuntimeConfig(
        model=model,
        device="cuda",
        weights="random" if model == "moondream2" else "checkpoint",
        quantize="int4",
        cuda_graphs="off",
        kv_cache_tokens=4096,
        max_batch_size=2,
    )
    loaded = open_model(config)
    network = loaded.network
    assert is_packed(network)
    planned = weights_bytes(network.config, torch.bfloat16, int4=True)
    taken = torch.cuda.memory_allocated() - before
    assert planned <= taken < 1.02 * planned + 2**21  # the allocator rounds each tensor up
    engine = assemble_engine(loaded, config)
    assert engine.in_use()["quantize"] == "int4"
    engine.close()


def test_threads_that_load_do_not_overwrite_what_is_still_packed() -> None:
    config = RuntimeConfig(model="moondream-tiny", device="cuda", quantize="int4")
    one, six = (open_model(replace(config, quick_start=quick)).network for quick in (False, True))
    layers = dict(six.named_modules())
    for name, layer in one.named_modules():
        if isinstance(layer, (PackedLinear, PackedExperts)):
            other = layers[name]
            assert isinstance(other, type(layer))
            for mine, theirs in zip(layer.packed[:2], other.packed[:2], strict=True):
                assert torch.equal(mine.view(torch.uint8), theirs.view(torch.uint8))
