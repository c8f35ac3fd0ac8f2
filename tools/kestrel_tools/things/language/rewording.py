"""The same question in other words, for training: `reworded` takes a fact as the score asks it. No torch.

A question that `questions.asked` made knows what it was made of, and is made again from templates that the
score never uses; any other keeps its words. Either gets what people write around a question, and is typed as
they type. Nothing of the answer changes, and what is printed in the picture is spelt as it is there.
"""

import re
from collections.abc import Sequence
from random import Random

from .fact import Fact
from .manners import typed
from .more.frames import FRAMES
from .questions import Asking, Question, Subject, filled, with_subject
from .spelling import ASKING, BRITISH, CLOSINGS, OPENINGS, chosen

LEFT_ALONE = 0.2  # of the questions are asked as in the score
OTHERWISE = 0.65  # of the others are put in other words, where there are any
BEFORE, AFTER, SHORT = 0.12, 0.08, 0.05  # have words before them, behind them, or say how short to answer
STRESSED = 0.04  # of those in other words have a name in quotes or in capitals
IN_BRITAIN = 0.3
BEFORE_ANY = (*OPENINGS, *FRAMES["before"])
BEFORE_WH = (*ASKING, *FRAMES["asking"])
AFTER_ANY = (*CLOSINGS, *FRAMES["after"])
QUOTED = re.compile(r'"[^"]*"')
NAME = re.compile(r"(?<=[a-z,:] )[A-Z0-9]\S*[\w%]")  # such as the label of a bar
LOOSE = re.compile(r" +(?=[?.,:!])")  # what an empty part leaves before a mark
FIRST_HIDDEN = 0xE000  # of the letters that nobody types
LONG_ANSWERS = ("describe", "name", "cannot tell", "absent", "talk")


def reworded(rng: Random, fact: Fact) -> Fact:
    """The fact with its question put as one of many people would put it."""
    if rng.random() < LEFT_ALONE:
        return fact
    form = _form(fact) if rng.random() < SHORT else ""
    question = put_otherwise(rng, fact.question, form)
    # Who wants the number alone does not ask for a sentence.
    return fact._replace(question=question, sentence="" if form else fact.sentence)


def put_otherwise(rng: Random, question: str, form: str = "") -> str:
    """The question in other words, where it has any, and as somebody types it.

    `form` names the frame that says how short the answer is to be.
    """
    asking = question.asking if isinstance(question, Question) else Asking(question)
    plain = asking.plain
    if asking.more and rng.random() < OTHERWISE:
        plain = _otherwise(rng, asking)
    kept = [*QUOTED.findall(plain), *NAME.findall(plain)]
    if asking.exact:
        kept += [*asking.subjects, *(subject[:1].upper() + subject[1:] for subject in asking.subjects)]
    kept.sort(key=len, reverse=True)
    plain = _hidden(plain, kept)
    if rng.random() < IN_BRITAIN:
        for american, british in BRITISH:
            plain = plain.replace(american, british)
    framed = LOOSE.sub("", _framed(rng, plain, form))
    return _shown(typed(rng, framed), kept)


def _otherwise(rng: Random, asking: Asking) -> str:
    template = rng.choice(with_subject(asking.more) if asking.named else asking.more)
    subjects = [Subject(subject) for subject in asking.subjects]
    if subjects and not asking.exact and rng.random() < STRESSED:
        at = rng.randrange(len(subjects))
        subjects[at] = _stressed(rng, subjects[at])
    return filled(rng, template, subjects, asking.many)


def _stressed(rng: Random, subject: Subject) -> Subject:
    """The "dog", or the DOG; not a place, which may be one of several in brackets."""
    if "[" in subject:
        return subject
    bare = f"{subject:bare}"
    return Subject(subject.removesuffix(bare) + (f'"{bare}"' if rng.random() < 0.5 else bare.upper()))


def _framed(rng: Random, question: str, form: str) -> str:
    if rng.random() < BEFORE:
        begun = question[:1].lower() + question[1:]
        asks = begun.startswith(("what", "which", "where", "how", "who"))
        opening = chosen(rng, rng.choice(BEFORE_WH if asks and rng.random() < 0.4 else BEFORE_ANY))
        question = f"{opening} {begun}"
    if form and "yes or no" not in question.lower():
        return f"{_ended(question)} {chosen(rng, rng.choice(FRAMES[form]))}"
    if rng.random() < AFTER:
        return f"{_ended(question)} {chosen(rng, rng.choice(AFTER_ANY))}"
    return question


def _ended(question: str) -> str:
    return question if question.endswith(("?", ".", "!")) else question + "."


def _form(fact: Fact) -> str:
    if fact.answer in ("yes", "no"):
        return "yes or no"
    if fact.answer.isdigit():
        return "number"
    return "" if fact.kind in LONG_ANSWERS else "short"


def _hidden(question: str, kept: Sequence[str]) -> str:
    for number, words in enumerate(kept):
        question = question.replace(words, chr(FIRST_HIDDEN + number)) if words else question
    return question


def _shown(question: str, kept: Sequence[str]) -> str:
    for number, words in enumerate(kept):
        question = question.replace(chr(FIRST_HIDDEN + number), words)
    return question
