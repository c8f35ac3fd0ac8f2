"""Whether an invitation, a ticket or a sign says what somebody thinks, and what follows from it. No torch."""

from collections.abc import Mapping
from random import Random

from kestrel_tools.things.language.fact import Fact, yes_no
from kestrel_tools.things.language.pages.notice_facts import fields_of
from kestrel_tools.things.language.pages.questions import ask, read_table
from kestrel_tools.things.language.pages.view import View, number_in, shown
from kestrel_tools.things.names import with_article
from kestrel_tools.things.pages.notices import field
from kestrel_tools.things.pages.words import COUNTRIES, DAYS, JOBS, PEOPLE, TOWNS

from .line_words import CLAIMS
from .lines import LINE_MAKERS
from .values import Maker, changed

ASKED = read_table(CLAIMS)
POOLS = {"origin": COUNTRIES, "job": JOBS} | dict.fromkeys(("from", "to", "town"), TOWNS)
POOLS |= dict.fromkeys(("name", "host", "sender", "wearer"), PEOPLE)
# What a page may give: it has none where nothing on it plays one of these parts, or looks as if it did.
GIVEN = {"phone": ("phone",), "time": ("time", "back"), "day": ("day", "until"), "price": ("price", "reward")}
GIVEN_ON = ("invitation", "poster", "ticket", "business card", "notice", "label")


def _other(rng: Random, view: View, role: str, said: str) -> str:
    """A value that this line might have, and has not."""
    printed = " ".join(line.text.lower() for line in view.scene.lines)
    if role in POOLS:
        word = rng.choice(POOLS[role])
        return "" if word.lower() in printed else word
    if role == "day":
        if said in DAYS:
            return rng.choice([day for day in DAYS if day != said])
        word = field(rng, role, True).value
        month = {one[:3] for one in word.split()} & {one[:3] for one in said.split()}
        return "" if month or word in DAYS else word
    if role in ("time", "back"):
        word = field(rng, "time", True).value
        return "" if number_in(word) == number_in(said) else word
    return changed(rng, said)


def claim(rng: Random, view: View) -> Fact | None:
    """Whether the party is on Friday, or the seat is 12A."""
    roles = [role for role in view.roles if role in ASKED["claims"]]
    if not roles:
        return None
    role = rng.choice(roles)
    part, yes = view.part(role), rng.random() < 0.5
    named = part.said if part is not None and yes else _other(rng, view, role, part.said) if part else ""
    if part is None or not named:
        return None
    templates = ASKED["claims"].get(f"{view.kind}/{role}") or ASKED["claims"][role]
    row = view.roles[role][0][1]
    question = ask(rng, templates, fields_of(view) | {"c": named, "an": with_article(named)}, exact=True)
    return Fact("page claim", question, yes_no(yes), evidence=shown(row.label, row.value))


def given(rng: Random, view: View) -> Fact | None:
    """Whether it tells a phone number, a time, a day or a price at all."""
    if view.kind not in GIVEN_ON:
        return None
    told = [role for role in GIVEN if role in view.roles]
    role = rng.choice(told if told and rng.random() < 0.4 else tuple(GIVEN))
    found = [view.roles[other][0][1] for other in GIVEN[role] if other in view.roles]
    if (found and role not in view.roles) or (role == "price" and "free" in view.roles):
        return None
    lines = shown(found[0].label, found[0].value) if found else ()
    return Fact("page given", ask(rng, ASKED["given"][role]), yes_no(bool(found)), evidence=lines)


def button_at(rng: Random, view: View) -> Fact | None:
    """Of two buttons, the one on the left or on top."""
    found = view.roles.get("button", ())
    if len(found) != 2:
        return None
    at = rng.randrange(2)
    kind = (("left", "right") if not view.in_order else ("top", "bottom"))[at]
    part, row = found[at]
    return Fact("page role", ask(rng, ASKED["buttons"][kind]), part.text, evidence=shown(row.label))


def free(rng: Random, view: View) -> Fact | None:
    """Whether an event costs anything."""
    if view.kind != "poster" or not {"free", "price"} & {*view.roles}:
        return None
    kind = rng.choice(("free", "pay"))
    yes = ("free" in view.roles) == (kind == "free")
    question = ask(rng, ASKED["free"][kind], fields_of(view))
    return Fact("page rule", question, yes_no(yes))


def action(rng: Random, view: View) -> Fact | None:
    """What a rule means for somebody who does not use its words."""
    rows = [(part, row) for says in ("no", "yes", "must") for part, row in view.roles.get(says, ())]
    if not rows:
        return None
    part, row = rng.choice(rows)
    against = ASKED["actions"].get(f"not {part.said}", ())
    templates = against or ASKED["actions"].get(part.said, ())
    if not templates:
        return None
    yes = part.role != "no" and not against
    return Fact("page rule", ask(rng, templates), yes_no(yes), evidence=shown(row.label))


MORE_NOTICES: Mapping[Maker, float] = {
    **LINE_MAKERS, claim: 3.0, given: 1.0, button_at: 3.0, free: 1.5, action: 2.0,
}  # fmt: skip
