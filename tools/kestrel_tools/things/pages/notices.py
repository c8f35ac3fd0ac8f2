"""What pages say that are no tables: invitations, cards, tickets, posters, messages, signs. No torch."""

from collections.abc import Callable, Sequence
from random import Random

from kestrel_tools.things.lettering import MOST_LETTERS

from . import words
from .content import FORMS, Content, Draw, Told, clock, date, phone, prices
from .tables import TABLES
from .words import one, some

Parts = tuple[tuple[str, str], ...]
AT_ALL = 6  # lines of a page at most, beside its title


def named(
    rng: Random, role: str, labels: Sequence[str], plain: Sequence[str], labelled: bool, text: str
) -> Told:
    """A line that tells one thing: "When: Friday", or "on Friday"."""
    if labelled:
        return Told(rng.choice(labels), text, ((role, text),))
    return Told(rng.choice(plain).format(text), "", ((role, text),))


def short(draw: Callable[[], str]) -> str:
    """Drawn anew until it is no longer than a line."""
    while len(text := draw()) > MOST_LETTERS:
        pass
    return text


def field(rng: Random, role: str, labelled: bool) -> Told:
    """Of the role, with words that tell what it is."""
    number = rng.randint(1, 60)

    def line(labels: str, plain: str, text: str) -> Told:
        return named(rng, role, labels.split("|"), plain.split("|"), labelled, text)

    match role:
        case "day":
            text = rng.choice(words.DAYS) if rng.random() < 0.35 else date(rng, rng.randrange(FORMS))
            return line("when|date|day" if text not in words.DAYS else "when|day", "{}|{}|on {}", text)
        case "time":
            return line("time|at|start", "{}|at {}|{}", clock(rng, 9, 21, 1)[0])
        case "place":
            text = rng.choice(words.VENUES) if rng.random() < 0.75 else one(rng, words.STREETS)
            return line("where|place|at", "{}", text)
        case "address":
            return line("address", "{}", short(lambda: f"{rng.randint(1, 90)} {one(rng, words.STREETS)}"))
        case "town":
            return line("city|town", "{}", one(rng, words.TOWNS))
        case "phone":
            return line("phone|call|tel.", "{}|call {}|tel. {}", phone(rng, rng.randrange(FORMS)))
        case "price":
            return line(
                "price|entry|fee", "{}|entry {}|only {}", f"${rng.choice((5, 8, 10, 12, 15, number))}"
            )
        case "asking price":
            return named(rng, "price", ("price",), ("{}", "only {}"), labelled, f"${5 * rng.randint(1, 190)}")
        case "reward":
            return line("reward", "reward {}", f"${10 * rng.randint(1, 30)}")
        case "from" | "to":
            return line(role, f"{role} {{}}", one(rng, words.TOWNS))
        case "holder":
            return line(
                "name|passenger",
                "{}",
                short(lambda: f"{one(rng, words.PEOPLE)} {rng.choice(words.SURNAMES)}"),
            )
        case "gate":
            return line(
                "gate", "gate {}", f"{rng.choice('ABCDE')}{number}" if rng.random() < 0.7 else str(number)
            )
        case "flight":
            return line(
                "flight", "flight {}", f"{rng.choice('ABKLQU')}{rng.choice('AFHX')} {rng.randint(10, 999)}"
            )
        case "seat":
            seats = (str(number), f"{number}{rng.choice('ABCDEF')}", f"{rng.choice('ABCDEF')}{number}")
            return line("seat", "seat {}", rng.choice(seats))
        case "name":
            return line("name", "{}", one(rng, words.PEOPLE))
        case "bring":
            text = rng.choice(
                ("a cake", "snacks", "a friend", "a salad", "drinks", "a towel", "warm clothes")
            )
            return line("bring", "bring {}", text)
    most = {"room": 400, "floor": 12, "coach": 20, "platform": 24, "screen": 12}.get(role, 40)
    return line(role, f"{role} {{}}", str(rng.randint(1, most)))


def fields(rng: Random, roles: Sequence[str], labelled: bool) -> list[Told]:
    return [field(rng, role, labelled) for role in roles]


def chosen_roles(rng: Random, needed: Sequence[str], more: Sequence[str], most: int) -> list[str]:
    extra = rng.sample(more, min(len(more), max(0, rng.randint(1, max(1, most)) - len(needed))))
    return [*needed, *(role for role in more if role in extra)][:most]


def invitation(rng: Random, most: int) -> Content:
    name = one(rng, words.PEOPLE)
    age = str(rng.choice((*range(1, 19), 30, 40, 50, 60, 70, 80)))
    wedding = rng.random() < 0.2
    if wedding:
        pair = short(lambda: " & ".join(some(rng, words.PEOPLE, 2)))
        who = Told(pair, "", (("couple", pair),))
    else:
        forms: tuple[tuple[str, Parts], ...] = (
            (f"for {name}", (("name", name),)),
            (f"{name} turns {age}", (("name", name), ("age", age))),
            (f"{name} is {age}", (("name", name), ("age", age))),
            (f"with {name}", (("host", name),)),
            (f"from {name}", (("host", name),)),
        )
        text, parts = rng.choice(forms)
        who = Told(text, "", parts)
    birthday = "age" in dict(who.parts)
    titles: tuple[str, ...] = ("invitation", "you're invited", "party!", "come and join", "save the date")
    titles = ("wedding", "we marry!", *titles) if wedding else titles
    titles = ("birthday party", "birthday!", *titles) if birthday else titles
    more = [role for role in ("day", "time", "place", "phone", "bring") if role != "bring" or not wedding]
    roles = chosen_roles(rng, (), more, most - 1) or ["day"]
    rows = (who, *fields(rng, roles, rng.random() < 0.5))
    return Content("invitation", rng.choice(titles), rows[:most], ("cake", "gift", "balloon"))


def card(rng: Random, most: int) -> Content:
    name, sender = rng.sample(words.PEOPLE, 2)
    name = one(rng, words.PEOPLE) if rng.random() < 0.2 else name
    if rng.random() < 0.25:
        rows = [Told("to", name, (("name", name),)), Told("from", sender, (("sender", sender),))]
    else:
        to, by = rng.choice(("{}", "{}", "dear {}", "to {}", "for {}")), rng.choice(("from {}", "love, {}"))
        rows = [
            Told(to.format(name), "", (("name", name),)),
            Told(by.format(sender), "", (("sender", sender),)),
        ]
    rows = rows if rng.random() < 0.55 and most > 1 else rows[:1]
    title = rng.choice(words.CARDS)
    title = f"{title}!" if rng.random() < 0.4 and len(title) < 15 else title
    return Content("card", title, tuple(rows), ("cake", "gift", "balloon", "flower", "smiley"))


def name_tag(rng: Random, most: int) -> Content:
    name = one(rng, words.PEOPLE)
    name = f"{name} {rng.choice(words.SURNAMES)}" if rng.random() < 0.4 else name
    rows = [Told(name, "", (("wearer", name),))] if len(name) <= 15 else []
    title = rng.choice(("", "hello", "hi!", "welcome", "staff", "hello", "team"))
    if not rows or (rng.random() < 0.5 and most > 1 and title != "staff"):
        name = name.split()[0]
        rows = [Told(rng.choice(("my name is", "I am"))), Told(name, "", (("wearer", name),))]
        title = title or "hello"
    if rng.random() < 0.6 and len(rows) < most:
        job = one(rng, words.JOBS)
        rows.append(Told(job, "", (("job", job),)))
    return Content("name tag", title, tuple(rows))


def door_sign(rng: Random, most: int) -> Content:
    office = one(rng, words.OFFICES)
    surname = one(rng, words.SURNAMES)
    person = rng.choice(
        (f"Dr. {surname}", f"Mr. {surname}", f"Ms. {surname}", f"{rng.choice('ABEJKLMST')}. {surname}")
    )
    rows = [field(rng, "room", rng.random() < 0.2)]
    if rng.random() < 0.6:
        rows.append(Told(person, "", (("occupant", person),)))
        if rng.random() < 0.4:
            job = rng.choice(words.JOBS)
            rows.append(Told(job, "", (("job", job),)))
    if rng.random() < 0.3:
        rows = [*rows[1:], rows[0]]
    if rng.random() < 0.25:
        rows.append(field(rng, "floor", False))
    return Content("door sign", office if rng.random() < 0.6 else "", tuple(rows[:most]), ("door", "key"))


def ticket(rng: Random, most: int) -> Content:
    kind = rng.choice(tuple(words.TICKETS))
    needed, more = words.TICKETS[kind]
    rows = fields(rng, chosen_roles(rng, needed, more, most), rng.random() < 0.55)
    return Content("ticket", kind, tuple(rows), ("train", "bus", "airplane", "guitar"))


def message(rng: Random, most: int) -> Content:
    """Of a computer: what went wrong, or what it wants to know, and the buttons below."""
    sort = rng.choice(("error", "error", "dialog", "form"))
    rows: list[Told] = []
    if sort == "error":
        title = rng.choice(("error", "error", "warning", "oops!", "sorry", "problem", "attention"))
        text = rng.choice(words.ERRORS)
        rows.append(Told(text, "", (("message", text),)))
        if rng.random() < 0.35 and most > 2:
            code = str(rng.choice((404, 500, 403, 503, rng.randint(10, 999))))
            rows.append(Told(f"{rng.choice(('code', 'error code'))} {code}", "", (("code", code),)))
    elif sort == "dialog":
        title = rng.choice(words.DIALOGS)
    else:
        title = rng.choice(("welcome", "my account", "sign in", "new game", "survey", "step 1", "hello"))
    room = min(3 if sort == "form" else 2, most - len(rows))
    labels: Sequence[str] = ()
    if sort == "dialog":
        labels = rng.choice(words.ANSWERS)
    elif room > 0:
        labels = rng.sample(words.BUTTONS[sort], rng.randint(1 if sort == "error" else min(2, room), room))
    rows += [Told(label, "", (("button", label),)) for label in labels]
    return Content("error message" if sort == "error" else sort, title, tuple(rows))


def label(rng: Random, most: int) -> Content:
    grams = rng.choice(
        (f"{rng.choice((50, 75, 100, 125, 200, 250, 400, 500, 750))} g", f"{rng.randint(1, 5)} kg")
    )
    rows = [
        named(rng, "weight", ("net weight", "weight", "net"), ("{}", "net {}"), rng.random() < 0.4, grams)
    ]
    more = []
    if rng.random() < 0.5:
        [price] = prices(rng, 1, 1, 15)
        price = price if price.startswith("$") else f"${price}"
        more.append(named(rng, "price", ("price",), ("{}", "only {}"), rng.random() < 0.3, price))
    if rng.random() < 0.35:
        until = f"{rng.choice(words.MONTHS)[:3]} {rng.randint(2024, 2031)}"
        more.append(Told("best before", until, (("until", until),)))
    if rng.random() < 0.35:
        country = rng.choice(words.COUNTRIES)
        more.append(Told(f"made in {country}", "", (("origin", country),)))
    rng.shuffle(more)
    return Content("label", one(rng, words.PRODUCTS), tuple((rows + more)[:most]), ("food",))


def poster(rng: Random, most: int) -> Content:
    roles = chosen_roles(rng, ("day",), ("time", "place", "price", "phone"), most)
    rows = fields(rng, roles, rng.random() < 0.35)
    if "price" not in roles and len(rows) < most and rng.random() < 0.3:
        rows.append(Told(rng.choice(("free entry", "free!", "entry free")), "", (("free", "free"),)))
    return Content(
        "poster", one(rng, words.EVENTS), tuple(rows), ("guitar", "microphone", "trumpet", "dog", "balloon")
    )


def contact(rng: Random, most: int) -> Content:
    company = rng.random() < 0.5
    name = one(rng, words.SHOPS) if company else f"{one(rng, words.PEOPLE)} {rng.choice(words.SURNAMES)}"
    rows, labelled = [], rng.random() < 0.4
    if not company and rng.random() < 0.7:
        job = one(rng, words.JOBS)
        rows.append(Told(job, "", (("job", job),)))
    rows += fields(rng, chosen_roles(rng, ("phone",), ("address", "town"), most - len(rows)), labelled)
    if rng.random() < 0.4 and len(rows) < most:
        site = f"www.{name.lower().replace(' ', '').replace(chr(39), '')[:7]}.com"
        rows.append(Told(site, "", (("site", site),)))
    return Content("business card", name, tuple(rows), ("phone", "house", "envelope"))


def notice(rng: Random, most: int) -> Content:
    sort = rng.choice(("lost", "found", "for sale", "wanted"))
    pool = {"lost": words.PETS + words.LOST, "found": words.PETS + words.LOST}.get(sort, words.OFFERS)
    thing = rng.choice(pool)
    title, rows = sort, [Told(thing, "", (("object", thing),))]
    pet = sort == "lost" and thing in words.PETS
    more = {"lost": ("reward",), "for sale": ("asking price",)}.get(sort, ()) + (("name",) if pet else ())
    rows += fields(rng, [role for role in more if rng.random() < 0.6], rng.random() < 0.4 or pet)
    rows = [*rows[: most - 1], field(rng, "phone", rng.random() < 0.3)]
    return Content("notice", title, tuple(rows[:most]), (thing,))


def rules(rng: Random, most: int) -> Content:
    """Several, of which no two are about one action."""
    found: dict[str, words.Rule] = {}
    for rule in rng.sample(words.RULES, len(words.RULES)):
        if rule.action not in found:
            found[rule.action] = rule
    several = [*found.values()][: rng.randint(min(2, most), most)]
    rows = tuple(Told(rule.text, "", ((rule.says, rule.action),)) for rule in several)
    titles = ("rules", "pool rules", "house rules", "park rules", "our rules", "please note", "library rules")
    return Content("rules", rng.choice(titles), rows)


def warning(rng: Random, most: int) -> Content:
    title = rng.choice(("", "", "warning", "caution", "danger", "attention"))
    if rng.random() < 0.5:
        rule = rng.choice(words.RULES)
        kind = "sign" if rule.says == "yes" else "warning"
        return Content(kind, title * (rule.says == "no"), (Told(rule.text, "", ((rule.says, rule.action),)),))
    text = rng.choice(words.WARNINGS)
    return Content("warning", title, (Told(text, "", (("hazard", text),)),), ("dog", "bomb", "skull"))


def shop_sign(rng: Random, most: int) -> Content:
    state = rng.choice(
        ("open", "closed", "sold out", "out of order", "occupied", "vacant", "push", "pull", "closed")
    )
    rows = [Told(state, "", (("state", state),))]
    if state == "closed" and most > 1 and rng.random() < 0.6:
        time = clock(rng, 9, 18, 1)[0]
        rows.append(Told(f"back at {time}", "", (("back", time),)))
    where = {"sold out": ("", *words.EVENTS[:4]), "out of order": ("", "elevator", "toilet", "printer")}
    titles = where.get(state, ("", "", one(rng, words.SHOPS)) if state in ("open", "closed") else ("",))
    return Content("sign", rng.choice(titles), tuple(rows))


NOTICES: dict[Draw, float] = {
    invitation: 7,
    card: 6,
    name_tag: 4,
    door_sign: 5,
    ticket: 7,
    message: 7,
    label: 5,
    poster: 6,
    contact: 5,
    notice: 4,
    rules: 5,
    warning: 4,
    shop_sign: 3,
}
ALL: dict[Draw, float] = TABLES | NOTICES


def draw_content(rng: Random, most: int) -> Content:
    """Of any kind, with at most so many rows."""
    makers, shares = tuple(ALL), tuple(ALL.values())
    while True:
        [make] = rng.choices(makers, shares)
        content = make(rng, max(2, min(most, AT_ALL)))
        if content.fits and content.rows:
            return content
