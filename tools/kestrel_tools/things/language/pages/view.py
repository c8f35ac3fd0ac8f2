"""A page as those see it who ask about it: what it lists, what it tells, and what it does not. No torch."""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from random import Random

from kestrel_tools.things.lettering import made_up
from kestrel_tools.things.names import plural
from kestrel_tools.things.pages import words
from kestrel_tools.things.pages.content import DETAIL, THING, Entry, Part
from kestrel_tools.things.scene import Line, Page, Scene

SMALL_WORDS = frozenset(
    ["a", "an", "the", "and", "of", "on", "in", "to", "for", "my", "at", "no", "not", "i", "is"]
)
PLURAL_ALIKE = ("hummus", "couscous", "asparagus", "cactus", "tennis", "chess", "bus")
# Words that may be asked for alone: whoever has tomato soup has soup.
HEADS = frozenset(
    [
        "soup",
        "salad",
        "curry",
        "burger",
        "cake",
        "tea",
        "juice",
        "wine",
        "stew",
        "sandwich",
        "milk",
        "sugar",
        "oil",
    ]
)
POOLS: dict[str, tuple[tuple[str, ...], ...]] = {
    "menu": (words.DISHES, words.DRINKS),
    "price list": (words.GOODS, words.SERVICES, words.GROCERIES),
    "admission": (words.ADMISSION,),
    "receipt": (words.GROCERIES, words.GOODS, words.DISHES, words.DRINKS),
    "shopping list": (words.GROCERIES, words.GOODS),
    "to-do list": (words.TASKS,),
    "timetable": (words.SUBJECTS, words.COURSES, words.PROGRAM),
    "week": (words.SUBJECTS, words.COURSES),
    "rooms": (words.COURSES, words.SUBJECTS),
    "duties": (words.CHORES,),
    "floors": (words.DEPARTMENTS,),
    "recipe": (words.INGREDIENTS,),
    "nutrition": (words.NUTRIENTS,),
    "stock": (tuple(word if word.endswith("s") else plural(word) for word in words.GOODS),),
    "grades": (words.SUBJECTS[:17],),
} | dict.fromkeys(("scoreboard",), (words.TEAMS,))
POOLS |= dict.fromkeys(
    ("departures", "arrivals", "platforms", "gates", "tracks", "distances", "forecast"), (words.TOWNS,)
)
POOLS |= dict.fromkeys(("results", "ranking", "phone list", "birthdays", "shifts"), (words.PEOPLE,))
# Their things are called by their name alone.
BARE = frozenset(POOLS) - {"menu", "price list", "receipt", "duties", "floors"}

CALLED = {
    "menu": "menu", "price list": "price list", "admission": "price list", "shopping list": "list",
    "to-do list": "list", "opening hours": "sign", "departures": "board", "arrivals": "board",
    "receipt": "receipt", "invitation": "invitation", "card": "card", "name tag": "name tag",
    "door sign": "sign", "ticket": "ticket", "error message": "screen", "dialog": "screen", "form": "screen",
    "label": "label", "poster": "poster", "business card": "card", "notice": "notice", "rules": "sign",
    "warning": "sign", "sign": "sign", "recipe": "recipe", "distances": "sign",
}  # fmt: skip
LISTS = {
    "menu": ("dish", "dishes"), "price list": ("item", "items"), "receipt": ("item", "items"),
    "shopping list": ("item", "items"), "to-do list": ("task", "tasks"), "grades": ("subject", "subjects"),
    "departures": ("destination", "destinations"), "recipe": ("ingredient", "ingredients"),
}  # fmt: skip

VEHICLES = {"train": "train", "bus": "bus", "flight": "flight", "ferr": "ferry"}  # that a title tells
ONE_EACH = frozenset(("to-do list", "timetable", "week", "rooms", "grades"))


def stem(word: str) -> str:
    word = word.lower().strip(".,:!?")
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("oes"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _groups() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, group in enumerate(words.AKIN):
        for word in group.split():
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


GROUPS = _groups()


def stems_of(text: str) -> set[str]:
    return {stem(word) for word in re.split(r"[ /&-]", text) if word} - SMALL_WORDS


def akin(first: set[str], second: set[str]) -> bool:
    """Whether they share a word, or words that people may mean by each other."""
    if first & second:
        return True
    groups = {number for word in first for number in GROUPS.get(word, ())}
    return any(number in groups for word in second for number in GROUPS.get(word, ()))


def is_many(said: str) -> bool:
    """Whether a thing takes "are"; names do not."""
    if said[0].isupper():
        return False
    head = said.split(" on ")[0].split()[-1].lower()
    if head in ("children", "women", "men"):
        return True
    return head.endswith("s") and not head.endswith("ss") and head not in PLURAL_ALIKE


def number_in(text: str) -> float:
    """A price, an amount, or minutes after midnight."""
    if found := re.search(r"(\d+)(?::(\d\d))? ?([ap]m)?", text.lower()):
        hours, minutes, half = found.groups()
        if minutes is not None or half:
            hour = int(hours) % 12 + 12 * (half == "pm") if half else int(hours)
            return 60 * hour + int(minutes or 0)
    number = re.search(r"-?\d+(?:\.\d+)?", text)
    return float(number[0]) if number else 0.0


def shown(*lines: Line | None) -> tuple[tuple[str, tuple[Line, ...]], ...]:
    """As evidence."""
    return (("the text", tuple(line for line in lines if line is not None)),)


@dataclass(frozen=True, slots=True)
class Listed:
    """A thing of a table, and what is told of it."""

    row: Entry
    thing: Part
    detail: Part | None

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for line in (self.row.label, self.row.value) if line is not None)


@dataclass
class View:
    scene: Scene
    page: Page

    @cached_property
    def entries(self) -> list[Entry]:
        return [row for row in self.page.rows if isinstance(row, Entry)]

    @cached_property
    def kind(self) -> str:
        """As the page's, but that prices of entry have questions of their own."""
        if self.page.kind == "price list" and any(one.thing.said in words.ADMISSION for one in self.listed):
            return "admission"
        return self.page.kind

    @cached_property
    def listed(self) -> list[Listed]:
        found = []
        for row in self.entries:
            parts = {part.role: part for part in row.parts}
            if THING in parts:
                found.append(Listed(row, parts[THING], parts.get(DETAIL)))
        return found

    @cached_property
    def roles(self) -> dict[str, list[tuple[Part, Entry]]]:
        found: dict[str, list[tuple[Part, Entry]]] = {}
        for row in self.entries:
            for part in row.parts:
                found.setdefault(part.role, []).append((part, row))
        return found

    def part(self, role: str) -> Part | None:
        """The one part of that role, if there is just one."""
        found = self.roles.get(role, ())
        return found[0][0] if len(found) == 1 else None

    @cached_property
    def fields(self) -> dict[str, str]:
        """What the page, and what it lists, is called in questions."""
        one, many = LISTS.get(self.kind, ("entry", "entries"))
        if self.kind == "menu" and any(listed.thing.said in words.DRINKS for listed in self.listed):
            one, many = "thing", "things"
        moving = next((word for part, word in VEHICLES.items() if part in self.title.lower()), "one")
        place = moving if self.kind in ("departures", "arrivals") else self.kind.rstrip("s")
        some = moving if moving == "one" else f"a {moving}"
        return {"p": CALLED.get(self.kind, "page"), "n": one, "ns": many, "u": place, "au": some}

    def named(self, said: str) -> str:
        """With its article, where it takes one."""
        return said if self.kind in BARE else f"the {said}"

    def many(self, said: str) -> bool:
        """Whether it takes "are" here; a task or a subject is one, however it is called."""
        return self.kind not in ONE_EACH and is_many(said)

    @property
    def title(self) -> str:
        return self.page.title.text if self.page.title else ""

    @cached_property
    def stems(self) -> set[str]:
        """Of all that is printed, and of what is pictured."""
        texts = [line.text for line in self.scene.lines] + [item.name for item in self.scene.items]
        texts += [part.said for row in self.entries for part in row.parts]
        return {word for text in texts for word in stems_of(text)}

    @cached_property
    def lines(self) -> list[tuple[str, tuple[Line, ...]]]:
        """As they are read: a value that stands beside its label is in its line."""
        found: list[tuple[str, tuple[Line, ...]]] = []
        if self.page.title is not None:
            found.append((self.title, (self.page.title,)))
        for row in self.page.rows:
            if row.value is None:
                found.append((row.label.text, (row.label,)))
            elif abs(self._down(row.label) - self._down(row.value)) < 0.2 * row.label.height:
                found.append((f"{row.label.text} {row.value.text}", (row.label, row.value)))
            else:
                found += [(row.label.text, (row.label,)), (row.value.text, (row.value,))]
        return found

    @cached_property
    def is_beside(self) -> bool:
        """Whether values stand in the lines of their labels, and no two rows in one line."""
        return len(self.lines) == len(self.page.rows) + bool(self.page.title) and self.in_order

    @cached_property
    def in_order(self) -> bool:
        """Whether each line is below the one before it: buttons may stand side by side."""
        downs = [self._down(lines[0]) for _, lines in self.lines]
        least = 0.4 * min(lines[0].height for _, lines in self.lines)
        return all(after - before > least for before, after in pairwise(downs))

    def _down(self, line: Line) -> float:
        """How far down it is on the page, which may lie askew; in shorter sides."""
        across, down = self.scene.unit
        return line.y / down * math.cos(line.angle) - line.x / across * math.sin(line.angle)

    def absent(self, rng: Random, kind: str = "") -> str | None:
        """Something of the same sort that is not on the page, and has nothing to do with what is."""
        pools = POOLS.get(kind or self.kind)
        if pools is None:
            return None
        for _ in range(6):
            word = rng.choice(rng.choice(pools))
            if rng.random() < 0.12:
                word = made_up(rng).capitalize() if word[0].isupper() else made_up(rng)
            hidden = any(word.lower() in other for other in self.stems)  # a brush in a toothbrush
            if len(word) > 2 and not hidden and not akin(stems_of(word), self.stems):
                return word
        return None
