"""Who is in a random scene: several of one thing among others, by one hand, in rows; legible print."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kestrel_tools.things.atlas import ARRAYS, CHARACTERS, Atlas, Sprites
from kestrel_tools.things.colour import contrast
from kestrel_tools.things.compose import (
    BIG,
    CROWDED,
    LEAST_CONTRAST,
    SMALL,
    USUAL,
    Mixture,
    draw_rows,
    draw_scene,
)
from kestrel_tools.things.lettering import KNOWN, MOST_LETTERS, everyday_text, printed_text
from kestrel_tools.things.names import by_name, nouns
from kestrel_tools.things.scene import Placed, Scene, unit_of
from kestrel_tools.things.vocabulary import OTHER_WORDS, PHRASES
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


def scenes(count: int, seed: int, mixture: Mixture = USUAL) -> list[Scene]:
    rng = Random(seed)
    return [draw_scene(rng, ATLAS, rng.uniform(0.6, 1.7), (252, 252), mixture=mixture) for _ in range(count)]


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


def test_crowds_are_larger_and_more_alike() -> None:
    usual, crowded = ([names_of(scene) for scene in scenes(200, 4, mixture)] for mixture in (USUAL, CROWDED))
    assert np.mean([len(names) for names in crowded]) > 1.2 * np.mean([len(names) for names in usual])

    def akin(all_names: list[list[str]]) -> float:
        """The share of scenes of five and more in which most things are of one kind."""
        large = [names for names in all_names if len(names) >= 5]
        kinds = [Counter(kind for name in names for kind in by_name()[name].kinds) for names in large]
        most = [max(numbers.values(), default=0) for numbers in kinds]
        return float(np.mean([number > 0.7 * len(names) for number, names in zip(most, large, strict=True)]))

    assert akin(crowded) > 1.3 * akin(usual)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_rows_have_a_place_for_each_and_room_around_it(count: int) -> None:
    rng = Random(count)
    for _ in range(50):
        unit = unit_of(rng.uniform(0.5, 2.0))
        found = draw_rows(rng, count, unit)
        if found is None:
            continue
        middles, radius = found
        assert len(middles) >= count and all(0 < x < 1 and 0 < y < 1 for x, y in middles)
        places = np.array(middles) / unit
        distances = np.linalg.norm(places[:, None] - places, axis=-1)[~np.eye(len(places), dtype=bool)]
        assert distances.min() > 1.4 * radius, "two radii, less what a loose row moves them"


def test_things_stand_in_rows_as_often_as_asked() -> None:
    def aligned(in_rows: float) -> float:
        """The share of neighbours, from left to right, that are below each other."""
        shared = []
        for scene in scenes(150, 5, replace(CROWDED, in_rows=in_rows)):
            things = [item for item in scene.items if isinstance(item.drawn, Placed)]
            if len(things) >= 5:
                middles = sorted((item.box[0] + item.box[2]) / 2 for item in things)
                shared.append(np.mean(np.diff(middles) < 0.004))
        return float(np.mean(shared))

    assert aligned(1.0) > 0.2 > 4 * aligned(0.0)


def test_what_stands_in_rows_is_as_large_as_it_is_called() -> None:
    sizes = [
        (item.size, item.drawn.radius)
        for scene in scenes(200, 6, replace(CROWDED, in_rows=1.0))
        for item in scene.items
        if isinstance(item.drawn, Placed)
    ]
    assert {size for size, _ in sizes} == {"small", "", "big"}
    assert all(radius >= BIG for size, radius in sizes if size == "big")
    assert all(SMALL <= radius <= BIG for size, radius in sizes if size == "")


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


def test_training_prints_words_and_phrases_that_the_scores_lack() -> None:
    rng = Random(1)
    assert all(
        len(text) <= MOST_LETTERS and set(text) <= {*CHARACTERS, " "} for text in (*OTHER_WORDS, *PHRASES)
    )
    assert not set(OTHER_WORDS) & set(KNOWN) and len(set(PHRASES)) == len(PHRASES)
    training, score = ([make(rng).lower() for _ in range(4000)] for make in (everyday_text, printed_text))
    assert all(len(text) <= MOST_LETTERS for text in training)
    phrases = {phrase.lower() for phrase in PHRASES}
    assert 300 < sum(text in phrases for text in training) < 700
    assert len({*" ".join(training).split()} & {*OTHER_WORDS}) > 0.9 * len(OTHER_WORDS)
    assert not {*score} & phrases
