"""Weights in 8 and 4 bits: how they are packed, what is lost by it, and products with them."""

import pytest
import torch
from torch import Tensor

from kestrel_core.moondream.ops import few_bits, plain
from kestrel_core.moondream.ops.few_bits import KINDS, Kind, pack_weights, unpack


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("kind", "most"), [("fp8", 0.03), ("int4", 0.12)])
@pytest.mark.parametrize("shape", [(6, 256), (5, 80), (3, 4, 320)])
def test_little_is_lost(kind: Kind, most: float, shape: tuple[int, ...]) -> None:
    weight = randn(*shape)
    packed = pack_weights(weight, kind)
    again = unpack(packed, torch.float32)
    assert again.shape == weight.shape == packed.shape
    assert (again - weight).norm() / weight.norm() < most
    assert packed.nbytes == few_bits.num_bytes(shape, kind)


def test_a_nibble_lies_where_the_module_says() -> None:
    weight = torch.zeros(2, 512)
    weight[1, 256 + 64 * 2 + 5] = -3.0  # the third group of the second block
    packed = pack_weights(weight, "int4")
    words = packed.values.view(torch.int16)
    assert words[1, few_bits.WORDS + 5].item() >> 8 & 15 == 0  # the largest number gets the step of -8
    assert packed.scales[1, 6] == 3.0 / 8
    assert unpack(packed, torch.float32)[1].nonzero().tolist() == [[256 + 64 * 2 + 5]]


def test_what_is_on_the_grid_is_kept() -> None:
    steps = torch.randint(-8, 8, (4, 512), generator=torch.Generator().manual_seed(1))
    steps[:, ::64] = -8  # so that the scale is found
    weight = steps * torch.tensor([1.0, 0.5, -0.25, 3.0])[:, None]
    assert torch.equal(unpack(pack_weights(weight, "int4"), torch.float32), weight)
    eighths = randn(4, 100).to(torch.float8_e4m3fn).float()
    eighths[:, 0] = 448.0
    assert torch.equal(unpack(pack_weights(eighths, "fp8"), torch.float32), eighths)


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_and_tiny_numbers_are_no_trouble(kind: Kind) -> None:
    weight = torch.zeros(3, 256)
    weight[1] = 1e-42
    weight[2, 7] = 1e30
    again = unpack(pack_weights(weight, kind), torch.float32)
    assert again.isfinite().all()
    assert torch.equal(again[0], weight[0])


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_packed_as_the_whole(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    weight = randn(3, 7, 256)
    whole = pack_weights(weight, kind)
    monkeypatch.setattr(few_bits, "PACKED_AT_ONCE", 4 * 256)
    pieces = pack_weights(weight, kind)
    assert torch.equal(whole.values.view(torch.uint8), pieces.values.view(torch.uint8))
    assert torch.equal(whole.scales, pieces.scales)


@pytest.mark.parametrize("kind", KINDS)
def test_some_rows_are_a_view(kind: Kind) -> None:
    packed = pack_weights(randn(2, 8, 256), kind)
    some = few_bits.out_rows(packed, 2, 5)
    assert torch.equal(unpack(some, torch.float32), unpack(packed, torch.float32)[:, 2:5])
    assert some.values.untyped_storage().data_ptr() == packed.values.untyped_storage().data_ptr()


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_unpacked(kind: Kind) -> None:
    x, y, bias = randn(3, 256), randn(3, 320, seed=1), randn(24, seed=2)
    w, other = (pack_weights(randn(24, dim, seed=dim), kind) for dim in (256, 320))
    wide, wide_other = (unpack(one, torch.float32) for one in (w, other))
    assert torch.equal(few_bits.linear(x, w, bias), plain.linear(x, wide, bias))
    expected = plain.linear_sum(x, wide, y, wide_other, bias)
    assert torch.equal(few_bits.linear_sum(x, w, y, other, bias), expected)
    scratch = torch.empty(24, 256)
    few_bits.unpack_into(w, scratch)
    assert torch.equal(scratch, wide)


@pytest.mark.parametrize("kind", KINDS)
def test_experts_are_those_of_the_unpacked(kind: Kind) -> None:
    h, fc1, fc2 = randn(5, 256), randn(6, 128, 256, seed=1), randn(6, 256, 64, seed=2)
    ids = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(t))[:2] for t in range(5)])
    weights = randn(5, 2, seed=3)
    first, second = pack_weights(fc1, kind), pack_weights(fc2, kind)
    ours = few_bits.experts_few(h, ids.int(), weights, first, second)
    expected = plain.experts(
        h, ids.int(), weights, unpack(first, torch.float32), unpack(second, torch.float32)
    )
    assert torch.equal(plain.add_norm(h, None, ours, None)[0], plain.add_norm(h, None, expected, None)[0])
