"""The kernels for weights in few bits on the device, at full widths, and a whole network kept in them."""

import gc
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console

from few_bits_stages import check
from kestrel_core.build import assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_core.moondream.few_bits_layers import PackedExperts, PackedLinear, is_packed, weights_bytes
from kestrel_core.moondream.host_tables import left_on_host
from kestrel_core.runtime.graphs import Graphs
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
    assert network.text.wte.is_cuda, "though it lies on the host"
    assert planned <= taken < 1.02 * planned + 2**21  # the allocator rounds each tensor up
    engine = assemble_engine(loaded, config)
    assert engine.in_use()["quantize"] == "int4"
    engine.close()


@torch.inference_mode()
def test_a_table_left_on_the_host_is_read_by_the_device() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    table = torch.randn(5_000, 256, device=device).bfloat16()
    rows = torch.randint(5_000, (64,), device=device)
    expected = table[rows]
    before = torch.cuda.memory_allocated()
    seen = left_on_host(table)
    assert seen is not table and seen.device == table.device
    assert torch.cuda.memory_allocated() == before, "it takes none of the device's memory"
    del table
    gc.collect()
    assert torch.equal(F.embedding(rows, seen), expected), "and lives on by itself"

    out = torch.zeros_like(expected)
    replay = Graphs(device).capture(lambda: out.copy_(F.embedding(rows, seen)))  # type: ignore[arg-type]
    rows.copy_(rows.flip(0))
    replay()
    assert torch.equal(out, expected.flip(0))


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
