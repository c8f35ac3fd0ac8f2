"""Drawings of things and letters as arrays, in files made once by `examples.train_tiny.make_atlas`. No torch.

A file `things-SET.npz` holds the sprites of one emoji set, `font-NAME.npz` the letters of one typeface. Both
are square cells; points of a sprite run from -1 to 1, y downwards. The sets of `HELD_OUT` and `UNSEEN_FONTS`
are never trained on: they show what was learnt beyond the drawings.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

import numpy as np
from numpy.typing import NDArray

from kestrel_core.protocol.errors import InvalidRequest

FOLDER = Path(__file__).parents[3] / "build/atlas"
MAKE = "python -m examples.train_tiny.make_atlas"

UNSEEN_SETS = ("twemoji",)
# Another look than all that is trained on, so it is scored by itself; and its licence asks that works made
# from it have the same one, so it stays out of training.
LINE_ART_SETS = ("openmoji",)
HELD_OUT = {"unseen": UNSEEN_SETS, "line-art": LINE_ART_SETS}  # by the world that shows them
UNSEEN_FONTS = ("fira-sans", "lora")
# As people write by hand, on signs, notes and tickets; charts are labelled in print.
HANDS = ("architects-daughter", "gochi-hand", "handlee", "neucha", "pangolin", "schoolbell", "short-stack")

SPRITE = 96  # pixels along a side
LETTER = 48
BASELINE = 36  # rows above the baseline in a letter's cell
CAPITAL = 25  # about the height of a capital in a letter's cell
CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .,:!?-+%&'/$"
NUM_HULL, NUM_CORNERS = 64, 16  # points

ARRAYS = ("pixels", "hulls", "outlines", "anchors")


@dataclass(frozen=True)
class Sprites:
    """Everything about sprite `i` lies at index `i`."""

    names: tuple[str, ...]  # of the thing it shows
    sets: tuple[str, ...]
    colours: tuple[str, ...]  # the one that covers most of it, or "" where there is none
    pixels: NDArray[np.uint8] = field(repr=False)  # [sprites, side, side, 4], colours times alpha
    hulls: NDArray[np.float32] = field(repr=False)  # [sprites, NUM_HULL, 2], its furthest points
    outlines: NDArray[np.float32] = field(repr=False)  # [sprites, NUM_CORNERS, 2]
    anchors: NDArray[np.float32] = field(repr=False)  # [sprites, 2], a point well within it

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, name in enumerate(self.names):
            found.setdefault(name, []).append(index)
        return found

    @cached_property
    def _by_name_and_set(self) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for index, drawn in enumerate(zip(self.names, self.sets, strict=True)):
            found.setdefault(drawn, []).append(index)
        return found

    def drawings(self, name: str, drawn_by: str = "") -> list[int]:
        """Of a thing: those of one set where it has some, else all."""
        return self._by_name_and_set.get((name, drawn_by)) or self.by_name[name]

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """The mean colour of each, from 0 to 1: [sprites, 3]."""
        sums = self.pixels.sum((1, 2), dtype=np.float64)
        means: NDArray[np.float64] = sums[:, :3] / np.maximum(sums[:, 3:], 1)
        return means

    def of_sets(self, wanted: Collection[str]) -> "Sprites":
        return self.at([index for index, name in enumerate(self.sets) if name in wanted])

    def save(self, path: Path) -> None:
        texts = {name: np.array(getattr(self, name)) for name in ("names", "sets", "colours")}
        np.savez_compressed(path, **texts, **{name: getattr(self, name) for name in ARRAYS})

    def at(self, indices: Sequence[int]) -> "Sprites":
        """Those at these places, in this order."""
        texts = (tuple(part[i] for i in indices) for part in (self.names, self.sets, self.colours))
        arrays = (getattr(self, name)[list(indices)] for name in ARRAYS)
        return Sprites(*texts, *arrays)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fonts:
    """Letters of several typefaces. A cell begins a pixel left of its letter; the line is at BASELINE."""

    names: tuple[str, ...]
    pixels: NDArray[np.uint8] = field(repr=False)  # [fonts, characters, LETTER, LETTER], how much is covered
    advances: NDArray[np.float32] = field(repr=False)  # [fonts, characters], pixels to the next letter
    inks: NDArray[np.float32] = field(repr=False)  # [fonts, characters, 4]: left, top, right, bottom; pixels

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _has_capitals_alone(self) -> tuple[bool, ...]:
        small, large = (
            [CHARACTERS.index(letter) for letter in alphabet]
            for alphabet in (ascii_lowercase, ascii_uppercase)
        )
        return tuple(bool(np.array_equal(face[small], face[large])) for face in self.pixels)

    @cached_property
    def typeset(self) -> tuple[int, ...]:
        """Those that no hand wrote."""
        return tuple(index for index, name in enumerate(self.names) if name not in HANDS)

    def shown(self, font: int, text: str) -> str:
        """The text as it is seen: some typefaces draw small letters as capitals."""
        return text.upper() if self._has_capitals_alone[font] else text

    def only(self, wanted: Sequence[str]) -> "Fonts":
        indices = [index for index, name in enumerate(self.names) if name in wanted]
        names = tuple(self.names[i] for i in indices)
        return Fonts(names, self.pixels[indices], self.advances[indices], self.inks[indices])

    def save(self, path: Path) -> None:
        names = np.array(self.names)
        np.savez_compressed(path, names=names, pixels=self.pixels, advances=self.advances, inks=self.inks)


@dataclass(frozen=True)
class Atlas:
    sprites: Sprites
    fonts: Fonts

    def part(self, world: str) -> "Atlas":
        """What training may see, or what a world of `HELD_OUT` has instead."""
        shown = HELD_OUT.get(
            world, {*self.sprites.sets} - {name for sets in HELD_OUT.values() for name in sets}
        )
        fonts = tuple(name for name in self.fonts.names if (name in UNSEEN_FONTS) == (world in HELD_OUT))
        sprites = self.sprites.of_sets(shown)
        if not len(sprites) or not fonts:
            raise InvalidRequest(
                f"the drawings have no set or font of the world {world}; make all with: {MAKE}"
            )
        return Atlas(sprites, self.fonts.only(fonts))


def open_atlas(folder: Path = FOLDER) -> Atlas:
    sprites, fonts = sorted(folder.glob("things-*.npz")), sorted(folder.glob("font-*.npz"))
    if not sprites or not fonts:
        raise InvalidRequest(f"{folder} has no drawings of things; make them with: {MAKE}")
    return Atlas(_joined_sprites(sprites), _joined_fonts(fonts))


def _joined_sprites(paths: Sequence[Path]) -> Sprites:
    files = [np.load(path) for path in paths]

    def texts(name: str) -> tuple[str, ...]:
        return tuple(str(text) for file in files for text in file[name])

    arrays = (np.concatenate([file[name] for file in files]) for name in ARRAYS)
    return Sprites(texts("names"), texts("sets"), texts("colours"), *arrays)


def _joined_fonts(paths: Sequence[Path]) -> Fonts:
    files = [np.load(path) for path in paths]
    names = tuple(str(name) for file in files for name in file["names"])
    arrays = (np.concatenate([file[name] for file in files]) for name in ("pixels", "advances", "inks"))
    return Fonts(names, *arrays)
