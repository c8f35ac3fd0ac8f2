"""What may be asked about invitations, cards, tickets, messages and signs, and the true answers. No torch."""

from collections.abc import Callable, Mapping
from random import Random

from kestrel_tools.things.language.fact import CANNOT_TELL, ORDINALS, Fact
from kestrel_tools.things.pages.content import Entry
from kestrel_tools.things.pages.words import BUTTONS, RULES

from .questions import ASKED, ask
from .view import View, shown

Maker = Callable[[Random, View], Fact | None]

ROLES = ASKED["roles"]
# What people expect of a page: it may be asked for, and cannot be told where the page has none of these.
EXPECTED: dict[str, tuple[tuple[str, ...], ...]] = {
    "invitation": (("phone",), ("place", "address"), ("time",), ("day",), ("bring",)),
    "poster": (("phone",), ("price", "free"), ("place", "address"), ("time",)),
    "ticket": (("gate",), ("platform",), ("row",), ("price",), ("time",), ("day",)),
    "business card": (("address", "town"), ("site",)),
    "label": (("price",), ("until",), ("origin",)),
    "name tag": (("job",),),
    "door sign": (("floor",), ("occupant",)),
    "error message": (("code",),),
}
TITLES = {
    "poster": "event",
    "label": "product",
    "business card": "firm",
    "card": "occasion",
    "dialog": "asks",
}
PAGES = {"invitation": "invitation", "card": "card", "ticket": "ticket", "poster": "poster", "label": "label"}
ANSWERED = ("no", "yes", "must", "state", "button", "free", "thing", "detail")  # have makers of their own
# What somebody wants who presses a button; all others on the page must be none of the same.
WISHES = {
    "yes": "agree", "no": "refuse",
    "cancel": "stop it", "retry": "try again", "try again": "try once more", "close": "close it",
    "help": "get help", "restart": "restart it", "send report": "report it", "log in": "log in",
    "sign up": "get a new account", "next": "go on", "back": "go back", "submit": "send it off",
    "start": "begin", "skip": "leave this out", "save": "save it", "send": "send it", "play": "play",
    "settings": "change the settings", "ignore": "ignore it", "later": "do it later",
    "not now": "do it another time",
}  # fmt: skip
ALIKE = (
    {"cancel", "close", "back", "no", "not now", "later", "ignore", "skip"},
    {"retry", "try again", "restart", "start"},
    {"submit", "send", "save", "next", "OK", "send report"},
    {"close", "ignore", "OK"},
    {"next", "skip", "submit"},
    {"yes", "OK"},
    {"start", "play", "next", "OK"},
)
# Whoever reads of the one thinks that he knows of the other too.
RELATED = (
    {"be quiet", "play loud music", "use my phone", "switch off my phone", "take pictures", "use the flash"},
    {"swim", "dive", "fish", "take a shower"},
    {"eat", "drink"},
    {"ride my bike", "skate", "park", "drive slowly", "wear a helmet", "run"},
    {"smoke", "make a fire", "camp"},
    {"bring my dog", "feed the animals", "touch it", "climb"},
)
STATES: dict[str, dict[str, str]] = {
    "open": {"open": "yes", "closed": "no", "open or closed": "open"},
    "closed": {"open": "no", "closed": "yes", "open or closed": "closed"},
    "push": {"push or pull": "push", "must push": "yes", "must pull": "no"},
    "pull": {"push or pull": "pull", "must push": "no", "must pull": "yes"},
    "occupied": {"vacant": "no", "taken": "yes"},
    "vacant": {"vacant": "yes", "taken": "no"},
    "out of order": {"works": "no", "broken": "yes"},
    "sold out": {"tickets left": "no", "sold out": "yes"},
}


def _event(view: View) -> str:
    """What takes place, or what is in the package."""
    if view.kind in ("poster", "label"):
        return view.title.lower()
    return "wedding" if view.part("couple") else "party" if view.kind == "invitation" else "event"


def fields_of(view: View) -> dict[str, str]:
    who = view.part("name")
    named = who.said if who is not None else "the birthday child"
    return {"p": PAGES.get(view.kind, "card"), "e": _event(view), "who": named}


def _templates(rng: Random, view: View, role: str) -> tuple[str, ...]:
    if role == "couple" and not any(word in view.title.lower() for word in ("wedding", "marry")):
        return ROLES["names"]
    if role == "name":
        birthday = view.part("age") is not None or "birthday" in view.title.lower()
        if birthday and rng.random() < 0.6:
            return ROLES["birthday"]
    sort = view.title.lower() if role == "object" else view.kind
    templates = ROLES.get(f"{sort}/{role}") or ROLES.get(role, ())
    # Some words fit two lines of a page: two names, or a day and a time.
    doubtful = ""
    if role == "name" and "sender" in view.roles:
        doubtful = " name "
    elif role in ("day", "time") and "day" in view.roles and "time" in view.roles:
        doubtful = "When "
    return tuple(template for template in templates if not doubtful or doubtful not in template)


def told(rng: Random, view: View) -> Fact | None:
    """What one of its lines tells."""
    roles = [role for role in view.roles if role not in ANSWERED]
    if not roles:
        return None
    role = rng.choice(roles)
    templates, part = _templates(rng, view, role), view.part(role)
    if part is None or not templates:
        return None
    row = view.roles[role][0][1]
    question = ask(rng, templates, fields_of(view))
    return Fact("page role", question, part.text, evidence=shown(row.label, row.value))


def headed(rng: Random, view: View) -> Fact | None:
    """What its title tells: the event, the product, the wish."""
    role = TITLES.get(view.kind)
    if role is None or view.page.title is None:
        return None
    question = ask(rng, ROLES[role], fields_of(view))
    return Fact("page role", question, view.title, evidence=shown(view.page.title))


def free(rng: Random, view: View) -> Fact | None:
    part = view.part("free")
    if part is None:
        return None
    row = view.roles["free"][0][1]
    question = ask(rng, ROLES["price"], fields_of(view))
    return Fact("page role", question, part.text, evidence=shown(row.label))


def not_told(rng: Random, view: View) -> Fact | None:
    """What a page of the kind could tell, and this one does not."""
    expected = EXPECTED.get(view.kind)
    if expected is None:
        return None
    roles = rng.choice(expected)
    if any(role in view.roles for role in roles):
        return None
    question = ask(rng, _templates(rng, view, roles[0]), fields_of(view))
    return Fact("page cannot tell", question, CANNOT_TELL)


def buttons(rng: Random, view: View) -> Fact | None:
    found = view.roles.get("button")
    if not found:
        return None
    texts, lines = [part.text for part, _ in found], tuple(row.label for _, row in found)
    chance = rng.random()
    if chance < 0.4:
        kind = "button" if len(found) == 1 else "buttons"
        return Fact("page role", ask(rng, ROLES[kind]), ", ".join(texts), evidence=shown(*lines))
    if chance < 0.5:
        question = ask(rng, ROLES["number of buttons"])
        return Fact("page count", question, str(len(found)), evidence=shown(*lines))
    said = [part.said for part, _ in found]
    at = rng.randrange(len(found))
    if chance < 0.7:
        known = [word for words in BUTTONS.values() for word in words if word not in said]
        yes = rng.random() < 0.5
        question = ask(rng, ROLES["has button"], {"x": texts[at] if yes else rng.choice(known)}, exact=True)
        return Fact("page has", question, "yes" if yes else "no", evidence=shown(lines[at]) if yes else ())
    wish = WISHES.get(said[at])
    others = {*said} - {said[at]}
    if wish is None or any(said[at] in group and others & group for group in ALIKE):
        return None
    return Fact("page role", ask(rng, ROLES["press"], {"x": wish}), texts[at], evidence=shown(lines[at]))


def rules(rng: Random, view: View) -> Fact | None:
    """What may be done, and what must be."""
    rows = [(part, row) for says in ("no", "yes", "must") for part, row in view.roles.get(says, ())]
    if not rows:
        return None
    chance = rng.random()
    if chance < 0.12:
        return _another(rng, view)
    if chance < 0.35 and view.kind == "rules":
        return _nth_rule(rng, view)
    if chance < 0.5:
        return _forbidden(rng, view)
    part, row = rng.choice(rows)
    kind = "must" if part.role == "must" else rng.choice(("may", "may", "may", "may not"))
    yes = kind == "must" or (part.role == "yes") == (kind == "may")
    question = ask(rng, ROLES[kind], {"x": part.said})
    return Fact("page rule", question, "yes" if yes else "no", evidence=shown(row.label))


def _another(rng: Random, view: View) -> Fact | None:
    """What the rules say nothing about."""
    actions = {part.said for says in ("no", "yes", "must") for part, _ in view.roles.get(says, ())}
    other = rng.choice(RULES)
    if "go in" in actions or other.action in actions or other.says == "must" or other.action == "go in":
        return None
    if any(other.action in group and actions & group for group in RELATED):
        return None
    return Fact("page cannot tell", ask(rng, ROLES["may"], {"x": other.action}), CANNOT_TELL)


def _nth_rule(rng: Random, view: View) -> Fact:
    rows = view.page.rows
    if rng.random() < 0.4:
        question = ask(rng, ROLES["number of rules"])
        return Fact("page count", question, str(len(rows)), evidence=shown(*(row.label for row in rows)))
    at = rng.randrange(len(rows))
    word = "last" if at == len(rows) - 1 and rng.random() < 0.5 else ORDINALS[at]
    question = ask(rng, ROLES["nth rule"], {"k": word, "j": str(at + 1)})
    return Fact("page nth", question, rows[at].label.text, evidence=shown(rows[at].label))


def _forbidden(rng: Random, view: View) -> Fact | None:
    """Smoking, where it says "No smoking"."""
    found: list[Entry] = [row for _, row in view.roles.get("no", ())]
    if not found or not all(row.label.text.lower().startswith("no ") for row in found):
        return None
    answer = ", ".join(row.label.text[3:] for row in found)
    return Fact(
        "page rule", ask(rng, ROLES["forbidden"]), answer, evidence=shown(*(row.label for row in found))
    )


def state(rng: Random, view: View) -> Fact | None:
    """Open or closed, push or pull."""
    part = view.part("state")
    if part is None:
        return None
    kind, answer = rng.choice(tuple(STATES[part.said].items()))
    row = view.roles["state"][0][1]
    return Fact("page rule", ask(rng, ROLES[kind]), answer, evidence=shown(row.label))


NOTICES: Mapping[Maker, float] = {
    told: 8.0,
    headed: 1.5,
    free: 1.0,
    not_told: 0.7,
    buttons: 6.0,
    rules: 6.0,
    state: 6.0,
}
