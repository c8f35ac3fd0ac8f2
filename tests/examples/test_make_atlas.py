"""Drawings become sprites with exact outlines and colours, and letters come out of a font's own tables."""

import json
import struct
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import pyvips

from examples.train_tiny.icons import IN_UNICODE, SIDE, Icons, emoji_of, icons_of, letters_of
from examples.train_tiny.make_atlas import (
    EM,
    HAND_EM,
    chosen_drawings,
    draw_font,
    draw_icon,
    draw_set,
    drawings,
    filled_drawings,
)
from examples.train_tiny.outline import anchor_of, area_of, hull_of, loops_of, outline_of
from examples.train_tiny.sources import AS_CALLED, Source
from examples.train_tiny.typeface import Typeface
from kestrel_tools.things.atlas import BASELINE, CHARACTERS, HANDS, LETTER, SPRITE, UNSEEN_SETS
from kestrel_tools.things.colour import main_colour
from kestrel_tools.things.names import nouns

DISC = '<circle cx="30" cy="20" r="10" fill="#dd2020"/>'


def disc(side: int, radius: float) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    y, x = np.mgrid[0:side, 0:side] + 0.5 - side / 2
    covered: np.ndarray[tuple[int, int], np.dtype[np.bool_]] = x**2 + y**2 < radius**2
    return covered


def test_an_outline_of_few_corners_holds_what_is_covered() -> None:
    covered = disc(96, 40)
    outline = outline_of(covered, 16)
    assert outline.shape == (16, 2)
    assert area_of(outline) * 48**2 == pytest.approx(covered.sum(), rel=0.06)


def test_the_hull_touches_the_furthest_pixels_on_every_side() -> None:
    covered = np.zeros((96, 96), bool)
    covered[10:20, 5:90] = covered[60:80, 40:44] = True
    hull = (hull_of(covered, 64) + 1) * 48
    assert (*hull.min(0), *hull.max(0)) == pytest.approx((5, 10, 90, 80))


def test_a_crescent_is_pointed_at_within_itself() -> None:
    y, x = np.mgrid[0:96, 0:96] + 0.5 - 48
    crescent = disc(96, 44) & ((x - 20) ** 2 + y**2 >= 40**2)
    column, row = ((anchor_of(crescent) + 1) * 48).astype(int)
    assert crescent[row - 2 : row + 3, column - 2 : column + 3].all()
    assert anchor_of(disc(96, 40)) == pytest.approx(0, abs=0.02)


def test_separate_pieces_are_outlined_together() -> None:
    covered = np.zeros((96, 96), bool)
    covered[10:40, 10:40] = covered[50:80, 50:80] = True
    assert len(loops_of(covered)) == 2
    outline = (outline_of(covered, 16) + 1) * 48
    assert (outline.min(), outline.max()) == pytest.approx((10, 80))


def test_a_hole_is_a_loop_of_its_own() -> None:
    assert len(loops_of(disc(64, 30) & ~disc(64, 10))) == 2


@pytest.mark.parametrize(
    ("rgb", "name"),
    [
        ((220, 30, 30), "red"), ((250, 220, 60), "yellow"), ((40, 160, 60), "green"),
        ((250, 170, 190), "pink"), ((120, 70, 40), "brown"), ((250, 250, 250), "white"),
        ((20, 20, 20), "black"), ((255, 185, 20), ""),
    ],
)  # fmt: skip
def test_a_colour_is_told_where_people_agree_on_it(rgb: tuple[int, int, int], name: str) -> None:
    assert main_colour(np.full((8, 8, 4), (*rgb, 255), np.uint8)) == name


def test_a_motley_drawing_has_no_colour() -> None:
    pixels = np.full((8, 8, 4), (220, 30, 30, 255), np.uint8)
    pixels[:4] = (40, 160, 60, 255)
    assert main_colour(pixels) == ""


def test_wheels_and_outlines_do_not_hide_a_colour() -> None:
    drawn = np.zeros((10, 10, 4), np.uint8)
    drawn[..., 3] = 255
    drawn[:5, :, 1] = 200  # half of it green, half black
    assert main_colour(drawn) == "green"
    drawn[2:5, :, :3] = (250, 250, 250)
    assert main_colour(drawn) == ""


def test_an_icon_fills_its_sprite_wherever_it_was_drawn() -> None:
    drawn = draw_icon(DISC, 64, 64)
    assert drawn.shape == (SPRITE, SPRITE, 4)
    rows, columns = (np.nonzero(drawn[..., 3].max(axis) > 127)[0] for axis in (1, 0))
    assert {rows[0], columns[0]} <= {1, 2, 3} and {rows[-1], columns[-1]} <= {92, 93, 94}


def test_colours_of_a_sprite_are_times_its_alpha() -> None:
    drawn = draw_icon('<rect width="9" height="9" fill="#ff0000" fill-opacity="0.6"/>', 9, 9)
    red, alpha = drawn[48, 48, 0], drawn[48, 48, 3]
    assert alpha == pytest.approx(153, abs=1) and red == pytest.approx(153, abs=1)


def test_a_set_has_what_it_draws_under_any_of_its_names() -> None:
    icons = {"dog-face": {"body": DISC}, "redapple": {"body": DISC, "width": 40}}
    document = {
        "icons": icons,
        "aliases": {"fox-face": {"parent": "dog-face"}, "fox": {"parent": "dog-face"}},
    }
    sprites = draw_set("mine", list(drawings(Icons({**document, "width": 64, "height": 64}))))
    assert sprites.names == ("dog", "fox", "apple")
    assert set(sprites.sets) == {"mine"} and set(sprites.colours) == {"red"}
    assert "mine" not in UNSEEN_SETS


RING = '<circle cx="32" cy="32" r="24" fill="none" stroke="#000" stroke-width="4"/>'
GREEN = '<circle cx="32" cy="32" r="26" fill="#00c000"/>'


def icons_with(**bodies: str) -> Icons:
    return Icons(
        {"icons": {name: {"body": body} for name, body in bodies.items()}, "width": 64, "height": 64}
    )


def test_lines_are_filled_with_the_colours_of_their_twin() -> None:
    lines = icons_with(fox=RING, lion=DISC.replace("red", "black"), bear=RING)
    [(fox, ring), (lion, disc)] = filled_drawings(
        Source("1", "MIT", "me", "twin"), lines, icons_with(fox=GREEN, lion=GREEN)
    )
    assert (fox, lion) == ("fox", "lion")  # the twin has no bear
    for drawn in (ring, disc):
        assert drawn.shape == (SPRITE, SPRITE, 4) and main_colour(drawn) == "green"
        assert drawn[48, 48].tolist() == [0, 192, 0, 255]
        edge = next(pixel for pixel in drawn[48] if pixel[3] == 255)
        assert edge[:3].max() < 60  # the line around it stays dark
        assert not drawn[0, 0, 3]


def test_sets_that_are_no_emoji_have_things_by_their_own_names() -> None:
    source = Source("1", "MIT", "me", "twin", ("mouse",), AS_CALLED)
    lines = icons_with(mouse=RING, bunny=RING, fox=RING)  # that mouse has two buttons
    twins = icons_with(**{"mouse-face": GREEN, "rabbit-face": GREEN, "fox": GREEN})
    assert [name for name, _ in filled_drawings(source, lines, twins)] == ["rabbit", "fox"]


def small_font(*also: str) -> bytes:
    """A TrueType file whose "A" is a box of 500 by 700 units of 1,000, made of one contour, and so are these
    others, which a table of all code points tells.
    """
    points = ((0, 0), (0, 700), (500, 700), (500, 0))
    xs, ys = (np.diff((0, *(point[axis] for point in points))) for axis in (0, 1))
    box = struct.pack(">hhhhh", 1, 0, 0, 500, 700) + struct.pack(">HH", 3, 0) + bytes([1] * 4)
    box += struct.pack(">4h", *xs) + struct.pack(">4h", *ys)
    segments = (65, 0xFFFF), (65, 0xFFFF), (1 - 65 & 0xFFFF, 1), (0, 0)
    cmap = struct.pack(">HHHHI", 0, 1, 3, 1, 12) + struct.pack(">HHHHHHH", 4, 32, 0, 4, 4, 1, 0)
    cmap += struct.pack(">HH", *segments[0]) + struct.pack(">H", 0)
    cmap += b"".join(struct.pack(">HH", *pair) for pair in segments[1:])
    if also:
        groups = [struct.pack(">III", ord(one), ord(one), 1) for one in sorted(("A", *also))]
        cmap = struct.pack(">HHHHI", 0, 1, 3, 10, 12)
        cmap += struct.pack(">HHIII", 12, 0, 16 + 12 * len(groups), 0, len(groups)) + b"".join(groups)
    tables = {
        b"cmap": cmap,
        b"glyf": box,
        b"head": struct.pack(">18xH30xH2x", 1000, 1),
        b"hhea": struct.pack(">34xH", 2),
        b"hmtx": struct.pack(">HhHh", 300, 0, 600, 0),
        b"loca": struct.pack(">III", 0, 0, len(box)),
    }
    data, offset = b"", 12 + 16 * len(tables)
    directory = struct.pack(">IHHHH", 0x10000, len(tables), 0, 0, 0)
    for tag, table in tables.items():
        directory += struct.pack(">4sIII", tag, 0, offset + len(data), len(table))
        data += table
    return directory + data


def test_a_letter_stands_on_its_line_at_its_own_width() -> None:
    fonts = draw_font("boxes", [Typeface(small_font())])
    at = CHARACTERS.index("A")
    left, top, right, bottom = fonts.inks[0, at]
    assert bottom == BASELINE and left == 1
    assert right - left == pytest.approx(17.5, abs=1) and bottom - top == pytest.approx(24.5, abs=1)
    assert fonts.advances[0, at] == pytest.approx(21)
    assert fonts.pixels.shape == (1, len(CHARACTERS), LETTER, LETTER)


def test_letters_by_hand_are_drawn_larger() -> None:
    printed, written = (draw_font(name, [Typeface(small_font())]) for name in ("boxes", HANDS[0]))
    at = CHARACTERS.index("A")
    assert np.allclose(written.advances[0, at], HAND_EM / EM * printed.advances[0, at])
    assert (written.pixels[0, at] > 127).sum() > (printed.pixels[0, at] > 127).sum()


def test_a_typeface_of_emoji_is_a_set_of_icons() -> None:
    icons = Icons(letters_of(Typeface(small_font("\N{DOG FACE}", "\N{RED APPLE}"))))
    assert icons.name_of("dog-face") == "dog-face" and icons.name_of("cat-face") is None
    assert [name for name, _ in drawings(icons)] == ["dog", "apple"]
    [(_, drawn), _] = drawings(icons)
    ys, xs = np.nonzero(drawn[..., 3] > 128)
    assert np.ptp(xs) / np.ptp(ys) == pytest.approx(5 / 7, abs=0.02)


def test_a_typeface_has_what_unicode_calls_otherwise() -> None:
    icons = Icons(letters_of(Typeface(small_font("\N{FOX FACE}", "\N{SLICE OF PIZZA}"))))
    assert [name for name, _ in drawings(icons)] == ["fox", "pizza"]
    wanted = {icon for noun in nouns() for icon in noun.icons}
    assert set(IN_UNICODE) <= wanted
    for name in IN_UNICODE.values():
        unicodedata.lookup(name)  # it is one of Unicode's


def test_what_was_chosen_is_drawn_and_the_disc_below_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        '<g fill="none"><path fill="#ff0000" d="M0 0H64V64H0z"/><path fill="#00c000" d="M8 8H24V40H8z"/></g>'
    )
    document = {"icons": {"crab-2": {"body": body}, "crab-3": {"body": body}}, "width": 64, "height": 64}

    @contextmanager
    def package(name: str, version: str) -> Iterator[Path]:
        (tmp_path / "icons.json").write_text(json.dumps(document), encoding="utf-8")
        yield tmp_path

    monkeypatch.setattr("examples.train_tiny.icons.npm_package", package)
    icons = icons_of("streamline-kameleon-color")
    [(thing, drawn)] = chosen_drawings({"crab": ["crab-2"]}, icons)
    assert thing == "crab" and main_colour(drawn) == "green"
    assert not (drawn[..., 0] > 0).any()


def test_icons_may_end_in_their_style() -> None:
    source = Source("1", "MIT", "me", "twin", (), ("-line", "-2-line"))
    lines = icons_with(**{"fox-2-line": RING, "rabbit": RING, "fox-fill": RING})
    twins = icons_with(**{"rabbit-face": GREEN, "fox": GREEN})
    assert [name for name, _ in filled_drawings(source, lines, twins)] == ["fox"]


def test_a_missing_letter_takes_the_room_of_the_first_glyph_and_shows_nothing() -> None:
    face = Typeface(small_font())
    assert face.has("A") and not face.has("B")
    assert face.advance("B") == 300 and face.svg_path("B", 1.0, 0.0, 0.0) == ""


def test_what_was_chosen_of_lines_is_filled_too() -> None:
    source = Source("1", "MIT", "me", "twin", chosen=True)
    lines = icons_with(**{"pet-1": RING, "pet-2": RING, "fox": RING})
    chosen = {"bear": ["pet-2"], "lion": ["pet-1"]}
    [(name, drawn)] = filled_drawings(source, lines, icons_with(fox=GREEN, lion=GREEN), chosen)
    assert name == "lion" and main_colour(drawn) == "green"


def test_pictures_of_emoji_are_icons(tmp_path: Path) -> None:
    red = pyvips.Image.new_from_array(np.full((8, 8, 4), (255, 0, 0, 255), np.uint8))
    (tmp_path / "assets").mkdir()
    for code in ("1f436", "2602-fe0f"):
        file = tmp_path / f"assets/{code}.webp"
        red.copy(interpretation="srgb").write_to_file(str(file), lossless=True)
    icons = Icons(emoji_of(tmp_path))
    assert icons["dog-face"][1:] == (SIDE, SIDE)
    assert [(name, main_colour(drawn)) for name, drawn in drawings(icons)] == [
        ("dog", "red"),
        ("umbrella", "red"),
    ]
