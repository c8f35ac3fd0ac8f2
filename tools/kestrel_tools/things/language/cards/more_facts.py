"""What may be asked further about print at things: sums of prices, bounds, one of two. No torch."""

import re
from collections.abc import Callable, Sequence
from random import Random

from kestrel_tools.things.cards.labels import PEOPLE, number_in
from kestrel_tools.things.language.fact import Fact
from kestrel_tools.things.language.wanted import Wanted, of_kind, of_noun, word_for
from kestrel_tools.things.names import is_plural, nouns, plural, with_article
from kestrel_tools.things.scene import Card, Scene

from .day_facts import further_forecast, further_plan
from .print_there import Labelled, all_labels, alone, asked, is_only, spoken, two_of, where_is, yes_no

MOST_LISTED = 4
MOST_SUM = 40  # of prices without cents; of those with halves, half of it
MONEY = (5, 10, 20, 50)
GOODS = (
    *("both together",) * 3, *("costs less", "in stock", "price of kind") * 2, "price apart", "change",
    "same price", "costs more", "number less", "number more", "second cheapest", "second dearest", "prices",
    "goods",
)  # fmt: skip


def more_fact(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    assert scene.cards is not None
    maker = BY_KIND.get(scene.cards.kind)
    return beside(rng, scene, cards) if maker is None or rng.random() < 0.12 else maker(rng, scene, cards)


def _easy(*prices: float) -> bool:
    """Whether such prices are added in one's head."""
    halves = any(price % 1 for price in prices)
    return all((2 * price) % 1 == 0 for price in prices) and max(prices) <= MOST_SUM / (1 + halves)


def priced(text: str, price: float) -> str:
    """A price as those of the scene are written."""
    cents = "." in text
    return re.sub(r"\d+(\.\d+)?", f"{price:.2f}" if cents else f"{price:.0f}", text, count=1)


def goods(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    kind = rng.choice(GOODS)
    values = [number_in(card.text) for card in cards]
    match kind:
        case "both together" | "price apart" | "change" | "same price":
            return _of_two(rng, scene, cards, kind)
        case "costs less" | "costs more" | "number less" | "number more":
            return _bounded(rng, cards, kind)
        case "second cheapest" | "second dearest":
            ordered = sorted(cards, key=lambda card: number_in(card.text), reverse=kind == "second dearest")
            if len({*values}) < len(values) or len(cards) < 3:
                return None
            return Fact("card extreme", asked(rng, kind), ordered[1].name, evidence=ordered[1].evidence)
        case "prices":
            return all_labels(rng, kind, cards)
        case "goods":
            evidence = cards[0].evidence
            return Fact("list", asked(rng, kind), ", ".join(card.name for card in cards), evidence=evidence)
        case "in stock":
            items = [card.item for card in cards if card.item is not None and not card.item.is_shape]
            if not items:
                return None
            noun = rng.choice(items).known_as if rng.random() < 0.5 else rng.choice(nouns())
            found = of_noun(scene, word_for(rng, noun), noun.name)
            if found is None:
                return None
            question = asked(rng, kind, with_article(found.one), plural(found.one))
            return Fact("presence", question, yes_no(bool(found.items)))
    one = _only_of_kind(rng, scene, cards)
    if one is None:
        return None
    return Fact("card label", asked(rng, kind, one[0].one), one[1].text, evidence=one[1].evidence)


def _of_two(rng: Random, scene: Scene, cards: Sequence[Labelled], kind: str) -> Fact | None:
    two = two_of(rng, scene, cards)
    if two is None:
        return None
    ordered = (
        two
        if kind in ("both together", "same price")
        else sorted(two, key=lambda one: -number_in(one[0].text))
    )
    (one, the_one, _), (other, the_other, other_many) = ordered
    first, second = number_in(one.text), number_in(other.text)
    evidence = (*one.evidence, *other.evidence)
    if kind == "same price":
        if first != second and rng.random() < 0.5:
            return None
        return Fact(
            "card compare", asked(rng, kind, the_one, the_other), yes_no(first == second), evidence=evidence
        )
    if kind == "change":
        enough = [money for money in MONEY if money > first]
        if not enough or not _easy(first, enough[0]):
            return None
        question = asked(
            rng,
            kind,
            the_one,
            "",
            priced(one.text.split(".")[0] + one.text.partition(".")[2][2:], enough[0]),
            exact=True,
        )
        return Fact("sum", question, priced(one.text, enough[0] - first), evidence=one.evidence)
    value = first + second if kind == "both together" else first - second
    if (
        not _easy(first, second, abs(value))
        or value == 0
        or (kind == "price apart" and (is_plural(the_one) or other_many))
    ):
        return None
    return Fact("sum", asked(rng, kind, the_one, the_other), priced(one.text, value), evidence=evidence)


def _bounded(rng: Random, cards: Sequence[Labelled], kind: str) -> Fact | None:
    values = [number_in(card.text) for card in cards]
    bound = rng.randint(2, max(2, round(max(values)) + 1))
    if any(abs(value - bound) < 0.2 for value in values) or len(cards) < 3:
        return None
    less = kind.endswith("less")
    found = [card for card, value in zip(cards, values, strict=True) if (value < bound) == less]
    whole = re.sub(r"\.\d+", "", cards[0].text)
    question = asked(rng, kind, priced(whole, bound), exact=True)
    evidence = found[0].evidence if found else ()
    if kind.startswith("number"):
        return Fact("card count", question, str(len(found)), evidence=evidence)
    if len(found) > MOST_LISTED or (not found and rng.random() < 0.6):
        return None
    return Fact(
        "card compare", question, ", ".join(card.name for card in found) or "nothing", evidence=evidence
    )


def _only_of_kind(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> tuple[Wanted, Labelled] | None:
    """A kind of which one thing is there, and its card."""
    kinds = [kind for card in cards if card.item is not None for kind in card.item.known_as.kinds]
    found = of_kind(scene, rng.choice(kinds)) if kinds else None
    if found is None or len(found.items) != 1 or len(cards) < 2:
        return None
    return found, next(card for card in cards if card.item is found.items[0])


def owners(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    chance = rng.random()
    if chance < 0.3:
        return _listed(rng, cards, "is listed", PEOPLE)
    if chance < 0.65:
        one = _only_of_kind(rng, scene, cards)
        if one is None:
            return None
        question = asked(rng, "who has kind", with_article(one[0].one), f"the {one[0].one}")
        return Fact("card label", question, one[1].text, evidence=one[1].evidence)
    return _one_of_two(rng, scene, cards, "who of two")


def _listed(rng: Random, cards: Sequence[Labelled], kind: str, others: Sequence[str]) -> Fact | None:
    """Whether a name, a day or an option is among those that are printed."""
    there = {card.text.lower() for card in cards}
    absent = [other for other in others if other.lower() not in there]
    if rng.random() < 0.5:
        text = rng.choice(cards).text
        text = text.title() if text.isupper() and len(text) > 1 else text
    elif absent:
        text = rng.choice(absent)
    else:
        return None
    return Fact("card says", asked(rng, kind, text, exact=True), yes_no(text.lower() in there))


def _one_of_two(rng: Random, scene: Scene, cards: Sequence[Labelled], kind: str) -> Fact | None:
    if len(cards) < 2:
        return None
    card, other = rng.sample(list(cards), 2)
    words = alone(rng, scene, card)
    if words is None or card.name == other.name:
        return None
    labels = rng.sample([card.text, other.text], 2)
    if kind == "who of two":
        labels = [label.title() if label.isupper() else label for label in labels]
    question = asked(rng, kind, words[0], *labels, many=words[1], exact=True)
    return Fact("card label", question, card.text, evidence=card.evidence)


def options(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    chance, digits = rng.random(), cards[0].text.isdigit()
    if chance < 0.3:
        signs = "123456789" if digits else "ABCDEFGHI" if cards[0].text.isupper() else "abcdefghi"
        return _listed(rng, cards, "is option", signs[: len(cards) + 3])
    if chance < 0.65:
        return _one_of_two(rng, scene, cards, "sign of two")
    kinds = [kind for card in cards if card.item is not None for kind in card.item.known_as.kinds]
    found = of_kind(scene, rng.choice(kinds)) if kinds else None
    if found is None or not 2 <= len(found.items) <= MOST_LISTED:
        return None
    held = [card.text for card in cards if any(card.item is item for item in found.items)]
    question = asked(rng, "signs of kind", found.many, "numbers" if digits else "letters")
    return Fact("card labels", question, ", ".join(held), evidence=((found.many, found.items),))


def badges(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    kind = rng.choice(("teams", "number of teams", "team of kind", "team of kind"))
    if kind == "teams":
        return all_labels(rng, kind, cards)
    if kind == "number of teams":
        return Fact("card count", asked(rng, kind), str(len(cards)))
    one = _only_of_kind(rng, scene, cards)
    if one is None:
        return None
    return Fact(
        "card label", asked(rng, kind, with_article(one[0].one)), one[1].text, evidence=one[1].evidence
    )


def fields(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """Of a board game, whose fields are numbered one by one."""
    kind = rng.choice(("free fields", "after steps", "after steps", "steps between"))
    if kind == "free fields":
        free = [card.text for card in cards if card.item is None]
        if not 1 < len(free) <= MOST_LISTED:
            return None
        return Fact(
            "card labels", asked(rng, kind, rng.choice(("fields", "spaces", "squares"))), ", ".join(free)
        )
    at, to = sorted(rng.sample(range(len(cards)), 2))
    if kind == "after steps":
        if to - at > 6 or (cards[to].item is None and rng.random() < 0.5):
            return None
        word = rng.choice(("field", "field", "square", "space"))
        question = asked(rng, kind, f"{word} {cards[at].text}", str(to - at), exact=True)
        return Fact("card by label", question, cards[to].name, evidence=cards[to].evidence)
    first, last = alone(rng, scene, cards[at]), alone(rng, scene, cards[to])
    if first is None or last is None or to - at > 6:
        return None
    question = asked(rng, kind, first[0], last[0])
    return Fact("sum", question, str(to - at), evidence=(*cards[at].evidence, *cards[to].evidence))


def beside(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """The thing or the print beside another print, in its row."""
    assert scene.cards is not None
    card, side = rng.choice(cards), rng.choice(("left", "right"))
    near = _next(scene, card, -1 if side == "left" else 1)
    if (
        near is None
        or near.label is None
        or where_is(card) not in ("below", "above")
        or not is_only(card, cards)
    ):
        return None
    text = spoken(rng, card.text)
    if rng.random() < 0.5:
        if near.item is None:
            return None
        evidence = ((f"the {near.item.name}", (near.item,)),)
        question = asked(rng, "thing beside", side, text, exact=True)
        return Fact("card neighbour", question, near.item.name, evidence=evidence)
    if card.second is not None or card.text.lower() == card.name:
        return None  # that text may be the other line, or the name of the thing
    question = asked(rng, "label beside", side, text, exact=True)
    return Fact("card label", question, near.label.text, evidence=(("the label", (near.label,)),))


def _next(scene: Scene, card: Labelled, step: int) -> Card | None:
    assert scene.cards is not None
    for row in scene.cards.rows:
        for at, one in enumerate(row):
            if one.label is card.label:
                return row[at + step] if 0 <= at + step < len(row) else None
    return None


BY_KIND: dict[str, Callable[[Random, Scene, Sequence[Labelled]], Fact | None]] = {
    "menu": goods,
    "shop": goods,
    "names": owners,
    "choices": options,
    "badges": badges,
    "board": fields,
    "calendar": further_plan,
    "forecast": further_forecast,
}
