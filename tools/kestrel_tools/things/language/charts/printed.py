"""What may be asked about the print of a chart, its colours and looks; what it does not tell. No torch."""

from difflib import SequenceMatcher
from random import Random

from kestrel_tools.scenes.world import COLOUR_NAMES
from kestrel_tools.things.charts.subjects import ALL_TITLES, all_labels_of, any_topic_of
from kestrel_tools.things.charts.topics import spoken
from kestrel_tools.things.language.fact import CANNOT_TELL, Fact, chart_caption
from kestrel_tools.things.lettering import KNOWN
from kestrel_tools.things.names import plural

from .more import Maker, fact, put, yes
from .view import View
from .words import OTHERWISE

COUNTED_OFF = ("quarter", "week", "game", "round", "class")  # Q3 is the third, wherever it stands
NO_TITLE = "It has no title."
SLIP = 0.6  # how alike two words are that may be one
# Clearly another topic than all others of these, for questions whether it is about one.
ELSEWHERE = (
    "Rain", "Votes", "Temperature", "Books read", "Prices", "Snow", "Weight", "Sales", "Steps", "Fish caught",
    "Accidents", "Hours slept", "Age", "Trees planted",
)  # fmt: skip
# Nobody takes a chart of one for a chart of the other.
OTHER_FAMILIES: dict[str, tuple[str, ...]] = {
    "day": ("month", "year"), "month": ("day", "year"), "year": ("month", "day"), "week": ("month", "year"),
    "quarter": ("day", "month"), "season": ("day", "year"), "hour": ("month", "year"),
    "person": ("city", "month"), "team": ("city", "month"), "city": ("person", "month"),
    "country": ("person", "day"), "fruit": ("animal", "sport"), "vegetable": ("animal", "drink"),
    "animal": ("fruit", "vehicle"), "drink": ("animal", "sport"), "sport": ("country", "animal"),
    "vehicle": ("animal", "fruit"), "color": ("animal", "day"), "flower": ("animal", "vehicle"),
    "instrument": ("sport", "animal"), "subject": ("sport", "month"), "decade": ("day", "person"),
    "movie": ("sport", "day"), "pet": ("fruit", "month"),
}  # fmt: skip
OTHER_UNITS = {
    "mm": "inches", "cm": "meters", "kg": "pounds", "km/h": "mph", "dollars": "euros", "euros": "dollars",
    "km": "miles", "min": "hours", "minutes": "hours", "hours": "minutes", "liters": "gallons",
}  # fmt: skip
UNSAID = {
    "Weight": ("kilos", "pounds"), "Speed": ("km/h", "mph"), "Price": ("dollars", "euros"),
    "Profit": ("dollars", "euros"), "Temperature": ("Celsius", "Fahrenheit"),
}  # fmt: skip


def title(rng: Random, view: View) -> Fact | None:
    chance = rng.random()
    if chance < 0.12:
        return fact("title", put(rng, view, "has title"), yes(bool(view.title)), view)
    if not view.title:
        return fact("title", put(rng, view, "title"), NO_TITLE, view)
    if chance < 0.24:
        true = rng.random() < 0.5
        wrong = rng.choice(ALL_TITLES)
        if not true and _alike(wrong, view.title):
            return None
        words = view.title if true else wrong
        question = put(rng, view, "is title", x=f'"{words}"' if rng.random() < 0.3 else words)
        return fact("title", question, yes(true), view)
    if chance < 0.34 and view.subtitle:
        return fact("title", put(rng, view, "subtitle"), view.subtitle, view)
    kind = "title" if rng.random() < 0.6 else "topic"
    return fact("title", put(rng, view, kind), view.title, view)


def about(rng: Random, view: View) -> Fact | None:
    """Whether it is about something that its title names."""
    found = any_topic_of(view.title) if view.title else None
    wrong = [other for other in ELSEWHERE if not _alike(other, view.title)]
    if found is None:
        return None
    other, chance = rng.choice(wrong).lower(), rng.random()
    name = spoken(view.title)
    if chance < 0.3:
        x, y = (name, other) if rng.random() < 0.5 else (other, name)
        return fact("title", put(rng, view, "about or", x=x, y=y), view.title, view)
    true = chance < 0.65
    return fact("title", put(rng, view, "about", x=name if true else other), yes(true), view)


def _alike(one: str, other: str) -> bool:
    """Whether two titles may mean the same: of one topic, or with a word in common."""
    topics = [any_topic_of(name) for name in (one, other)]
    if topics[0] and topics[1]:
        nouns = [topic[1].amount for topic in topics if topic]
        if topics[0][1] is topics[1][1] or (nouns[0] == nouns[1] and nouns[0] not in ("", "many")):
            return True
    words = [{word.rstrip("s") for word in spoken(name).split()} for name in (one, other)]
    return bool(words[0] & words[1])


def unit(rng: Random, view: View) -> Fact | None:
    if view.unit:
        other = OTHER_UNITS.get(view.unit.lower())
        if other and rng.random() < 0.35:
            x, y = (view.unit, other) if rng.random() < 0.5 else (other, view.unit)
            return fact("unit", put(rng, view, "unit or", x=x, y=y), view.unit, view)
        return fact("unit", put(rng, view, "unit"), view.unit, view)
    topic = view.subject.topic
    pair = UNSAID.get(topic.titles[0]) if topic is not None else None
    if pair is None:
        return None
    question = put(rng, view, "unit or", x=pair[0], y=pair[1])
    return None if question is None else Fact("cannot tell", question, CANNOT_TELL)


def axis(rng: Random, view: View) -> Fact | None:
    edges, side = (("bottom",), "x") if view.is_flat else (("left", "left side", "side"), "y")
    words = {"edge": rng.choice(edges), "side": side}
    if view.axis_name and rng.random() < 0.3:
        return fact("axis", put(rng, view, "axis name"), view.axis_name, view)
    if not view.ticks or rng.random() < 0.15:
        return fact("axis", put(rng, view, "has axis", **words), yes(bool(view.ticks)), view)
    kind = rng.choice(("axis end", "axis end", "axis end", "axis start", "axis step"))
    first, second, *_ = view.ticks
    if kind == "axis step" and len(view.ticks) < 3:
        return None
    answer = {"axis end": view.ticks[-1], "axis start": first, "axis step": second - first}[kind]
    return fact("axis", put(rng, view, kind, **words), str(answer), view)


def labels(rng: Random, view: View) -> Fact | None:
    if view.subject.family == "color":  # those of the bars may be meant
        return None
    return fact("labels", put(rng, view, "labels"), ", ".join(view.labels), view)


def number_of(rng: Random, view: View) -> Fact | None:
    family = view.subject.family
    if family in ("color", "hour") or (
        family and plural(family) == view.subject.noun
    ):  # how many answers there are
        return None
    return fact("number of", put(rng, view, "number of"), str(len(view.labels)), view)


def family(rng: Random, view: View) -> Fact | None:
    """Whether these are days or months."""
    others = OTHER_FAMILIES.get(view.subject.family)
    if others is None:
        return None
    pair = [view.subject.family, rng.choice(others)]
    rng.shuffle(pair)
    words = {"x": plural(pair[0]), "y": plural(pair[1])}
    return fact("labels", put(rng, view, "family or", **words), plural(view.subject.family), view)


def _spelled_alike(one: str, other: str) -> bool:
    """Whether the one may be the other with a slip."""
    return one in other or SequenceMatcher(None, one, other).ratio() > SLIP


def _cased_as(label: str, word: str) -> str:
    return word.upper() if label.isupper() else word if label.islower() else word.capitalize()


def absent(rng: Random, view: View) -> str | None:
    """A label of the same sort that the chart does not show, nor under another name."""
    shown = {label.lower() for label in view.labels}
    if view.subject.group == "none":
        word, printed = rng.choice(KNOWN), " ".join((*shown, view.title.lower()))
        if any(label in word or _spelled_alike(word, label) for label in (*shown, *printed.split())):
            return None
        return _cased_as(view.labels[0], word)
    known_lists = all_labels_of(view.subject.family)
    lists = [known for known in known_lists if not shown.isdisjoint(map(str.lower, known))]
    shown |= {word.lower() for label in view.labels for word in OTHERWISE.get(label.title(), ())}
    others = [label for known in lists for label in known if label.lower() not in shown]
    return rng.choice(others) if others else None


def has(rng: Random, view: View) -> Fact | None:
    true = rng.random() < 0.5
    label = rng.choice(view.labels) if true else absent(rng, view)
    return None if label is None else fact("has", put(rng, view, "has", label), yes(true), view)


def missing(rng: Random, view: View) -> Fact | None:
    """The value of what the chart does not show."""
    label = absent(rng, view)
    if label is None:
        return None
    question = put(rng, view, "value of", label)
    return None if question is None else Fact("chart missing", question, CANNOT_TELL)


def nth(rng: Random, view: View) -> Fact | None:
    """The value or the label of the first, the last, the middle one."""
    count = len(view.labels)
    at = rng.choice((0, 0, count - 1, count - 1, min(1, count - 1), min(2, count - 1), count // 2))
    names = [("first", "second", "third")[at]] if at < 3 else []
    if at == 0:
        names += ["topmost"] if view.is_flat else ["leftmost", "first"]
    if at == count - 1:
        names = ["last", "last", "bottom" if view.is_flat else "rightmost"]
    if count % 2 and at == count // 2 and count > 2:
        names = ["middle"]
    if not names:
        return None
    pos = rng.choice(names)
    words = {"pos": pos}
    counted = view.subject.family in COUNTED_OFF or view.labels[0].lower().startswith("day ")
    if pos in ("first", "second", "third", "last") and not counted:
        words["pos_only"] = pos
    if pos in ("first", "last"):
        words["start"] = rng.choice(("start", "begin") if pos == "first" else ("end", "stop"))
    if rng.random() < 0.55 and view.readable(at):
        return fact("value", put(rng, view, "nth value", **words), str(view.values[at]), view, at)
    return fact("label of", put(rng, view, "nth label", **words), view.labels[at], view, at)


def colours(rng: Random, view: View) -> Fact | None:
    """Bars by their colours, where each has one; whether all are alike."""
    names, count = view.chart.colours, len(view.labels)
    if not names or any(label.lower() in COLOUR_NAMES for label in view.labels):
        return None
    other = rng.choice([name for name in COLOUR_NAMES if name not in names])
    if view.is_line:
        true = rng.random() < 0.5
        return fact("colour", put(rng, view, "line colour", x=names[0] if true else other), yes(true), view)
    if len(names) == 1 or rng.random() < 0.15:
        return fact("colour", put(rng, view, "same colour"), yes(len({*names}) == 1), view)
    at = rng.randrange(count)
    name, label = names[at], view.labels[at]
    kind = rng.choice(("red value", "red value", "red label", "red label", "best", "is red", "many", "odd"))
    odd = [at for at, one in enumerate(names) if names.count(one) == 1]
    match kind:
        case "red value" if names.count(name) == 1 and view.readable(at):
            return fact("value", put(rng, view, "red value", x=name), str(view.values[at]), view, at)
        case "red label" if names.count(name) == 1:
            return fact("colour", put(rng, view, "red label", x=name), label, view, at)
        case "best":
            low = rng.random() < 0.4
            best = view.order[-1 if low else 0]
            question = put(rng, view, "colour of worst" if low else "colour of best")
            return fact("colour", question, names[best], view, best)
        case "is red":
            true = rng.random() < 0.5
            wrong = rng.choice([other, *(one for one in names if one != name)])
            question = put(rng, view, kind, label, x=name if true else wrong)
            return fact("colour", question, yes(true), view, at)
        case "many" if count > 2:
            return fact("colour", put(rng, view, "number of colours"), str(len({*names})), view)
        case "odd" if len(odd) == 1 and count > 2:
            return fact("colour", put(rng, view, "other colour"), view.labels[odd[0]], view, odd[0])
    return None


def looks(rng: Random, view: View) -> Fact | None:
    """Bars or a line, upright or lying, with their numbers or without."""
    kind = rng.choice(("lies", "is flat", "bars or line", "has numbers"))
    if kind == "bars or line":
        return fact("kind", put(rng, view, kind), "a line" if view.is_line else "bars", view)
    if view.is_line:
        return None
    if kind == "lies":
        return fact("kind", put(rng, view, kind), "horizontal" if view.is_flat else "vertical", view)
    if kind == "is flat":
        return fact("kind", put(rng, view, kind), yes(view.is_flat), view)
    return fact("kind", put(rng, view, kind), yes(view.printed), view)


def everything(rng: Random, view: View) -> Fact | None:
    """All values, or all labels with their values, or the whole in words."""
    chance = rng.random()
    printed = view.printed and not view.has_axis and not any(map(str.isdigit, view.labels))
    if chance < 0.35:
        numbers = ", ".join(map(str, view.values))
        return fact("values", put(rng, view, "all values"), numbers, view) if printed else None
    if chance < 0.65:
        pairs = ", ".join(f"{label} {value}" for label, value in zip(view.labels, view.values, strict=True))
        return fact("values", put(rng, view, "pairs"), pairs, view) if view.printed else None
    return fact("describe", put(rng, view, "described"), chart_caption(view.scene, "normal"), view)


def neighbour(rng: Random, view: View) -> Fact | None:
    """What comes right after one, or before it."""
    at, onward = rng.randrange(len(view.labels)), rng.random() < 0.65
    other = at + 1 if onward else at - 1
    if not 0 <= other < len(view.labels):
        return None
    question = put(rng, view, "next" if onward else "previous", view.labels[at])
    return fact("label of", question, view.labels[other], view, at, other)


def untold(rng: Random, view: View) -> Fact | None:
    """Causes, the future, other years, and people."""
    question = put(rng, view, "why", rng.choice(view.labels))
    return None if question is None else Fact("cannot tell", question, CANNOT_TELL)


MAKERS: dict[str, Maker] = {
    "title at length": title, "about": about, "unit": unit, "axis": axis, "labels at length": labels,
    "number at length": number_of, "family": family, "shows": has, "missing at length": missing, "nth": nth,
    "colours": colours, "looks": looks, "everything": everything, "neighbour": neighbour, "untold": untold,
}  # fmt: skip
