"""Makes the drawings of things and letters: `python -m examples.train_tiny.make_atlas`.

Fetches emoji sets and typefaces with free licences through `npm pack` and clip art through `apt-get download`
(so both must be there, and reach a registry), draws each icon and letter once, and writes a file for each set
and font to `build/atlas`, a few MB in all. A machine without a network takes that folder from another one.
"""

import argparse
import json
import subprocess
import tarfile
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kestrel_tools.things.atlas import (
    BASELINE,
    CHARACTERS,
    FOLDER,
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
from .line_art import filled
from .outline import anchor_of, hull_of, outline_of
from .svg import OPAQUE, rasterise, times_alpha
from .typeface import Typeface


@dataclass(frozen=True, slots=True)
class Source:
    """A package, its licence as it says itself, and whom the licence asks to name."""

    version: str
    licence: str
    author: str
    twin: str = ""  # of a set that has lines alone: the set whose colours fill them
    # Sets that are no emoji call an icon as the thing is called, but these names mean something else there.
    otherwise: tuple[str, ...] | None = None
    endings: tuple[str, ...] = ("",)  # of such names
    font: bool = False  # it is a typeface, with a letter for each emoji


FLAT = "fluent-emoji-flat"  # its colours are without shades, as line art is filled
SETS = {
    "noto": Source("1.2.9", "Apache-2.0", "Noto Emoji, Google Inc"),
    "noto-v1": Source("1.2.5", "Apache-2.0", "Noto Emoji (version 1), Google Inc"),
    "fluent-emoji": Source("1.2.7", "MIT", "Fluent Emoji, Microsoft Corporation"),
    "fluent-emoji-flat": Source("1.2.6", "MIT", "Fluent Emoji flat, Microsoft Corporation"),
    "emojione": Source("1.2.3", "CC-BY-4.0", "EmojiOne 2 / EmojiTwo, Ranks.com Inc and the EmojiTwo authors"),
    "fxemoji": Source("1.2.2", "Apache-2.0", "FxEmojis, Mozilla"),
    "streamline-emojis": Source("1.2.4", "CC-BY-4.0", "Streamline Emojis, Streamline"),
    "fluent-emoji-high-contrast": Source(
        "1.2.6", "MIT", "Fluent Emoji high contrast, Microsoft Corporation", FLAT
    ),
    "emojione-monotone": Source("1.2.1", "CC-BY-4.0", "EmojiOne 2 monotone, Ranks.com Inc", "emojione"),
    "ph": Source("1.2.2", "MIT", "Phosphor Icons, their authors", FLAT, ("mouse",)),
    "lucide": Source("1.2.137", "ISC", "Lucide, its contributors", FLAT, ("mouse", "lightning")),
    "tabler": Source("1.2.41", "MIT", "Tabler Icons, Pawel Kuna", FLAT, ("mouse", "hot dog", "laptop")),
    "noto-emoji": Source("5.3.2", "OFL-1.1", "Noto Emoji (monochrome), Google LLC", "noto", font=True),
    "icon-park-outline": Source(
        "1.2.4",
        "Apache-2.0",
        "IconPark, ByteDance",
        FLAT,
        (
            *("mouse", "palm tree", "anchor", "scissors", "light bulb", "envelope", "trumpet", "chicken"),
            *("screwdriver", "egg", "phone"),
        ),
    ),
    "mdi": Source(
        "1.2.3",
        "Apache-2.0",
        "Material Design Icons, Pictogrammers",
        FLAT,
        ("mouse", "frying pan", "soccer ball", "hot dog", "bee", "cup", "chair"),
    ),
    "game-icons": Source(
        "1.2.4",
        "CC-BY-3.0",
        "Game-icons.net, Lorc, Delapouite and contributors",
        FLAT,
        ("bicycle", "butterfly", "clover", "screwdriver"),
    ),
    "hugeicons": Source(
        "1.2.35",
        "MIT",
        "Hugeicons, their authors",
        FLAT,
        (
            *("horse", "lock", "pencil", "house", "tennis racket", "snail", "moon", "mouse"),
            *("hamburger", "robot"),
        ),
        ("", "-01"),
    ),
    "fa7-solid": Source("1.2.5", "CC-BY-4.0", "Font Awesome Free, Fonticons Inc", FLAT, ("mouse",)),
    "mingcute": Source(
        "1.2.8",
        "Apache-2.0",
        "MingCute Icon, MingCute Design",
        FLAT,
        ("mouse", "clock", "chicken", "house", "chair"),
        ("-line",),
    ),
    "tdesign": Source(
        "1.2.19", "MIT", "TDesign Icons, TDesign", FLAT, ("mouse", "chicken", "television", "pencil")
    ),
    "ri": Source(
        "1.2.10", "Apache-2.0", "Remix Icon, Remix Design", FLAT, ("mouse", "laptop"), ("-line", "-2-line")
    ),
    "bxs": Source("1.2.3", "MIT", "BoxIcons Solid, Atisa", FLAT, ("mouse",)),
    "iconoir": Source(
        "1.2.11", "MIT", "Iconoir, Luca Burgio", FLAT, ("mouse", "light bulb", "house", "bus", "backpack")
    ),
    "twemoji": Source("1.2.5", "CC-BY-4.0", "Twemoji, Twitter and other contributors"),
    "openmoji": Source("1.2.29", "CC-BY-SA-4.0", "OpenMoji, its authors"),
}
CLIP_ART = "openclipart"  # in the public domain
FONT_VERSION = "5.3.0"
FONTS = {
    "roboto": (400, 700),
    "open-sans": (400, 700),
    "lato": (400, 900),
    "montserrat": (400, 700),
    "oswald": (400, 600),
    "merriweather": (400, 700),
    "playfair-display": (400, 700),
    "roboto-mono": (400, 700),
    "nunito": (400, 800),
    "bebas-neue": (400,),
    "comic-neue": (400, 700),
    "courier-prime": (400, 700),
    "dejavu-sans": (400, 700),
    "arimo": (400, 700),
    "tinos": (400, 700),
    "cousine": (400,),
    "noto-sans": (400, 700),
    "inter": (400, 700),
    "poppins": (400, 600),
    "source-sans-3": (400, 700),
    "work-sans": (400, 700),
    "raleway": (400, 700),
    "zilla-slab": (400, 700),
    "pt-serif": (400, 700),
    "libre-baskerville": (400, 700),
    "anton": (400,),
    "barlow-condensed": (400, 600),
    "patrick-hand": (400,),
    "kalam": (400, 700),
    "fira-sans": (400, 700),
    "lora": (400, 700),
}

LARGE = 192  # pixels of the first drawing, which shows how much of it is empty
PADDING = 2  # pixels around a sprite
EM = 35.0  # pixels in a letter's cell that a font's em takes
LEAST_PIXELS = 200  # of a drawing; an icon with fewer is broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="*", default=[], help="sets or fonts to make; all without")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.only or CLIP_ART in options.only:
        write(draw_set(CLIP_ART, list(clip_art(SPRITE, PADDING))), options.out / f"things-{CLIP_ART}.npz")
    for name, source in SETS.items():
        if not options.only or name in options.only:
            icons = icons_of(name)
            drawn = filled_drawings(source, icons, icons_of(source.twin)) if source.twin else drawings(icons)
            sprites = draw_set(name, list(drawn))
            write(sprites, options.out / f"things-{name}.npz")
    for name, weights in FONTS.items():
        if not options.only or name in options.only:
            with Package(f"@fontsource/{name}", FONT_VERSION) as package:
                files = [package / f"files/{name}-latin-{weight}-normal.woff" for weight in weights]
                fonts = draw_font(name, [Typeface(file.read_bytes()) for file in files])
            write(fonts, options.out / f"font-{name}.npz")


class Icons:
    """The icons of a set by name; older sets leave hyphens out of the names, and some have two."""

    def __init__(self, document: dict[str, object]) -> None:
        icons, aliases = document["icons"], document.get("aliases", {})
        assert isinstance(icons, dict) and isinstance(aliases, dict)
        self._icons, self._aliases = icons, aliases
        self._plain = {name.replace("-", ""): name for name in (*icons, *aliases)}
        self._size = {side: document.get(side, 16) for side in ("width", "height")}

    def name_of(self, wanted: str) -> str | None:
        """The name by which the set has it, the same for all its names."""
        name = self._plain.get(wanted.replace("-", ""), "")
        name = self._aliases[name]["parent"] if name in self._aliases else name
        return name if name in self._icons else None

    def __getitem__(self, name: str) -> tuple[str, float, float]:
        """Its drawing as SVG, its width and its height."""
        icon = self._size | self._icons[name]
        return icon["body"], icon["width"], icon["height"]


def icons_of(name: str) -> Icons:
    source = SETS[name]
    with Package(f"@{'fontsource' if source.font else 'iconify-json'}/{name}", source.version) as package:
        if source.font:
            face = Typeface((package / f"files/{name}-emoji-400-normal.woff").read_bytes())
            return Icons(dict(letters_of(face)))
        return Icons(json.loads((package / "icons.json").read_text(encoding="utf-8")))


def letters_of(face: Typeface) -> dict[str, object]:
    """The typeface's emoji as an icon set has them, by the names that Unicode gives them."""
    icons = {}
    for name in (icon for noun in nouns() for icon in noun.icons):
        try:
            character = unicodedata.lookup(name.replace("-", " "))
        except KeyError:  # some names are those of sets
            continue
        if face.has(character):
            path = face.svg_path(character, EM / face.units, EM / 2, 1.5 * EM)
            icons[name] = {"body": f'<path fill="currentColor" d="{path}"/>'}
    return {"icons": icons, "width": 2.5 * EM, "height": 2.5 * EM}


class Package:
    """The unpacked package, for as long as the context lasts."""

    def __init__(self, package: str, version: str) -> None:
        self._wanted = f"{package}@{version}"
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> Path:
        folder = Path(self._folder.name)
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), self._wanted]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        [archive] = folder.glob("*.tgz")
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
        return folder / "package"

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


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


def drawings(icons: Icons) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Each thing's icons that the set has."""
    for noun in nouns():
        names = dict.fromkeys(icons.name_of(wanted) for wanted in noun.icons)
        for name in filter(None, names):
            drawn = draw_icon(*icons[name])
            if (drawn[..., 3] >= OPAQUE).sum() >= LEAST_PIXELS:
                yield noun.name, drawn


def filled_drawings(source: Source, lines: Icons, twins: Icons) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Each thing's icons that both sets have."""
    for noun in nouns():
        for line, twin in dict.fromkeys(_pairs(source, noun, lines, twins)):
            if line and twin:
                icons = (lines[line], twins[twin])
                yield noun.name, filled(*(draw_icon(*icon, 2 * SPRITE) for icon in icons))


def _pairs(source: Source, noun: Noun, lines: Icons, twins: Icons) -> list[tuple[str | None, str | None]]:
    """Icons of a thing, each beside the one whose colours it gets."""
    if source.otherwise is None:
        return [(lines.name_of(wanted), twins.name_of(wanted)) for wanted in noun.icons]
    if noun.name in source.otherwise:
        return []
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
    for row, face in enumerate(faces):
        for at, character in enumerate(CHARACTERS):
            advances[row, at] = EM / face.units * face.advance(character)
            path = face.svg_path(character, EM / face.units, 1.0, BASELINE)
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
