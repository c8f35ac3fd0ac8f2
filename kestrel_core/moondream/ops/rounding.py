"""To float8 inside of other kernels."""

import triton
import triton.language as tl

LARGEST = tl.constexpr(448.0)


@triton.jit
def to_float8(x: tl.tensor, inverse: tl.tensor, KIND: tl.constexpr) -> tl.tensor:
    """Rounded after a multiplication by the scale's inverse. What is too large becomes the largest, and what
    is no number stays none.
    """
    large: tl.constexpr = tl.PropagateNan.ALL
    return tl.minimum(
        tl.maximum(x * inverse, -LARGEST, propagate_nan=large), LARGEST, propagate_nan=large
    ).to(KIND)
