"""Questions about a scene, as the model knows them, with their French answers."""

from random import Random
from typing import NamedTuple

from kestrel_tools.scenes.facts import Fact, facts
from kestrel_tools.scenes.world import Scene

from .french import COLOURS, NUMBERS, PLACES, Noun, noun_of, sized

YES_OR_NO = ("presence", "is colour", "relation", "has text")
# How many of a kind are kept: fewer of what is learned fast.
SHARES = {
    "count": 0.5,
    "relation": 0.2,
    "read": 0.35,
    "presence": 0.3,
    "is colour": 0.5,
    "size": 0.5,
    "has text": 0.5,
    "shape": 0.7,
    "describe": 0.3,
}
MAX_TRIES = 40  # for each question, where a picture is too simple for that many


class Asked(NamedTuple):
    question: str
    answer: str


def ask(rng: Random, scene: Scene, count: int) -> list[Asked]:
    """So many questions about the scene, none of them twice; fewer where it has no more."""
    found: dict[str, Asked] = {}
    for _ in range(MAX_TRIES * count):
        fact = facts(rng, scene)
        if rng.random() < SHARES.get(fact.kind, 1.0):
            found.setdefault(fact.question, Asked(fact.question, answer(fact)))
        if len(found) == count:
            break
    return [*found.values()]


def answer(fact: Fact) -> str:
    """In French, but for what is printed, which is read as it is, and for descriptions."""
    match fact.kind:
        case kind if kind in YES_OR_NO:
            return "oui" if fact.answer == "yes" else "non"
        case "colour":
            return COLOURS[fact.answer]  # the colour's name, which is masculine whatever has it
        case "size":
            return sized(fact.answer, _named(_subject(fact)))
        case "shape" | "extreme":
            return _named(fact.answer).a()
        case "place":
            return PLACES[fact.answer]
        case "count":
            noun = noun_of(_subject(fact))
            return "une" if fact.answer == "1" and noun and noun.feminine else NUMBERS[int(fact.answer)]
        case "read none":
            return "rien"
    return fact.answer


def _subject(fact: Fact) -> str:
    return fact.evidence[0][0]


def _named(words: str) -> Noun:
    noun = noun_of(words)
    assert noun is not None, words
    return noun
