"""Which answers to a question are right: a rule for words, or for places. No model.

A rule holds when everything it says holds. Words are compared without case, punctuation and plural endings.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kestrel_core.protocol.errors import KestrelError
from kestrel_tools.scenes.score import Outcome, box_of, match_boxes
from kestrel_tools.scenes.world import COLOUR_NAMES, Box

TEXTS = {"query": "answer", "caption": "caption"}
YES, NO = ("yes", "yep", "yeah"), ("no", "nope", "none")
DIGITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
NUMBERS = {word: float(number) for number, word in enumerate(DIGITS.split())}
UNKNOWN = re.compile(
    r"\b(?:(?:cant|cannot|can not|couldnt|could not|unable to|impossible to|not possible to|no way to) "
    r"(?:\w+ )?(?:tell|say|know|see|answer|determine|be)|dont know|do not know|not sure|no idea|only know|"
    r"unknown|unclear|not (?:shown|given|visible)|isnt (?:shown|given|visible))\b"
)
AMBIGUOUS = {"orange", "saw"}  # a colour and a verb, so they do not name a thing that is not there


@dataclass(frozen=True, slots=True)
class Rule:
    number: float | None = None  # the one number that is said
    within: float = 0.0  # as a share of the number
    yes: bool | None = None  # by the first word
    any: tuple[str, ...] = ()  # one of these is named,
    after: tuple[str, ...] = ()  # and before any of these
    all: tuple[tuple[str, ...], ...] = ()  # of each group one is named
    least: int | None = None  # so many of the groups are enough
    others: bool = False  # names of things beside those may be said
    unknown: bool = False  # it says that it cannot be told
    boxes: tuple[Box, ...] | None = None  # exactly these, at IoU 0.5
    points: tuple[Box, ...] | None = None  # exactly one in each of these

    def accepts(self, skill: str, outcome: Outcome, forbidden: Iterable[str] = ()) -> bool:
        """`forbidden`: names that a right answer does not say, unless the rule asks for them."""
        if isinstance(outcome, KestrelError):
            return False
        if self.boxes is not None:
            return _same_boxes([box_of(one) for one in outcome.get("objects", ())], self.boxes)
        if self.points is not None:
            return _one_in_each(outcome.get("points", ()), self.points)
        return self._accepts_text(plain(str(outcome.get(TEXTS[skill], ""))), forbidden)

    def _accepts_text(self, text: str, forbidden: Iterable[str]) -> bool:
        if self.number is not None and not _says(text, self.number, self.within):
            return False
        if self.yes is not None and text.partition(" ")[0] not in (YES if self.yes else NO):
            return False
        if self.unknown and not UNKNOWN.search(text):
            return False
        return self._names(text) and (self.others or not self._names_others(text, forbidden))

    def _names(self, text: str) -> bool:
        if self.any:
            at = first(text, self.any)
            if at is None or any(
                (other := first(text, [term])) is not None and other < at for term in self.after
            ):
                return False
        named = sum(first(text, group) is not None for group in self.all)
        return named >= (len(self.all) if self.least is None else self.least)

    def _names_others(self, text: str, forbidden: Iterable[str]) -> bool:
        accepted = [*self.any, *(term for group in self.all for term in group)]
        if not accepted:
            return False
        for term in sorted(accepted, key=len, reverse=True):
            text = pattern(term).sub(" ", text)
        colours = COLOUR_NAMES if set(accepted) & set(COLOUR_NAMES) else ()
        others = [name for name in forbidden if name not in AMBIGUOUS and name not in COLOUR_NAMES]
        return first(text, [*others, *(colour for colour in colours if colour not in self.after)]) is not None


def plain(text: str) -> str:
    """Words and numbers alone, in small letters and American spelling, one space apart."""
    text = re.sub("['\u2018\u2019]", "", text.casefold())
    text = re.sub(r"(?<!\d)\.|\.(?!\d)|[^\w.]+", " ", text)
    return " ".join(text.replace("grey", "gray").replace("_", " ").split())


def pattern(term: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(plain(term))}(?:s|es)?\b")


def first(text: str, terms: Iterable[str]) -> int | None:
    """Where the first of the terms begins."""
    return min((found.start() for term in terms if (found := pattern(term).search(text))), default=None)


def _says(text: str, number: float, within: float) -> bool:
    said = {float(digits) for digits in re.findall(r"\d+(?:\.\d+)?", text)}
    said |= {NUMBERS[word] for word in text.split() if word in NUMBERS}
    if not said and set(text.split()) & set(NO):
        said = {0.0}
    return len(said) == 1 and abs(said.pop() - number) <= within * abs(number)


def _same_boxes(given: Sequence[Box], wanted: Sequence[Box]) -> bool:
    return len(match_boxes(given, wanted)) == len(given) == len(wanted)


def _one_in_each(points: Collection[Mapping[str, Any]], boxes: Sequence[Box]) -> bool:
    """Each box takes the nearest point inside it that is left, so overlapping boxes find their own."""
    left = [(float(point["x"]), float(point["y"])) for point in points]
    if len(left) != len(boxes):
        return False
    pairs = sorted(
        (abs(x - (x1 + x2) / 2) + abs(y - (y1 + y2) / 2), at, box)
        for at, (x, y) in enumerate(left)
        for box, (x1, y1, x2, y2) in enumerate(boxes)
        if x1 <= x <= x2 and y1 <= y <= y2
    )
    taken: list[tuple[int, int]] = []
    for _, at, box in pairs:
        if all(at != one and box != other for one, other in taken):
            taken.append((at, box))
    return len(taken) == len(boxes)
