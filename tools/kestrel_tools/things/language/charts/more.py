"""More that may be asked about a chart: places, comparisons, sums, ups and downs. No torch, no model.

Each maker returns None where the chart does not allow its question, or people would differ about the answer.
What is printed and how it is drawn is asked in `printed`.
"""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from string import Formatter

from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.spelling import casual, chosen, introduced, tidy

from .asked import ASKED
from .asked_looks import ASKED_LOOKS
from .asked_more import ASKED_MORE
from .asked_pairs import ASKED_PAIRS
from .asked_print import ASKED_PRINT
from .view import View, fields_of

Maker = Callable[[Random, View], Fact | None]

TEMPLATES = ASKED | ASKED_PAIRS | ASKED_MORE | ASKED_PRINT | ASKED_LOOKS
OF_ITS_SUBJECT = 0.6  # how many are asked in words that only such labels have
NTH = {2: ("second", "2nd"), 3: ("third", "3rd"), 4: ("fourth", "4th")}
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
FEW = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight"}
WAYS = (
    ("go up", "down"), ("go up", "go down"), ("rise", "fall"), ("increase", "decrease"), ("climb", "drop"),
    ("grow", "shrink"),
)  # fmt: skip
FALLS, DROPS = ("fall", "drop", "go down"), ("drop", "fall", "decrease")
RISES, JUMPS = ("rise", "go up", "grow"), ("rise", "increase", "jump")
MOST_ADDED = 4  # values of which the sum is asked
MOST_RANKED = 6
CLOSE = 1.6  # nobody calls this twice as much


def _needs(template: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name)


NEEDED = {
    kind: {group: [(one, _needs(one)) for one in templates] for group, templates in groups.items()}
    for kind, groups in TEMPLATES.items()
}


def put(rng: Random, view: View, kind: str, *labels: str, **more: str) -> str | None:
    """A question of that kind; None where no template suits the chart."""
    fields = fields_of(rng, view, *labels) | more
    of_all, of_these = (
        [template for template, needs in NEEDED[kind].get(group, ()) if needs <= fields.keys()]
        for group in ("any", view.subject.group)
    )
    if not of_all and not of_these:
        return None
    special = of_these and (not of_all or rng.random() < OF_ITS_SUBJECT)
    template = rng.choice(of_these if special else of_all)
    return introduced(rng, casual(rng, tidy(chosen(rng, template.format_map(fields)))))


def fact(
    kind: str, question: str | None, answer: str, view: View, *shown: int, sentence: str = ""
) -> Fact | None:
    return None if question is None else Fact(f"chart {kind}", question, answer, sentence, view.shown(*shown))


def yes(true: bool) -> str:
    return "yes" if true else "no"


def two(rng: Random, view: View) -> tuple[int, int] | None:
    """Two of which everybody sees which is more."""
    one, other = rng.sample(range(len(view.labels)), 2)
    return (one, other) if view.clear(one, other) else None


def extreme(rng: Random, view: View) -> Fact | None:
    low = rng.random() < 0.45
    at, kind = view.order[-1 if low else 0], "smallest" if low else "largest"
    sentence = f"{view.labels[at]} has the {kind} value."
    return fact(
        kind, put(rng, view, "worst" if low else "best"), view.labels[at], view, at, sentence=sentence
    )


def is_extreme(rng: Random, view: View) -> Fact | None:
    low = rng.random() < 0.35
    best = view.order[-1 if low else 0]
    at = best if rng.random() < 0.5 else rng.randrange(len(view.labels))
    question = put(rng, view, "is worst" if low else "is best", view.labels[at])
    return fact("compare", question, yes(at == best), view, at)


def extreme_value(rng: Random, view: View) -> Fact | None:
    low = rng.random() < 0.35
    at = view.order[-1 if low else 0]
    if not view.readable(at):
        return None
    question = put(rng, view, "worst value" if low else "best value")
    return fact("value", question, str(view.values[at]), view, at)


def place(rng: Random, view: View) -> Fact | None:
    """Who is second, third, or last but one."""
    order, count = view.order, len(view.order)
    low = count > 3 and rng.random() < 0.15
    nth = count - 1 if low else rng.choice([n for n in (2, 2, 2, 3, 3, 4) if n <= count])
    near = order[-3:] if low else order[: nth + 1]
    if not all(view.clear(one, other) for one, other in pairwise(near)):
        return None
    at = order[nth - 1]
    if low:
        question = put(rng, view, "low place")
    elif nth == 2 and rng.random() < 0.3:
        question = put(rng, view, "second", view.labels[order[0]])
    else:
        medal = {2: {"medal": "silver"}, 3: {"medal": "bronze"}}.get(nth, {})
        question = put(rng, view, "place", nth=rng.choice(NTH[nth]), **medal)
    return fact("rank", question, view.labels[at], view, at)


def place_of(rng: Random, view: View) -> Fact | None:
    rank = rng.randrange(len(view.order))
    near = view.order[: rank + 2]
    if not all(view.clear(one, other) for one, other in pairwise(near)):
        return None
    at = view.order[rank]
    return fact("rank", put(rng, view, "place of", view.labels[at]), PLACES[rank], view, at)


def ranking(rng: Random, view: View) -> Fact | None:
    """All of them, or the first or last few, in order."""
    count = len(view.order)
    if not view.all_clear():
        return None
    kind = rng.choice(("ranking", "ranking", "rising", "top", "top", "bottom"))
    if kind in ("ranking", "rising"):
        found = view.order if kind == "ranking" else view.order[::-1]
        return (
            fact("ranking", put(rng, view, kind), view.listed(found), view)
            if 2 < count <= MOST_RANKED
            else None
        )
    few = rng.choice((2, 2, 3))
    if few >= count:
        return None
    found = view.order[:few] if kind == "top" else view.order[::-1][:few]
    return fact("ranking", put(rng, view, kind, few=FEW[few]), view.listed(found), view, *found)


def compared(rng: Random, view: View) -> Fact | None:
    found = two(rng, view)
    if found is None:
        return None
    one, other = found
    kind = rng.choice(("more of", "more of", "less of", "which of two", "which of two", "lower of two"))
    question = put(rng, view, kind, view.labels[one], view.labels[other])
    more = view.values[one] > view.values[other]
    if kind in ("more of", "less of"):
        return fact("compare", question, yes(more == (kind == "more of")), view, one, other)
    at = one if more == (kind == "which of two") else other
    return fact("compare", question, view.labels[at], view, one, other)


def than_one(rng: Random, view: View) -> Fact | None:
    """Who has more than somebody, or how many have."""
    at = rng.randrange(len(view.labels))
    if not all(view.clear(at, other) for other in range(len(view.labels)) if other != at):
        return None
    kind = rng.choice(("ahead of", "behind", "how many ahead"))
    others = [n for n in range(len(view.values)) if n != at]
    found = [n for n in others if (view.values[n] < view.values[at]) == (kind == "behind")]
    question = put(rng, view, kind, view.labels[at])
    answer = str(len(found)) if kind == "how many ahead" else view.listed(found)
    return fact("above", question, answer, view, at)


def difference(rng: Random, view: View) -> Fact | None:
    if not view.printed:
        return None
    chance, order = rng.random(), view.order
    if chance < 0.15:
        gap = view.values[order[0]] - view.values[order[-1]]
        return fact("difference", put(rng, view, "range"), str(gap), view, order[0], order[-1])
    if chance < 0.25:
        gap = view.values[order[0]] - view.values[order[1]]
        return fact("difference", put(rng, view, "lead", view.labels[order[0]]), str(gap), view, *order[:2])
    one, other = sorted(rng.sample(range(len(order)), 2))
    change = view.values[other] - view.values[one]
    if not change:
        return None
    if view.runs and view.subject.group == "time" and rng.random() < 0.3:
        words = {"up": "up", "rise": "rise", "growth": rng.choice(("rise", "jump"))}
        if change < 0:
            words = {"up": "down", "rise": "drop", "growth": rng.choice(("drop", "fall"))}
        question = put(rng, view, "change", view.labels[one], view.labels[other], **words)
        return fact("difference", question, str(abs(change)), view, one, other)
    if change > 0:
        one, other = other, one
    question = put(rng, view, "difference", view.labels[one], view.labels[other])
    return fact("difference", question, str(abs(change)), view, one, other)


def total(rng: Random, view: View) -> Fact | None:
    """What two or all add up to, or their mean where it is a whole number."""
    topic, count = view.subject.topic, len(view.values)
    if not view.printed or (topic is not None and not topic.sums):
        return None
    chance, everything = rng.random(), sum(view.values)
    if chance < 0.65:
        one, other = rng.sample(range(count), 2)
        question = put(rng, view, "sum", view.labels[one], view.labels[other])
        return fact("sum", question, str(view.values[one] + view.values[other]), view, one, other)
    if count > MOST_ADDED:
        return None
    if chance < 0.92:
        return fact("sum", put(rng, view, "total", count=FEW[count]), str(everything), view, *range(count))
    if everything % count:
        return None
    return fact("sum", put(rng, view, "mean"), str(everything // count), view, *range(count))


def twice(rng: Random, view: View) -> Fact | None:
    values = view.values
    if not view.printed:
        return None
    pairs = [(a, b) for a in range(len(values)) for b in range(len(values)) if values[a] == 2 * values[b]]
    if pairs and rng.random() < 0.75:
        one, other = rng.choice(pairs)
        alone = [a for a, b in pairs if b == other] == [one]
        if alone and rng.random() < 0.4:
            question = put(rng, view, "double of", view.labels[other])
            return fact("compare", question, view.labels[one], view, one, other)
    else:
        one, other = rng.sample(range(len(values)), 2)
        if values[one] >= CLOSE * values[other]:
            return None
    question = put(rng, view, "twice", view.labels[one], view.labels[other])
    return fact("compare", question, yes(values[one] == 2 * values[other]), view, one, other)


def threshold(rng: Random, view: View) -> int | None:
    """A round number that no value is near to."""
    least, most = min(view.values), max(view.values)
    if view.ticks:
        numbers = [tick for tick in view.ticks if tick]
    else:
        step = next((step for step in (1000, 500, 100, 50, 10, 5) if most / step > 3), 1)
        numbers = list(range(step, most + 2 * step, step))
    numbers = [number for number in numbers if least / 2 <= number and str(number) not in view.labels]
    number = rng.choice(numbers) if numbers else 0
    clear = number and all(view.clear_of(at, number) for at in range(len(view.values)))
    return number if clear else None


def over(rng: Random, view: View) -> Fact | None:
    """How many or which are above a number, or below it."""
    number = threshold(rng, view)
    if number is None:
        return None
    kind = rng.choice(("over", "over", "under", "which over", "which under", "any over", "all over"))
    found = [at for at, value in enumerate(view.values) if (value < number) == kind.endswith("under")]
    question = put(rng, view, kind, N=str(number))
    match kind:
        case "over" | "under":
            answer = str(len(found))
        case "any over":
            answer = yes(bool(found))
        case "all over":
            answer = yes(len(found) == len(view.values))
        case _:
            answer = view.listed(found)
    return fact("above", question, answer, view)


def is_over(rng: Random, view: View) -> Fact | None:
    at, chance = rng.randrange(len(view.labels)), rng.random()
    label, value = view.labels[at], view.values[at]
    if chance < 0.3 and view.readable(at):
        number = value if rng.random() < 0.5 else rng.choice(view.values)
        if number != value and not view.clear_of(at, number):
            return None
        return fact("compare", put(rng, view, "is it", label, N=str(number)), yes(number == value), view, at)
    found = threshold(rng, view)
    if found is None:
        return None
    kind = rng.choice(("is over", "is over", "is under"))
    answer = yes((value > found) == (kind == "is over"))
    return fact("compare", put(rng, view, kind, label, N=str(found)), answer, view, at)


def step(rng: Random, view: View) -> Fact | None:
    """Whether it goes up or down between two, in the end, or after one."""
    values = view.values
    if not view.runs:
        return None
    kind = rng.choice(("step", "step", "did it", "did it", "in the end", "after"))
    one = len(values) - 2 if kind == "in the end" else rng.randrange(len(values) - 1)
    other = one + 1
    if kind in ("step", "did it") and rng.random() < 0.3:
        other = rng.randrange(one + 1, len(values))
    rises = values[other] > values[one]
    steps = [after - before for before, after in pairwise(values[one : other + 1])]
    if not view.clear(one, other) or any(change and (change > 0) != rises for change in steps):
        return None
    up, down = rng.choice(WAYS)
    labels = view.labels[one], view.labels[other]
    following = {"if_next": ""} if other == one + 1 == len(values) - 1 else {}  # nothing more comes after
    if kind == "did it":
        asked_up = rng.random() < 0.5
        word = up if asked_up else f"go {down}" if down == "down" else down
        growth = rng.choice(("rise", "jump") if asked_up else ("drop", "fall", "decline"))
        question = put(rng, view, kind, *labels, u=word, growth=growth, **following)
        return fact("step", question, yes(rises == asked_up), view, one, other)
    question = put(rng, view, kind, *labels, u=up, d=down, **following)
    answer = (up if rises else down).removeprefix("go ")
    return fact("step", question, answer, view, one, other)


def steepest(rng: Random, view: View) -> Fact | None:
    """Between which two it falls or rises most, where one step is clearly the largest."""
    if not view.runs or len(view.values) < 3:
        return None
    falls = rng.random() < 0.5
    steps = [(b - a) * (-1 if falls else 1) for a, b in pairwise(view.values)]
    first, second = sorted(range(len(steps)), key=lambda at: -steps[at])[:2]
    most = max(view.values)
    if steps[first] < 0.1 * most or steps[first] < max(1.4 * steps[second], steps[second] + 0.08 * most):
        return None
    verbs, nouns = (FALLS, DROPS) if falls else (RISES, JUMPS)
    question = put(rng, view, "steepest", fall=rng.choice(verbs), drop=rng.choice(nouns))
    return fact("step", question, view.listed((first, first + 1)), view, first, first + 1)


def equal(rng: Random, view: View) -> Fact | None:
    values = view.values
    pairs = [(a, b) for a in range(len(values)) for b in range(a + 1, len(values)) if values[a] == values[b]]
    others = [(a, b) for a in range(len(values)) for b in range(a + 1, len(values)) if values[a] != values[b]]
    clear = all(view.clear(a, b) for a, b in others)
    chance = rng.random() if pairs else rng.random() * 2  # most charts have none
    if chance > 1:
        return None
    if chance < 0.2:
        question = put(rng, view, "any equal")
        return fact("equal", question, yes(bool(pairs)), view) if clear else None
    if len(pairs) == 1 and clear and chance < 0.6:
        one, other = pairs[0] if rng.random() < 0.5 else pairs[0][::-1]
        if chance < 0.4:
            return fact("equal", put(rng, view, "which equal"), view.listed(pairs[0]), view, *pairs[0])
        return fact(
            "equal", put(rng, view, "same as", view.labels[one]), view.labels[other], view, one, other
        )
    one, other = rng.choice(pairs if pairs and rng.random() < 0.6 else others)
    if values[one] != values[other] and not view.clear(one, other):
        return None
    one, other = (one, other) if rng.random() < 0.5 else (other, one)
    question = put(rng, view, "equal", view.labels[one], view.labels[other])
    return fact("equal", question, yes(values[one] == values[other]), view, one, other)


def closest(rng: Random, view: View) -> Fact | None:
    """Which two are nearest to each other, where no other two nearly are."""
    if not view.printed or len(view.values) < 3:
        return None
    order = view.order
    gaps = sorted((view.values[a] - view.values[b], a, b) for a, b in pairwise(order))
    (gap, one, other), (next_gap, _, _) = gaps[:2]
    if gap == 0 or next_gap < max(2 * gap, gap + 0.08 * max(view.values)):
        return None
    one, other = sorted((one, other))
    return fact("equal", put(rng, view, "closest"), view.listed((one, other)), view, one, other)


def value(rng: Random, view: View) -> Fact | None:
    at = rng.randrange(len(view.labels))
    if not view.readable(at):
        return None
    label, number = view.labels[at], str(view.values[at])
    sentence = f"The value of {label} is {number}."
    return fact("value", put(rng, view, "value of", label), number, view, at, sentence=sentence)


def who_has(rng: Random, view: View) -> Fact | None:
    number = rng.choice(view.values)
    found = [at for at, value in enumerate(view.values) if value == number]
    if not view.printed or (len(found) > 1 and rng.random() < 0.5):
        return None
    return fact("label of", put(rng, view, "who has", N=str(number)), view.listed(found), view, *found)


MAKERS: dict[str, Maker] = {
    "extreme": extreme, "is extreme": is_extreme, "extreme value": extreme_value, "place": place,
    "place of": place_of, "ranking": ranking, "compared": compared, "than one": than_one,
    "difference": difference, "sum": total, "twice": twice, "over": over, "is over": is_over, "step": step,
    "steepest": steepest, "equal": equal, "closest": closest, "value at length": value, "who has": who_has,
}  # fmt: skip
