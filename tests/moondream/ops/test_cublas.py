"""The call of cuBLASLt without a device: what it is told, and who multiplies where it cannot."""

import ctypes
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from kestrel_core.moondream.ops import choose_few_bits, cublas, plain
from kestrel_core.moondream.ops.choose_few_bits import choose_products
from kestrel_core.moondream.ops.cublas import Algorithm, CublasProducts, Plan, Shape
from kestrel_core.moondream.ops.float8_products import FixedScale, TorchProducts, pack_float8

CPU = torch.device("cpu")


class FakeLibrary:
    """Notes what it is told; knows shapes of fewer than 100 rows alone."""

    def __init__(self) -> None:
        self.pointers: dict[int, int | None] = {}
        self.shapes: list[Shape] = []
        self.launched: list[tuple[Any, ...]] = []

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(1)

    def set_product(self, product: Any, attribute: int, value: Any) -> None:
        self.pointers[attribute] = value.value

    def plan(self, shape: Shape) -> Plan:
        self.shapes.append(shape)
        return Plan(*(ctypes.c_void_p(number) for number in range(2, 7)), Algorithm())  # type: ignore[arg-type]

    def choose(self, handle: Any, plan: Plan, rank: int) -> Plan | None:
        return plan if self.shapes[-1].rows < 100 else None

    def call(self, name: str, *arguments: Any) -> None:
        assert name == "Matmul"
        self.launched.append(arguments)


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> CublasProducts:
    monkeypatch.setattr(cublas, "Library", FakeLibrary)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=7))
    return CublasProducts(TorchProducts(plain, CPU), CPU)


def rounded(rows: int, depth: int) -> Tensor:
    x = torch.randn(rows, depth, generator=torch.Generator().manual_seed(rows))
    return plain.round_float8(x, 0.02, gelu=False)


def test_a_product_is_planned_once_for_each_shape(products: CublasProducts) -> None:
    library: Any = products._library
    inputs = FixedScale.of(8.0, CPU)
    bias = torch.ones(48, dtype=torch.bfloat16)
    first, second = (pack_float8(torch.randn(48, 32).bfloat16(), bias + at, inputs) for at in range(2))
    for matrix in (first, second, first):
        assert products.linear(rounded(20, 32), matrix).shape == (20, 48)
        assert library.pointers[cublas.BIAS_POINTER] == matrix.bias.data_ptr()
        assert library.pointers[cublas.A_SCALE_POINTER] == matrix.factor.data_ptr()
    assert library.shapes == [Shape(20, 48, 32, has_bias=True, adds=False, gelu=False)]
    assert len(library.launched) == 3
    inner = FixedScale.of(9.0, CPU)
    assert products.gelu_linear(rounded(20, 32), first, inner).dtype == torch.float8_e4m3fn
    assert library.pointers[cublas.D_SCALE_POINTER] == inner.inverse.data_ptr()
    add = torch.ones(20, 48, dtype=torch.bfloat16)
    products.linear(rounded(20, 32), first._replace(bias=None), add)
    assert library.launched[-1][8].value == add.data_ptr()
    assert library.shapes[1:] == [
        Shape(20, 48, 32, has_bias=True, adds=False, gelu=True),
        Shape(20, 48, 32, has_bias=False, adds=True, gelu=False),
    ]


def test_what_is_not_added_is_no_pointer(products: CublasProducts) -> None:
    """cuBLASLt refuses a result that is also to be added, unless both are of one type."""
    matrix = pack_float8(torch.randn(48, 32).bfloat16(), torch.ones(48).bfloat16(), FixedScale.of(8.0, CPU))
    products.gelu_linear(rounded(20, 32), matrix, FixedScale.of(9.0, CPU))
    library: Any = products._library
    assert library.launched[-1][8].value is None and library.launched[-1][10].value is not None


def test_what_it_has_no_algorithm_for_is_left_to_torch(products: CublasProducts) -> None:
    inputs, inner = FixedScale.of(8.0, CPU), FixedScale.of(9.0, CPU)
    matrix = pack_float8(torch.randn(48, 32), torch.randn(48), inputs)
    x, by_torch = rounded(120, 32), TorchProducts(plain, CPU)
    for _ in range(2):
        assert torch.equal(products.linear(x, matrix), by_torch.linear(x, matrix))
        ours, expected = (way.gelu_linear(x, matrix, inner).float() for way in (products, by_torch))
        assert torch.equal(ours, expected)
    library: Any = products._library
    assert library.launched == [] and products.left_out == library.shapes and len(library.shapes) == 2


def test_without_the_library_torch_multiplies(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cublas, "LIBRARIES", ("libnowhere.so",))
    monkeypatch.setattr(choose_few_bits, "TorchProducts", lambda fused, device: TorchProducts(fused, CPU))
    chosen = choose_products(plain, torch.device("cuda"), torch.bfloat16)
    assert chosen.name == "torch" and "cuBLASLt cannot be called: none of libnowhere.so" in caplog.text
    assert choose_products(plain, CPU, torch.float32).name == "torch"
