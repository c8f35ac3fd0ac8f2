"""On which days a place is open, and whether it opens or closes at a time. No torch."""

from collections.abc import Mapping
from random import Random

from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.pages.hours import days_of, row_of
from kestrel_tools.things.language.pages.questions import ask
from kestrel_tools.things.language.pages.view import Listed, View, number_in, shown

from .lines import beside, called, colour, paper_colour
from .values import Maker, more_of

WEEKEND = (5, 6)


def _says(one: Listed) -> dict[str, str]:
    return {part.role: part.text for part in one.row.parts}


def _open_days(view: View) -> dict[int, bool]:
    """Of each day that is told."""
    return {day: "opens" in _says(one) for one in view.listed for day in days_of(one.thing.said)}


def days(rng: Random, view: View) -> Fact | None:
    """All on which it is open, how many these are, and whether those of the weekend are."""
    kind = rng.choice(("open days", "number of days", "weekend", "weekend", "every day", "closed at all"))
    is_open = _open_days(view)
    question, whole_week = ask(rng, more_of(view, kind)), len(is_open) == 7
    lines = shown(*(line for one in view.listed for line in one.lines))
    if kind == "open days":
        texts = [one.thing.text for one in view.listed if "opens" in _says(one)]
        return Fact("page days", question, ", ".join(texts), evidence=lines) if 0 < len(texts) < 5 else None
    if kind == "weekend":
        both = {is_open[day] for day in WEEKEND if day in is_open}
        if len(both) != 1 or not all(day in is_open for day in WEEKEND):
            return None
        return Fact("page days", question, yes_no(both.pop()), evidence=lines)
    shut = not all(is_open.values())
    if kind == "number of days":
        return Fact("page days", question, str(sum(is_open.values())), evidence=lines) if whole_week else None
    if not (whole_week or shut):
        return None
    return Fact("page days", question, yes_no(shut == (kind == "closed at all")), evidence=lines)


def at_time(rng: Random, view: View) -> Fact | None:
    """Whether it opens or closes when somebody says so."""
    day, _, texts, row = row_of(rng, view)
    role, yes = rng.choice(("opens", "closes")), rng.random() < 0.5
    if role not in texts:
        return None
    others = [_says(one)[role] for one in view.listed if role in _says(one)]
    others = [other for other in (*others, texts["opens"], texts["closes"]) if other != texts[role]]
    named = texts[role] if yes else rng.choice(others)
    question = ask(rng, more_of(view, f"{role} claim"), {"x": day, "c": named})
    return Fact("page claim", question, yes_no(yes), evidence=shown(row.label, row.value))


def extreme(rng: Random, view: View) -> Fact | None:
    """On which day they close last, or open first, where no two days are alike in it."""
    kind = rng.choice(("most closes", "least closes", "least opens"))
    role = kind.split()[1]
    told = [(number_in(_says(one)[role]), one) for one in view.listed if role in _says(one)]
    told.sort(key=lambda pair: pair[0], reverse=kind.startswith("most"))
    if len(told) < 2 or told[0][0] == told[1][0] or len(days_of(told[0][1].thing.said)) > 1:
        return None
    one = told[0][1]
    return Fact("page days", ask(rng, more_of(view, kind)), one.thing.text, evidence=shown(*one.lines))


MORE_HOURS: Mapping[Maker, float] = {
    days: 2.4, at_time: 1.5, extreme: 1.2, beside: 1.2, called: 0.5, colour: 0.2, paper_colour: 0.15,
}  # fmt: skip
