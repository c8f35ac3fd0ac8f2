"""What may be asked about pages of labels and values, and the true answers. No torch."""

import re
from collections.abc import Callable, Mapping
from random import Random

from kestrel_tools.things.language.fact import CANNOT_TELL, ORDINALS, Fact
from kestrel_tools.things.pages.words import DAYS

from .questions import ASKED, GENERAL, ask
from .view import HEADS, Listed, View, number_in, shown

Maker = Callable[[Random, View], Fact | None]


def _templates(view: View, kind: str) -> tuple[str, ...]:
    return ASKED.get(view.kind, {}).get(kind, ())


def about(view: View, one: Listed) -> dict[str, str]:
    """The words for a thing and its value."""
    fields = view.fields | {"x": one.thing.said, "a": view.named(one.thing.said)}
    if one.detail is not None:
        found = re.search(r"[A-Z]?\d+", one.detail.text)
        number = found[0] if found else ""
        place = int(re.sub(r"\D", "", number) or 0)
        ordinal = ORDINALS[place - 1] if 0 < place <= len(ORDINALS) else number
        day = [name for name in DAYS if name.startswith(one.detail.said[:3])]
        fields |= {"v": one.detail.text, "w": number, "o": ordinal, "f": ordinal, "d": day[0] if day else ""}
    return fields


def _some(rng: Random, view: View) -> Listed:
    return rng.choice(view.listed)


def value(rng: Random, view: View) -> Fact | None:
    """What is told of a thing: its price, its time, its number."""
    one = _some(rng, view)
    if one.detail is None or [other.thing.said for other in view.listed].count(one.thing.said) > 1:
        return None
    fields, general = about(view, one), view.is_beside and rng.random() < 0.12
    templates = GENERAL["value"] if general else _templates(view, "value")
    answer = one.detail.text
    if not general and view.kind in ("platforms", "gates", "tracks", "rooms", "floors"):
        answer = fields["w"]
    question = ask(rng, templates, fields, many=view.many(one.thing.said))
    return Fact("page value", question, answer, evidence=shown(*one.lines))


def thing(rng: Random, view: View) -> Fact | None:
    """Of what a price, a time or a number is told, where it is told of one."""
    one, templates = _some(rng, view), _templates(view, "thing")
    if one.detail is None or not templates:
        return None
    told = [other.detail.text for other in view.listed if other.detail is not None]
    total = view.part("total")
    if told.count(one.detail.text) > 1 or (total is not None and total.text == one.detail.text):
        return None
    fields = about(view, one)
    if fields["w"] == "0":
        templates = tuple(template for template in templates if "{f}" not in template)
    if view.kind == "duties":
        fields["v"] = one.detail.said
    question = ask(rng, templates, fields, exact=True)
    return Fact("page thing", question, one.thing.text, evidence=shown(*one.lines))


def extreme(rng: Random, view: View) -> Fact | None:
    """The cheapest, the first, the winner; or how much that is."""
    kind = rng.choice(("most", "most", "least", "least", "most value", "least value"))
    templates = _templates(view, kind)
    ordered = sorted(numbers_of(view), key=lambda pair: pair[0], reverse=kind.startswith("most"))
    if not templates or len(ordered) < 2 or ordered[0][0] == ordered[1][0]:
        return None
    one = ordered[0][1]
    assert one.detail is not None
    answer = one.detail.text if kind.endswith("value") else one.thing.text
    question = ask(rng, templates, view.fields)
    return Fact("page extreme", question, answer, evidence=shown(*one.lines))


def numbers_of(view: View) -> list[tuple[float, Listed]]:
    return [(number_in(one.detail.said), one) for one in view.listed if one.detail is not None]


def compare(rng: Random, view: View) -> Fact | None:
    """Two things by what is told of them."""
    kind = rng.choice(("which more", "which less", "more", "less"))
    measured, templates = numbers_of(view), _templates(view, kind)
    if len(measured) < 2 or not templates:
        return None
    (first, one), (second, other) = rng.sample(measured, 2)
    if first == second or one.thing.said == other.thing.said:
        return None
    fields = about(view, one) | {"y": other.thing.said, "b": view.named(other.thing.said)}
    question = ask(rng, templates, fields, many=view.many(one.thing.said))
    larger = first > second
    evidence = shown(*one.lines, *other.lines)
    if kind.startswith("which"):
        answer = (one if larger == (kind == "which more") else other).thing.text
        return Fact("page compare", question, answer, evidence=evidence)
    return Fact("page compare", question, "yes" if larger == (kind == "more") else "no", evidence=evidence)


def under(rng: Random, view: View) -> Fact | None:
    """Whether anything costs less than a round sum."""
    templates, measured = _templates(view, "under"), numbers_of(view)
    sums = [number for number, _ in measured]
    limit = round(rng.choice(sums) * rng.uniform(0.6, 1.4)) if sums else 0
    if not templates or limit < 1 or limit in sums:
        return None
    printed = measured[0][1].detail
    sign = "$" if printed is not None and printed.text.startswith("$") else ""
    question = ask(rng, templates, view.fields | {"v": f"{sign}{limit}"})
    return Fact("page has", question, "yes" if min(sums) < limit else "no")


def has(rng: Random, view: View) -> Fact | None:
    """Whether something is on it."""
    templates = _templates(view, "has")
    if not templates:
        return None
    if rng.random() < 0.5:
        one = _some(rng, view)
        said, head = one.thing.said, one.thing.said.split()[-1]
        word = head if head in HEADS and rng.random() < 0.4 else said
        question = ask(rng, templates, view.fields | {"x": word}, many=view.many(word))
        return Fact("page has", question, "yes", evidence=shown(one.row.label))
    word = view.absent(rng) or ""
    if not word:
        return None
    question = ask(rng, templates, view.fields | {"x": word}, many=view.many(word))
    return Fact("page has", question, "no")


def missing(rng: Random, view: View) -> Fact | None:
    """The price of what is not listed, or of what has none."""
    told = any(one.detail is not None for one in view.listed)
    templates = _templates(view, "value") if told else ()
    said = view.absent(rng) if told else None
    if not told and view.kind == "shopping list":
        templates, said = GENERAL["price unknown"], _some(rng, view).thing.said
    if not templates or not said:
        return None
    fields = view.fields | {"x": said, "a": f"the {said}" if not told else view.named(said)}
    question = ask(rng, templates, fields, many=view.many(said))
    return Fact("page cannot tell", question, CANNOT_TELL)


def listing(rng: Random, view: View) -> Fact | None:
    templates = _templates(view, "list")
    if not templates:
        return None
    answer = ", ".join(one.thing.text for one in view.listed)
    lines = tuple(shown for one in view.listed for shown in one.lines)
    return Fact("page list", ask(rng, templates, view.fields), answer, evidence=shown(*lines))


def count(rng: Random, view: View) -> Fact | None:
    templates = _templates(view, "count")
    if not templates:
        return None
    lines = tuple(one.row.label for one in view.listed)
    question = ask(rng, templates, view.fields)
    return Fact("page count", question, str(len(view.listed)), evidence=shown(*lines))


def nth(rng: Random, view: View) -> Fact | None:
    """The second thing on the list, or the last one."""
    at = rng.randrange(len(view.listed))
    last = at == len(view.listed) - 1
    words = [ORDINALS[at]] + ["last"] * (last and at > 0 and view.kind != "receipt")
    if view.kind in ("scoreboard", "ranking", "results"):
        return None  # the first of these is the best to some
    if view.listed[at].thing.text not in view.listed[at].row.label.text and not _templates(view, "nth"):
        return None  # what is printed first is a time
    templates = _templates(view, "nth") or GENERAL["nth"]
    question = ask(rng, templates, view.fields | {"k": rng.choice(words)})
    one = view.listed[at]
    return Fact("page nth", question, one.thing.text, evidence=shown(one.row.label))


def next_to(rng: Random, view: View) -> Fact | None:
    """What comes after something, or before it."""
    kind = rng.choice(("after", "after", "before"))
    templates, at = _templates(view, kind), rng.randrange(len(view.listed))
    other = at + (1 if kind == "after" else -1)
    if not templates or not view.is_beside or not 0 <= other < len(view.listed):
        return None
    question = ask(rng, templates, about(view, view.listed[at]))
    one = view.listed[other]
    return Fact("page nth", question, one.thing.text, evidence=shown(one.row.label))


def total(rng: Random, view: View) -> Fact | None:
    found = view.roles.get("total")
    if not found:
        return None
    part, row = found[0]
    lines = (row.label, *((row.value,) if row.value else ()))
    return Fact("page value", ask(rng, ASKED["receipt"]["total"]), part.text, evidence=shown(*lines))


TABLE: Mapping[Maker, float] = {
    value: 6.0, thing: 2.2, extreme: 2.2, compare: 1.6, under: 0.5, has: 2.4, missing: 1.0, listing: 1.2,
    count: 1.5, nth: 2.0, next_to: 0.8, total: 2.5,
}  # fmt: skip
