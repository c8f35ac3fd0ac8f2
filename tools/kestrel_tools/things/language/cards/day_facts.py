"""What may be asked about days and hours with pictures: a plan, or the weather. No torch, no model."""

from collections.abc import Sequence
from random import Random

from kestrel_tools.things.cards.labels import DAYS, LONG_DAYS, PARTS_OF_DAY, WEATHER, number_in
from kestrel_tools.things.language.fact import CANNOT_TELL, Fact
from kestrel_tools.things.scene import Scene

from .print_there import Labelled, all_labels, alone, asked, yes_no

ABSENT = 0.06  # of the questions are about a day that is not shown
WHOLE = {day.lower(): whole for day, whole in zip(DAYS, LONG_DAYS, strict=True)}
SHORT = {whole.lower(): day for day, whole in zip(DAYS, LONG_DAYS, strict=True)}
PARTS = {"morning": "in the morning", "noon": "at noon", "evening": "in the evening", "night": "at night"}
MOST_LISTED = 4
CLEARLY = 1  # degrees, by which one differs from a bound
# Where a symbol of the second sort is shown, people differ on whether it is so too; and where they are asked
# for all days that are so.
DOUBTFUL = {"rainy": ("thunderstorm", "snowy"), "cloudy": ("rainy", "thunderstorm", "snowy")}
DOUBTFUL_AMONG = {"rainy": ("thunderstorm",)}
assert {part.lower() for part in PARTS_OF_DAY} == {*PARTS}


def at_time(rng: Random, text: str) -> tuple[str, str]:
    """ "on Tue" and "Tue"; the day may be written out, or shortened."""
    key = text.lower()
    if key in PARTS:
        return PARTS[key], f"the {key}" if key != "noon" else key
    if text[0].isdigit():
        return f"at {text}", text
    day = rng.choice((text, text, WHOLE.get(key, text), WHOLE.get(key, text), SHORT.get(key, text)))
    day = day.title() if day.isupper() and rng.random() < 0.5 else day
    day = day.lower() if rng.random() < 0.12 else day
    return f"on {day}", day


def _another_day(rng: Random, cards: Sequence[Labelled]) -> str | None:
    """A day of the week that is not shown, where days are."""
    shown = {SHORT.get(card.text.lower(), card.text).lower() for card in cards}
    if not shown <= {day.lower() for day in DAYS}:
        return None
    left = [whole for day, whole in zip(DAYS, LONG_DAYS, strict=True) if day.lower() not in shown]
    return rng.choice(left) if left else None


def plan(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """Of a calendar or a timetable."""
    if rng.random() < ABSENT:
        day = _another_day(rng, cards)
        return (
            None if day is None else Fact("cannot tell", asked(rng, "what on", f"on {day}", day), CANNOT_TELL)
        )
    card = rng.choice(cards)
    kind = rng.choice(("what on",) * 4 + ("when",) * 4 + ("is on", "is on", "after"))
    when = at_time(rng, card.text)
    if kind == "what on":
        if card.item is None and rng.random() < 0.4:
            return None
        return Fact("card by label", asked(rng, kind, *when, exact=True), card.name, evidence=card.evidence)
    words = alone(rng, scene, card)
    if words is None:
        return None
    the, many = words
    if kind == "when":
        is_day = card.text.lower() in WHOLE or card.text.lower() in SHORT
        question = asked(rng, "which day" if is_day else "which time", the, many=many)
        return Fact("card label", question, card.text, evidence=card.evidence)
    if kind == "is on":
        other = card if rng.random() < 0.5 else rng.choice(cards)
        question = asked(rng, kind, the, at_time(rng, other.text)[0], many=many, exact=True)
        return Fact("card says", question, yes_no(other is card), evidence=card.evidence)
    at = cards.index(card) + 1
    if at == len(cards) or cards[at].item is None:
        return None
    return Fact(
        "card neighbour", asked(rng, kind, the, many=many), cards[at].name, evidence=cards[at].evidence
    )


def forecast(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    if rng.random() < ABSENT:
        day = _another_day(rng, cards)
        kind = rng.choice(("weather on", "degrees on"))
        return None if day is None else Fact("cannot tell", asked(rng, kind, f"on {day}", day), CANNOT_TELL)
    if cards[0].second is not None and rng.random() < 0.5:
        return _degrees(rng, cards)
    weathers = [WEATHER.get(card.name, "") for card in cards]
    if not all(weathers):
        return None
    at = rng.randrange(len(cards))
    card, weather = cards[at], weathers[at]
    when = at_time(rng, card.text)
    kind = rng.choice(
        ("weather on",) * 4
        + ("symbol on", "which day", "which day", "which day", "is", "is", "number", "umbrella")
    )
    match kind:
        case "weather on":
            return Fact("card weather", asked(rng, kind, *when, exact=True), weather, evidence=card.evidence)
        case "symbol on":
            return Fact(
                "card by label", asked(rng, kind, *when, exact=True), card.name, evidence=card.evidence
            )
        case "umbrella" if weather in ("rainy", "sunny"):
            question = asked(rng, kind, *when, exact=True)
            return Fact("card weather", question, yes_no(weather == "rainy"), evidence=card.evidence)
    days = cards[0].text.lower() not in PARTS
    wanted = weather if rng.random() < 0.75 else rng.choice(("sunny", "rainy", "snowy", "cloudy"))
    if kind == "is":
        if wanted == "thunderstorm" or weather in DOUBTFUL.get(wanted, ()):
            return None
        question = asked(rng, f"is {wanted}", *when, exact=True)
        return Fact("card weather", question, yes_no(wanted == weather), evidence=card.evidence)
    found = [one for one, is_so in zip(cards, weathers, strict=True) if is_so == wanted]
    if any(one in DOUBTFUL_AMONG.get(wanted, ()) for one in weathers):
        return None
    if kind == "number" and wanted in ("sunny", "rainy") and days:
        return Fact("card count", asked(rng, f"number {wanted}"), str(len(found)))
    if kind != "which day" or not days or (not found and rng.random() < 0.5) or len(found) > 3:
        return None
    question = asked(rng, f"{wanted} day", "day")
    answer = ", ".join(one.text for one in found) or "none"
    return Fact("card label", question, answer, evidence=found[0].evidence if found else ())


def _degrees(rng: Random, cards: Sequence[Labelled]) -> Fact | None:
    values = [number_in(card.second.text) for card in cards if card.second is not None]
    assert len(values) == len(cards)
    at = rng.randrange(len(cards))
    card, when = cards[at], at_time(rng, cards[at].text)
    kind = rng.choice(
        ("degrees on",) * 4 + ("warmest", "warmest", "coldest", "coldest")
        + ("highest degrees", "lowest degrees", "warmer", "which warmer", "freezing")
    )  # fmt: skip
    match kind:
        case "degrees on":
            assert card.second is not None
            question = asked(rng, kind, *when, exact=True)
            return Fact("card label", question, card.second.text, evidence=card.evidence)
        case "warmer" | "which warmer":
            other = rng.choice([one for one in range(len(cards)) if one != at] or [at])
            if values[other] == values[at]:
                return None
            question = asked(rng, kind, when[0], at_time(rng, cards[other].text)[0], exact=True)
            warmer = at if values[at] > values[other] else other
            answer = yes_no(warmer == at) if kind == "warmer" else cards[warmer].text
            return Fact("card compare", question, answer, evidence=(*card.evidence, *cards[other].evidence))
        case "freezing":
            if abs(values[at]) < 1 or (values[at] > 0 and rng.random() < 0.6):
                return None
            question = asked(rng, kind, *when, exact=True)
            return Fact("card compare", question, yes_no(values[at] < 0), evidence=card.evidence)
    best = max(values) if kind in ("warmest", "highest degrees") else min(values)
    if values.count(best) > 1 or len(values) < 2 or cards[0].text.lower() in PARTS:
        return None
    card = cards[values.index(best)]
    assert card.second is not None
    question = asked(rng, kind, "day")
    answer = card.second.text if kind.endswith("degrees") else card.text
    return Fact("card extreme", question, answer, evidence=card.evidence)


def _are_days(cards: Sequence[Labelled]) -> bool:
    return all(card.text.lower() in WHOLE or card.text.lower() in SHORT for card in cards)


def _of_days(rng: Random, cards: Sequence[Labelled]) -> Fact | None:
    """Which days there are."""
    if not _are_days(cards) or len(cards) < 2:
        return None
    kind = rng.choice(("days", "number of days", "is shown", "is shown"))
    if kind == "days":
        return all_labels(rng, kind, cards)
    if kind == "number of days":
        return Fact("card count", asked(rng, kind), str(len(cards)))
    there = {WHOLE.get(card.text.lower(), card.text).lower() for card in cards}
    day = rng.choice(DAYS if rng.random() < 0.3 else LONG_DAYS)
    yes = WHOLE.get(day.lower(), day).lower() in there
    return Fact("card says", asked(rng, kind, day, exact=True), yes_no(yes))


def further_plan(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    kind = rng.choice(
        ("days", "free days", "free days", "is free", "is planned", "first", "last", "before", "day after")
    )
    if kind == "days":
        return _of_days(rng, cards)
    at = rng.randrange(len(cards))
    when = at_time(rng, cards[at].text)
    match kind:
        case "free days":
            free = [card.text for card in cards if card.item is None]
            if not _are_days(cards) or (not free and rng.random() < 0.8) or len(free) > MOST_LISTED:
                return None
            return Fact("card labels", asked(rng, kind), ", ".join(free) or "none")
        case "is free" | "is planned":
            if cards[at].item is not None and rng.random() < 0.6:
                return None
            yes = (cards[at].item is None) == (kind == "is free")
            return Fact(
                "card empty", asked(rng, kind, *when, exact=True), yes_no(yes), evidence=cards[at].evidence
            )
        case "first" | "last":
            end = cards[0 if kind == "first" else -1]
            if end.item is None or len(cards) < 2:
                return None
            return Fact("card cell", asked(rng, kind), end.name, evidence=end.evidence)
        case "before":
            words = alone(rng, scene, cards[at])
            if words is None or at == 0 or cards[at - 1].item is None:
                return None
            question, found = asked(rng, kind, words[0]), cards[at - 1]
        case _:
            if not _are_days(cards) or at + 1 == len(cards):
                return None
            question, found = asked(rng, kind, *when, exact=True), cards[at + 1]
    return Fact("card neighbour", question, found.name, evidence=found.evidence)


def further_forecast(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    chance = rng.random()
    if chance < 0.2:
        return _of_days(rng, cards)
    if cards[0].second is not None and chance < 0.6:
        return _further_degrees(rng, cards)
    weathers = [WEATHER.get(card.name, "") for card in cards]
    if not all(weathers) or len(cards) < 2:
        return None
    if rng.random() < 0.5:
        wanted = rng.choice(("rainy", "sunny", "snowy"))
        yes = wanted in weathers
        if not _are_days(cards) or (not yes and any(one in DOUBTFUL.get(wanted, ()) for one in weathers)):
            return None
        return Fact("card weather", asked(rng, f"ever {wanted}"), yes_no(yes))
    one, other = rng.sample(range(len(cards)), 2)
    alike = [(a, b) for a in range(len(cards)) for b in range(a) if cards[a].name == cards[b].name]
    one, other = rng.choice(alike) if alike and rng.random() < 0.5 else (one, other)
    if (weathers[one] == weathers[other]) != (cards[one].name == cards[other].name):
        return None  # a drop and an umbrella
    (on, day), (on_other, other_day) = (at_time(rng, cards[at].text) for at in (one, other))
    question = asked(rng, "same weather", on, on_other, day, other_day, exact=True)
    evidence = (*cards[one].evidence, *cards[other].evidence)
    return Fact("card weather", question, yes_no(weathers[one] == weathers[other]), evidence=evidence)


def _further_degrees(rng: Random, cards: Sequence[Labelled]) -> Fact | None:
    values = [number_in(card.second.text) for card in cards if card.second is not None]
    kind = rng.choice(
        ("degrees apart", "degrees apart", "days above", "days below", "is above", "is above", "temperatures")
    )
    if kind == "temperatures":
        return all_labels(rng, kind, cards, second=True)
    if kind == "degrees apart":
        if len(cards) < 2:
            return None
        one, other = sorted(rng.sample(range(len(cards)), 2), key=lambda at: -values[at])
        if not 0 <= values[other] < values[one]:
            return None
        (on, day), (on_other, other_day) = (at_time(rng, cards[at].text) for at in (one, other))
        question = asked(rng, kind, on, on_other, day, other_day, exact=True)
        return Fact(
            "sum",
            question,
            f"{values[one] - values[other]:.0f}",
            evidence=(*cards[one].evidence, *cards[other].evidence),
        )
    bound = rng.choice((10, 15, 20, 25, round(max(values)) - 3))
    if bound < 2 or any(abs(value - bound) < CLEARLY for value in values):
        return None
    said = f"{bound} degrees" if rng.random() < 0.6 else str(bound)
    if kind == "is above":
        at = rng.randrange(len(cards))
        question = asked(rng, kind, at_time(rng, cards[at].text)[0], said, exact=True)
        return Fact("card compare", question, yes_no(values[at] > bound), evidence=cards[at].evidence)
    found = [
        card.text
        for card, value in zip(cards, values, strict=True)
        if (value > bound) == (kind == "days above")
    ]
    if not _are_days(cards) or len(found) > MOST_LISTED or (not found and rng.random() < 0.6):
        return None
    return Fact("card labels", asked(rng, kind, said), ", ".join(found) or "none")
