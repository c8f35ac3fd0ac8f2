"""The truth about a scene of things is what is drawn: boxes, letters, bars."""

from dataclasses import replace
from random import Random
from string import ascii_lowercase, ascii_uppercase

import numpy as np
import pytest
import torch
from torch import Tensor

from kestrel_tools.scenes import render
from kestrel_tools.scenes import world as shapes
from kestrel_tools.scenes.world import Background, Box
from kestrel_tools.things import paint
from kestrel_tools.things.atlas import CHARACTERS
from kestrel_tools.things.charts.draw import draw_chart
from kestrel_tools.things.compose import apart, draw_scene, shared
from kestrel_tools.things.lettering import line_at
from kestrel_tools.things.scene import MOST_ITEMS, Mark, Placed, Scene, widened
from tests.small_atlas import small_atlas

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
ATLAS = small_atlas()
TEAL = (0.0, 0.45, 0.5)
GROUND = Background("plain", TEAL, TEAL, 0.0, 0.1, 0.0)


def painted(scenes: list[Scene], height: int, width: int) -> Tensor:
    arrays = render.to_tensors(paint.scene_arrays(scenes, ATLAS.fonts), CPU)
    return paint.Painter(ATLAS, CPU).draw(arrays, height, width, torch.Generator().manual_seed(0))


def touched(picture: Tensor, ground: tuple[float, float, float], least: float = 0.15) -> Box:
    """The box of what differs from the ground, as fractions of the picture."""
    differs = (picture - torch.tensor(ground)[:, None, None]).abs().amax(0) > least
    rows, columns = differs.any(1).nonzero().flatten(), differs.any(0).nonzero().flatten()
    height, width = differs.shape
    return (
        float(columns[0]) / width,
        float(rows[0]) / height,
        float(columns[-1] + 1) / width,
        float(rows[-1] + 1) / height,
    )


def test_a_typeface_without_small_letters_prints_capitals() -> None:
    fonts, small = ATLAS.fonts, [CHARACTERS.index(letter) for letter in ascii_lowercase]
    pixels = fonts.pixels.copy()
    pixels[:, small] = 255 - pixels[:, [CHARACTERS.index(letter) for letter in ascii_uppercase]]
    assert replace(fonts, pixels=pixels).shown(0, "Ice cream 5") == "Ice cream 5"
    pixels[:, small] = 255 - pixels[:, small]
    assert replace(fonts, pixels=pixels).shown(0, "Ice cream 5") == "ICE CREAM 5"


def test_shapes_lie_on_what_is_behind_them() -> None:
    small = shapes.draw_scene(Random(2), 1.0)
    whole = Mark((-0.1, 0.5), (1.1, 0.5), 1.2, False, (1.0, 0.0, 1.0))
    scene = replace(widened(small), background=GROUND, lines=(), marks=(whole,))
    without = replace(scene, marks=())
    behind, plain = painted([scene], 120, 120)[0], painted([without], 120, 120)[0]
    shown = (plain - torch.tensor(TEAL)[:, None, None]).abs().amax(0) > 0.1
    assert shown.any() and torch.allclose(behind[:, 0, 0], torch.tensor((1.0, 0.0, 1.0)), atol=1e-3)
    for item in scene.items:
        x, y = (int(120 * c) for c in item.point)
        assert torch.allclose(behind[:, y, x], plain[:, y, x], atol=1e-3), "not covered"


def scenes_of(count: int, aspect: float, seed: int = 0) -> list[Scene]:
    rng = Random(seed)
    return [draw_scene(rng, ATLAS, aspect, (252, 252)) for _ in range(count)]


@pytest.mark.parametrize("aspect", [1.0, 1.8, 0.6])
def test_a_box_is_where_its_thing_is_drawn(aspect: float) -> None:
    scenes = [
        replace(scene, background=GROUND, items=(item,), lines=(), marks=())
        for scene in scenes_of(12, aspect)
        for item in scene.items
        if not item.is_shape
    ][:30]
    height, width = round(200 / max(1, aspect)), round(200 * min(1, aspect))
    for scene, picture in zip(scenes, painted(scenes, height, width), strict=True):
        true = scene.items[0].box
        slack = np.subtract(touched(picture, TEAL), true) * (width, height, width, height)
        assert np.abs(slack).max() < 1.6, (scene.items[0].noun, slack)


@pytest.mark.parametrize("angle", [0.0, 0.25, -0.3])
def test_a_line_is_printed_where_its_box_says(angle: float) -> None:
    fonts, unit, white = ATLAS.fonts, (1 / 1.4, 1.0), (1.0, 1.0, 1.0)
    texts = ("STOP", "Hello", "42", "AB CD", "X")
    lines = [line_at(fonts, text, 0, 0.3, (0, 0, 0), unit, (0.5, 0.5), angle=angle) for text in texts]
    scenes = [Scene(1.4, Background("plain", white, white, 0, 0.1, 0), (), (line,)) for line in lines]
    for line, picture in zip(lines, painted(scenes, 300, 420), strict=True):
        x_min, y_min, x_max, y_max = np.subtract(touched(picture, white, 0.4), line.box) * (
            420,
            300,
            420,
            300,
        )
        inside = np.array((x_min, y_min, -x_max, -y_max))
        # A letter that is turned need not reach the corners of its own box.
        assert inside.min() > -1.6 and inside.max() < (1.6 if angle == 0 else 12), (line.text, inside)


def test_a_mirrored_sprite_shows_its_other_side() -> None:
    placed = Placed(0, 0.5, 0.5, 0.4, 0.0, False)
    [scene] = [
        scene for scene in scenes_of(30, 1.0) if len(scene.items) == 1 and not scene.items[0].is_shape
    ][:1]
    there = replace(
        scene, background=GROUND, lines=(), marks=(), items=(replace(scene.items[0], drawn=placed),)
    )
    back = replace(there, items=(replace(there.items[0], drawn=replace(placed, mirrored=True)),))
    one, other = painted([there, back], 96, 96)
    assert torch.allclose(one, other.flip(-1), atol=2 / 255)
    assert not torch.allclose(one, other, atol=0.1)


def test_alone_a_picture_is_what_it_is_in_a_batch() -> None:
    rng = Random(4)
    scenes = [*scenes_of(3, 1.5, seed=9), draw_chart(rng, ATLAS, 1.5, (252, 378))]
    quiet = [replace(scene, background=GROUND) for scene in scenes if scene is not None]
    together = painted(quiet, 120, 180)
    for scene, picture in zip(quiet, together, strict=True):
        [alone] = painted([scene], 120, 180)
        assert torch.allclose(alone, picture, atol=1e-5)


def test_small_drawings_keep_their_colour() -> None:
    index = ATLAS.sprites.names.index("apple")
    [scene] = [
        scene for scene in scenes_of(30, 1.0) if len(scene.items) == 1 and not scene.items[0].is_shape
    ][:1]
    tiny = replace(scene.items[0], drawn=Placed(index, 0.5, 0.5, 0.04, 0.3, False))
    [picture] = painted([replace(scene, background=GROUND, lines=(), items=(tiny,))], 200, 200)
    assert torch.allclose(picture[:, 100, 100] * 255, torch.tensor((220.0, 30.0, 30.0)), atol=3)


@pytest.mark.parametrize("seed", range(5))
def test_things_overlap_little_and_shapes_and_print_not_at_all(seed: int) -> None:
    for scene in scenes_of(20, 1.0 + 0.3 * seed, seed):
        solid = [item.box for item in scene.items if item.is_shape] + [line.box for line in scene.lines]
        soft = [item.box for item in scene.items if not item.is_shape]
        assert len(scene.items) <= MOST_ITEMS
        for at, box in enumerate(solid):
            assert all(apart(box, other) for other in (*solid[:at], *soft))
        assert all(shared(a, b) <= 0.23 for at, a in enumerate(soft) for b in soft[:at])
        assert all(0 <= edge <= 1 for box in (*solid, *soft) for edge in box)


def test_the_tallest_bar_is_the_largest_value() -> None:
    rng, drawn = Random(2), 0
    for _ in range(40):
        scene = draw_chart(rng, ATLAS, 1.3, (196, 336))
        if scene is None or scene.chart is None:
            continue
        drawn += 1
        chart = scene.chart
        best = chart.values.index(max(chart.values))
        highest = min(range(len(chart.boxes)), key=lambda index: chart.boxes[index][1])
        longest = max(range(len(chart.boxes)), key=lambda index: chart.boxes[index][2])
        assert best in (highest, longest)
        told = [line.text for line in scene.lines]
        assert all(label in told for label in chart.labels) and (not chart.title or chart.title in told)
        assert all(0 <= edge <= 1 for line in scene.lines for edge in line.box)
    assert drawn > 30


def test_a_bar_is_drawn_where_its_box_is() -> None:
    rng = Random(11)
    charts = [draw_chart(rng, ATLAS, 1.0, (252, 252)) for _ in range(30)]
    scenes = [scene for scene in charts if scene and scene.chart and scene.chart.kind == "bar"][:6]
    for scene in scenes:
        assert scene.chart is not None
        bars = scene.marks[-len(scene.chart.boxes) :]
        for mark, box in zip(bars, scene.chart.boxes, strict=True):
            alone = replace(scene, background=GROUND, lines=(), marks=(replace(mark, rgb=(1.0, 1.0, 1.0)),))
            [picture] = painted([alone], 240, 240)
            assert np.abs(np.subtract(touched(picture, TEAL), box)).max() < 1.6 / 240
