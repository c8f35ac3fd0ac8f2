"""How a question may be written: alternatives in brackets, and what people do to spelling and punctuation.

"[What's|What is] in the picture?" is one of two sentences; brackets may hold brackets, and an empty part.
"""

import re
from random import Random

INNERMOST = re.compile(r"\[([^\[\]]*)\]")

BRITISH = (("color", "colour"), ("gray", "grey"), ("center", "centre"), ("airplane", "aeroplane"))
LEADS = (
    "Please tell me: ", "Can you tell me: ", "Hey, ", "OK, ", "Excuse me, ", "Hi! ", "Quick question: ",
    "Could you tell me ", "I wonder, ", "So, ", "Now ", "Please, ", "Tell me, ", "And ", "Question: ",
)  # fmt: skip
TAILS = (", please", " please", ", thanks", " Thanks!", " pls", " thank you")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def chosen(rng: Random, template: str) -> str:
    """One of the sentences that the template stands for."""
    while (found := INNERMOST.search(template)) is not None:
        part = rng.choice(found[1].split("|"))
        template = template[: found.start()] + part + template[found.end() :]
    return re.sub(r" +", " ", template).strip()


def number_of(template: str) -> int:
    """How many sentences a template stands for, the same ones counted twice."""
    count = 1
    while (found := INNERMOST.search(template)) is not None:
        count *= found[1].count("|") + 1
        template = template[: found.start()] + template[found.end() :]
    return count


def casual(rng: Random, question: str) -> str:
    """The question as somebody may type it."""
    if rng.random() < 0.3:
        for american, british in BRITISH:
            question = question.replace(american, british)
    if rng.random() < 0.06:
        question = rng.choice(LEADS) + question[0].lower() + question[1:]
    elif rng.random() < 0.05:
        bare, mark = question.rstrip("?.!"), question[-1:]
        question = bare + rng.choice(TAILS) + (mark if rng.random() < 0.6 else "")
    if rng.random() < 0.05:
        question = mistyped(rng, question)
    return punctuated(rng, question)


def punctuated(rng: Random, question: str) -> str:
    chance = rng.random()
    if chance < 0.14:
        return question.rstrip("?.!")
    if chance < 0.16:
        return question + rng.choice(("?", "!", "??"))
    if chance < 0.175:
        return f"{question.rstrip('?.!')} {question[-1]}"
    if chance < 0.185:
        return question.replace("'", "")
    if chance < 0.195:
        return f" {question}" if rng.random() < 0.5 else question.replace(" ", "  ", 1)
    if chance < 0.21 and question.endswith("?"):
        return question[:-1] + "."
    return question


def mistyped(rng: Random, question: str) -> str:
    """One word of four letters or more with a slip of the finger."""
    words = list(re.finditer(r"[A-Za-z]{4,}", question))
    if not words:
        return question
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    before, letter, after = question[:at], question[at], question[at + 1 :]
    match rng.choice(("swap", "drop", "double", "other")):
        case "swap":
            return before + after[0] + letter + after[1:]
        case "drop":
            return before + after
        case "double":
            return before + 2 * letter + after
    return before + rng.choice(LETTERS) + after
