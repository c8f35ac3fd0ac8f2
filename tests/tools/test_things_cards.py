"""Things in cells: all is legible, in its cell, and beside all else."""

from collections import Counter
from random import Random

from kestrel_tools.scenes.world import Box
from kestrel_tools.things.cards.draw import SORTS, draw_cards
from kestrel_tools.things.cards.labels import misnamed
from kestrel_tools.things.colour import contrast
from kestrel_tools.things.lettering import least_height
from kestrel_tools.things.names import by_name
from tests.card_scenes import PIXELS, cards_of, scenes
from tests.small_atlas import small_atlas


def inside(inner: Box, outer: Box, slack: float = 0.002) -> bool:
    return (
        inner[0] > outer[0] - slack
        and inner[1] > outer[1] - slack
        and inner[2] < outer[2] + slack
        and inner[3] < outer[3] + slack
    )


def overlap(a: Box, b: Box) -> bool:
    return min(a[2], b[2]) - max(a[0], b[0]) > 0.001 and min(a[3], b[3]) - max(a[1], b[1]) > 0.001


def test_nearly_every_size_has_cards_of_every_kind() -> None:
    assert len(scenes()) > 340
    kinds = Counter(scene.cards.kind for scene in scenes() if scene.cards)
    assert set(kinds) == set(SORTS) and min(kinds.values()) >= 5
    shapes = [scene for scene in scenes() if any(item.is_shape for item in scene.items)]
    assert shapes and all(not scene.marks for scene in shapes), "tiles might be taken for squares"


def test_all_lies_in_its_cell_and_nothing_over_another() -> None:
    for scene in scenes():
        for card in cards_of(scene):
            for part in (card.item, card.label):
                assert part is None or inside(part.box, card.box), (scene.cards, card)
            assert inside(card.box, (0, 0, 1, 1))
        parts = [part.box for part in (*scene.items, *scene.lines)]
        for number, box in enumerate(parts):
            assert not any(overlap(box, other) for other in parts[:number]), scene.cards


def test_a_scene_has_what_its_cards_have() -> None:
    for scene in scenes():
        cards = cards_of(scene)
        assert Counter(map(id, scene.items)) == Counter(id(card.item) for card in cards if card.item)
        labels = {id(card.label) for card in cards if card.label is not None}
        assert labels <= {id(line) for line in scene.lines}
        assert len(scene.items) <= 12 and len(scene.lines) <= 8 and len(cards) <= 12
        assert len(scene.marks) <= 40


def test_rows_run_from_top_to_bottom_and_from_left_to_right() -> None:
    for scene in scenes():
        assert scene.cards is not None
        tops = [row[0].box[1] for row in scene.cards.rows]
        assert tops == sorted(tops)
        for row in scene.cards.rows:
            lefts = [card.box[0] for card in row]
            assert lefts == sorted(lefts) and len({round(card.box[1], 6) for card in row}) == 1
        if scene.row_by_row:
            assert [*map(id, scene.items)] == [id(card.item) for card in cards_of(scene) if card.item]
        else:
            xs = [round(item.centre[0], 3) for item in scene.items]
            assert xs == sorted(xs)
        ys = [round(line.y, 3) for line in scene.lines]
        assert ys == sorted(ys)


def test_print_is_large_enough_and_can_be_told_from_the_ground() -> None:
    told = []
    for scene in scenes():
        for line in scene.lines:
            assert line.height >= least_height(scene.unit, PIXELS) - 1e-9
            if not scene.marks:
                told += [
                    contrast(line.rgb, ground) for ground in (scene.background.first, scene.background.second)
                ]
    assert len(told) > 100 and min(told) >= 3


def test_on_a_shelf_things_stand_on_one_line() -> None:
    shelves = [scene for scene in scenes() if scene.cards and scene.cards.kind == "shelf"]
    assert shelves
    for scene in shelves:
        assert scene.cards is not None
        for row in scene.cards.rows:
            assert len({round(card.item.box[3], 5) for card in row if card.item}) == 1


def test_pairs_of_a_memory_game_are_drawn_alike() -> None:
    games = [scene for scene in scenes() if scene.cards and scene.cards.kind == "memory"]
    counted = [Counter(item.noun for item in scene.items) for scene in games]
    assert sum(2 in numbers.values() for numbers in counted) > 0.4 * len(games)
    assert max(max(numbers.values()) for numbers in counted) == 2
    for scene in games:
        looks = {(item.noun, item.drawn.sprite, item.drawn.mirrored) for item in scene.items}  # type: ignore[union-attr]
        assert len(looks) == len({item.noun for item in scene.items})


def test_some_vocabulary_cards_are_wrong_and_nobody_would_say_so_otherwise() -> None:
    cards = [cards_of(scene) for scene in scenes() if scene.cards and scene.cards.kind == "vocabulary"]
    wrong = [[card for card in each if card.label.text.lower() != card.item.name] for each in cards]  # type: ignore[union-attr]
    assert {len(each) for each in wrong} == {0, 1}
    rng = Random(5)
    for name, other in (("taxi", "car"), ("ship", "sailboat"), ("watch", "clock"), ("sunflower", "rose")):
        assert {misnamed(rng, by_name()[name]) for _ in range(2000)} > {"dog"}
        if name != "sunflower" and name != "ship":
            assert other not in {misnamed(rng, by_name()[name]) for _ in range(2000)}


def test_a_forecast_shows_weather_alone() -> None:
    rng, atlas, kinds = Random(1), small_atlas(), set()
    for _ in range(150):
        scene = draw_cards(rng, atlas, 1.2, PIXELS)
        if scene is not None and scene.cards is not None:
            kinds.add(scene.cards.kind)
            assert scene.cards.kind != "forecast" or {item.noun for item in scene.items} == {"sun"}
    assert len(kinds) > 8, "also where there are few things"
