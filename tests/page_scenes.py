"""Pages to ask about: random ones with questions about them, and those of a few rows that a test names."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest

from kestrel_tools.things.atlas import CHARACTERS, Atlas
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.pages import questions as page_questions
from kestrel_tools.things.language.pages.facts import page_fact
from kestrel_tools.things.pages.content import Entry, Part
from kestrel_tools.things.pages.draw import draw_page
from kestrel_tools.things.scene import Page, Scene, unit_of
from tests.small_atlas import small_atlas
from tests.thing_scenes import WHITE, line

BLACK = (0.0, 0.0, 0.0)


def two_cases() -> Atlas:
    """The small atlas with a second font, whose small letters are not its capitals."""
    atlas = small_atlas()
    fonts = atlas.fonts
    other = fonts.pixels[0].copy()
    for letter in "abcdefghijklmnopqrstuvwxyz":
        other[CHARACTERS.index(letter)] //= 2
    both = np.stack([fonts.pixels[0], other])
    twice = (np.concatenate([part, part]) for part in (fonts.advances, fonts.inks))
    return replace(
        atlas,
        fonts=replace(
            fonts, names=("dots", "mixed"), pixels=both, **dict(zip(("advances", "inks"), twice, strict=True))
        ),
    )


ATLAS = two_cases()
Drawn = tuple[Scene, tuple[int, int]]


@cache
def drawn() -> tuple[Drawn, ...]:
    """About 500 pages, and the size in pixels at which they are legible."""
    rng, found = Random(3), []
    for _ in range(500):
        aspect, side = rng.uniform(0.5, 2.0), rng.choice((196, 252, 336, 400))
        unit = unit_of(aspect)
        pixels = (round(side * min(1.0, unit[0] / unit[1])), round(side * min(1.0, unit[1] / unit[0])))
        scene = draw_page(rng, ATLAS, aspect, pixels)
        if scene is not None:
            found.append((scene, pixels))
    return tuple(found)


def pages() -> Iterator[tuple[Scene, Page]]:
    for scene, _ in drawn():
        assert scene.page is not None
        yield scene, scene.page


def plain(patch: pytest.MonkeyPatch) -> None:
    """Questions are asked without slips and flourishes."""
    for name in ("casual", "introduced", "punctuated"):
        patch.setattr(page_questions, name, lambda rng, question: question)
    patch.setattr(page_questions, "SMALL", 0.0)


@cache
def asked() -> tuple[tuple[Scene, Page, Fact], ...]:
    """Questions about every page, without slips."""
    rng, found = Random(5), []
    with pytest.MonkeyPatch.context() as patch:
        plain(patch)
        for scene, page in pages():
            for _ in range(30):
                fact = page_fact(rng, scene)
                assert fact is not None
                found.append((scene, page, fact))
    return tuple(found)


def parts_of(page: Page, role: str) -> list[Part]:
    return [part for row in page.rows if isinstance(row, Entry) for part in row.parts if part.role == role]


def told(page: Page) -> list[tuple[str, str, str]]:
    """Each thing as people write it and as it is printed, and what is told of it."""
    found = []
    for row in page.rows:
        assert isinstance(row, Entry)
        roles = {part.role: part for part in row.parts}
        if "thing" in roles:
            detail = roles["detail"].text if "detail" in roles else ""
            found.append((roles["thing"].said, roles["thing"].text, detail))
    return found


def mentioned(page: Page, question: str) -> list[tuple[str, str, str]]:
    """The things that a question names; of "soup" and "pea soup" the longer."""
    low = question.lower()
    found = [one for one in told(page) if re.search(rf"(?<!\w){re.escape(one[0].lower())}(?!\w)", low)]
    return [one for one in found if not any(one[0] != other[0] and one[0] in other[0] for other in found)]


def page_of(kind: str, title: str, *rows: tuple[str, str, dict[str, str]]) -> Scene:
    """A page with its rows one below the other; what each tells is spelt as it is printed."""
    head = line(title, 0.5, 0.1, BLACK) if title else None
    entries = []
    for number, (label, value, parts) in enumerate(rows):
        y = 0.2 + 0.12 * number
        shown = line(value, 0.8, y, BLACK) if value else None
        told = tuple(Part(role, text.lower(), text) for role, text in parts.items())
        entries.append(Entry(line(label, 0.2, y, BLACK), shown, told))
    lines = [head, *(one for entry in entries for one in (entry.label, entry.value))]
    page = Page(kind, head, tuple(entries))
    return Scene(1.0, WHITE, (), tuple(one for one in lines if one is not None), page=page)


def answers(scene: Scene, pattern: str, tries: int = 2000) -> set[str]:
    rng, found = Random(1), set()
    for _ in range(tries):
        fact = page_fact(rng, scene)
        if fact is not None and re.search(pattern, fact.question):
            found.add(fact.answer)
    return found
