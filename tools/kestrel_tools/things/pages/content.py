"""What pages say before they are set in type, and how prices, times and dates are written. No torch.

Each line knows which of its words tell what: that "Anna turns 7" has a name and an age. The questions are
made from that, the answers are spelt as the page prints them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from kestrel_tools.things.lettering import MOST_LETTERS
from kestrel_tools.things.scene import Row

from . import words

THING, DETAIL = "thing", "detail"  # what a table lists, and what it tells of each


class Part(NamedTuple):
    role: str
    said: str  # as people write it: "tomato soup"
    text: str  # as it is printed: "TOMATO SOUP"


@dataclass(frozen=True, slots=True)
class Entry(Row):
    """A row, and what its words tell."""

    parts: tuple[Part, ...] = ()


class Told(NamedTuple):
    """A row before it is printed; parts are roles and words of it."""

    label: str
    value: str = ""
    parts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    kind: str
    title: str
    rows: tuple[Told, ...]
    pictures: tuple[str, ...] = ()  # kinds and names of things that may be shown beside it

    @property
    def fits(self) -> bool:
        texts = (self.title, *(text for row in self.rows for text in (row.label, row.value)))
        return all(len(text) <= MOST_LETTERS for text in texts)


Draw = Callable[[Random, int], Content]  # of at most so many rows


def title_of(rng: Random, titles: Sequence[str], titled: float = 0.8) -> str:
    return rng.choice(titles) if rng.random() < titled else ""


def table(
    kind: str,
    title: str,
    things: Sequence[str],
    details: Sequence[str],
    pictures: tuple[str, ...] = (),
    detail_first: bool = False,
) -> Content:
    rows = []
    for thing, detail in zip(things, details, strict=True):
        parts = ((THING, thing), (DETAIL, detail)) if detail else ((THING, thing),)
        rows.append(Told(detail, thing, parts) if detail_first else Told(thing, detail, parts))
    return Content(kind, title, tuple(rows), pictures)


def count_of(rng: Random, most: int, least: int = 2) -> int:
    return rng.randint(min(least, most), most)


def prices(rng: Random, count: int, low: int, high: int) -> list[str]:
    """Of one currency, all in whole numbers or none; mostly different."""
    sign = rng.choice(("", "", "$", "$", "$"))
    if rng.random() < 0.25:
        return [f"{sign}{amount}" for amount in _numbers(rng, count, max(1, low), high)]
    cents = rng.choice(((0, 50), (0, 50), (0, 20, 50, 80), (99, 49, 95), tuple(range(0, 100, 5))))
    return [f"{sign}{amount}.{rng.choice(cents):02}" for amount in _numbers(rng, count, low, high)]


def _numbers(rng: Random, count: int, low: int, high: int) -> list[int]:
    span = range(low, high + 1)
    return (
        rng.sample(span, count) if len(span) >= count and rng.random() < 0.8 else rng.choices(span, k=count)
    )


def clock(rng: Random, first: int, last: int, many: int, like: str = "") -> list[str]:
    """Different times of a day in their order, all written in one way."""
    like = like or rng.choice(("24", "24", "12", "12 only"))
    minutes = (0,) if like == "12 only" else rng.choice(((0, 30), (0, 15, 30, 45), range(0, 60, 5)))
    slots = sorted(rng.sample([60 * hour + m for hour in range(first, last + 1) for m in minutes], many))
    return [written(slot, like) for slot in slots]


def written(minutes: int, like: str) -> str:
    hour, minute = divmod(minutes, 60)
    if like == "24":
        return f"{hour}:{minute:02}"
    half = "am" if hour < 12 else "pm"
    return f"{(hour - 1) % 12 + 1}{'' if like == '12 only' else f':{minute:02}'} {half}"


def date(rng: Random, form: int) -> str:
    month, day = rng.choice(words.MONTHS), rng.randint(1, 28)
    short = month[:3]
    return (f"{month} {day}", f"{day} {month}", f"{short} {day}", f"{day} {short}", f"{month} {day}")[form]


def phone(rng: Random, form: int) -> str:
    a, b, c = rng.randrange(200, 999), rng.randrange(100, 999), rng.randrange(10000)
    return (f"555-{c:04}", f"{a}-{c:04}", f"{a} {b} {c:04}", f"0{a} {b}{c % 1000:03}", f"{a}-{b}-{c:04}")[
        form
    ]


FORMS = 5  # of dates and of phone numbers
