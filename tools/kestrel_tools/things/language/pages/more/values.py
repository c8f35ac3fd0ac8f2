"""Whether a value that somebody names is right, and which is the second or the most. No torch."""

import re
from collections.abc import Callable, Mapping
from random import Random

from kestrel_tools.things.language.fact import ORDINALS, Fact, yes_no
from kestrel_tools.things.language.pages.questions import ask, read_table
from kestrel_tools.things.language.pages.table_facts import about, numbers_of
from kestrel_tools.things.language.pages.view import Listed, View, shown
from kestrel_tools.things.pages.words import DAYS

from .words import TABLES

Maker = Callable[[Random, View], Fact | None]

MORE = read_table(TABLES)
NUMBERED = ("platforms", "gates", "tracks", "rooms", "floors", "scoreboard", "results")
AS_PRINTED = ("shopping list", "to-do list", "week", "shifts", "duties", "grades", "birthdays", "ranking")
TIMED = ("departures", "arrivals", "timetable", "to-do list")
CLOSE = 0.35  # of the wrong values differ from the right one in one figure


def more_of(view: View, kind: str) -> tuple[str, ...]:
    return MORE.get(view.kind, {}).get(kind, ())


def changed(rng: Random, text: str) -> str:
    """With one figure changed; none becomes 0, so that it stays a number as people write it."""
    places = [at for at, letter in enumerate(text) if letter.isdigit()]
    if not places:
        return ""
    at = rng.choice(places)
    return text[:at] + rng.choice([one for one in "123456789" if one != text[at]]) + text[at + 1 :]


def _named(view: View, one: Listed) -> str:
    """Its value as somebody names it."""
    assert one.detail is not None
    fields = about(view, one)
    if view.kind in NUMBERED:
        return fields["w"]
    return fields["d"] if view.kind in ("week", "shifts") else one.detail.text


def once(rng: Random, view: View) -> Listed | None:
    """A thing with a value that is listed just once."""
    one = rng.choice(view.listed)
    same = [other for other in view.listed if other.thing.said == one.thing.said]
    return one if one.detail is not None and len(same) == 1 else None


def claim(rng: Random, view: View) -> Fact | None:
    """Whether a thing has the value that somebody names: its own, another's, or a similar one."""
    one, templates = once(rng, view), more_of(view, "claim")
    if one is None or not templates:
        return None
    if not view.is_beside:
        templates = tuple(template for template in templates if "next to" not in template)
    right, yes = _named(view, one), rng.random() < 0.5
    others = [_named(view, other) for other in view.listed if other.detail is not None]
    if view.kind in ("week", "shifts"):
        others = list(DAYS)
    if rng.random() < CLOSE and view.kind not in (*AS_PRINTED, *TIMED):
        others = [changed(rng, right)]
    others = [other for other in others if other and other != right]
    if not (yes or others) or not templates:
        return None
    named = right if yes else rng.choice(others)
    place = int(re.sub(r"\D", "", named) or 0) if view.kind == "ranking" else 0
    ordinal = ORDINALS[place - 1] if 0 < place <= len(ORDINALS) else named
    fields = about(view, one) | {"c": named, "o": ordinal}
    question = ask(rng, templates, fields, many=view.many(one.thing.said), exact=True)
    return Fact("page claim", question, yes_no(yes), evidence=shown(*one.lines))


def is_extreme(rng: Random, view: View) -> Fact | None:
    """Whether a thing is the cheapest, the winner, the nearest."""
    kind, one = rng.choice(("is most", "is least")), once(rng, view)
    templates = more_of(view, kind)
    numbers = sorted((number for number, _ in numbers_of(view)), reverse=kind == "is most")
    if one is None or not templates or len(numbers) < 2 or numbers[0] == numbers[1]:
        return None
    yes = rng.random() < 0.5
    best = [other for number, other in numbers_of(view) if number == numbers[0]]
    if yes and best[0].thing.said != one.thing.said:
        one = best[0]
    question = ask(rng, templates, about(view, one), many=view.many(one.thing.said))
    lines = [line for other in view.listed for line in other.lines]
    return Fact("page claim", question, yes_no(one is best[0]), evidence=shown(*lines))


def second(rng: Random, view: View) -> Fact | None:
    """The second cheapest, where there are three at least."""
    kind = rng.choice(("second most", "second least"))
    ordered = sorted(numbers_of(view), key=lambda pair: pair[0], reverse=kind == "second most")
    numbers = [number for number, _ in ordered]
    if not more_of(view, kind) or len(numbers) < 3 or len({*numbers[:3]}) < 3:
        return None
    one = ordered[1][1]
    question = ask(rng, more_of(view, kind), view.fields)
    return Fact("page second", question, one.thing.text, evidence=shown(*one.lines))


def nth_value(rng: Random, view: View) -> Fact | None:
    """The second price from the top."""
    at = rng.randrange(len(view.listed))
    one, templates = view.listed[at], more_of(view, "nth value")
    if one.detail is None or not templates:
        return None
    last = at == len(view.listed) - 1 and view.part("total") is None
    word = "last" if last and at and rng.random() < 0.5 else ORDINALS[at]
    question = ask(rng, templates, view.fields | {"k": word})
    return Fact("page nth value", question, one.detail.text, evidence=shown(*one.lines))


VALUES: Mapping[Maker, float] = {claim: 2.4, is_extreme: 0.9, second: 0.5, nth_value: 0.7}
