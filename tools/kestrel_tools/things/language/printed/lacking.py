"""What is asked about print that is not there, and about sorts of print that are or are not. No torch."""

import re
from collections.abc import Callable
from random import Random

from kestrel_tools.things.language.fact import CANNOT_TELL, Fact, none_of, yes_no
from kestrel_tools.things.language.questions import CARRIER, COLOUR, PICTURE
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.lettering import KNOWN
from kestrel_tools.things.scene import Scene

from .facts import PATTERNS
from .more_words import WRITING
from .sign_words import AKIN, MEANING_OF
from .where import is_print

QUESTIONS: dict[str, tuple[str, ...]] = {
    # Where nothing is written.
    "of text": (
        f"[What|Which] {COLOUR} is the {WRITING}?",
        f"In [what|which] {COLOUR} is the {WRITING} [printed|written]?",
        f"Where is the {WRITING}?",
        "[What's|What is] the [first|last] [word|letter]?",
        "What does the [first|top|last|bottom] line say?",
        f"Is the {WRITING} [in capitals|in capital letters|tilted|big or small|straight]?",
        "[What's|What is] the [heading|headline|title]?",
        "[Spell|Please spell] the word.",
        f"[What|Which] language is the {WRITING} in?",
        "What does the word mean?",
    ),
    "how many": (
        "How many [words|letters|lines of text|numbers|digits] [are there|do you see|can you read]?",
        "[Count|Please count] the [words|letters|lines of text|numbers].",
    ),
    "says": (
        "Does it say {0} [anywhere|somewhere|]?",
        "Is the word {0} [written|printed] [here|anywhere|somewhere|]?",
        f"Does the word {{0}} appear in [the|this] {PICTURE}?",
        "Can {0} be read [anywhere|here|]?",
    ),
    "open": (
        "Is the [shop|store|place] [open|closed] [now|today|]?",
        "When does the [shop|store] [open|close]?",
    ),
    # Where no figure is written.
    "of number": (
        "[What|Which] number [is shown|is written|do you see|is it|can you read]?",
        "[What's|What is] the number [on it|here|]?",
        "[Read|Tell me] the number.",
        "Is the number [even or odd|more than ten|larger than 50]?",
    ),
    "of price": (
        f"[What|Which] price is [printed|written|given] [there|on the {CARRIER}|]?",
        "[What's|What is] the price [it says|that is written there|on the tag]?",
        "How many dollars does it say?",
    ),
    # {0} is a dollar sign.
    "mark": (
        "Is there {0} [in it|in the text|here|]?",
        "[Do|Can] you see {0} [anywhere|in the text|]?",
        "Does the text [have|contain|include] {0}?",
    ),
    # {0} is a city, an animal.
    "names a": (
        "Does the [text|sign|writing] [name|mention] {0}?",
        "Is [what is written|the word|what it says] the name of {0}?",
        "Is {0} [mentioned|named] in the text?",
        "Did they write the name of {0}?",
    ),
    # {0} is "$10".
    "enough": (
        "Is {0} enough?",
        "Would {0} be enough?",
        "I have {0}[.|,] [Is that enough|Can I buy it|Can I afford it|Is it enough to pay]?",
        "Can I [pay|buy it|get it] with {0}?",
    ),
    "costs more": (
        "Does it cost [more than|over] {0}?",
        "Is [the price|it] [higher than|above|more than|over] {0}?",
    ),
    "costs less": (
        "Does it cost [less than|under] {0}?",
        "Is [the price|it] [lower than|below|less than|under|cheaper than] {0}?",
    ),
    "for two": (
        "How much [do|would] [two|two of them|2] cost?",
        "I [want|need] two[.|:] How much [is that|do I pay|altogether]?",
        "[What's|What is] the price [for|of] two?",
    ),
}  # fmt: skip
MARKS = {
    "!": "an exclamation mark", "$": "a dollar sign", "%": "a percent sign", ":": "a colon", ",": "a comma",
    "-": "a hyphen", "?": "a question mark", "@": "an at sign", "&": "an ampersand",
}  # fmt: skip
A_WORD_OF = {
    "city": "a city", "country": "a country", "name": "a person", "day": "a day of the week",
    "month": "a month", "season": "a season", "animal": "an animal", "drink": "a drink", "food": "a food",
}  # fmt: skip
# What may have figures or letters drawn on it.
PRINTED_ON = frozenset(
    ("clock", "watch", "phone", "laptop", "television", "calendar", "bus", "book", "camera", "taxi")
)
COMMON = 0.3  # how often it is asked about what most print lacks


def asked(rng: Random, kind: str, *subjects: str) -> str:
    """The words of print are spelt as they are."""
    return asked_of(rng, kind, *subjects, exact=True, among=QUESTIONS)


def no_text(rng: Random, scene: Scene) -> Fact | None:
    """A question about print where there is none."""
    if scene.lines or not scene.items or scene.page is not None or scene.cards is not None:
        return None
    if not PRINTED_ON.isdisjoint(item.noun for item in scene.items):
        return None
    chance = rng.random()
    if chance < 0.5:
        return Fact("absent", asked(rng, "of text"), none_of("text"))
    if chance < 0.65:
        return Fact("number of words", asked(rng, "how many"), "0")
    if chance < 0.8:
        return Fact("says", asked(rng, "says", rng.choice(KNOWN)), "no")
    if chance < 0.88:
        return Fact("cannot tell", asked(rng, "open"), CANNOT_TELL)
    return Fact("absent", *_of_figure(rng))


def _of_figure(rng: Random) -> tuple[str, str]:
    word = rng.choice(("number", "number", "price"))
    return asked(rng, f"of {word}"), none_of(word)


def no_number(rng: Random, scene: Scene) -> Fact | None:
    """A question about a number or a price where there are words alone, none of them a number."""
    if not is_print(scene):
        return None
    words = [word for line in scene.lines for word in re.split(r"[ !]+", line.text.lower()) if word]
    if not all(word.isalpha() and MEANING_OF.get(word) != "number word" for word in words):
        return None
    return Fact("absent", *_of_figure(rng), evidence=(("the text", scene.lines),))


def mark(rng: Random, scene: Scene) -> Fact | None:
    """Whether there is a dollar sign, an exclamation mark."""
    if not is_print(scene):
        return None
    every = "".join(line.text for line in scene.lines)
    there = [mark for mark in MARKS if mark in every]
    if not there and rng.random() > COMMON:
        return None
    one = rng.choice(there) if there and rng.random() < 0.65 else rng.choice(tuple(MARKS))
    evidence = (("the text", scene.lines),)
    return Fact("says", asked(rng, "mark", MARKS[one]), yes_no(one in there), evidence=evidence)


def names_a(rng: Random, scene: Scene) -> Fact | None:
    """Whether a city or an animal is named, where it is certain what all the words mean."""
    if not is_print(scene):
        return None
    words = {word for line in scene.lines for word in re.findall("[a-z]+", line.text.lower())}
    meant = {MEANING_OF[word] for word in words if word in MEANING_OF}
    kind = rng.choice(sorted(meant)) if meant and rng.random() < 0.5 else rng.choice(tuple(A_WORD_OF))
    akin = {*AKIN.get(kind, ()), *(other for other, several in AKIN.items() if kind in several)}
    certain = kind in meant or (len(words & MEANING_OF.keys()) == len(words) and not akin & meant)
    if kind not in A_WORD_OF or not meant or not certain:
        return None
    evidence = (("the text", scene.lines),)
    return Fact("says", asked(rng, "names a", A_WORD_OF[kind]), yes_no(kind in meant), evidence=evidence)


def money(rng: Random, scene: Scene) -> Fact | None:
    """Whether some money is enough for the only price, and what two cost."""
    digits = [line for line in scene.lines if any(letter.isdigit() for letter in line.text)]
    if not is_print(scene) or len(digits) != 1 or not re.fullmatch(PATTERNS["price"], digits[0].text):
        return None
    price, evidence = float(digits[0].text[1:]), (("the price", (digits[0],)),)
    if price < 50 and price == int(price) and rng.random() < 0.4:
        return Fact("sum", asked(rng, "for two"), f"${2 * int(price)}.00", evidence=evidence)
    offered = rng.choice((1, 2, 5, 10, 20, 50, 100, max(1, int(price) - 3), int(price) + 4))
    if offered == price:
        return None
    kind = rng.choice(("enough", "enough", "costs more", "costs less"))
    yes = price > offered if kind == "costs more" else price < offered
    return Fact("sum", asked(rng, kind, f"${offered}"), yes_no(yes), evidence=evidence)


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {
    no_text: 0.25,
    no_number: 0.15,
    mark: 0.2,
    names_a: 0.8,
    money: 1.2,
}
