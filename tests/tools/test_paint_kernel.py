"""The kernel that puts all of a scene onto its picture, against plain torch: interpreted, on the CPU."""

from collections.abc import Iterator
from importlib.util import find_spec
from random import Random
from types import ModuleType

import pytest
import torch

from kestrel_tools.scenes import render
from kestrel_tools.things import paint
from kestrel_tools.things.charts.draw import draw_chart
from kestrel_tools.things.compose import draw_scene
from kestrel_tools.things.scene import Scene
from tests.small_atlas import small_atlas

pytestmark = [
    pytest.mark.skipif(
        find_spec("triton") is None or torch.cuda.is_available(),
        reason="needs the kernel language, and no GPU",
    ),
    # Version 3.6 of the interpreter takes the bounds of loops from arrays of one number.
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
]
ATLAS, CPU = small_atlas(), torch.device("cpu")


@pytest.fixture(scope="module")
def kernel() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")  # read at import, and again at every launch
        from kestrel_tools.things import paint_kernel

        yield paint_kernel


def charts(rng: Random, aspect: float) -> list[Scene]:
    found = (draw_chart(rng, ATLAS, aspect, (252, 336)) for _ in range(8))
    return [chart for chart in found if chart is not None][:2]


@pytest.mark.parametrize(("height", "width", "aspect"), [(52, 67, 1.3), (60, 32, 0.5)])
@pytest.mark.parametrize("sort", ["things", "charts"])
def test_one_pass_draws_what_a_pass_for_each_slot_draws(
    kernel: ModuleType, sort: str, height: int, width: int, aspect: float
) -> None:
    rng = Random(f"{sort} {height}")
    scenes = [draw_scene(rng, ATLAS, aspect, (252, 336)) for _ in range(2)] if sort != "charts" else []
    scenes += charts(rng, aspect) if sort != "things" else []
    tensors = render.to_tensors(paint.scene_arrays(scenes, ATLAS.fonts), CPU)
    one, other = paint.Painter(ATLAS, CPU), paint.Painter(ATLAS, CPU)
    other._put_all = kernel.put_all
    drawn, again = (p.draw(tensors, height, width, torch.Generator().manual_seed(0)) for p in (one, other))
    torch.testing.assert_close(again, drawn, rtol=1e-4, atol=1e-4)
