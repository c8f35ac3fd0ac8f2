"""Questions about a scene with their French answers, put in English as the model knows them, or in French."""

import re
from random import Random
from typing import NamedTuple

from kestrel_tools.scenes.facts import Fact, facts
from kestrel_tools.scenes.world import Scene

from .french import NUMBERS, PLACES, Phrase, agreeing, capitalized, caption

YES_OR_NO = ("presence", "is colour", "relation", "has text")
ENGLISH_RELATION = re.compile(r"Is (the .+) (?:to the )?(left of|right of|above|over|below|under) (the .+)\?")
RELATIONS = {
    "left of": "à gauche",
    "right of": "à droite",
    "above": "au-dessus",
    "over": "au-dessus",
    "below": "en dessous",
    "under": "en dessous",
}
SIDES = {
    "left": "à gauche",
    "right": "à droite",
    "top": "en haut",
    "bottom": "en bas",
}
OTHER_THINGS = (
    "un chien",
    "un chat",
    "une voiture",
    "une maison",
    "un arbre",
    "une fleur",
    "une table",
    "un livre",
)

# {the}: "le cercle", {of_the}: "du cercle", {a}: "un cercle", {of_many}: "de cercles", {it}: "il".
QUESTIONS = {
    "colour": ("De quelle couleur est {the} ?", "Quelle est la couleur {of_the} ?"),
    "shape": ("Quelle est {the} ?", "Qu'est-ce que {the} ?"),
    "size": ("Quelle est la taille {of_the} ?", "{The} est-{it} {big} ou {small} ?"),
    "place": ("Où est {the} ?", "Où se trouve {the} ?"),
    "count": ("Combien {of_many} y a-t-il ?", "Combien {of_many} vois-tu ?", "Combien {of_many} ?"),
    "presence": ("Y a-t-il {a} ?", "Vois-tu {a} ?"),
    "is colour": ("{The} est-{it} {colour} ?",),
    "relation": ("{The} est-{it} {relation} {of_other} ?",),
    "extreme": ("Quelle forme est tout {side} ?", "Qu'y a-t-il tout {side} ?"),
    "read": ("Que dit le texte ?", "Qu'est-ce qui est écrit ?", "Lis le texte."),
    "read none": ("Que dit le texte ?", "Qu'est-ce qui est écrit ?", "Lis le texte."),
    "read number": ("Quel nombre vois-tu ?", "Lis le nombre."),
    "has text": ("Y a-t-il du texte ?", "Vois-tu du texte ?"),
    "describe": ("Décris l'image.", "Que vois-tu ?", "Qu'y a-t-il dans l'image ?"),
}


class Asked(NamedTuple):
    kind: str
    question: str
    answer: str


def ask(rng: Random, scene: Scene, in_french: float) -> Asked:
    """A question about the scene. `in_french` is the probability that it is put in French."""
    while True:
        fact = facts(rng, scene)
        if rng.random() >= in_french:
            return Asked(fact.kind, fact.question, answer(fact, scene))
        if (question := french_question(rng, fact)) is not None:
            return Asked(f"{fact.kind}, French", question, answer(fact, scene))


def answer(fact: Fact, scene: Scene) -> str:
    match fact.kind:
        case kind if kind in YES_OR_NO:
            return "oui" if fact.answer == "yes" else "non"
        case "colour" | "size":
            return agreeing(fact.answer, _subject(fact).feminine)
        case "shape" | "extreme":
            return _phrase(fact.answer).a()
        case "place":
            return PLACES[fact.answer]
        case "count":
            return _number(fact)
        case "describe":
            return caption(scene, "short")
        case "read none":
            return "rien"
    return fact.answer  # what is printed is read as it is


def french_question(rng: Random, fact: Fact) -> str | None:
    """The same question in French; None where it asks for what has no French name here."""
    words = _words(rng, fact)
    if words is None:
        return None
    kind = "read number" if fact.kind == "read" and "number" in fact.question.lower() else fact.kind
    question = capitalized(rng.choice(QUESTIONS[kind]).format(**words))
    chance = rng.random()
    if chance < 0.1:
        return question[:-1].rstrip()
    return question.replace(" ?", "?") if chance < 0.3 else question


def _words(rng: Random, fact: Fact) -> dict[str, str] | None:
    """What the forms of the question may name."""
    if fact.kind == "extreme":
        sides = {
            "left": "left",
            "right": "right",
            "top": "top",
            "high": "top",
            "bottom": "bottom",
            "low": "bottom",
        }
        side = next(side for word, side in sides.items() if word in fact.question.lower())
        return {"side": SIDES[side]}
    if not fact.evidence:
        return {}
    subject = Phrase.read(fact.evidence[0][0])
    if subject is None:
        return {"a": rng.choice(OTHER_THINGS)} if fact.kind == "presence" else None
    feminine = subject.feminine
    words = {
        "the": subject.the(),
        "The": capitalized(subject.the()),
        "of_the": subject.of_the(),
        "a": subject.a(),
        "of_many": subject.of_many(),
        "it": subject.pronoun,
        "big": agreeing("big", feminine),
        "small": agreeing("small", feminine),
    }
    if fact.kind == "is colour":
        words["colour"] = agreeing(fact.question.removesuffix("?").split()[-1], feminine)
    if fact.kind == "relation":
        found = ENGLISH_RELATION.fullmatch(fact.question)
        assert found is not None
        words |= {"relation": RELATIONS[found[2]], "of_other": _phrase(found[3]).of_the()}
    return words


def _subject(fact: Fact) -> Phrase:
    return _phrase(fact.evidence[0][0])


def _phrase(words: str) -> Phrase:
    phrase = Phrase.read(words)
    assert phrase is not None, words
    return phrase


def _number(fact: Fact) -> str:
    """The word for what was counted: "une" étoile, "un" cercle."""
    if fact.answer == "1" and _subject(fact).feminine:
        return "une"
    return NUMBERS[int(fact.answer)]
