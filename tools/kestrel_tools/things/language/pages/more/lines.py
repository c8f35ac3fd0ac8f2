"""What stands above and below something, in which colour, and what a place is called. No torch."""

from collections.abc import Mapping
from random import Random

from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.pages.questions import ask, read_table
from kestrel_tools.things.language.pages.view import View, shown
from kestrel_tools.things.language.printed.facts import asked, ink_name
from kestrel_tools.things.pages.words import listed
from kestrel_tools.things.scene import Line

from .line_words import LINES
from .values import Maker, more_of

ASKED = read_table(LINES)["lines"]
DARK = 0.75  # a sheet as dark as that is wine red or purple to some, where print would be pink
# Titles that are no names.
GENERAL_TITLES = frozenset(
    listed("""
        menu, our menu, today's menu, lunch, lunch menu, dinner, breakfast, specials, drinks, bar, hot
        drinks, our drinks, opening hours, hours, we are open, open, opening times, library, museum, office
        hours, receipt, bill, thank you
    """)
)


def _handle(text: str, lines: tuple[Line, ...]) -> str:
    """How a line is named: by its label alone, where it has a value."""
    return lines[0].text.rstrip(":") if len(lines) > 1 else text


def _asked_lines(view: View) -> list[tuple[str, str, tuple[Line, ...]]]:
    """What each is named by, where none is named in another; what it says; its lines."""
    if not view.in_order:
        return []
    named = [(_handle(text, lines), text, lines) for text, lines in view.lines]
    texts = [text.lower() for _, text, _ in named]
    clear = all(sum(name.lower() in text for text in texts) == 1 for name, _, _ in named)
    return named if clear else []


def beside(rng: Random, view: View) -> Fact | None:
    """What stands right below a line, right above it, or between two."""
    named = _asked_lines(view)
    if len(named) < 2:
        return None
    kind = rng.choice(("below", "below", "above", "between", "below title"))
    if kind == "between":
        if len(named) < 3:
            return None
        at = rng.randrange(1, len(named) - 1)
        pair = [named[at - 1][0], named[at + 1][0]]
        if rng.random() < 0.3:
            pair.reverse()
        fields = {"x": pair[0], "y": pair[1]}
    elif kind == "below title":
        if view.page.title is None:
            return None
        at, fields = 1, {}
    else:
        at = rng.randrange(1, len(named)) if kind == "below" else rng.randrange(len(named) - 1)
        fields = {"x": named[at + (-1 if kind == "below" else 1)][0]}
    _, text, lines = named[at]
    return Fact("page beside", ask(rng, ASKED[kind], fields, exact=True), text, evidence=shown(*lines))


def colour(rng: Random, view: View) -> Fact | None:
    """Of all its print, or of its title."""
    if "button" in view.roles:
        return None
    head, names = view.page.title, {ink_name(line.rgb) for line in view.scene.lines}
    if len(names) == 1 and (name := next(iter(names))):
        return Fact("page colour", asked(rng, "text colour"), name, evidence=shown(*view.scene.lines))
    if head is None or not (name := ink_name(head.rgb)):
        return None
    return Fact("page colour", ask(rng, ASKED["title colour"]), name, evidence=shown(head))


def paper_colour(rng: Random, view: View) -> Fact | None:
    """Of the sheet that all of it is printed on, or of the picture's ground where there is none."""
    tall = max(line.height for line in view.scene.lines)
    unit = view.scene.unit[1]
    tops = [line.y / unit for line in view.scene.lines]
    least = max(tops) - min(tops) + 1.3 * tall
    sheets = [mark.rgb for mark in view.scene.marks if mark.width >= least]
    ground = view.scene.background
    if not sheets and ground.kind != "plain":
        return None
    rgb = sheets[-1] if sheets else ground.first
    name = "" if max(rgb) < DARK and ink_name(rgb) == "pink" else ink_name(rgb)
    kind = "paper colour" if sheets else "ground colour"
    return Fact("page colour", ask(rng, ASKED[kind], view.fields), name) if name else None


def first_letter(rng: Random, view: View) -> Fact | None:
    """With which letter the title begins."""
    head = view.page.title
    if head is None or not head.text[0].isalpha():
        return None
    return Fact("page letter", ask(rng, ASKED["letter"]), head.text[0], evidence=shown(head))


def called(rng: Random, view: View) -> Fact | None:
    """The restaurant or the shop that a title names."""
    head, templates = view.page.title, more_of(view, "called")
    if head is None or not templates or head.text.lower() in GENERAL_TITLES:
        return None
    return Fact("page called", ask(rng, templates), head.text, evidence=shown(head))


LINE_MAKERS: Mapping[Maker, float] = {
    beside: 2.4, colour: 0.35, paper_colour: 0.25, first_letter: 0.15, called: 0.8,
}  # fmt: skip
