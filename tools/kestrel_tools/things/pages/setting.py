"""How a page is set in type: title, rows with their values, bullets, rules, buttons. No torch.

The sheet's unit is the height of a letter's cell of its rows: u runs to the right and v downwards from the
upper left corner of what is printed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from kestrel_tools.scenes.world import Background, Rgb
from kestrel_tools.things.atlas import Fonts
from kestrel_tools.things.colour import contrast
from kestrel_tools.things.compose import LEAST_CONTRAST, ink_colour
from kestrel_tools.things.decor import draw_sign
from kestrel_tools.things.lettering import MOST_LETTERS, ink_of
from kestrel_tools.things.scene import Points

from .content import Content, Part, Told

CLEAR = 3.4  # contrast of print that is as small as can be read
PITCH = (0.84, 1.3)  # from line to line
RULED = 1.05  # least of the pitches at which a rule touches no letters
BELOW = 0.8  # from a label to the value below it
GAP = 0.55  # between a label and the value beside it, at least
BUTTON = 1.05  # its height
MOST_DOTS = 8  # from a label to its value
KEPT = frozenset(("am", "pm", "g", "kg", "km", "mi", "ml", "C", "m"))  # are never in other letters
LISTS = ("shopping list", "to-do list", "rules")
LABELLED = ("ticket", "label", "business card", "invitation", "poster", "card")


@dataclass(slots=True)
class Print:
    """A line on its way to its place."""

    text: str
    font: int
    scale: float
    ink: Rgb
    corners: Points  # of the ink about the middle of the line, in heights of its cell
    at: tuple[float, float] = (0.0, 0.0)  # middle of its cells

    @property
    def width(self) -> float:
        return float(self.corners[:, 0].max() - self.corners[:, 0].min()) * self.scale

    def put(self, u: float, v: float, align: float) -> None:
        """With its left end, middle or right end at u (0, 0.5, 1); v is the middle of its cells."""
        left = float(self.corners[:, 0].min()) * self.scale
        self.at = (u - left - align * self.width, v)


@dataclass(slots=True)
class Set:
    """A row that is printed."""

    label: Print
    value: Print | None
    told: Told

    @property
    def is_button(self) -> bool:
        return any(role == "button" for role, _ in self.told.parts)

    def parts(self) -> tuple[Part, ...]:
        """What it tells, spelt as it is printed: print is as long as what was to be printed."""
        found = []
        for role, said in self.told.parts:
            for wanted, shown in ((self.told.value, self.value), (self.told.label, self.label)):
                at = wanted.find(said)
                if shown is not None and at >= 0:
                    found.append(Part(role, said, shown.text[at : at + len(said)]))
                    break
            else:
                found.append(Part(role, said, ""))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A mark of the sheet: the width is in its unit too."""

    start: tuple[float, float]
    end: tuple[float, float]
    width: float
    rounded: bool
    rgb: Rgb


@dataclass(slots=True)
class Sheet:
    title: Print | None
    rows: list[Set]
    width: float = 0.0
    height: float = 0.0
    strokes: list[Stroke] = field(default_factory=list)

    def panel(
        self, left: float, top: float, right: float, bottom: float, rgb: Rgb, rounded: bool = False
    ) -> None:
        tall, middle = bottom - top, (top + bottom) / 2
        inset = min(tall, right - left) / 2 * rounded  # the ends of a rounded one reach so much further
        self.strokes.append(Stroke((left + inset, middle), (right - inset, middle), tall, rounded, rgb))

    def dot(self, u: float, v: float, wide: float, rgb: Rgb) -> None:
        self.strokes.append(Stroke((u, v), (u, v), wide, True, rgb))


def cased(text: str, case: str) -> str:
    """The text in other letters, as long as before; figures and units stay as they are."""

    def word(at: int, one: str) -> str:
        if one in KEPT or one.startswith("www.") or any(letter.isdigit() for letter in one):
            return one
        if case in ("upper", "lower"):
            return one.upper() if case == "upper" else one.lower()
        return one[:1].upper() + one[1:] if case == "title" or at == 0 else one

    return " ".join(word(at, one) for at, one in enumerate(text.split(" ")))


def plain_ground(rgb: Rgb) -> Background:
    return Background("plain", rgb, rgb, 0.0, 0.1, 0.0)


def clear_ink(rng: Random, ground: Background) -> Rgb | None:
    """Some colour that can be read where print is small, or black or white."""
    behind = (ground.first, ground.second)
    ink = ink_colour(rng, ground)
    if ink is not None and all(contrast(ink, rgb) >= CLEAR for rgb in behind):
        return ink
    plain: tuple[Rgb, Rgb] = ((0.03, 0.03, 0.03), (0.98, 0.98, 0.98))
    best = max(plain, key=lambda rgb: min(contrast(rgb, other) for other in behind))
    return best if all(contrast(best, rgb) >= max(CLEAR, LEAST_CONTRAST) for rgb in behind) else None


class Setting:
    """Sets one page: `ground` is what it is printed on, paper or not."""

    def __init__(self, rng: Random, fonts: Fonts, content: Content, ground: Background, ink: Rgb) -> None:
        self._rng, self._fonts, self._content, self._ground, self._ink = rng, fonts, content, ground, ink
        self._value_ink = (clear_ink(rng, ground) or ink) if rng.random() < 0.15 else ink
        self._font = rng.randrange(len(fonts))
        self._title_font = rng.randrange(len(fonts)) if rng.random() < 0.3 else self._font
        self._value_font = rng.randrange(len(fonts)) if rng.random() < 0.1 else self._font
        [self._case] = rng.choices(("upper", "title", "first", "lower"), (32, 30, 26, 12))
        self._title_case = rng.choice((self._case, self._case, "upper", "title"))
        self._mode = self._value_mode()
        self._sheet = Sheet(self._title(), self._rows())

    def sheet(self, on_paper: bool) -> Sheet:
        """All lines at their places. Bands behind a title are for paper alone, whose colour is one."""
        rng, mode, sheet = self._rng, self._mode, self._sheet
        buttons = [row for row in sheet.rows if row.is_button]
        plain = [row for row in sheet.rows if not row.is_button]
        centred = mode in ("", "below", "colon") and rng.random() < (0.3 if mode == "colon" else 0.55)
        bullets = rng.choice(("", "dot", "box")) if self._content.kind in LISTS and not centred else ""
        indent = 0.75 if bullets else 0.0
        column = max((row.label.width for row in plain if row.value), default=0.0) + rng.uniform(GAP, 1.2)
        width = max((self._width_of(row, column) for row in plain), default=0.0) + indent
        if mode in ("right", "dots"):
            width *= rng.choice((1.0, rng.uniform(1.0, 1.35)))
        abreast = sum(row.label.width + 1.3 for row in buttons) - 0.3
        beside = len(buttons) > 1 and abreast < max(width, 6.0) * 1.2
        widths = [abreast] if beside else [row.label.width + 1.0 for row in buttons]
        width = max([width, sheet.title.width if sheet.title else 0.0, *widths])
        top = self._set_title(width, centred or rng.random() < 0.5, on_paper)
        pitch = rng.uniform(*PITCH)
        ruled = rng.random() < 0.3 and mode != "below" and pitch > RULED
        for number, row in enumerate(plain):
            step = pitch * row.label.scale
            middle = top + step / 2
            if ruled and number:
                sheet.panel(0.0, top - 0.02, width, top + 0.02, self._faint)
            if bullets:
                self._bullet(bullets, middle)
            if centred:
                self._set_centred(row, width, middle)
            else:
                self._set_left(row, indent, width, column, middle)
            top += step + (BELOW if row.value and mode == "below" else 0.0)
        if buttons:
            top = self._set_buttons(buttons, top + (0.25 if top else 0.0), width, beside)
        sheet.width, sheet.height = width, top
        return sheet

    def _print(self, text: str, font: int, scale: float, ink: Rgb) -> Print:
        shown = self._fonts.shown(font, text)
        return Print(shown, font, scale, ink, ink_of(self._fonts, font, shown))

    def _title(self) -> Print | None:
        if not self._content.title:
            return None
        scale = self._rng.choice((1.0, self._rng.uniform(1.0, 1.4), self._rng.uniform(1.2, 1.7)))
        return self._print(cased(self._content.title, self._title_case), self._title_font, scale, self._ink)

    def _rows(self) -> list[Set]:
        rows, large = [], self._rng.uniform(1.1, 1.8)
        for told in self._content.rows:
            end = ":" if self._mode == "colon" and told.value and told.label[-1].isalnum() else ""
            scale = large if any(role in ("wearer", "state") for role, _ in told.parts) else 1.0
            label = self._print(cased(told.label, self._case) + end, self._font, scale, self._ink)
            value = cased(told.value, self._case)
            shown = self._print(value, self._value_font, scale, self._value_ink) if value else None
            rows.append(Set(label, shown, told))
        return rows

    def _value_mode(self) -> str:
        """Where the values are; an empty one where there are none."""
        rows = [told for told in self._content.rows if told.value]
        if not rows:
            return ""
        shares = {"right": 40, "dots": 14, "columns": 20, "below": 6 if len(rows) < 4 else 1}
        if all(len(told.label) < MOST_LETTERS and told.label.replace(" ", "").isalpha() for told in rows):
            shares["colon"] = 22
        if self._content.kind in LABELLED:
            shares |= {"dots": 0, "below": 15}
        return self._rng.choices(tuple(shares), tuple(shares.values()))[0]

    def _width_of(self, row: Set, column: float) -> float:
        if row.value is None:
            return row.label.width
        if self._mode == "below":
            return max(row.label.width, row.value.width)
        return (column if self._mode == "columns" else row.label.width + GAP) + row.value.width

    def _set_title(self, width: float, centred: bool, on_paper: bool) -> float:
        """Where it ends."""
        title = self._sheet.title
        if title is None:
            return 0.0
        tall = title.scale * 0.95
        title.put(width / 2 if centred else 0.0, tall / 2, 0.5 if centred else 0.0)
        chance = self._rng.random()
        if chance < 0.18 and on_paper:
            band = draw_sign(self._rng)
            ink = clear_ink(self._rng, band.ground)
            if ink is not None and math.dist(band.rgb, self._ground.first) > 0.3:
                title.ink = ink
                self._sheet.panel(-0.25, 0.0, width + 0.25, tall, band.rgb)
                return tall + 0.15
        if chance > 0.85:
            self._sheet.panel(0.0, tall, width, tall + 0.06, self._faint)
            return tall + 0.2
        return tall + self._rng.uniform(0.0, 0.35)

    def _bullet(self, sort: str, middle: float) -> None:
        if sort == "dot":
            self._sheet.dot(0.25, middle, 0.16, self._ink)
            return
        self._sheet.panel(0.0, middle - 0.22, 0.44, middle + 0.22, self._ink)
        self._sheet.panel(0.07, middle - 0.15, 0.37, middle + 0.15, self._ground.first)

    def _set_centred(self, row: Set, width: float, middle: float) -> None:
        if row.value is None or self._mode == "below":
            row.label.put(width / 2, middle, 0.5)
            if row.value is not None:
                row.value.put(width / 2, middle + BELOW, 0.5)
            return
        start = (width - row.label.width - GAP - row.value.width) / 2
        row.label.put(start, middle, 0.0)
        row.value.put(start + row.label.width + GAP, middle, 0.0)

    def _set_left(self, row: Set, indent: float, width: float, column: float, middle: float) -> None:
        row.label.put(indent, middle, 0.0)
        if row.value is None:
            return
        match self._mode:
            case "columns":
                row.value.put(indent + column, middle, 0.0)
            case "colon":
                row.value.put(indent + row.label.width + GAP, middle, 0.0)
            case "below":
                row.value.put(indent, middle + BELOW, 0.0)
            case _:
                row.value.put(width, middle, 1.0)
                if self._mode == "dots":
                    self._dots(indent + row.label.width + 0.2, width - row.value.width - 0.2, middle + 0.24)

    def _dots(self, start: float, end: float, v: float) -> None:
        count = min(MOST_DOTS, int((end - start) / 0.3))
        for at in range(count if count > 2 else 0):
            self._sheet.dot(start + (at + 0.5) * (end - start) / count, v, 0.1, self._ink)

    def _set_buttons(self, buttons: Sequence[Set], top: float, width: float, beside: bool) -> float:
        """Where they end. All of a page are alike, so that none is the chosen one."""
        sign = draw_sign(self._rng)
        ink, rgb = clear_ink(self._rng, sign.ground), sign.rgb
        if ink is None or math.dist(rgb, self._ground.first) < 0.3:
            rgb = self._ink
            ink = clear_ink(self._rng, plain_ground(rgb)) or self._ground.first
        wide = [row.label.width + 1.0 for row in buttons]
        left = (width - sum(wide) - 0.3 * (len(wide) - 1)) / 2
        for row, across in zip(buttons, wide, strict=True):
            left = left if beside else (width - across) / 2
            self._sheet.panel(left, top, left + across, top + BUTTON, rgb, sign.rounded)
            row.label.ink = ink
            row.label.put(left + across / 2, top + BUTTON / 2, 0.5)
            left, top = (left + across + 0.3, top) if beside else (left, top + BUTTON + 0.25)
        return top + BUTTON if beside else top - 0.25

    @property
    def _faint(self) -> Rgb:
        """Between the ink and the paper."""
        paper = self._ground.first
        red, green, blue = (0.6 * p + 0.4 * i for p, i in zip(paper, self._ink, strict=True))
        return red, green, blue
