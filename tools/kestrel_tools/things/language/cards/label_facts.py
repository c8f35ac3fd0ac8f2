"""What may be asked about print at things in cells: prices, owners, numbers, teams. No torch, no model."""

from collections.abc import Callable, Sequence
from random import Random

from kestrel_tools.things.cards.labels import PEOPLE, number_in
from kestrel_tools.things.language.fact import CANNOT_TELL, Fact, none_of
from kestrel_tools.things.language.wanted import of_kind, of_noun, word_for
from kestrel_tools.things.names import by_name, is_plural, nouns, with_article
from kestrel_tools.things.scene import Cards, Scene

from .day_facts import forecast, plan
from .label_words import SIGNS, WHERE
from .more_facts import beside, more_fact
from .print_there import Labelled, alone, asked, is_only, labelled, spoken, two_of, where_is, yes_no

GENERAL = 0.3  # of the questions are about print as such
FURTHER = 0.3  # of the others are sums, bounds, and which one of two
ABSENT = 0.06  # of the questions are about what is not there


def label_fact(rng: Random, scene: Scene, cards: Cards) -> Fact | None:
    """One thing that is true of the print, mostly in the words of what it is about."""
    found = labelled(scene, cards)
    maker = BY_KIND.get(cards.kind)
    for _ in range(6):
        if maker is None or rng.random() < GENERAL:
            fact = general(rng, scene, found) if rng.random() > FURTHER / 3 else beside(rng, scene, found)
        else:
            fact = (more_fact if rng.random() < FURTHER else maker)(rng, scene, found)
        if fact is not None:
            return fact
    return None


def general(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """What is printed at a thing, and what is at some print."""
    card = rng.choice(cards)
    where = where_is(card)
    if card.item is None or (card.second is not None and where == "beside"):
        return None
    kind = rng.choice(("label at", "label at", "label of", "thing at", "thing with", "says at"))
    if kind in ("thing at", "thing with"):
        if not is_only(card, cards):
            return None
        text = spoken(rng, card.text)
        if kind == "thing at":
            if where is None:
                return None
            said = rng.choice(("the word ", "the label ", "the text "))
            if card.text.lower() not in by_name() and (not card.text.isalpha() or rng.random() < 0.25):
                said = ""  # nobody takes it for a thing
            question = asked(rng, kind, f"{said}{text}", rng.choice(WHERE[where][1]), exact=True)
        else:
            question = asked(rng, kind, text, exact=True)
        return Fact("card by label", question, card.name, evidence=card.evidence)
    words = alone(rng, scene, card)
    if words is None or (where is None and kind != "label of"):
        return None
    if kind == "label of":
        question = asked(rng, kind, words[0], many=words[1])
        return (
            None
            if card.second is not None
            else Fact("card label", question, card.text, evidence=card.evidence)
        )
    assert where is not None
    place = rng.choice(WHERE[where][0])
    if kind == "label at":
        question = asked(rng, kind, words[0], place, many=words[1])
        return Fact("card label", question, card.text, evidence=card.evidence)
    other = card if rng.random() < 0.5 else rng.choice(cards)
    question = asked(rng, kind, words[0], place, spoken(rng, other.text), many=words[1], exact=True)
    answer = yes_no(other.text.lower() == card.text.lower())
    return Fact("card says", question, answer, evidence=card.evidence)


def prices(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    if rng.random() < ABSENT:
        noun = rng.choice(nouns())
        word = word_for(rng, noun)
        absent = of_noun(scene, word, noun.name)
        if absent is None or absent.items:
            return None
        return Fact("absent", asked(rng, "price of", f"the {word}", many=is_plural(word)), none_of(word))
    kind = rng.choice(
        ("price of",) * 6 + ("costs", "costs", "cheapest", "cheapest", "dearest", "dearest")
        + ("lowest price", "highest price", "compare", "compare", "afford")
    )  # fmt: skip
    values = [number_in(card.text) for card in cards]
    card = rng.choice(cards)
    match kind:
        case "price of" | "afford":
            words = alone(rng, scene, card)
            if words is None:
                return None
            if kind == "afford":
                return _afford(rng, card, *words)
            question = asked(rng, kind, words[0], many=words[1])
            cost = "cost" if words[1] else "costs"
            return Fact(
                "card label",
                question,
                card.text,
                f"{words[0].capitalize()} {cost} {card.text}.",
                card.evidence,
            )
        case "costs":
            if values.count(number_in(card.text)) > 1:
                return None
            question = asked(rng, kind, spoken(rng, card.text), exact=True)
            return Fact("card by label", question, card.name, evidence=card.evidence)
        case "compare":
            return _compared(rng, scene, cards)
    best = min(values) if kind in ("cheapest", "lowest price") else max(values)
    if len(cards) < 2 or values.count(best) > 1:
        return None
    card = cards[values.index(best)]
    answer = card.text if kind.endswith("price") else card.name
    return Fact("card extreme", asked(rng, kind), answer, evidence=card.evidence)


def _afford(rng: Random, card: Labelled, the: str, many: bool) -> Fact | None:
    price, whole = number_in(card.text), rng.choice((1, 2, 3, 5, 5, 10, 10, 15, 20, 20, 50, 100))
    if abs(whole - price) < 0.2 or not price / 4 < whole < 4 * price:
        return None
    money = (f"${whole}", f"{whole} dollar{'s' * (whole > 1)}")
    if "EUR" in card.text:
        money = (f"{whole} EUR", f"{whole} euro{'s' * (whole > 1)}")
    elif "$" not in card.text:
        money = (str(whole), f"{whole} coin{'s' * (whole > 1)}")[:1] * 2
    question = asked(rng, "afford", the, rng.choice(money), many=many, exact=True)
    return Fact("card compare", question, yes_no(whole >= price), evidence=card.evidence)


def _compared(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    two = two_of(rng, scene, cards)
    if two is None:
        return None
    (one, the_one, many), (other, the_other, _) = two
    first, second = number_in(one.text), number_in(other.text)
    if first == second:
        return None
    kind = rng.choice(("dearer", "cheaper", "which cheaper", "which dearer"))
    question = asked(rng, kind, the_one, the_other, many=many)
    evidence = (*one.evidence, *other.evidence)
    if kind in ("dearer", "cheaper"):
        return Fact(
            "card compare", question, yes_no((first > second) == (kind == "dearer")), evidence=evidence
        )
    wins = one if (first < second) == (kind == "which cheaper") else other
    return Fact("card compare", question, wins.name, evidence=evidence)


def owners(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    if rng.random() < ABSENT:
        stranger = rng.choice(PEOPLE)
        if stranger.lower() in [card.text.lower() for card in cards]:
            return None
        return Fact("cannot tell", asked(rng, "has what", stranger, exact=True), CANNOT_TELL)
    kind = rng.choice(("whose",) * 5 + ("has what",) * 5 + ("does have",) * 2 + ("number of people", "who"))
    if kind == "number of people":
        return Fact("card count", asked(rng, kind), str(len(cards)))
    if kind == "who":
        evidence = (("the names", tuple(card.label for card in cards)),)
        return Fact(
            "card labels", asked(rng, kind), ", ".join(card.text for card in cards), evidence=evidence
        )
    card = rng.choice(cards)
    words = alone(rng, scene, card)
    if kind == "has what":
        text = card.text if rng.random() < 0.85 else card.text.lower()
        question = asked(rng, kind, text if not text.isupper() else text.title(), exact=True)
        return Fact(
            "card by label", question, card.name, f"{card.text} has {with_article(card.name)}.", card.evidence
        )
    if words is None:
        return None
    if kind == "whose":
        return Fact(
            "card label", asked(rng, kind, words[0], many=words[1]), card.text, evidence=card.evidence
        )
    other = card if rng.random() < 0.5 else rng.choice(cards)
    question = asked(rng, kind, other.text.title(), words[0], exact=True)
    return Fact("card says", question, yes_no(other is card), evidence=card.evidence)


def signs(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """Numbers and letters of choices."""
    card = rng.choice(cards)
    sort = "number" if card.text.isdigit() else "letter"
    sign = rng.choice(SIGNS[sort])
    words = alone(rng, scene, card)
    kind = rng.choice(("which sign",) * 4 + ("what is sign",) * 4 + ("is sign", "is sign", "sign of kind"))
    match kind:
        case "what is sign":
            question = asked(rng, kind, f"{sign} {_sign(rng, card.text)}", exact=True)
            return Fact("card by label", question, card.name, evidence=card.evidence)
        case "is sign":
            other = card if rng.random() < 0.5 else rng.choice(cards)
            if other.item is None or (other.name == card.name and other is not card):
                return None
            if not other.item.is_shape and of_noun(scene, other.item.noun, other.item.noun) is None:
                return None
            subjects = (f"{sign} {_sign(rng, card.text)}", with_article(other.name))
            question = asked(rng, kind, *subjects, exact=True)
            return Fact("card says", question, yes_no(other is card), evidence=card.evidence)
        case "sign of kind":
            kinds = card.item.known_as.kinds if card.item is not None else ()
            found = of_kind(scene, rng.choice(kinds)) if kinds else None
            if found is None or len(found.items) != 1 or len(cards) < 2:
                return None
            question = asked(rng, kind, with_article(found.one), sort)
            return Fact("card label", question, card.text, evidence=card.evidence)
    if words is None:
        return None
    sign = rng.choice((sort, sort, "option" if sign == "no." else sign))
    question = asked(rng, kind, words[0], sign, many=words[1])
    return Fact("card label", question, card.text, evidence=card.evidence)


def _sign(rng: Random, text: str) -> str:
    return text if rng.random() < 0.85 else text.swapcase()


def names(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """Whether the words on vocabulary cards are those of the things."""
    wrong = [card for card in cards if card.text.lower() != card.name]
    kind = rng.choice(
        ("right label",) * 4 + ("all right", "any wrong", "wrong label", "wrong picture", "really", "really")
    )
    card = rng.choice(wrong if wrong and rng.random() < 0.4 else list(cards))
    match kind:
        case "right label":
            words, where = alone(rng, scene, card), where_is(card)
            if words is None or where is None:
                return None
            question = asked(rng, kind, words[0], rng.choice(WHERE[where][0]), many=words[1])
            return Fact(
                "card right", question, yes_no(card.text.lower() == card.name), evidence=card.evidence
            )
        case "really":
            text = spoken(rng, card.text)
            if card in wrong and rng.random() < 0.4:
                return Fact(
                    "card right",
                    asked(rng, "should say", text, exact=True),
                    card.name,
                    evidence=card.evidence,
                )
            question = asked(rng, "really shows", text, exact=True)
            return Fact("card by label", question, card.name, evidence=card.evidence)
        case "all right" | "any wrong":
            return Fact("card right", asked(rng, kind), yes_no(bool(wrong) == (kind == "any wrong")))
    if not wrong and rng.random() < 0.6:
        return None
    told = [card.text if kind == "wrong label" else card.name for card in wrong]
    evidence = wrong[0].evidence if wrong else ()
    return Fact("card right", asked(rng, kind), ", ".join(told) or "none", evidence=evidence)


def teams(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    card = rng.choice(cards)
    if rng.random() < 0.5:
        text = card.text if rng.random() < 0.85 else card.text.lower()
        return Fact(
            "card by label", asked(rng, "badge of", text, exact=True), card.name, evidence=card.evidence
        )
    words = alone(rng, scene, card)
    if words is None:
        return None
    return Fact(
        "card label", asked(rng, "which team", words[0], many=words[1]), card.text, evidence=card.evidence
    )


def tag(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """What an animal is called, and whose something else is."""
    [card] = cards
    words = alone(rng, scene, card)
    if words is None or card.item is None:
        return None
    kind = "called" if "animal" in card.item.known_as.kinds else "whose"
    kind = kind if rng.random() < 0.7 else "tag"
    return Fact("card label", asked(rng, kind, words[0], many=words[1]), card.text, evidence=card.evidence)


def fields(rng: Random, scene: Scene, cards: Sequence[Labelled]) -> Fact | None:
    """Of a board game."""
    card, word = rng.choice(cards), rng.choice(("field", "field", "square", "space"))
    kind = rng.choice(("on field",) * 3 + ("which field",) * 3 + ("field empty", "field taken"))
    field = f"{word} {rng.choice(('', '', 'number '))}{card.text}"
    if kind == "which field":
        words = alone(rng, scene, card)
        if words is None:
            return None
        question = asked(rng, kind, words[0], word, many=words[1])
        return Fact("card label", question, card.text, evidence=card.evidence)
    if kind == "on field":
        if card.item is None and rng.random() < 0.4:
            return None
        return Fact("card by label", asked(rng, kind, field, exact=True), card.name, evidence=card.evidence)
    answer = yes_no((card.item is None) == (kind == "field empty"))
    return Fact("card empty", asked(rng, kind, field, exact=True), answer, evidence=card.evidence)


BY_KIND: dict[str, Callable[[Random, Scene, Sequence[Labelled]], Fact | None]] = {
    "menu": prices,
    "shop": prices,
    "names": owners,
    "choices": signs,
    "vocabulary": names,
    "badges": teams,
    "tag": tag,
    "board": fields,
    "calendar": plan,
    "forecast": forecast,
}
