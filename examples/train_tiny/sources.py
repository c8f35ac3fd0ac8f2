"""Where drawings and typefaces come from, and under which licences. No torch."""

import json
from dataclasses import dataclass
from pathlib import Path

from kestrel_tools.things.atlas import HANDS


@dataclass(frozen=True, slots=True)
class Source:
    """A package, its licence as it says itself, and whom the licence asks to name."""

    version: str
    licence: str
    author: str
    twin: str = ""  # of a set that has lines alone: the set whose colours fill them
    otherwise: tuple[str, ...] = ()  # things whose names mean something else there
    # Of a set that is no emoji: it calls an icon as the thing is called, and then so.
    endings: tuple[str, ...] = ()
    font: str = ""  # the file of a typeface, which has a letter for each emoji
    debian: str = ""  # Debian's name of the package; without, npm has it
    chosen: bool = False  # its names tell too little: `chosen.json` has those of things
    disc: bool = False  # each icon lies on one, which is left out
    npm: str = ""  # npm's name of the package, where it is no set of Iconify's
    bitmaps: bool = False  # it has pictures of emoji instead of vectors


AS_CALLED = ("",)
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
    "ph": Source("1.2.2", "MIT", "Phosphor Icons, their authors", FLAT, ("mouse",), AS_CALLED),
    "lucide": Source("1.2.137", "ISC", "Lucide, its contributors", FLAT, ("mouse", "lightning"), AS_CALLED),
    "tabler": Source(
        "1.2.41", "MIT", "Tabler Icons, Pawel Kuna", FLAT, ("mouse", "hot dog", "laptop"), AS_CALLED
    ),
    "noto-emoji": Source(
        "5.3.2",
        "OFL-1.1",
        "Noto Emoji (monochrome), Google LLC",
        "noto",
        font="files/noto-emoji-emoji-400-normal.woff",
    ),
    "symbola": Source(
        "2.60",
        "free for any use",
        "Symbola, George Douros",
        "noto",
        ("frog", "laptop", "basketball"),
        font="usr/share/fonts/truetype/ancient-scripts/Symbola_hint.ttf",
        debian="fonts-symbola",
    ),
    "streamline-ultimate-color": Source("1.2.2", "CC-BY-4.0", "Streamline Ultimate, Streamline", chosen=True),
    "streamline-kameleon-color": Source(
        "1.2.2", "CC-BY-4.0", "Streamline Kameleon, Streamline", chosen=True, disc=True
    ),
    "icon-park-outline": Source(
        "1.2.4",
        "Apache-2.0",
        "IconPark, ByteDance",
        FLAT,
        (
            *("mouse", "palm tree", "anchor", "scissors", "light bulb", "envelope", "trumpet", "chicken"),
            *("screwdriver", "egg", "phone"),
        ),
        AS_CALLED,
    ),
    "mdi": Source(
        "1.2.3",
        "Apache-2.0",
        "Material Design Icons, Pictogrammers",
        FLAT,
        ("mouse", "frying pan", "soccer ball", "hot dog", "bee", "cup", "chair"),
        AS_CALLED,
    ),
    "game-icons": Source(
        "1.2.4",
        "CC-BY-3.0",
        "Game-icons.net, Lorc, Delapouite and contributors",
        FLAT,
        ("bicycle", "butterfly", "clover", "screwdriver"),
        AS_CALLED,
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
    "fa7-solid": Source(
        "1.2.5", "CC-BY-4.0", "Font Awesome Free, Fonticons Inc", FLAT, ("mouse",), AS_CALLED
    ),
    "mingcute": Source(
        "1.2.8",
        "Apache-2.0",
        "MingCute Icon, MingCute Design",
        FLAT,
        ("mouse", "clock", "chicken", "house", "chair"),
        ("-line",),
    ),
    "tdesign": Source(
        "1.2.19",
        "MIT",
        "TDesign Icons, TDesign",
        FLAT,
        ("mouse", "chicken", "television", "pencil"),
        AS_CALLED,
    ),
    "ri": Source(
        "1.2.10", "Apache-2.0", "Remix Icon, Remix Design", FLAT, ("mouse", "laptop"), ("-line", "-2-line")
    ),
    "bxs": Source("1.2.3", "MIT", "BoxIcons Solid, Atisa", FLAT, ("mouse",), AS_CALLED),
    "iconoir": Source(
        "1.2.11",
        "MIT",
        "Iconoir, Luca Burgio",
        FLAT,
        ("mouse", "light bulb", "house", "bus", "backpack"),
        AS_CALLED,
    ),
    "fluent-emoji-3d": Source(
        "1.1.0",
        "MIT",
        "Fluent Emoji 3D, Microsoft Corporation",
        npm="@lobehub/fluent-emoji-3d",
        bitmaps=True,
    ),
    "streamline-color": Source("1.2.2", "CC-BY-4.0", "Streamline Core, Streamline", chosen=True),
    "streamline-cyber-color": Source("1.2.2", "CC-BY-4.0", "Streamline Cyber, Streamline", chosen=True),
    "streamline-plump-color": Source("1.2.2", "CC-BY-4.0", "Streamline Plump, Streamline", chosen=True),
    "streamline-sharp-color": Source("1.2.2", "CC-BY-4.0", "Streamline Sharp, Streamline", chosen=True),
    "streamline-freehand-color": Source("1.2.2", "CC-BY-4.0", "Streamline Freehand, Streamline", chosen=True),
    "streamline-stickies-color": Source("1.2.2", "CC-BY-4.0", "Streamline Stickies, Streamline", chosen=True),
    "streamline-flex": Source("1.2.3", "CC-BY-4.0", "Streamline Flex, Streamline", FLAT, chosen=True),
    "streamline-pixel": Source("1.2.0", "CC-BY-4.0", "Streamline Pixel, Streamline", FLAT, chosen=True),
    "lucide-lab": Source("1.2.3", "ISC", "Lucide Lab, Lucide's contributors", FLAT, chosen=True),
    "marketeq": Source("1.2.2", "MIT", "Marketeq Icons, Marketeq", FLAT, chosen=True),
    "whh": Source(
        "1.2.0",
        "OFL-1.1",
        "WebHostingHub Glyphs, WebHostingHub",
        FLAT,
        (
            *("mouse", "chicken", "kiwi", "light bulb", "chair", "bat", "backpack", "bed", "train", "truck"),
            *("tennis racket", "laptop", "koala"),
        ),
        AS_CALLED,
    ),
    "picon": Source(
        "1.2.0",
        "OFL-1.1",
        "Picon, its contributors",
        FLAT,
        (
            *("mouse", "bee", "light bulb", "lightning", "tree", "bicycle", "soccer ball", "butterfly"),
            *("apple", "turtle", "shark", "sun", "ship", "truck", "saw", "microphone", "pencil", "chair"),
            *("rabbit", "lock", "duck", "sailboat", "helicopter", "clock", "key"),
        ),
        AS_CALLED,
    ),
    "boxicons": Source(
        "1.2.0", "MIT", "Boxicons 3, Atisa", FLAT, ("mouse", "octopus", "duck", "ship"), AS_CALLED
    ),
    "pinhead": Source(
        "1.2.28",
        "CC0-1.0",
        "Pinhead Map Icons, Quincy Morgan and contributors",
        FLAT,
        ("smiley", "sad face", "angry face", "clock", "fish", "key"),
        AS_CALLED,
    ),
    "griddy-icons": Source(
        "1.2.0",
        "MIT",
        "Griddy Icons, Zuzana Benova",
        FLAT,
        ("mouse", "airplane", "rocket", "robot"),
        AS_CALLED,
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
    **dict.fromkeys(HANDS, (400,)),
}

# Of sets whose names tell too little: the drawings that show a thing alone, chosen by looking at them.
CHOSEN = Path(__file__).with_name("chosen.json")


def chosen_of(name: str) -> dict[str, list[str]]:
    """Names of things, and the set's names of their drawings."""
    chosen: dict[str, list[str]] = json.loads(CHOSEN.read_text(encoding="utf-8"))[name]
    return chosen
