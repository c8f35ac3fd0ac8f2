"""Pages of labels and values: menus, lists, opening hours, timetables, scores, receipts. No torch."""

from collections.abc import Callable, Sequence
from random import Random

from kestrel_tools.things.lettering import MOST_LETTERS
from kestrel_tools.things.names import plural

from . import words
from .content import (
    DETAIL,
    FORMS,
    THING,
    Content,
    Draw,
    Told,
    clock,
    count_of,
    date,
    phone,
    prices,
    table,
    title_of,
    written,
)
from .words import one, some


def menu(rng: Random, most: int) -> Content:
    drinks = rng.random() < 0.25
    count = count_of(rng, most)
    pool = words.DRINKS if drinks else words.DISHES
    things = some(rng, pool, count)
    if not drinks and rng.random() < 0.3:
        things[-1] = one(rng, words.DRINKS)
    titles: tuple[str, ...] = (
        "menu",
        "Menu",
        "our menu",
        "today's menu",
        "lunch",
        "lunch menu",
        "dinner",
        "breakfast",
        "specials",
    )
    titles = ("drinks", "menu", "bar", "hot drinks", "our drinks") if drinks else titles
    title = one(rng, words.RESTAURANTS) if rng.random() < 0.2 else title_of(rng, titles, 0.85)
    return table("menu", title, things, prices(rng, count, 1, 8 if drinks else 19), ("food",))


def price_list(rng: Random, most: int) -> Content:
    pool, titles, high = rng.choice(
        (
            (words.GOODS, ("prices", "price list", "sale", "special offers", "this week", "clearance"), 60),
            (words.SERVICES, ("prices", "price list", "our prices", "services"), 60),
            (words.ADMISSION, ("admission", "tickets", "entrance fee", "prices", "entry"), 20),
            (words.GROCERIES, ("market", "prices", "offers", "fresh today", "special offers"), 8),
        )
    )
    count = count_of(rng, most)
    return table(
        "price list",
        title_of(rng, titles),
        some(rng, pool, count),
        prices(rng, count, 1, high),
        ("food", "gift"),
    )


def shopping_list(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    food = rng.random() < 0.85
    goods = some(rng, words.GROCERIES if food else words.GOODS, count)
    amounts = [""] * count
    if food and rng.random() < 0.25:
        amounts = [rng.choice((*map(str, range(1, 7)), "12", "2 packs")) for _ in goods]
    titles = ("shopping list", "shopping", "to buy", "groceries", "we need", "supermarket", "shopping list")
    return table("shopping list", title_of(rng, titles), goods, amounts, ("food",))


def todo_list(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    tasks = some(rng, words.TASKS, count)
    titles = ("to do", "to-do list", "today", "tasks", "things to do", "my list", "weekend", *words.DAYS)
    times = clock(rng, 7, 20, count) if rng.random() < 0.15 else [""] * count
    return table("to-do list", title_of(rng, titles), tasks, times, ("pencil", "clock"))


def opening_hours(rng: Random, most: int) -> Content:
    like = rng.choice(("24", "24", "12 only", "12 only", "12", "bare"))
    short = rng.random() < 0.4
    days = [day[:3] if short else day for day in words.DAYS]
    if rng.random() < 0.45 and most >= 2:
        groups = rng.choice(
            (
                ((0, 4), (5, 5), (6, 6)),
                ((0, 4), (5, 6)),
                ((0, 5), (6, 6)),
                ((0, 3), (4, 4), (5, 6)),
                ((1, 5), (6, 6)),
            )
        )
        shown = [days[a] if a == b else f"{days[a][:3]}-{days[b][:3]}" for a, b in groups][:most]
    else:
        count = count_of(rng, most)
        start = rng.choice((0, 0, 0, 7 - count))
        shown = days[start : start + count]
    opens, closes = rng.randint(7, 11), rng.randint(15, 21)
    dash = rng.choice(("-", "-", " - ")) if like != "12" else "-"
    rows = []
    for at, day in enumerate(shown):
        if rng.random() < 0.4:
            opens, closes = rng.randint(7, 12), rng.randint(14, 22)
        if rng.random() < (0.6 if day.startswith("Sun") else 0.06) and at:
            rows.append(Told(day, "closed", ((THING, day), (DETAIL, "closed"))))
            continue
        half = rng.choice((0, 0, 30)) if like in ("24", "12") else 0
        times = (60 * opens + half, 60 * closes)
        first, last = (written(time, like) if like != "bare" else str(time // 60) for time in times)
        value = f"{first}{dash}{last}"
        value = value if len(value) <= MOST_LETTERS else f"{first}-{last}"
        rows.append(Told(day, value, ((THING, day), (DETAIL, value), ("opens", first), ("closes", last))))
    titles = (
        "opening hours",
        "hours",
        "we are open",
        "open",
        "opening times",
        "library",
        "museum",
        "office hours",
    )
    title = one(rng, words.SHOPS) if rng.random() < 0.15 else title_of(rng, titles, 0.85)
    return Content("opening hours", title, tuple(rows), ("clock", "door"))


def departures(rng: Random, most: int) -> Content:
    count, leaving = count_of(rng, most), rng.random() < 0.75
    towns = some(rng, words.TOWNS, count)
    times = clock(rng, 5, 22, count, rng.choice(("24", "24", "24", "12")))
    titles: tuple[str, ...] = (
        "departures",
        "departures",
        "trains",
        "buses",
        "flights",
        "ferries",
        "train times",
        "bus times",
    )
    titles = titles if leaving else ("arrivals",)
    kind, first = "departures" if leaving else "arrivals", rng.random() < 0.45
    title = title_of(rng, titles, 0.85 if leaving else 1.0)
    return table(kind, title, towns, times, ("train", "bus", "airplane"), first)


def platforms(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    sort = rng.choice(("platform", "gate", "track"))
    numbers = [str(number) for number in rng.sample(range(1, 25), count)]
    if sort == "gate" and rng.random() < 0.6:
        numbers = [f"{rng.choice('ABCD')}{number}" for number in numbers]
    titles = {
        "gate": ("flights", "gates", "departures"),
        "platform": ("platforms", "trains"),
        "track": ("tracks",),
    }
    # The word stands at every number, or in the title.
    told = rng.random() < 0.5
    details = [f"{sort} {number}" for number in numbers] if told else numbers
    title = title_of(rng, titles[sort], 0.6) if told else f"{sort}s"
    return table(f"{sort}s", title, some(rng, words.TOWNS, count), details, ("train", "airplane"))


def timetable(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    if rng.random() < 0.5:
        pool, titles = words.SUBJECTS, ("timetable", "my timetable", "class 4B", "school", *words.DAYS[:5])
    else:
        pool, titles = words.COURSES, ("courses", "timetable", "gym", "classes", "schedule")
    things = some(rng, pool, count)
    if rng.random() < 0.4:
        start = rng.randint(0, 7 - count)
        short = rng.random() < 0.4
        days = [day[:3] if short else day for day in words.DAYS[start : start + count]]
        title = title_of(rng, [title for title in titles if title not in words.DAYS])
        return table("week", title, things, days, ("book", "pencil"), rng.random() < 0.8)
    return table(
        "timetable", title_of(rng, titles), things, clock(rng, 8, 18, count), ("book",), rng.random() < 0.7
    )


def program(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    titles = ("program", "schedule", "agenda", "today", "our day", "festival", "wedding", "summer camp")
    times = clock(rng, 9, 21, count)
    return table(
        "timetable", title_of(rng, titles), some(rng, words.PROGRAM, count), times, (), rng.random() < 0.75
    )


def scoreboard(rng: Random, most: int) -> Content:
    teams = some(rng, words.TEAMS, 2) if rng.random() < 0.8 else some(rng, words.PEOPLE, 2)
    top = rng.choice((5, 5, 12, 30, 120))
    points = [str(rng.randint(top // 2 if top > 12 else 0, top)) for _ in teams]
    titles = ("final score", "score", "full time", "soccer", "handball", "tennis", "the final", "game 3")
    return table("scoreboard", title_of(rng, titles), teams, points, ("soccer ball", "basketball", "trophy"))


def results(rng: Random, most: int) -> Content:
    count = count_of(rng, most, 3)
    people = some(rng, rng.choice((words.PEOPLE, words.PEOPLE, words.TEAMS)), count)
    if rng.random() < 0.3:
        ranks = ["1st", "2nd", "3rd", "4th", "5th", "6th"][:count]
        ranks = ranks if rng.random() < 0.6 else [rank[:-2] for rank in ranks]
        titles: tuple[str, ...] = (
            "results",
            "winners",
            "race",
            "100 m",
            "swimming",
            "ski race",
            "spelling bee",
        )
        return table("ranking", title_of(rng, titles), people, ranks, ("trophy",), True)
    points = sorted(rng.sample(range(1, rng.choice((20, 60, 300))), count), reverse=True)
    if rng.random() < 0.4:
        rng.shuffle(points)
    unit = rng.choice(("", "", "", " pts", " points"))
    titles = ("points", "scores", "results", "high scores", "quiz night", "bowling", "darts", "leaderboard")
    title = title_of(rng, titles, 1.0 if not unit else 0.8)
    return table("results", title, people, [f"{number}{unit}" for number in points], ("trophy",))


def receipt(rng: Random, most: int) -> Content:
    count = count_of(rng, max(1, most - 1))
    pool = rng.choice((words.GROCERIES, words.GROCERIES, words.GOODS, words.DISHES, words.DRINKS))
    sign, cents = rng.choice(("", "", "$")), [rng.randint(20, 1500) for _ in range(count)]
    things = some(rng, pool, count)
    listed = table("receipt", "", things, [f"{sign}{amount / 100:.2f}" for amount in cents])
    total = f"{sign}{sum(cents) / 100:.2f}"
    word = rng.choice(("total", "total", "total", "sum", "to pay", "amount due"))
    rows = (*listed.rows, Told(word, total, (("total", total),)))
    title = (
        one(rng, words.SHOPS) if rng.random() < 0.6 else title_of(rng, ("receipt", "bill", "thank you"), 0.6)
    )
    return Content("receipt", title, rows)


def by_name(kind: str, titles: Sequence[str], detail: Callable[[Random, int], str], picture: str) -> Draw:
    def draw(rng: Random, most: int) -> Content:
        people, form = some(rng, words.PEOPLE, count_of(rng, most)), rng.randrange(FORMS)
        return table(kind, rng.choice(titles), people, [detail(rng, form) for _ in people], (picture,))

    return draw


def duties(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    people = some(rng, words.PEOPLE, count)
    if rng.random() < 0.4:
        start = rng.randint(0, 7 - count)
        days = words.DAYS[start : start + count]
        return table("shifts", rng.choice(("shifts", "on duty", "who cooks", "rota")), people, days, (), True)
    titles = ("duties", "chores", "jobs", "who does what", "helpers")
    return table("duties", rng.choice(titles), some(rng, words.CHORES, count), people)


def directory(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    floors = (
        [str(floor) for floor in range(count)] if rng.random() < 0.5 else [str(n + 1) for n in range(count)]
    )
    floors = [f"floor {floor}" for floor in floors] if rng.random() < 0.6 else floors
    title = rng.choice(
        ("floors", "floor guide", "directory") if "floor" not in floors[0] else ("", "directory")
    )
    title = title if "floor" in floors[0] else "floor guide"
    return table("floors", title, some(rng, words.DEPARTMENTS, count), floors, (), rng.random() < 0.7)


def rooms(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    things = some(rng, words.COURSES if rng.random() < 0.6 else words.SUBJECTS[:-2], count)
    numbers = [str(number) for number in rng.sample(range(1, 400), count)]
    told = rng.random() < 0.6
    title = title_of(rng, ("rooms", "room plan", "courses", "today"), 0.7) if told else "rooms"
    return table("rooms", title, things, [f"room {n}" for n in numbers] if told else numbers, ("door",))


def _amount(rng: Random, ingredient: str) -> str:
    if rng.random() < 0.25:
        return f"{rng.randint(2, 9)} {rng.choice(('cups', 'spoons'))}"
    return f"{25 * rng.randint(1, 30)} {'ml' if ingredient in words.LIQUIDS else 'g'}"


def amounts(rng: Random, most: int) -> Content:
    count = count_of(rng, most)
    if rng.random() < 0.35:
        grams = [f"{rng.randint(1, 30)} g" for _ in range(count)]
        titles: tuple[str, ...] = ("nutrition", "nutrition facts", "per 100 g", "contains")
        return table("nutrition", rng.choice(titles), some(rng, words.NUTRIENTS, count), grams)
    things = some(rng, words.INGREDIENTS, count)
    told = [_amount(rng, thing) for thing in things]
    titles = ("recipe", "ingredients", "pancakes", "bread", "grandma's cake", "you need", "soup for 4")
    return table("recipe", title_of(rng, titles), things, told, ("food",))


def measured(rng: Random, most: int) -> Content:
    """Road signs with distances, forecasts, stock and marks of a pupil."""
    count = count_of(rng, most)
    match rng.choice(("distances", "distances", "forecast", "stock", "grades")):
        case "distances":
            far = sorted(rng.sample(range(1, rng.choice((30, 300))), count))
            unit = rng.choice((" km", " km", " mi"))
            return table(
                "distances", "", some(rng, words.TOWNS, count), [f"{km}{unit}" for km in far], ("car",)
            )
        case "forecast":
            degrees = rng.sample(range(-6, 38), count)
            days, towns = rng.random() < 0.6, some(rng, words.TOWNS, count)
            start = rng.randint(0, 7 - count)
            things = list(words.DAYS[start : start + count]) if days else towns
            title = title_of(rng, ("weather", "forecast", "temperature", "the weather"), 0.9)
            kind = "forecast by day" if days else "forecast"
            return table(kind, title, things, [f"{one} C" for one in degrees], ("sun", "cloud", "snowflake"))
        case "stock":
            title = title_of(rng, ("stock", "in stock", "inventory", "storage", "left over"), 1.0)
            numbers = [str(rng.randint(2, 99)) for _ in range(count)]
            goods = [word if word.endswith("s") else plural(word) for word in some(rng, words.GOODS, count)]
            return table("stock", title, goods, numbers)
    marks = [rng.choice(("A", "B", "C", "D", "A-", "B+", "A+")) for _ in range(count)]
    titles = ("report card", "grades", "school report", "my grades")
    return table("grades", rng.choice(titles), some(rng, words.SUBJECTS[:17], count), marks, ("book",))


TABLES: dict[Draw, float] = {
    menu: 12,
    price_list: 7,
    shopping_list: 9,
    todo_list: 8,
    opening_hours: 8,
    departures: 7,
    platforms: 2,
    timetable: 5,
    program: 3,
    scoreboard: 4,
    results: 5,
    receipt: 7,
    by_name("phone list", ("phone numbers", "phone list", "contacts", "call"), phone, "phone"): 2,
    by_name("birthdays", ("birthdays", "birthday list", "class birthdays"), date, "cake"): 2,
    duties: 3,
    directory: 2.5,
    rooms: 2.5,
    amounts: 4,
    measured: 4,
}
