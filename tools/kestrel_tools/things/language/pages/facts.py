"""What may be asked about a page of print, and the true answers. No torch, no model.

Answers are spelt as the page spells them. What no page of the kind could tell, or what this one does not, has
the answer that it cannot be told.
"""

import re
from collections.abc import Callable, Mapping
from random import Random

from kestrel_tools.things.language.fact import CANNOT_TELL, ORDINALS, Fact, joined, sentence
from kestrel_tools.things.names import with_article
from kestrel_tools.things.scene import Page, Scene

from .hours import HOURS
from .more.amounts import AMOUNTS
from .more.doors import MORE_HOURS
from .more.lines import LINE_MAKERS
from .more.notices import MORE_NOTICES
from .more.sorts import SORT_MAKERS
from .more.values import VALUES
from .notice_facts import NOTICES
from .questions import GENERAL, ask
from .table_facts import TABLE
from .view import View, shown

Maker = Callable[[Random, View], Fact | None]

# How a page must be headed for everybody to call it so, and what else it might be called.
PLAIN: dict[str, tuple[str, str]] = {
    "menu": (r"menu|lunch|dinner|breakfast|drinks|specials", "menu"),
    "price list": (r"price", "price list"),
    "shopping list": (r"shopping|groceries|to buy", "shopping list"),
    "to-do list": (r"to.do|tasks", "to-do list"),
    "receipt": (r"receipt", "receipt"),
    "invitation": (r"invit", "invitation"),
    "ticket": (r"ticket|boarding pass", ""),  # it says itself of which kind
    "recipe": (r"recipe", "recipe"),
    "error message": (r"error", "error message"),
    "forecast": (r"weather|forecast", "weather forecast"),
    "forecast by day": (r"weather|forecast", "weather forecast"),
    "grades": (r"report", "report card"),
    "timetable": (r"timetable", "timetable"),
    "week": (r"timetable", "timetable"),
}
OTHER_KINDS = (
    "menu", "receipt", "ticket", "shopping list", "invitation", "recipe", "error message", "newspaper", "map",
    "passport", "calendar", "street sign",
)  # fmt: skip
MISTAKEN = {
    "menu": ("receipt", "recipe"), "price list": ("menu", "receipt", "shopping list"),
    "shopping list": ("recipe", "menu"), "to-do list": ("shopping list", "calendar"),
    "receipt": ("menu", "shopping list", "ticket"), "invitation": ("ticket",),
    "recipe": ("shopping list", "menu"), "timetable": ("calendar",),
    "week": ("calendar",), "ticket": ("receipt", "invitation", "ticket"),
}  # fmt: skip


def page_fact(rng: Random, scene: Scene) -> Fact | None:
    """One thing that is true of the scene's page, of a random kind; None where it has no page."""
    if scene.page is None:
        return None
    view = View(scene, scene.page)
    special = ALL_HOURS if view.kind == "opening hours" else ALL_TABLE if view.listed else ALL_NOTICES
    for _ in range(20):
        makers = special if rng.random() < SPECIAL else ANY
        found = rng.choices(tuple(makers), tuple(makers.values()))[0](rng, view)
        if found is not None:
            return found
    return read(rng, view)


def page_text(page: Page) -> str:
    """All of it, row by row: "Menu, Soup 4.50, Salad 6.00"."""
    rows = (f"{row.label.text} {row.value.text}" if row.value else row.label.text for row in page.rows)
    return ", ".join((*((page.title.text,) if page.title else ()), *rows))


def page_caption(scene: Scene, length: str) -> str:
    """Short says what it is where that is plain to see, else what is printed; the others say all of it."""
    page = scene.page
    assert page is not None
    name, text = plain_name(page), page_text(page)
    pictured = [with_article(item.name) for item in scene.items]
    if length == "short":
        return sentence(joined([with_article(name), *pictured] if name else [*pictured, f"the text {text}"]))
    seen = [with_article(name), *pictured] if name else pictured
    return f"{sentence(joined(seen))} The text says {text}." if seen else f"The text says {text}."


def plain_name(page: Page) -> str:
    """What everybody would call it; empty where people may differ."""
    pattern, name = PLAIN.get(page.kind, ("", ""))
    title = page.title.text.lower() if page.title else ""
    if not pattern or not re.search(pattern, title):
        return ""
    return name or title


def read(rng: Random, view: View) -> Fact:
    text = page_text(view.page)
    question = ask(rng, GENERAL["read"], view.fields)
    return Fact("page read", question, text, evidence=shown(*view.scene.lines))


def title(rng: Random, view: View) -> Fact | None:
    head = view.page.title
    if head is None:
        return None
    return Fact("page title", ask(rng, GENERAL["title"], view.fields), head.text, evidence=shown(head))


def line(rng: Random, view: View) -> Fact | None:
    """The first, the last, or one between them."""
    if not view.in_order or len(view.lines) < 2:
        return None
    at = rng.choice((0, len(view.lines) - 1, rng.randrange(len(view.lines))))
    kind = "first line" if at == 0 else "last line" if at == len(view.lines) - 1 else "nth line"
    if kind == "nth line" and at >= len(ORDINALS):
        return None
    question = ask(rng, GENERAL[kind], {"k": ORDINALS[min(at, 5)]})
    text, lines = view.lines[at]
    return Fact("page line", question, text, evidence=shown(*lines))


def number_of_lines(rng: Random, view: View) -> Fact | None:
    """Not where two rows stand beside each other, or values below their labels."""
    if not view.is_beside:
        return None
    question = ask(rng, GENERAL["number of lines"])
    return Fact("page count", question, str(len(view.lines)), evidence=shown(*view.scene.lines))


def says(rng: Random, view: View) -> Fact | None:
    """Whether a word is printed anywhere."""
    printed = rng.choice(view.scene.lines)
    text = printed.text.strip(":!?")
    if len(text) < 2:
        return None
    kind = "says number" if re.search(r"\d", text) else "says"
    if rng.random() < 0.5:
        long = [word.strip(",:!?") for word in text.split() if len(word) > 3]
        word = rng.choice(long) if long and rng.random() < 0.4 else text
        word = word if rng.random() < 0.6 else word.lower()
        question = ask(rng, GENERAL[kind], view.fields | {"x": word}, exact=True)
        return Fact("page says", question, "yes", evidence=shown(printed))
    near = rng.random() < 0.3
    other = _nearly(rng, text) if near else view.absent(rng) or view.absent(rng, "shopping list")
    if not other or any(other.lower() in one.text.lower() for one in view.scene.lines):
        return None
    if not near:
        kind = "says" if rng.random() < 0.6 else "about"
    return Fact("page says", ask(rng, GENERAL[kind], view.fields | {"x": other}, exact=True), "no")


def _nearly(rng: Random, text: str) -> str:
    """With one letter or figure changed, so that it has to be read."""
    places = [at for at, letter in enumerate(text) if letter.isalnum()]
    if len(places) < 3:
        return ""
    at = rng.choice(places)
    letters = "0123456789" if text[at].isdigit() else "abcdefghijklmnoprstuvw"
    letter = rng.choice([one for one in letters if one != text[at].lower()])
    return text[:at] + (letter.upper() if text[at].isupper() else letter) + text[at + 1 :]


def kind_of(rng: Random, view: View) -> Fact | None:
    name = plain_name(view.page)
    if not name:
        return None
    wrong = [one for one in OTHER_KINDS if one not in (name, *MISTAKEN.get(view.page.kind, ()))]
    other, chance = rng.choice(wrong), rng.random()
    if chance < 0.4:
        return Fact("page kind", ask(rng, GENERAL["kind"]), name)
    if chance < 0.75:
        yes = rng.random() < 0.5
        question = ask(rng, GENERAL["is kind"], {"x": with_article(name if yes else other)})
        return Fact("page kind", question, "yes" if yes else "no")
    pair = [with_article(name), with_article(other)]
    rng.shuffle(pair)
    return Fact("page kind", ask(rng, GENERAL["kind or"], {"x": pair[0], "y": pair[1]}), name)


def picture(rng: Random, view: View) -> Fact | None:
    """Of the thing beside the text, or whether there is one."""
    items = view.scene.items
    if items and rng.random() < 0.75:
        question = ask(rng, GENERAL["picture"], view.fields)
        return Fact("page picture", question, items[0].name, evidence=(("the picture", items),))
    if not items and len(view.scene.marks) > 2:
        return None  # what is behind the page may be a picture to some
    evidence = (("the picture", items),) if items else ()
    return Fact("page picture", ask(rng, GENERAL["has picture"]), "yes" if items else "no", evidence=evidence)


def unknown(rng: Random, view: View) -> Fact | None:
    """What no page of the kind tells."""
    if not view.listed:
        return None
    return Fact("page cannot tell", ask(rng, GENERAL["unknown"]), CANNOT_TELL)


ALL_HOURS: Mapping[Maker, float] = {**HOURS, **MORE_HOURS}
ALL_TABLE: Mapping[Maker, float] = {**TABLE, **VALUES, **AMOUNTS, **SORT_MAKERS, **LINE_MAKERS}
ALL_NOTICES: Mapping[Maker, float] = {**NOTICES, **MORE_NOTICES}
SPECIAL = 0.72  # of the questions are those of the kind of page, if it allows one
ANY: Mapping[Maker, float] = {
    read: 2.4, title: 2.5, line: 2.0, number_of_lines: 0.5, says: 2.5, kind_of: 1.5, picture: 0.8,
    unknown: 0.25,
}  # fmt: skip
