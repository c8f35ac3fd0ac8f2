"""Icon sets as they are published: each icon's drawing by its name. No torch."""

import base64
import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyvips

from kestrel_tools.things.names import nouns

from .packages import debian_package, npm_package
from .sources import SETS, Source
from .typeface import Typeface

EM = 35.0  # units of an icon that a font's em takes
SIDE = 224  # units of an icon that is a picture
FIRST_PATH = re.compile(r"<path [^>]*/>")
# What emoji are called where Unicode calls them otherwise.
IN_UNICODE = {
    "fox": "fox face",
    "bear": "bear face",
    "panda": "panda face",
    "lion": "lion face",
    "frog": "frog face",
    "wolf": "wolf face",
    "giraffe": "giraffe face",
    "zebra": "zebra face",
    "ewe": "sheep",
    "camel": "dromedary camel",
    "two-hump-camel": "bactrian camel",
    "kiwi-fruit": "kiwifruit",
    "ear-of-corn": "ear of maize",
    "eggplant": "aubergine",
    "pizza": "slice of pizza",
    "wrapped-gift": "wrapped present",
    "locked": "lock",
    "light-bulb": "electric light bulb",
    "laptop": "personal computer",
    "glasses": "eyeglasses",
    "magnifying-glass-tilted-left": "left-pointing magnifying glass",
    "magnifying-glass-tilted-right": "right-pointing magnifying glass",
    "tennis": "tennis racquet and ball",
    "running-shoe": "athletic shoe",
    "womans-boot": "womans boots",
    "t-shirt": "t-shirt",
    "basketball": "basketball and hoop",
    "scissors": "black scissors",
    "drum": "drum with drumsticks",
    "motorcycle": "racing motorcycle",
    "locomotive": "steam locomotive",
    "high-speed-train": "high-speed train",
    "high-voltage": "high voltage sign",
    "robot": "robot face",
    "alien": "extraterrestrial alien",
    "backpack": "school satchel",
    "smiling-face": "white smiling face",
    "grinning-face-with-big-eyes": "smiling face with open mouth",
    "beaming-face-with-smiling-eyes": "grinning face with smiling eyes",
    "frowning-face": "white frowning face",
    "face-with-steam-from-nose": "face with look of triumph",
}


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
    with _package(name, source) as package:
        if source.font:
            return Icons(dict(letters_of(Typeface((package / source.font).read_bytes()))))
        if source.bitmaps:
            return Icons(emoji_of(package))
        document = json.loads((package / "icons.json").read_text(encoding="utf-8"))
    if source.disc:
        for icon in document["icons"].values():
            icon["body"] = FIRST_PATH.sub("", icon["body"], count=1)
    return Icons(document)


def _package(name: str, source: Source) -> AbstractContextManager[Path]:
    if source.debian:
        return debian_package(source.debian)
    usual = f"@{'fontsource' if source.font else 'iconify-json'}/{name}"
    return npm_package(source.npm or usual, source.version)


def letters_of(face: Typeface) -> dict[str, object]:
    """The typeface's emoji as an icon set has them, by the names that Unicode gives them."""
    icons = {}
    for name, character in emoji_characters():
        if face.has(character):
            path = face.svg_path(character, EM / face.units, EM / 2, 1.5 * EM)
            icons[name] = {"body": f'<path fill="currentColor" d="{path}"/>'}
    return {"icons": icons, "width": 2.5 * EM, "height": 2.5 * EM}


def emoji_characters() -> Iterator[tuple[str, str]]:
    """Names of icons, and the characters that they show."""
    for name in (icon for noun in nouns() for icon in noun.icons):
        try:
            yield name, unicodedata.lookup(IN_UNICODE.get(name, name.replace("-", " ")))
        except KeyError:  # it is younger than Unicode's names here, or that of a set
            continue


def emoji_of(package: Path) -> dict[str, object]:
    """The package's pictures of emoji, whose files are called as their code points."""
    icons = {}
    for name, character in emoji_characters():
        files = (package / f"assets/{ord(character):x}{ending}.webp" for ending in ("", "-fe0f"))
        for file in filter(Path.exists, files):
            icons[name] = {"body": _picture(file)}
    return {"icons": icons, "width": SIDE, "height": SIDE}


def _picture(file: Path) -> str:
    """As the body of an icon: an SVG may hold one."""
    encoded = base64.b64encode(pyvips.Image.new_from_file(str(file)).pngsave_buffer()).decode()
    return f'<image width="{SIDE}" height="{SIDE}" xlink:href="data:image/png;base64,{encoded}"/>'
