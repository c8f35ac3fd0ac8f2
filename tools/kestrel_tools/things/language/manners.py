"""How people type: in chat, in a hurry, in a language that is not theirs, as children. No torch.

Every habit takes a question whose words may be changed, and returns it as somebody with that habit types it.
Words that must stay as they are were taken out before: see `rewording`.
"""

import re
from collections.abc import Callable
from functools import cache
from random import Random

from kestrel_tools.scenes.world import COLOUR_NAMES, SHAPES, SIZES
from kestrel_tools.things.names import KINDS, NUMBERS, nouns, plural

from .spelling import mistyped, punctuated

WORD = re.compile(r"[a-z']+")
ARTICLE = re.compile(r"\b(?:the|an?) (?=\w)", re.IGNORECASE)
CHAT = {
    "you": ("u",), "are": ("r",), "please": ("pls", "plz"), "picture": ("pic",), "image": ("img", "pic"),
    "thanks": ("thx",), "okay": ("ok",), "and": ("n", "&", "and"), "because": ("cuz",), "people": ("ppl",),
    "something": ("smth", "somethin"), "anything": ("anythin",), "know": ("kno", "know"), "your": ("ur",),
    "number": ("nr", "num"), "with": ("w/", "with"), "what": ("wat", "what", "what"), "about": ("abt",),
    "color": ("color", "colr"), "there": ("there", "ther"), "before": ("b4",), "between": ("btwn", "between"),
    "really": ("rly",), "want": ("wanna", "want"), "though": ("tho",), "thing": ("thing", "thingy"),
}  # fmt: skip
CHILDISH = {
    "what": ("wot", "wat", "wut"), "where": ("wer", "whare"), "is": ("iz", "is"), "the": ("da", "the", "teh"),
    "there": ("ther", "dere"), "color": ("culor", "coler"), "picture": ("pikchur", "pichure"),
    "many": ("meny", "meni"), "how": ("hau", "how"), "animal": ("aminal",), "animals": ("aminals",),
    "of": ("ov", "of"), "are": ("ar",), "you": ("yu", "u"), "does": ("duz",), "which": ("wich",),
    "right": ("rite",), "left": ("lefft", "left"), "small": ("smol",), "big": ("bigg", "big"),
    "thing": ("fing", "ting"), "next": ("nekst",), "please": ("pleese",), "read": ("reed",),
    "tell": ("tel",), "can": ("kan",), "see": ("se", "see"), "say": ("sey",), "says": ("sez",),
}  # fmt: skip
# What those say who think in another language.
FOREIGN = (
    ("how many", "how much"), ("are there", "is there"), ("is there", "there is"), ("do you see", "you see"),
    ("can you see", "you can see"), ("does it", "it"), ("are", "is"), ("what is", "what"), ("what's", "what"),
    ("where is", "where"), ("which", "what"), ("in the picture", "on picture"), ("there are", "there is"),
    ("is the", "the"), ("what color is", "what is color of"), ("please", "pliz"),
)  # fmt: skip


@cache
def known_words() -> frozenset[str]:
    """Words that a slip must not lead to: a boat is no bat."""
    names = [name for noun in nouns() for name in (noun.name, *noun.also)]
    kinds = [word for pair in KINDS.values() for word in pair]
    said = (*names, *map(plural, names), *kinds, *SHAPES, *map(plural, SHAPES), *COLOUR_NAMES, *SIZES)
    return frozenset(word for name in (*said, *NUMBERS) for word in name.split())


def lowered(rng: Random, question: str) -> str:
    return question.lower().rstrip("?.!")


def chatty(rng: Random, question: str) -> str:
    question = _spelt(rng, question.lower().replace("'", ""), CHAT, 0.75)
    return question.rstrip("?.!") if rng.random() < 0.7 else question


def childish(rng: Random, question: str) -> str:
    return _spelt(rng, question.lower().replace("'", "").rstrip("?."), CHILDISH, 0.6)


def _spelt(rng: Random, question: str, otherwise: dict[str, tuple[str, ...]], share: float) -> str:
    def spelling(word: re.Match[str]) -> str:
        ways = otherwise.get(word[0])
        return rng.choice(ways) if ways is not None and rng.random() < share else word[0]

    return WORD.sub(spelling, question)


def foreign(rng: Random, question: str) -> str:
    """Without articles, and now and then in another order."""
    if rng.random() < 0.5:
        said, instead = rng.choice(FOREIGN)
        question = re.sub(rf"\b{said}\b", instead, question, count=1, flags=re.IGNORECASE)
    return ARTICLE.sub("", question) if rng.random() < 0.8 else question


def without_apostrophes(rng: Random, question: str) -> str:
    return question.replace("'", "" if rng.random() < 0.8 else " ")


def slipping(rng: Random, question: str) -> str:
    """One slip of the finger, or two, none of which makes another word that is known here."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        changed = mistyped(rng, question)
        if not known_words().intersection(_words(changed)) - {*_words(question)}:
            question = changed
    return question


def _words(question: str) -> list[str]:
    return re.findall("[a-z]+", question.lower())


def doubled(rng: Random, question: str) -> str:
    """A word twice, one that is no name: "hot hot dogs" may be something."""
    words = question.split(" ")
    at = rng.randrange(len(words))
    if words[at].isalpha() and words[at].lower() not in known_words():
        words.insert(at, words[at].lower() if at else words[at])
    return " ".join(words)


def tight(rng: Random, question: str) -> str:
    """No space after a mark."""
    return re.sub(r"([,.:!?]) (?=\w)", r"\1", question)


def glued(rng: Random, question: str) -> str:
    spaces = [found.start() for found in re.finditer(r"(?<=[a-z]) (?=[a-z])", question)]
    if not spaces:
        return question
    at = rng.choice(spaces)
    return question[:at] + question[at + 1 :]


def shouting(rng: Random, question: str) -> str:
    return question.upper().rstrip("?.!") + rng.choice(("?", "!", "??", "!!!", "?!", ""))


def trailing(rng: Random, question: str) -> str:
    return question.rstrip("?.!") + rng.choice(
        ("...", "..", "???", " ???", "?!", "!?", " ..", "?..", ":", " ?")
    )


def spaced(rng: Random, question: str) -> str:
    words = question.split(" ")
    wide = "".join(word + rng.choice((" ", " ", " ", "  ")) for word in words).rstrip()
    return rng.choice(("", " ", "\n")) + wide + rng.choice(("", " ", "\n"))


# How often each is seen.
HABITS: dict[Callable[[Random, str], str], float] = {
    punctuated: 0.5,
    lowered: 0.14,
    chatty: 0.1,
    foreign: 0.07,
    slipping: 0.07,
    without_apostrophes: 0.03,
    trailing: 0.02,
    childish: 0.015,
    shouting: 0.015,
    tight: 0.012,
    glued: 0.01,
    doubled: 0.01,
    spaced: 0.008,
}


def typed(rng: Random, question: str) -> str:
    """The question as somebody with one of the habits types it."""
    [habit] = rng.choices(tuple(HABITS), tuple(HABITS.values()))
    return habit(rng, question)
