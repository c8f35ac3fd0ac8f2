"""Pages of print: all that is drawn can be read, and says what it should."""

from collections import Counter
from itertools import combinations, pairwise
from random import Random

import numpy as np

from kestrel_tools.scenes.world import Rgb
from kestrel_tools.things.atlas import CHARACTERS
from kestrel_tools.things.colour import contrast
from kestrel_tools.things.language.pages.facts import page_text
from kestrel_tools.things.language.pages.view import View, number_in
from kestrel_tools.things.lettering import MOST_LETTERS, least_height
from kestrel_tools.things.pages.content import Entry
from kestrel_tools.things.pages.notices import draw_content
from kestrel_tools.things.pages.setting import CLEAR, cased
from kestrel_tools.things.pages.words import CHORES, DISHES, GROCERIES, INGREDIENTS, PEOPLE, TOWNS
from kestrel_tools.things.scene import Line, Scene
from tests.page_scenes import drawn, pages, parts_of, told


def test_nearly_every_size_has_room_for_a_page() -> None:
    assert len(drawn()) > 440


def test_all_print_is_large_enough_and_within_the_picture() -> None:
    for scene, pixels in drawn():
        least = least_height(scene.unit, pixels)
        for one in scene.lines:
            assert one.height >= least * 0.999
            assert min(one.box) > 0 and max(one.box) < 1
            assert 0 < len(one.text) <= MOST_LETTERS and set(one.text) <= set(CHARACTERS)
        for item in scene.items:
            assert min(item.box) > 0 and max(item.box) < 1


def overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_no_print_lies_on_other_print_or_on_the_picture() -> None:
    for scene, _ in drawn():
        if scene.lines[0].angle == 0:
            boxes = [one.box for one in scene.lines] + [item.box for item in scene.items]
            assert not any(overlap(a, b) for a, b in combinations(boxes, 2)), page_text(scene.page)  # type: ignore[arg-type]


def behind(scene: Scene, one: Line) -> tuple[Rgb, ...]:
    """The colours of the ground, or of the last mark that the middle of the line lies on."""
    found: tuple[Rgb, ...] = (scene.background.first, scene.background.second)
    unit = np.array(scene.unit)
    for mark in scene.marks:
        start, end, middle = (np.array(point) / unit for point in (mark.start, mark.end, (one.x, one.y)))
        length = float(np.linalg.norm(end - start))
        along = (end - start) / length if length else np.zeros(2)
        u = float((middle - start) @ along)
        aside = float(np.linalg.norm(middle - start - u * along))
        if aside < mark.width / 2 and (0 <= u <= length or not length) and mark.width > 0.4 * one.height:
            found = (mark.rgb,)
    return found


def test_print_stands_out_from_what_is_behind_it() -> None:
    for scene, _ in drawn():
        for one in scene.lines:
            assert min(contrast(one.rgb, rgb) for rgb in behind(scene, one)) >= CLEAR - 1e-6


def test_the_lines_of_a_page_are_those_of_its_scene_in_the_order_of_reading() -> None:
    for scene, page in pages():
        rows = [one for row in page.rows for one in (row.label, row.value) if one is not None]
        assert scene.lines == (*((page.title,) if page.title else ()), *rows)
        assert 1 <= len(page.rows) <= 6
        if not scene.lines[0].angle:
            tops = [one.y for one in scene.lines]
            assert all(after > before - 1e-6 for before, after in pairwise(tops))


def test_pages_are_of_many_kinds_and_looks() -> None:
    kinds = Counter(page.kind for _, page in pages())
    assert len(kinds) > 35 and max(kinds.values()) < 0.15 * len(drawn())
    number = len(drawn())
    assert {len(page.rows) for _, page in pages()} == set(range(1, 7))
    assert 0.6 * number < sum(page.title is not None for _, page in pages()) < 0.95 * number
    assert 0.05 * number < sum(bool(scene.items) for scene, _ in pages()) < 0.35 * number
    assert 0.05 * number < sum(scene.lines[0].angle != 0 for scene, _ in pages()) < 0.3 * number
    below = [View(scene, page).is_beside for scene, page in pages() if any(row.value for row in page.rows)]
    assert 0.02 < below.count(False) / len(below) < 0.3
    mixed = [page.rows[0].label.text for _, page in pages() if page.rows[0].label.font == 1]
    for is_so in (str.isupper, str.islower, str.istitle):
        assert sum(map(is_so, mixed)) > 0.05 * len(mixed)


def test_about_one_word_in_six_is_made_up() -> None:
    pools = {"departures": TOWNS, "phone list": PEOPLE, "recipe": INGREDIENTS, "duties": CHORES}
    rng, found = Random(1), []
    for _ in range(3000):
        content = draw_content(rng, 6)
        if content.kind in pools:
            parts = (part for row in content.rows for part in row.parts)
            found += [said in pools[content.kind] for role, said in parts if role == "thing"]
    assert 1 / 8 < found.count(False) / len(found) < 1 / 4.5


def test_what_a_row_tells_is_printed_in_it() -> None:
    for _, page in pages():
        for row in page.rows:
            assert isinstance(row, Entry)
            text = f"{row.label.text} {row.value.text if row.value else ''}"
            for part in row.parts:
                if part.role not in ("no", "yes", "must"):
                    assert part.text and part.text in text and part.text.lower() == part.said.lower()


def test_letters_change_but_figures_and_units_do_not() -> None:
    assert cased("back at 3 pm", "upper") == "BACK AT 3 pm"
    assert cased("Rosa's Cafe", "title") == "Rosa's Cafe" and cased("seat 4A", "lower") == "seat 4A"
    assert cased("no smoking", "first") == "No smoking"


def test_receipts_add_up() -> None:
    found = [page for _, page in pages() if page.kind == "receipt"]
    assert len(found) > 12
    for page in found:
        [total] = parts_of(page, "total")
        prices = [round(100 * number_in(detail)) for _, _, detail in told(page)]
        assert sum(prices) == round(100 * number_in(total.text))


def test_words_are_many_and_fit_a_line() -> None:
    for pool in (DISHES, GROCERIES, PEOPLE, TOWNS):
        assert len(set(pool)) == len(pool) > 90 and all(len(word) <= MOST_LETTERS for word in pool)
