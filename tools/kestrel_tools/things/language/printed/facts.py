"""What may be asked about print beside reading all of it: colours, places, words, numbers. No torch."""

import re
from functools import lru_cache
from itertools import pairwise
from random import Random

import numpy as np

from kestrel_tools.scenes.world import COLOUR_NAMES, Rgb
from kestrel_tools.things.colour import names_of as colours_of
from kestrel_tools.things.language.fact import ORDINALS, Fact, texts_of
from kestrel_tools.things.language.places import PARTS, in_part
from kestrel_tools.things.language.questions import COLOUR, PICTURE
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.lettering import KNOWN, PLACES
from kestrel_tools.things.scene import Line, Scene

QUESTIONS: dict[str, tuple[str, ...]] = {
    "read at length": (
        "[Could|Can] you [please|kindly|] [read|tell me] what [is written|it says] [here|on it|there|]?",
        f"[Could|Can|Would] you [please|] tell me what the [text|writing] in [the|this] {PICTURE} says?",
        "[Could|Can|Would] you [please|] read [this|it|the text] [to me|for me|out|out loud|aloud|][?|.|]",
        "[I can't|I cannot] read [this|it], what does it say?",
        "[I don't have my glasses|I forgot my glasses|My eyes are bad], what [is written here|does it say]?",
        "What [does|do] the [letters|sign|writing|print|label|words] [say|spell|read]?",
        "What's it say?",
        "What [is|was] [written|printed] [on the sign|on this|on there|in the picture|]?",
        f"What [words are|text is] [on|in] [the|this] {PICTURE}?",
        "[Spell|Type|Write down|Copy] [the text|the words|what is written|what it says] [please|][.|]",
        "What message is [written|shown] [here|there]?",
        "[Text|Words|OCR][?|]",
        "Which letters [do you see|are there|can you see]?",
    ),
    "text colour": (
        f"[What|Which] {COLOUR} is the [text|writing|print|lettering|word|caption]?",
        f"[What's|What is] the {COLOUR} of the [text|writing|letters|print|lettering]?",
        f"[What|Which] {COLOUR} are the letters?",
        f"In [what|which] {COLOUR} is [it|the text] [written|printed]?",
        f"[What|Which] {COLOUR} is the [text|writing] [in|printed in|written in]?",
        f"[What|Which] {COLOUR} does the [text|writing|print] have?",
        f"[Tell me|Name] the text {COLOUR}.",
    ),
    "word colour": (
        f"[What|Which] {COLOUR} is [the word|the text|] {{}}?",
        f"[What's|What is] the {COLOUR} of [the word|the text|the writing] {{}}?",
        f"In [what|which] {COLOUR} is {{}} [written|printed]?",
        f"[What|Which] {COLOUR} is it where it says {{}}?",
    ),
    "text red or": (
        "Is the [text|writing|print|word] {} or {}?",
        "Are the letters {} or {}?",
        f"[What|Which] {COLOUR} is the [text|writing], {{}} or {{}}?",
    ),
    "is text": ("Is the [text|writing|print|word] {}?", "Are the letters {}?", "Is it written in {}?"),
    "coloured text": (
        "[What|Which] [word|text] is [written in|printed in|] {}?",
        "What does the {} [text|word|writing|print] say?",
        "What is written in {}?",
        "Read the {} [text|word].",
        "What do the {} letters say?",
    ),
    "text at": (
        "[What's|What is] [written|printed] {}?",
        "What does it say {}?",
        "What does the [text|word|writing] {} say?",
        "[What|Which] [word|text] is {}?",
        "Read [the text|the word|what is written|what it says] {}.",
        "What [text|writing] do you see {}?",
        f"[What's|What is] written {{}} of [the|this] {PICTURE}?",
        "{}, what does it say?",
    ),
    "line": (
        "What does the {} [line|text] say?",
        "[What's|What is] the {} [line|text]?",
        "Read [me|] [only|just|] the {} [line|text].",
        "[What's|What is] [written|printed] in the {} line?",
        "What is the {} [text|thing written|line of text]?",
    ),
    "number of words": (
        "How many words are [there|written|printed|shown|in the picture|in this image]?",
        "How many words [do you see|can you see|does it have]?",
        "Count the words.",
        "[What's|What is] the number of words?",
        "How many words can you read?",
    ),
    "number of texts": (
        "How many [lines|texts|lines of text|pieces of text] are [there|written|printed|shown]?",
        "How many [lines of text|texts] [do you see|can you see]?",
        "Count the [lines of text|texts].",
    ),
    "says": (
        "Does it say {}?",
        "Does [the|this] [text|sign|writing|word] say {}?",
        "Is [the word|] {} [written|printed] [here|there|]?",
        f"Do you see the word {{}} [in [the|this] {PICTURE}|here|]?",
        "Can you read [the word|] {} [somewhere|here|anywhere|]?",
        "Is there the word {}?",
        "It says {}, right?",
        "Does it [really|] read {}?",
        "Is {} what it says?",
    ),
    "says or": (
        "Does it say {} or {}?",
        "Is it {} or {} that is written here?",
        "Does the [text|sign|word] say {} or {}?",
        "[Which|What] is written [here|], {} or {}?",
        "What does it say: {} or {}?",
    ),
    "number": (
        "[What|Which] number [do you see|can you see|is [shown|written|printed|there|visible]]?",
        "[What's|What is] the number [here|in the picture|on it|]?",
        "[Read|Tell me|Give me] the number.",
        "[What|Which] number does it say?",
        "Is there a number? Which one?",
        "What number can be seen [here|in this image]?",
        "What's the [digit|figure|number] [here|there|]?",
    ),
    "price": (
        "[What's|What is] the price?",
        "How much [is it|does it cost|is that|] [according to the sign|here|]?",
        "[What|Which] price is [shown|written|printed|given]?",
        "What does it cost?",
        "How many dollars [is it|does it say]?",
        "What price does it say?",
    ),
    "time": (
        "[What|Which] time is [shown|written|printed|given] [here|]?",
        "[What|Which] time does it say?",
        "What time is [written|printed] there?",
        "Read the time.",
    ),
    "numbered": (
        "[What|Which] {} is [it|this|that|written there|shown|printed|mine]?",
        "[What's|What is] the {} number?",
        "[What|Which] {} [does it say|do I need|should I go to|do I have to find]?",
        "[Where|Which {}] is it? I need the {} number.",
        "Number of the {}?",
        "[What|Which] {} [are we|am I|is that] [at|looking for|]?",
    ),
    "is open": (
        "Is [it|this place|the place|the store|this] [open|open now|open today]?",
        "[Are they|Are you] open [or not|now|]?",
        "Can [I|we] [go in|enter|come in]?",
    ),
    "is closed": ("Is [it|this place|the store|this] closed [now|today|]?", "[Are they|Have they] closed?"),
    "open or": (
        "Is [it|this place|the place|the store] open or closed?",
        "Open or closed?",
        "Is [it|the store] closed or open?",
    ),
    "percentage": (
        "[What|Which] [percentage|percent] is [shown|written|printed|given]?",
        "How many percent [does it say|is it|are written there]?",
        "What percentage do you see?",
    ),
}  # fmt: skip
PATTERNS = {"number": r"(?:No\. )?(\d+)%?", "price": r"\$.*", "time": r"\d+:\d+", "percentage": r"\d+%"}
APART = 0.08  # of the picture, between two lines of which one is the upper


def asked(rng: Random, kind: str, *subjects: str, exact: bool = False) -> str:
    return asked_of(rng, kind, *subjects, exact=exact, among=QUESTIONS)


@lru_cache(4096)
def ink_name(rgb: Rgb) -> str:
    """The colour of print, or an empty name where people may differ."""
    return str(colours_of(np.array([rgb]))[0])


def about_print(rng: Random, scene: Scene) -> Fact | None:
    """One of the questions that the print of a scene allows."""
    if not scene.lines:
        return None
    return rng.choice(MAKERS)(rng, scene)


def politely(rng: Random, scene: Scene) -> Fact:
    text = texts_of(scene)
    return Fact(
        "read", asked(rng, "read at length"), text, f"The text says {text}.", (("the text", scene.lines),)
    )


def colour(rng: Random, scene: Scene) -> Fact | None:
    line = rng.choice(scene.lines)
    name = ink_name(line.rgb)
    if not name:
        return None
    evidence, chance = (("the text", (line,)),), rng.random()
    if len(scene.lines) > 1:
        names = [ink_name(other.rgb) for other in scene.lines]
        if chance < 0.5 and all(names) and names.count(name) == 1:
            return Fact("read part", asked(rng, "coloured text", name), line.text, evidence=evidence)
        if [other.text.lower() for other in scene.lines].count(line.text.lower()) > 1:
            return None
        return Fact("text colour", asked(rng, "word colour", line.text, exact=True), name, evidence=evidence)
    other = rng.choice([one for one in COLOUR_NAMES if one != name])
    if chance < 0.2:
        pair = (name, other) if rng.random() < 0.5 else (other, name)
        return Fact("text colour", asked(rng, "text red or", *pair), name, evidence=evidence)
    if chance < 0.35:
        yes = rng.random() < 0.5
        question = asked(rng, "is text", name if yes else other)
        return Fact("text colour", question, "yes" if yes else "no", evidence=evidence)
    if chance < 0.6:
        return Fact("text colour", asked(rng, "word colour", line.text, exact=True), name, evidence=evidence)
    return Fact("text colour", asked(rng, "text colour"), name, f"The text is {name}.", evidence)


def placed(rng: Random, scene: Scene) -> Fact | None:
    """What is written in a part of the picture."""
    for part in rng.sample(PARTS, 4):
        there = in_part(part, scene.lines)
        if there is None or (not there and rng.random() < 0.8):
            continue
        lines = [line for line in there if isinstance(line, Line)]
        answer = ", ".join(line.text for line in lines) or "nothing"
        evidence = (("the text", tuple(lines)),)
        return Fact("read part", asked(rng, "text at", part.words), answer, evidence=evidence)
    return None


def nth(rng: Random, scene: Scene) -> Fact | None:
    """What the upper or the last line says."""
    lines = scene.lines
    heights = [line.centre[1] for line in lines]
    if len(lines) < 2 or any(b - a < APART for a, b in pairwise(heights)):
        return None
    at = rng.randrange(len(lines))
    words = [*ORDINALS[at : at + 1]]
    if at == 0:
        words += ["top", "upper" if len(lines) == 2 else "uppermost", "highest"]
    if at == len(lines) - 1:
        words += ["last", "bottom", "lower" if len(lines) == 2 else "lowest"]
    if not words:  # of a long page
        return None
    question = asked(rng, "line", rng.choice(words))
    return Fact("read part", question, lines[at].text, evidence=(("the text", (lines[at],)),))


def number_of(rng: Random, scene: Scene) -> Fact | None:
    """How many words, or lines."""
    words = [word for line in scene.lines for word in line.text.split()]
    evidence = (("texts", scene.lines),)
    if rng.random() < 0.3:
        return Fact("count", asked(rng, "number of texts"), str(len(scene.lines)), evidence=evidence)
    if not all(word.rstrip("!").isalpha() for word in words):
        return None
    return Fact("number of words", asked(rng, "number of words"), str(len(words)), evidence=evidence)


def says(rng: Random, scene: Scene) -> Fact | None:
    """Whether it says a word, or which of two it says."""
    line = rng.choice(scene.lines)
    texts = {other.text.lower() for other in scene.lines}
    texts |= {word.strip("!").lower() for text in texts for word in text.split()}
    wrong = unlike(rng, line.text)
    if wrong.lower() in texts:
        return None
    evidence = (("the text", (line,)),)
    if rng.random() < 0.3:
        pair = (line.text, wrong) if rng.random() < 0.5 else (wrong, line.text)
        return Fact("read part", asked(rng, "says or", *pair, exact=True), line.text, evidence=evidence)
    yes = rng.random() < 0.5
    question = asked(rng, "says", line.text if yes else wrong, exact=True)
    return Fact("says", question, "yes" if yes else "no", evidence=evidence)


def unlike(rng: Random, text: str) -> str:
    """A word that is not the text; now and then nearly."""
    if rng.random() < 0.4 and len(text) > 1:
        at = rng.randrange(len(text))
        letters = "0123456789" if text[at].isdigit() else "abcdefghijklmnopqrstuvwxyz"
        return text[:at] + rng.choice(letters) + text[at + 1 :]
    return str(rng.randrange(1000)) if text.isdigit() and rng.random() < 0.7 else rng.choice(KNOWN)


def figure(rng: Random, scene: Scene) -> Fact | None:
    """The number, price, time or percentage, where one line is of that sort."""
    digits = [line for line in scene.lines if any(letter.isdigit() for letter in line.text)]
    if len(digits) != 1:
        return None
    [line] = digits
    matches = ((sort, re.fullmatch(pattern, line.text)) for sort, pattern in PATTERNS.items())
    sorts = [(sort, match[match.re.groups]) for sort, match in matches if match]
    if not sorts:
        return None
    sort, text = rng.choice(sorts)  # 25% is a percentage, and its number is 25
    return Fact("read part", asked(rng, sort), text, evidence=(("the text", (line,)),))


def numbered(rng: Random, scene: Scene) -> Fact | None:
    """Which gate or room it is, where one line tells."""
    named = [line for line in scene.lines if line.text.lower().split()[0] in PLACES]
    if len(named) != 1:
        return None
    [line] = named
    word, _, number = line.text.lower().partition(" ")
    if not number.isdigit():
        return None
    question = asked(rng, "numbered", word, word)
    return Fact("read part", question, number, evidence=(("the text", (line,)),))


def is_open(rng: Random, scene: Scene) -> Fact | None:
    """Whether a place is open, where its sign tells."""
    found = [line for line in scene.lines if line.text.lower() in ("open", "closed")]
    if len(found) != 1:
        return None
    state, kind = found[0].text.lower(), rng.choice(("is open", "is open", "is closed", "open or"))
    answer = state if kind == "open or" else "yes" if kind.endswith(state) else "no"
    return Fact("says", asked(rng, kind), answer, evidence=(("the text", (found[0],)),))


def by_what_it_says(rng: Random, scene: Scene) -> Fact | None:
    return numbered(rng, scene) or is_open(rng, scene)


MAKERS = (
    politely,
    politely,
    politely,
    politely,
    colour,
    colour,
    colour,
    placed,
    placed,
    nth,
    nth,
    number_of,
    says,
    says,
    figure,
    figure,
    by_what_it_says,
    by_what_it_says,
    by_what_it_says,
)
