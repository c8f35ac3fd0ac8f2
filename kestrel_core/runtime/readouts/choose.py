"""Whether the plainest readouts take one kernel of our own."""

import logging
from typing import TYPE_CHECKING

from kestrel_core.moondream.fast_text import FastText
from kestrel_core.moondream.model import Moondream
from kestrel_core.moondream.text import Forward

if TYPE_CHECKING:
    from kestrel_core.runtime.readouts.token_kernels import TokenReadout

log = logging.getLogger("kestrel")


def choose_token_readout(
    model: Moondream, forward: Forward | None, decode_kernels: str
) -> "TokenReadout | None":
    """None: `readouts.batched` for all. `decode_kernels` is what `RuntimeConfig` says."""
    if decode_kernels in ("off", "attention") or not isinstance(forward, FastText):
        return None
    if not model.text.wte.is_cuda:
        return None
    try:
        from kestrel_core.runtime.readouts.token_kernels import try_out

        return try_out(model, forward.fused)
    except Exception as error:  # no kernel language, or none that compiles here
        log.warning("reading tokens launch by launch: %s: %s", type(error).__name__, error)
        return None
