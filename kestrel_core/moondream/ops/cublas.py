"""cuBLASLt, called directly for what torch's call of it leaves out.

That is GELU and rounding to float8 in a product's own epilogue, and a sum with an earlier result.

Everything is row-major here and column-major there, so `x @ weight.T` is asked for as its transpose: the
weights are A, the inputs B. All names and numbers are those of cublasLt.h.
"""

import ctypes
from ctypes import c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kestrel_core.moondream.ops.float8_products import FixedScale, Matrix8, Products

LIBRARIES = ("libcublasLt.so.13", "libcublasLt.so.12")  # torch has loaded the one that it was built with
WORKSPACE_BYTES = 32 * 2**20  # as NVIDIA recommends for Hopper

R_32F, R_16BF, R_8F_E4M3 = 0, 14, 28
COMPUTE_32F = 68
TRANSPOSED = 1
EPILOGUE_DEFAULT, EPILOGUE_BIAS, EPILOGUE_GELU_BIAS = 1, 4, 36
MAX_WORKSPACE_BYTES = 1  # of a preference
# Attributes of a product.
TRANSA, EPILOGUE, BIAS_POINTER = 3, 7, 8
A_SCALE_POINTER, D_SCALE_POINTER, FAST_ACCUM, BIAS_DATA_TYPE = 17, 20, 25, 26


class Algorithm(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algo", c_uint64 * 8),
        ("workspace_size", c_size_t),
        ("state", c_int),
        ("waves", ctypes.c_float),
        ("reserved", c_int * 4),
    )


class Shape(NamedTuple):
    rows: int
    columns: int
    depth: int
    has_bias: bool
    adds: bool
    gelu: bool  # and then the result is float8


class Plan(NamedTuple):
    product: c_void_p
    weights: c_void_p
    inputs: c_void_p
    added: c_void_p
    result: c_void_p
    algorithm: Algorithm


class Library:
    """The few functions that are needed, each of which raises where it reports an error."""

    def __init__(self) -> None:
        self._functions = _load()

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._functions, f"cublasLt{name}")(*arguments)
        if status != 0:
            raise RuntimeError(f"cublasLt{name} returned {status}")

    def made(self, name: str, *arguments: Any) -> c_void_p:
        made = c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def set(self, setter: str, target: c_void_p, attribute: int, value: Any) -> None:
        self.call(setter, target, c_int(attribute), ctypes.byref(value), c_size_t(ctypes.sizeof(value)))

    def set_product(self, product: c_void_p, attribute: int, value: Any) -> None:
        self.set("MatmulDescSetAttribute", product, attribute, value)

    def layout(self, kind: int, rows: int, columns: int, stride: int) -> c_void_p:
        """Of a column-major matrix."""
        return self.made(
            "MatrixLayoutCreate", c_int(kind), c_uint64(rows), c_uint64(columns), c_int64(stride)
        )

    def plan(self, shape: Shape) -> Plan:
        """All but the algorithm and the pointers."""
        product = self.made("MatmulDescCreate", c_int(COMPUTE_32F), c_int(R_32F))
        self.set_product(product, TRANSA, c_int32(TRANSPOSED))
        self.set_product(product, FAST_ACCUM, ctypes.c_int8(1))
        epilogue = EPILOGUE_BIAS if shape.has_bias else EPILOGUE_DEFAULT
        self.set_product(product, EPILOGUE, c_int32(EPILOGUE_GELU_BIAS if shape.gelu else epilogue))
        if shape.has_bias:
            self.set_product(product, BIAS_DATA_TYPE, c_int32(R_16BF))
        rows, columns, depth = shape[:3]
        return Plan(
            product,
            self.layout(R_8F_E4M3, depth, columns, depth),
            self.layout(R_8F_E4M3, depth, rows, depth),
            self.layout(R_16BF, columns, rows, columns),
            self.layout(R_8F_E4M3 if shape.gelu else R_16BF, columns, rows, columns),
            Algorithm(),
        )

    def choose(self, handle: c_void_p, plan: Plan, rank: int) -> Plan | None:
        """The plan with its algorithm: what the library thinks best, or with a `rank` one behind it."""
        preference = self.made("MatmulPreferenceCreate")
        limit = c_uint64(WORKSPACE_BYTES)
        self.set("MatmulPreferenceSetAttribute", preference, MAX_WORKSPACE_BYTES, limit)
        found, results = c_int(0), (Algorithm * (rank + 1))()
        try:
            self.call(
                "MatmulAlgoGetHeuristic",
                handle,
                *plan[:5],
                preference,
                c_int(rank + 1),
                results,
                ctypes.byref(found),
            )
        except RuntimeError:  # which is how it says that it has none
            return None
        finally:
            self.call("MatmulPreferenceDestroy", preference)
        known = found.value > rank and results[rank].state == 0
        return plan._replace(algorithm=results[rank]) if known else None


class CublasProducts:
    """What cuBLASLt has no algorithm for is left to the `others`."""

    name = "cublas"

    def __init__(self, others: Products, device: torch.device, rank: int = 0) -> None:
        """`rank`: of the algorithms to use, for measurements; 0 is what the library thinks best."""
        self._others = others
        self._rank = rank
        self._device = device
        self._library = Library()
        with torch.cuda.device(device):
            self._handle = self._library.made("Create")
        self._workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=device)
        self._plans: dict[Shape, Plan | None] = {}
        self._one, self._zero = ctypes.c_float(1.0), ctypes.c_float(0.0)

    @property
    def left_out(self) -> list[Shape]:
        """What it has no algorithm for."""
        return [shape for shape, plan in self._plans.items() if plan is None]

    def linear(self, x: Tensor, matrix: Matrix8, add: Tensor | None = None) -> Tensor:
        shape = Shape(*_sizes(x, matrix), matrix.bias is not None, add is not None, gelu=False)
        plan = self._plan(shape, matrix, None)
        if plan is None:
            return self._others.linear(x, matrix, add)
        out = torch.empty((shape.rows, shape.columns), dtype=matrix.dtype, device=x.device)
        self._run(plan, x, matrix, add, out)
        return out

    def gelu_linear(self, x: Tensor, matrix: Matrix8, scale: FixedScale) -> Tensor:
        assert matrix.bias is not None
        shape = Shape(*_sizes(x, matrix), has_bias=True, adds=False, gelu=True)
        plan = self._plan(shape, matrix, scale)
        if plan is None:
            return self._others.gelu_linear(x, matrix, scale)
        out = torch.empty((shape.rows, shape.columns), dtype=x.dtype, device=x.device)
        self._run(plan, x, matrix, None, out)
        return out

    def _plan(self, shape: Shape, matrix: Matrix8, scale: FixedScale | None) -> Plan | None:
        """With the matrix's pointers, which the launch copies. None where there is no algorithm."""
        new = shape not in self._plans
        plan = self._library.plan(shape) if new else self._plans[shape]
        if plan is None:
            return None
        self._library.set_product(plan.product, A_SCALE_POINTER, c_void_p(matrix.factor.data_ptr()))
        if matrix.bias is not None:
            self._library.set_product(plan.product, BIAS_POINTER, c_void_p(matrix.bias.data_ptr()))
        if scale is not None:
            self._library.set_product(plan.product, D_SCALE_POINTER, c_void_p(scale.inverse.data_ptr()))
        if new:
            self._plans[shape] = plan = self._library.choose(self._handle, plan, self._rank)
        return plan

    def _run(self, plan: Plan, x: Tensor, matrix: Matrix8, add: Tensor | None, out: Tensor) -> None:
        """What is not added is no pointer at all: the result's would have to be of the type that is added."""
        assert x.is_contiguous() and matrix.values.is_contiguous() and (add is None or add.is_contiguous())
        self._library.call(
            "Matmul",
            self._handle,
            plan.product,
            ctypes.byref(self._one),
            c_void_p(matrix.values.data_ptr()),
            plan.weights,
            c_void_p(x.data_ptr()),
            plan.inputs,
            ctypes.byref(self._zero if add is None else self._one),
            c_void_p(None if add is None else add.data_ptr()),
            plan.added,
            c_void_p(out.data_ptr()),
            plan.result,
            ctypes.byref(plan.algorithm),
            c_void_p(self._workspace.data_ptr()),
            c_size_t(WORKSPACE_BYTES),
            c_void_p(torch.cuda.current_stream(self._device).cuda_stream),
        )


def _sizes(x: Tensor, matrix: Matrix8) -> tuple[int, int, int]:
    return len(x), len(matrix.values), x.shape[1]


def _load() -> ctypes.CDLL:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(f"none of {', '.join(LIBRARIES)} is here")
