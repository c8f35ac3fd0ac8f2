import lzma
import math

import pytest
import reference
import torch
from goldens import GOLDEN, golden_config
from safetensors.torch import load, load_file
from tiny import tiny_config, tiny_model
from torch import Tensor

from kestrel_core.loop.step import Coord, Size
from kestrel_core.moondream.region import Region
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.arguments import spatial_inputs


def region_of(generation: int, dtype: torch.dtype = torch.float32) -> Region:
    return tiny_model(tiny_config(generation), seed=4, dtype=dtype).region


def fourier(values: list[float], features: Tensor) -> Tensor:
    """cos and sin of 2 pi v F, cosines first, in float64."""
    phases = 2 * math.pi * (torch.tensor(values, dtype=torch.float64) @ features.double())
    return torch.cat((phases.cos(), phases.sin()))


@pytest.mark.parametrize("generation", [2, 3])
def test_coordinates_and_sizes_are_encoded_by_their_fourier_features(generation: int) -> None:
    region, places = region_of(generation), [0.0, 0.25, 0.7, 1.0]
    encoder, sizes = region.coord_encoder, [(0.5, 0.125), (1.0, 0.001)]
    expected = [encoder.double()(fourier([x], region.coord_features)) for x in places]
    ours = region_of(generation).encode_coord(torch.tensor(places))
    torch.testing.assert_close(ours.double(), torch.stack(expected), atol=1e-5, rtol=1e-5)
    expected = [region.size_encoder.double()(fourier([*pair], region.size_features)) for pair in sizes]
    ours = region_of(generation).encode_size(torch.tensor(sizes))
    torch.testing.assert_close(ours.double(), torch.stack(expected), atol=1e-5, rtol=1e-5)


def test_the_generations_round_bfloat16_phases_where_they_were_trained_to() -> None:
    values = torch.rand(50, 1, generator=torch.Generator().manual_seed(0))
    for generation in (2, 3):
        region = region_of(generation, torch.bfloat16)
        features = region.coord_features.float()
        if generation == 2:
            phases = (2 * math.pi * values.bfloat16()).float() @ features  # one product: exact in float32
            expected = phases.bfloat16()
            expected = torch.cat((expected.cos(), expected.sin()), -1)
        else:
            phases = (2 * math.pi * values) @ features
            expected = torch.cat((phases.cos(), phases.sin()), -1).bfloat16()
        assert torch.equal(region.fourier(values, region.coord_features), expected)


def test_moondream_3_reads_both_off_one_normed_state() -> None:
    region, hidden = region_of(3), 9 * torch.randn(3, 32, generator=torch.Generator().manual_seed(1)) + 2
    assert region.ln is not None
    normed = torch.stack([reference.layer_norm(r, region.ln.weight, region.ln.bias) for r in hidden])
    coord, size = region.coord_decoder, region.size_decoder
    expected = normed @ coord.weight.T + coord.bias
    torch.testing.assert_close(region.coord_logits(hidden), expected, atol=1e-5, rtol=1e-5)
    rows = normed @ size.weight.T + size.bias
    expected = torch.stack((rows[:, :16], rows[:, 16:]), 1)  # widths first, then heights
    torch.testing.assert_close(region.size_logits(hidden), expected, atol=1e-5, rtol=1e-5)


def test_moondream_2_reads_through_an_mlp_and_no_norm() -> None:
    region, hidden = region_of(2), torch.randn(3, 32, generator=torch.Generator().manual_seed(1))
    assert region.ln is None
    for ours, decoder in (
        (region.coord_logits(hidden), region.coord_decoder),
        (region.size_logits(hidden).flatten(1), region.size_decoder),
    ):
        block = {f"mlp.{name}": value for name, value in decoder.state_dict().items()}
        expected = torch.stack([reference.dense(row, block, tiny_config(2).text) for row in hidden])
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_bins_are_even_steps_of_a_place_and_equal_ratios_of_a_size() -> None:
    with torch.device("meta"):
        region = Region(golden_config("md3").region)
    places = region.coord_of_bin(torch.arange(1024))
    assert places[[0, 1, 512, 1023]].tolist() == [0.0, 1 / 1024, 0.5, 1023 / 1024]
    sizes = region.size_of_bin(torch.arange(1024)).double()
    assert sizes[0] == 2**-10 and sizes[-1] == 1
    torch.testing.assert_close(
        sizes[1:] / sizes[:-1], torch.full((1023,), 2 ** (10 / 1023)).double(), atol=0, rtol=3e-6
    )


def test_golden_spatial_references_are_encoded_as_in_the_reference() -> None:
    with torch.device("meta"):
        region = Region(golden_config("md3").region)
    stored = load(lzma.decompress((GOLDEN / "md3/model.safetensors.xz").read_bytes()))
    mine = {k.removeprefix("model.region."): v.float() for k, v in stored.items() if ".region." in k}
    region.load_state_dict(mine, assign=True)
    refs = [[0.25, 0.75], [0.1, 0.2, 0.6, 0.8], [0.5, 0.5, 0.5625, 0.625]]
    inputs = spatial_inputs(Request("query", {"spatial_refs": refs}))
    coords = torch.tensor([i.value for i in inputs if isinstance(i, Coord)])
    sizes = torch.tensor([i for i in inputs if isinstance(i, Size)])
    golden = load_file(GOLDEN / "md3/region.safetensors")
    with torch.no_grad():
        ours = region.encode_coord(coords), region.encode_size(sizes)
    torch.testing.assert_close(ours[0], golden["refs_coords_encoded"], atol=2e-4, rtol=2e-4)
    torch.testing.assert_close(ours[1], golden["refs_sizes_encoded"], atol=2e-4, rtol=2e-4)
