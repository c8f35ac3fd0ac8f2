"""bfloat16 on a CPU, as tensor cores compute it: products accumulate in float32, each result is rounded once.

Many CPUs have no bfloat16 units, and torch then falls back to loops that are hundreds of times slower.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

PRODUCTS = (F.linear, F.scaled_dot_product_attention, Tensor.matmul, Tensor.__matmul__, torch.matmul)


class RoundedProducts(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func not in PRODUCTS or args[0].dtype != torch.bfloat16:
            return func(*args, **(kwargs or {}))
        wide_args, wide_kwargs = tree_map(_widen, (args, dict(kwargs or {})))
        return func(*wide_args, **wide_kwargs).to(torch.bfloat16)


def _widen(value: object) -> object:
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.bfloat16 else value
