import pytest

from kestrel_core.moondream.config import MOONDREAM2
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.runtime.memory import affordable_crops, affordable_tokens


def test_the_kv_cache_is_cut_to_what_the_device_has_left() -> None:
    gib = 2**30
    assert affordable_tokens(8_192, 4_096, 196_608, 100 * gib) == 8_192
    assert affordable_tokens(1_024, 4_096, 196_608, 100 * gib) == 1_024, "less than a context may be wanted"
    assert affordable_tokens(524_288, 4_096, 196_608, 100 * gib) == int(80 * gib) // 196_608
    with pytest.raises(BadCheckpoint, match=r"needs 0\.8 GiB, and 0\.5 GiB of the device are free"):
        affordable_tokens(8_192, 4_096, 196_608, gib // 2)
    assert affordable_tokens(8_192, 4_096, 196_608, 2 * gib) == gib // 196_608, "a GiB is left in any case"


def test_batches_of_crops_are_smaller_where_little_memory_is_left() -> None:
    vision, gib = MOONDREAM2.vision, 2**30
    assert affordable_crops(vision, 100 * gib) == 64
    assert affordable_crops(vision, 4 * gib) == 20
    assert affordable_crops(vision, 0) == 1
