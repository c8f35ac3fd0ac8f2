"""Who is in a random scene: several of one thing among others, by one hand, and print that can be read."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kestrel_tools.things.atlas import ARRAYS, Atlas, Sprites
from kestrel_tools.things.colour import contrast
from kestrel_tools.things.compose import LEAST_CONTRAST, draw_scene
from kestrel_tools.things.names import nouns
from kestrel_tools.things.scene import Placed, Scene
from tests.small_atlas import small_atlas


def two_sets() -> Atlas:
    """All things, each as one of the few of the small atlas, drawn by two hands that draw alike."""
    atlas, names = small_atlas(), tuple(noun.name for noun in nouns())
    drawn = np.arange(2 * len(names)) % len(atlas.sprites)
    arrays = (getattr(atlas.sprites, name)[drawn] for name in ARRAYS)
    sets = ("ours",) * len(names) + ("theirs",) * len(names)
    colours = tuple(atlas.sprites.colours[index] for index in drawn)
    return replace(atlas, sprites=Sprites(names * 2, sets, colours, *arrays))


ATLAS = two_sets()


def scenes(count: int, seed: int) -> list[Scene]:
    rng = Random(seed)
    return [draw_scene(rng, ATLAS, rng.uniform(0.6, 1.7), (252, 252)) for _ in range(count)]


def things_of(scene: Scene) -> list[Placed]:
    return [item.drawn for item in scene.items if isinstance(item.drawn, Placed)]


def names_of(scene: Scene) -> list[str]:
    return [ATLAS.sprites.names[thing.sprite] for thing in things_of(scene)]


def test_some_things_are_there_several_times_among_others_that_are_there_once() -> None:
    found = [Counter(scene_names) for scene_names in map(names_of, scenes(300, 1))]
    crowds = [numbers for numbers in found if sum(numbers.values()) >= 5]
    mixed = [numbers for numbers in crowds if max(numbers.values()) > 1 and len(numbers) > 3]
    different = [numbers for numbers in crowds if max(numbers.values()) == 1]
    assert len(mixed) > 0.33 * len(crowds) and len(different) > 0.1 * len(crowds)


def test_many_scenes_are_drawn_by_one_set_and_many_by_both() -> None:
    sets = [
        {ATLAS.sprites.sets[thing.sprite] for thing in things_of(scene)}
        for scene in scenes(300, 2)
        if len(things_of(scene)) >= 5
    ]
    alone = sum(len(drawn_by) == 1 for drawn_by in sets)
    assert 0.4 * len(sets) < alone < 0.9 * len(sets)


def test_a_set_that_lacks_a_thing_has_it_from_the_others() -> None:
    sprites = ATLAS.sprites
    name = sprites.names[0]
    ours = sprites.drawings(name, "ours")
    assert ours and {sprites.sets[index] for index in ours} == {"ours"}
    assert sprites.drawings(name, "nobody's") == sprites.drawings(name) == sprites.by_name[name]


def test_print_is_darker_or_brighter_than_what_is_behind_it() -> None:
    plain = [scene for scene in scenes(200, 3) if scene.lines and not scene.marks]
    told = [
        contrast(line.rgb, ground)
        for scene in plain
        for line in scene.lines
        for ground in (scene.background.first, scene.background.second)
    ]
    assert len(told) > 50 and min(told) >= LEAST_CONTRAST


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (1, 1, 1)) == contrast((1, 1, 1), (0, 0, 0)) == pytest.approx(21)
    assert contrast((0.2, 0.2, 0.2), (0.2, 0.2, 0.2)) == 1
    assert contrast((1, 0, 0), (0, 0.5, 0)) < 1.4, "red and green of the same brightness"
