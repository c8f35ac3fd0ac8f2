"""Other styles of a drawing: it is elsewhere in its cell, and what is known of it moves along."""

import numpy as np

from examples.train_tiny.restyle import with_other_styles
from kestrel_tools.things.colour import main_colour
from tests.small_atlas import small_atlas

SPRITES = small_atlas().sprites
STYLED = with_other_styles(SPRITES, copies=3)


def test_each_drawing_has_copies_of_its_name_that_look_otherwise() -> None:
    count = len(SPRITES)
    assert len(STYLED) == 4 * count and STYLED.names == SPRITES.names * 4
    assert np.array_equal(STYLED.pixels[:count], SPRITES.pixels)
    for index in range(count, 4 * count):
        assert not np.array_equal(STYLED.pixels[index], SPRITES.pixels[index % count])
    assert np.array_equal(with_other_styles(SPRITES, 3).pixels, STYLED.pixels), "one seed, one result"


def test_colours_stay_within_what_is_covered_and_are_named_as_drawn() -> None:
    assert np.all(STYLED.pixels[..., :3] <= STYLED.pixels[..., 3:])
    for index in range(len(SPRITES), len(STYLED)):
        if not _has_lost_its_colours(index):
            assert STYLED.colours[index] in (
                main_colour(STYLED.pixels[index][::2, ::2]),
                SPRITES.colours[index % len(SPRITES)],
            )


def test_some_copies_are_drawn_without_colours_and_have_none_to_be_asked_for() -> None:
    colourless = [index for index in range(len(SPRITES), len(STYLED)) if _has_lost_its_colours(index)]
    assert 0 < len(colourless) < len(SPRITES)
    assert not any(STYLED.colours[index] for index in colourless)


def _has_lost_its_colours(index: int) -> bool:
    before, now = (
        float(np.ptp(pixels[..., :3].astype(int), -1).mean())
        for pixels in (SPRITES.pixels[index % len(SPRITES)], STYLED.pixels[index])
    )
    return now < 0.3 * before


def test_some_copies_are_not_bent() -> None:
    straight = [index for index in range(len(SPRITES), len(STYLED)) if _has_kept_its_form(index)]
    assert 0.2 < len(straight) / (len(STYLED) - len(SPRITES)) < 0.6


def _has_kept_its_form(index: int) -> bool:
    """Whether its outline is the drawing's, but for its size and place."""
    before, now = (
        (points - points.min(0)) / np.ptp(points, axis=0).max()
        for points in (SPRITES.outlines[index % len(SPRITES)], STYLED.outlines[index])
    )
    return float(np.abs(now - before).max()) < 0.001


def test_hull_outline_and_anchor_follow_the_pixels() -> None:
    for index in range(len(STYLED)):
        rows, columns = np.nonzero(STYLED.pixels[index, ..., 3] >= 110)
        side = STYLED.pixels.shape[1]
        drawn = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]) / side * 2 - 1
        for points in (STYLED.hulls[index], STYLED.outlines[index]):
            told = np.concatenate((points.min(0), points.max(0)))
            assert np.abs(told - drawn).max() < 0.12, (STYLED.names[index], told, drawn)
        column, row = ((STYLED.anchors[index] + 1) / 2 * side).astype(int)
        assert STYLED.pixels[index, row, column, 3] > 0
