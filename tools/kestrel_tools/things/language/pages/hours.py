"""What may be asked about opening hours, and the true answers. No torch."""

from collections.abc import Callable, Mapping
from random import Random

from kestrel_tools.things.language.fact import CANNOT_TELL, Fact
from kestrel_tools.things.pages.content import Entry, written
from kestrel_tools.things.pages.words import DAYS

from .questions import ASKED, ask
from .view import View, number_in

QUESTIONS = ASKED["opening hours"]
NEAR = 60  # minutes before or after the doors open or close, of which nobody is asked


def days_of(said: str) -> range:
    """Of "Mon-Fri", or of one day."""
    first, _, last = said.partition("-")
    starts = [day[:3] for day in DAYS]
    begin = starts.index(first[:3].capitalize())
    return range(begin, starts.index(last[:3].capitalize()) + 1 if last else begin + 1)


def row_of(rng: Random, view: View) -> tuple[str, dict[str, str], dict[str, str], Entry]:
    """A day that some row tells of, and what that row says: as it is said, and as it is printed."""
    one = rng.choice(view.listed)
    day = DAYS[rng.choice(days_of(one.thing.said))]
    said = {part.role: part.said for part in one.row.parts}
    return day, said, {part.role: part.text for part in one.row.parts}, one.row


def _fact(kind: str, question: str, answer: str, row: Entry) -> Fact:
    return Fact(kind, question, answer, evidence=(("the text", (row.label, *filter(None, (row.value,)))),))


def doors(rng: Random, view: View) -> Fact | None:
    """When they open or close on a day, which may be "closed"."""
    day, said, shown, row = row_of(rng, view)
    kind = rng.choice(("opens", "closes"))
    question = ask(rng, QUESTIONS[kind], {"x": day})
    return _fact("page value", question, shown[kind if kind in said else "detail"], row)


def hours(rng: Random, view: View) -> Fact | None:
    day, _, shown, row = row_of(rng, view)
    return _fact("page value", ask(rng, QUESTIONS["hours"], {"x": day}), shown["detail"], row)


def is_open(rng: Random, view: View) -> Fact | None:
    day, said, _, row = row_of(rng, view)
    kind = rng.choice(("is open", "is open", "is closed"))
    yes = ("opens" in said) == (kind == "is open")
    return _fact("page has", ask(rng, QUESTIONS[kind], {"x": day}), "yes" if yes else "no", row)


def closed(rng: Random, view: View) -> Fact | None:
    """On which day, where it is one."""
    rows = [one for one in view.listed if one.detail is not None and one.detail.said == "closed"]
    if len(rows) != 1 or len(days_of(rows[0].thing.said)) > 1:
        return None
    return _fact("page thing", ask(rng, QUESTIONS["closed"]), rows[0].thing.text, rows[0].row)


def open_at(rng: Random, view: View) -> Fact | None:
    """At a time of a day that is well within the hours, or well outside."""
    day, said, _, row = row_of(rng, view)
    if "opens" not in said:
        return None
    bare = said["opens"].isdigit()
    opens, closes = (number_in(said[role]) * (60 if bare else 1) for role in ("opens", "closes"))
    time = 60 * rng.randint(6, 23)
    if min(abs(time - opens), abs(time - closes)) < NEAR:
        return None
    like = "24" if bare or "m" not in said["opens"] else "12 only"
    question = ask(rng, QUESTIONS["open at"], {"x": day, "t": written(time, like)})
    return _fact("page has", question, "yes" if opens < time < closes else "no", row)


def now(rng: Random, view: View) -> Fact:
    return Fact("page cannot tell", ask(rng, QUESTIONS["now"]), CANNOT_TELL)


def not_listed(rng: Random, view: View) -> Fact | None:
    """A day of which nothing is said."""
    told = {day for one in view.listed for day in days_of(one.thing.said)}
    others = [day for at, day in enumerate(DAYS) if at not in told]
    if not others:
        return None
    question = ask(rng, QUESTIONS[rng.choice(("opens", "closes", "hours"))], {"x": rng.choice(others)})
    return Fact("page cannot tell", question, CANNOT_TELL)


HOURS: Mapping[Callable[[Random, View], Fact | None], float] = {
    doors: 6.0,
    hours: 1.2,
    is_open: 3.0,
    closed: 1.5,
    open_at: 1.2,
    now: 0.4,
    not_listed: 0.4,
}
