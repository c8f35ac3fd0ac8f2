"""Makes the drawings of things and letters: `python -m examples.train_tiny.make_atlas`.

Fetches icon sets and typefaces with free licences through `npm pack` and `apt-get download` (so both must be
there, and reach a registry), draws each icon and letter once, and writes a file for each set and font to
`build/atlas`, 19 MB in all. A machine without a network takes that folder from another one.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kestrel_tools.things.atlas import (
    BASELINE,
    CHARACTERS,
    FOLDER,
    HANDS,
    LETTER,
    NUM_CORNERS,
    NUM_HULL,
    SPRITE,
    Fonts,
    Sprites,
)
from kestrel_tools.things.colour import main_colour
from kestrel_tools.things.names import Noun, nouns

from .clip_art import clip_art
from .icons import Icons, icons_of
from .line_art import filled
from .outline import anchor_of, hull_of, outline_of
from .packages import npm_package
from .sources import CLIP_ART, FONT_VERSION, FONTS, SETS, Source, chosen_of
from .svg import OPAQUE, rasterise, times_alpha
from .typeface import Typeface

LARGE = 192  # pixels of the first drawing, which shows how much of it is empty
PADDING = 2  # pixels around a sprite
EM = 35.0  # pixels in a letter's cell that a font's em takes
HAND_EM = 38.0  # of one written by hand, whose letters are thin and uneven: the smallest can be read, too
LEAST_PIXELS = 200  # of a drawing; an icon with fewer is broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="*", default=[], help="sets or fonts to make; all without")
    options = parser.parse_args()
    every = {CLIP_ART, *SETS, *FONTS}
    wanted = set(options.only) or every
    if unknown := wanted - every:
        parser.error(f"there is no set or font {', '.join(sorted(unknown))}")
    options.out.mkdir(parents=True, exist_ok=True)
    if CLIP_ART in wanted:
        write(draw_set(CLIP_ART, list(clip_art(SPRITE, PADDING))), options.out / f"things-{CLIP_ART}.npz")
    for name, source in SETS.items():
        if name in wanted:
            write(draw_set(name, list(things_of(name, source))), options.out / f"things-{name}.npz")
    for name, weights in FONTS.items():
        if name in wanted:
            with npm_package(f"@fontsource/{name}", FONT_VERSION) as package:
                files = [package / f"files/{name}-latin-{weight}-normal.woff" for weight in weights]
                fonts = draw_font(name, [Typeface(file.read_bytes()) for file in files])
            write(fonts, options.out / f"font-{name}.npz")


def draw_set(name: str, drawn: Sequence[tuple[str, NDArray[np.uint8]]]) -> Sprites:
    """Of names of things and their drawings."""
    pixels = np.stack([one for _, one in drawn])
    masks = [one[..., 3] >= OPAQUE for one in pixels]
    return Sprites(
        tuple(noun for noun, _ in drawn),
        (name,) * len(drawn),
        tuple(main_colour(one) for one in pixels),
        pixels,
        np.stack([hull_of(mask, NUM_HULL) for mask in masks]).astype(np.float32),
        np.stack([outline_of(mask, NUM_CORNERS) for mask in masks]).astype(np.float32),
        np.stack([anchor_of(mask) for mask in masks]).astype(np.float32),
    )


def things_of(name: str, source: Source) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Names of things and their drawings by a set."""
    icons = icons_of(name)
    if source.twin:
        chosen = chosen_of(name) if source.chosen else None
        return filled_drawings(source, icons, icons_of(source.twin), chosen)
    if source.chosen:
        return chosen_drawings(chosen_of(name), icons)
    return drawings(icons)


def chosen_drawings(chosen: dict[str, list[str]], icons: Icons) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    for thing, names in chosen.items():
        for name in names:
            yield thing, draw_icon(*icons[name])


def drawings(icons: Icons) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Each thing's icons that the set has."""
    for noun in nouns():
        names = dict.fromkeys(icons.name_of(wanted) for wanted in noun.icons)
        for name in filter(None, names):
            drawn = draw_icon(*icons[name])
            if (drawn[..., 3] >= OPAQUE).sum() >= LEAST_PIXELS:
                yield noun.name, drawn


def filled_drawings(
    source: Source, lines: Icons, twins: Icons, chosen: dict[str, list[str]] | None = None
) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Each thing's icons that both sets have; of a set whose names tell too little those that were chosen."""
    for noun in nouns():
        if chosen is None:
            pairs = _pairs(source, noun, lines, twins)
        else:
            pairs = [(line, twins.name_of(noun.icons[0])) for line in chosen.get(noun.name, ())]
        for line, twin in dict.fromkeys(pairs):
            if line and twin:
                icons = (lines[line], twins[twin])
                yield noun.name, filled(*(draw_icon(*icon, 2 * SPRITE) for icon in icons))


def _pairs(source: Source, noun: Noun, lines: Icons, twins: Icons) -> list[tuple[str | None, str | None]]:
    """Icons of a thing, each beside the one whose colours it gets."""
    if noun.name in source.otherwise:
        return []
    if not source.endings:
        return [(lines.name_of(wanted), twins.name_of(wanted)) for wanted in noun.icons]
    words = (word.replace(" ", "-") for word in (noun.name, *noun.also))
    called = (word + ending for word in words for ending in source.endings)
    found = next(filter(None, map(lines.name_of, called)), None)
    return [(found, twins.name_of(noun.icons[0]))]


def draw_icon(body: str, width: float, height: float, pixels: int = SPRITE) -> NDArray[np.uint8]:
    """[pixels, pixels, 4], colours times alpha, as large as it fits and in the middle."""
    view = f'viewBox="0 0 {width} {height}"'
    large = rasterise(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{LARGE}" height="{LARGE}" {view} color="#222222">{body}</svg>'.encode()
    )
    ys, xs = np.nonzero(large[..., 3] >= OPAQUE)
    # Cut to what is drawn, so that a size means the same in every set.
    side = max(int(np.ptp(xs)), int(np.ptp(ys))) + 1
    share = side / (SPRITE - 2 * PADDING)
    left, top = (float(at.min() + at.max() + 1) / 2 - share * SPRITE / 2 for at in (xs, ys))
    longer = max(width, height)  # the drawing lies in the middle of a square
    unit, side_units = longer / LARGE, share * SPRITE * longer / LARGE
    x, y = left * unit - (longer - width) / 2, top * unit - (longer - height) / 2
    box = f"{x} {y} {side_units} {side_units}"
    drawn = rasterise(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{pixels}" height="{pixels}" viewBox="{box}" color="#222222">{body}</svg>'.encode()
    )
    return times_alpha(drawn)


def draw_font(name: str, faces: list[Typeface]) -> Fonts:
    pixels = np.zeros((len(faces), len(CHARACTERS), LETTER, LETTER), np.uint8)
    advances = np.zeros((len(faces), len(CHARACTERS)), np.float32)
    inks = np.zeros((len(faces), len(CHARACTERS), 4), np.float32)
    em = HAND_EM if name in HANDS else EM
    for row, face in enumerate(faces):
        for at, character in enumerate(CHARACTERS):
            advances[row, at] = em / face.units * face.advance(character)
            path = face.svg_path(character, em / face.units, 1.0, BASELINE)
            if not path:
                continue
            drawn = rasterise(
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{LETTER}" height="{LETTER}">'
                f'<path d="{path}"/></svg>'.encode()
            )[..., 3]
            pixels[row, at] = drawn
            ys, xs = np.nonzero(drawn >= OPAQUE)
            inks[row, at] = xs.min(), ys.min(), xs.max() + 1, ys.max() + 1
    return Fonts((name,) * len(faces), pixels, advances, inks)


def write(drawn: Sprites | Fonts, path: Path) -> None:
    drawn.save(path)
    print(f"{path}: {len(drawn)}, {path.stat().st_size / 1e6:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
