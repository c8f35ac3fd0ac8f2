"""Sums and differences of two values, all that is above or below a limit, and what comes next. No torch."""

import re
from collections.abc import Sequence
from random import Random

from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.pages.questions import ask
from kestrel_tools.things.language.pages.table_facts import about, numbers_of
from kestrel_tools.things.language.pages.view import Listed, View, shown
from kestrel_tools.things.pages.content import written
from kestrel_tools.things.scene import Line

from .values import TIMED, more_of, once

MOST_LISTED = 3
NOTES = (5, 10, 20, 50, 100)  # that people pay with
NOON = 720
SOON = (5, 10, 15, 20)  # minutes before something


def _priced(view: View, cents: int) -> str:
    """A sum as the page writes its prices; its halves are spelt alike."""
    text = next(one.detail.text for one in view.listed if one.detail is not None)
    sign = "$" if text.startswith("$") else ""
    return f"{sign}{cents / 100:.2f}" if "." in text else f"{sign}{cents // 100}"


def _pair(rng: Random, view: View) -> tuple[tuple[float, Listed], tuple[float, Listed]] | None:
    """Two things, of which the first has more."""
    several = numbers_of(view)
    if len(several) < 2 or len({one.thing.said for _, one in several}) < len(several):
        return None
    first, other = sorted(rng.sample(several, 2), key=lambda pair: pair[0], reverse=True)
    return first, other


def _told(view: View, number: float) -> str:
    """A sum or a difference as the page writes its values; empty where that is hard to work out."""
    details = [one.detail.text for one in view.listed if one.detail is not None]
    if view.kind in ("menu", "price list", "receipt"):
        cents = round(100 * number)
        return _priced(view, cents) if cents % 50 == 0 else ""
    unit = re.sub(r"[\d.$-]", "", details[0]).strip() if view.kind == "distances" else ""
    return f"{number:.0f} {unit}".strip()


def both(rng: Random, view: View) -> Fact | None:
    """What two cost together, or how much more the one is than the other."""
    kind, pair = rng.choice(("both", "difference")), _pair(rng, view)
    templates = more_of(view, kind)
    if pair is None or not templates:
        return None
    (more, one), (less, other) = pair
    answer = _told(view, more + less if kind == "both" else more - less)
    hard = any(number * 2 % 1 for number in (more, less))
    if not answer or hard or more == less:
        return None
    if kind == "both" and rng.random() < 0.5:
        one, other = other, one
    fields = about(view, one) | {"y": other.thing.said, "b": view.named(other.thing.said)}
    question = ask(rng, templates, fields, many=view.many(one.thing.said))
    return Fact("page sum", question, answer, evidence=shown(*one.lines, *other.lines))


def change(rng: Random, view: View) -> Fact | None:
    """What is given back of a note."""
    one, templates = once(rng, view), more_of(view, "change")
    if one is None or not templates:
        return None
    price = next(number for number, other in numbers_of(view) if other is one)
    notes = [note for note in NOTES if price < note]
    if not notes or price * 2 % 1:
        return None
    note = notes[0] if rng.random() < 0.7 else rng.choice(notes)
    sign = "$" if one.detail is not None and one.detail.text.startswith("$") else ""
    fields = about(view, one) | {"c": f"{sign}{note}"}
    answer = _priced(view, round(100 * (note - price)))
    return Fact("page sum", ask(rng, templates, fields), answer, evidence=shown(*one.lines))


def _limit(rng: Random, view: View) -> tuple[float, str] | None:
    """A round number near those of the page and none of them, as somebody writes it there."""
    numbers = [number for number, _ in numbers_of(view)]
    if not numbers:
        return None
    text = next(one.detail.text for one in view.listed if one.detail is not None)
    if view.kind in TIMED:
        limit = 60 * round(rng.choice(numbers) / 60 + rng.choice((-1, 0, 1)))
        shape = written(limit, "12 only" if "m" in text.lower() else "24")
        return (limit, shape) if limit not in numbers and 0 < limit < 1440 else None
    limit = round(rng.choice(numbers) * rng.uniform(0.6, 1.4))
    if limit > 20:
        limit = round(limit / 5) * 5
    if limit < 1 or limit in numbers:
        return None
    unit = re.sub(r"[\d.-]", "", text).strip()
    spelt = {"$": f"${limit}", "": f"{limit}", "pts": f"{limit}", "points": f"{limit}"}
    return limit, spelt.get(unit.lower(), f"{limit} {unit}")


def than_limit(rng: Random, view: View) -> Fact | None:
    """Whether one thing costs more than so much, or less."""
    kind, one, limit = rng.choice(("dearer", "cheaper")), once(rng, view), _limit(rng, view)
    templates = more_of(view, kind)
    if one is None or limit is None or not templates:
        return None
    number = next(number for number, other in numbers_of(view) if other is one)
    question = ask(rng, templates, about(view, one) | {"c": limit[1]}, many=view.many(one.thing.said))
    return Fact(
        "page claim", question, yes_no((number > limit[0]) == (kind == "dearer")), evidence=shown(*one.lines)
    )


def several(rng: Random, view: View) -> Fact | None:
    """All above or below a limit, or how many these are."""
    kind = rng.choice(("over", "under", "count over", "count under", "all under", "any over"))
    templates, limit = more_of(view, kind), _limit(rng, view)
    if not templates or limit is None:
        return None
    above = kind.endswith("over")
    found = [one for number, one in numbers_of(view) if (number > limit[0]) == above]
    question = ask(rng, templates, view.fields | {"c": limit[1]})
    if kind in ("all under", "any over"):
        true = len(found) == len(view.listed) if kind == "all under" else bool(found)
        return Fact("page several", question, yes_no(true), evidence=_lines(found))
    if kind.startswith("count"):
        return Fact("page several", question, str(len(found)), evidence=_lines(found))
    return _those(question, found)


def _those(question: str, found: Sequence[Listed]) -> Fact | None:
    if len(found) > MOST_LISTED:
        return None
    answer = ", ".join(one.thing.text for one in found) or "nothing"
    if not found and question.lower().lstrip().startswith(("who", "where", "when", "on which")):
        return None
    return Fact("page several", question, answer, evidence=_lines(found))


def _lines(found: Sequence[Listed]) -> tuple[tuple[str, tuple[Line, ...]], ...]:
    return shown(*(line for one in found for line in one.lines)) if found else ()


def by_noon(rng: Random, view: View) -> Fact | None:
    kind = rng.choice(("before noon", "after noon"))
    times = numbers_of(view)
    if not more_of(view, kind) or any(time == NOON for time, _ in times):
        return None
    found = [one for time, one in times if (time < NOON) == (kind == "before noon")]
    return _those(ask(rng, more_of(view, kind)), found)


def comes_next(rng: Random, view: View) -> Fact | None:
    """After a time that somebody says it is."""
    kind, times = rng.choice(("next", "next", "next value")), numbers_of(view)
    if not more_of(view, kind) or not times or [*times] != sorted(times, key=lambda pair: pair[0]):
        return None
    at = rng.randrange(len(times))
    time, one = times[at]
    now = int(time) // 5 * 5 - rng.choice(SOON)
    if one.detail is None or now <= (times[at - 1][0] if at else 0):
        return None
    like = "12" if "m" in one.detail.text.lower() else "24"
    question = ask(rng, more_of(view, kind), view.fields | {"t": written(now, like)})
    answer = one.detail.text if kind == "next value" else one.thing.text
    return Fact("page next", question, answer, evidence=shown(*one.lines))


AMOUNTS = {both: 1.2, change: 0.4, than_limit: 0.8, several: 2.0, by_noon: 0.8, comes_next: 2.0}
