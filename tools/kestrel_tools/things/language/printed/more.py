"""What else may be asked about print: its letters and words, figures, what words mean, what is beside it.

Of scenes with a few printed lines; pages and cards have their own questions. No torch.
"""

import re
from collections.abc import Callable
from random import Random

from kestrel_tools.things.language.fact import ORDINALS, Fact, yes_no
from kestrel_tools.things.language.printed.facts import PATTERNS, unlike
from kestrel_tools.things.language.questions import asked as asked_of
from kestrel_tools.things.language.spelling import LETTERS
from kestrel_tools.things.language.wanted import only
from kestrel_tools.things.lettering import KNOWN, PLACES, is_known
from kestrel_tools.things.scene import Line, Scene

from . import lacking, looks
from .looks import LARGER, TELLING
from .more_words import ONE_LINE
from .more_words import QUESTIONS as OF_PRINT
from .sign_words import AKIN
from .sign_words import MEANING_OF as MEANING_OF
from .sign_words import QUESTIONS as OF_SIGNS
from .where import apart, is_print, nearest, side_of

QUESTIONS = {**OF_PRINT, **OF_SIGNS}
UNITS = {
    "km": "distance", "kg": "weight", "cm": "length", "mph": "speed", "c": "temperature", "eur": "price",
    "am": "time", "pm": "time",
}  # fmt: skip
SAID = {
    "above": "[above|over|on top of]",
    "below": "[below|under|beneath|underneath]",
    "left of": "[left of|to the left of]",
    "right of": "[right of|to the right of]",
}


def asked(rng: Random, kind: str, *subjects: str) -> str:
    """The words of print are spelt as they are."""
    return asked_of(rng, kind, *subjects, exact=True, among=QUESTIONS)


def _part(question: str, answer: str, *lines: Line) -> Fact:
    return Fact("read part", question, answer, evidence=(("the text", lines),))


def _of_line(rng: Random, kind: str, line: str, *subjects: str) -> str:
    """Asked of the first or the last line, or of the only one if none is named."""
    if line and f"{kind} of line" in QUESTIONS and rng.random() < 0.5:
        return asked(rng, f"{kind} of line", line, *subjects)
    return asked(rng, kind, ONE_LINE.format(line) if line else "", *subjects)


def letters(rng: Random, scene: Scene) -> Fact | None:
    """The first letter, how many there are, how it is spelt: of the only line, or of one of several."""
    if not is_print(scene) or not apart(scene.lines):
        return None
    at = rng.randrange(len(scene.lines))
    line, where = scene.lines[at], ""
    if len(scene.lines) > 1:
        last = at == len(scene.lines) - 1
        words = [ORDINALS[at], *(["top"] if at == 0 else ["bottom", "last"] if last else [])]
        where = rng.choice(words)
    text = line.text.rstrip("!")
    if text.isdigit():
        kind = rng.choice(("number of digits", "first digit", "last digit"))
        answer = {"first digit": text[0], "last digit": text[-1]}.get(kind, str(len(text)))
        return _part(_of_line(rng, kind, where), answer, line) if len(text) > 1 else None
    if not text.isalpha() or len(text) < 2:
        return None
    kinds = ("first letter", "last letter", "nth letter", "number of letters", "spell", "spell")
    kind = rng.choice((*kinds, "has letter", "starts with", "ends with", "count of letter"))
    if kind in ("has letter", "starts with", "ends with"):
        right = {"starts with": text[0], "ends with": text[-1]}.get(kind, rng.choice(text)).lower()
        letter = right if rng.random() < 0.5 else rng.choice(LETTERS)
        yes = letter == right if kind != "has letter" else letter in text.lower()
        said = letter if rng.random() < 0.5 else letter.upper()
        return Fact("says", _of_line(rng, kind, where, said), yes_no(yes), evidence=(("the text", (line,)),))
    if kind == "count of letter":
        letter = rng.choice(text if rng.random() < 0.85 else LETTERS).lower()
        question = _of_line(rng, kind, where, letter if rng.random() < 0.5 else letter.upper())
        return _part(question, str(text.lower().count(letter)), line)
    if kind == "nth letter":
        which = rng.randrange(min(len(text), len(ORDINALS)))
        return _part(_of_line(rng, kind, where, ORDINALS[which]), text[which], line)
    told = {"first letter": text[0], "last letter": text[-1], "spell": "-".join(text)}
    return _part(_of_line(rng, kind, where), told.get(kind, str(len(text))), line)


def words_in(rng: Random, scene: Scene) -> Fact | None:
    """Which word comes first, last or after another, and how many there are."""
    if not is_print(scene) or not apart(scene.lines):
        return None
    words = [word.rstrip("!") for line in scene.lines for word in line.text.split()]
    if not all(word.isalpha() for word in words) or len({word.lower() for word in words}) < len(words):
        return None
    if rng.random() < (0.15 if len(words) > 1 else 0.05):
        return Fact("number of words", asked(rng, "number of words"), str(len(words)))
    if len(words) < 2:
        return None
    by_length = sorted(words, key=len)
    told = {"first word": words[0], "last word": words[-1]}
    if len(by_length[-1]) > len(by_length[-2]) + 1:
        told["longest word"] = by_length[-1]
    if len(by_length[0]) + 1 < len(by_length[1]):
        told["shortest word"] = by_length[0]
    if len(words) > 2:
        told["second word"] = words[1]
    if len(scene.lines) == 1:
        told["word after"], told["word before"] = words[1], words[-2]
    kind = rng.choice(tuple(told))
    other = {"word after": words[0], "word before": words[-1]}.get(kind, "")
    return _part(asked(rng, kind, "", other), told[kind], *scene.lines)


def case(rng: Random, scene: Scene) -> Fact | None:
    """Whether all is in capitals, where the letters show it."""
    if not is_print(scene):
        return None
    every = [letter for line in scene.lines for letter in line.text if letter.isalpha()]
    if len(every) < 2 or TELLING.isdisjoint(letter.lower() for letter in every):
        return None
    upper, lower = all(map(str.isupper, every)), all(map(str.islower, every))
    chance = rng.random()
    if upper != lower and chance < 0.3:
        answer = "capital letters" if upper else "small letters"
        return Fact("case", asked(rng, "capitals or"), answer)
    if chance < 0.8:
        return Fact("case", asked(rng, "in capitals"), yes_no(upper))
    return Fact("case", asked(rng, "in small letters"), yes_no(lower))


def sort_of(rng: Random, scene: Scene) -> Fact | None:
    """Whether it is a word or a number, and whether a number or a price is anywhere."""
    if not is_print(scene):
        return None
    texts = [line.text for line in scene.lines]
    digits = any(letter.isdigit() for text in texts for letter in text)
    chance, evidence = rng.random(), (("the text", scene.lines),)
    if chance < 0.35 and len(texts) == 1:
        word = texts[0].rstrip("!")
        if word.isdigit() or (word.isalpha() and is_known(word)):
            answer = "a number" if word.isdigit() else "a word"
            return Fact("read part", asked(rng, "word or number"), answer, evidence=evidence)
    if chance < 0.8:
        if not digits and chance < 0.58:  # most print has none
            return None
        return Fact("says", asked(rng, "is number"), yes_no(digits), evidence=evidence)
    priced = any(text.startswith("$") for text in texts)
    if priced == digits:  # another number may be a price
        return Fact("says", asked(rng, "is price"), yes_no(priced), evidence=evidence)
    return None


def _numbers(scene: Scene) -> list[tuple[int, Line]] | None:
    """The whole numbers, where nothing else has figures."""
    found = []
    for line in scene.lines:
        match = re.fullmatch(r"(?:no\. )?([1-9]\d{0,3})", line.text.lower())
        if match:
            found.append((int(match[1]), line))
        elif any(letter.isdigit() for letter in line.text):
            return None
    return found


def arithmetic(rng: Random, scene: Scene) -> Fact | None:
    """The number plus one, whether it is even, the larger of two."""
    numbers = _numbers(scene) if is_print(scene) else None
    if not numbers or len(numbers) > 2:
        return None
    (number, line), *others = numbers
    if others:
        [(other, _)] = others
        low, high = sorted((number, other))
        if low == high:
            return None
        told = {"larger number": high, "smaller number": low}
        if high < 100:
            told["sum"] = low + high
        kind = rng.choice(tuple(told))
        lines = tuple(line for _, line in numbers)
        return Fact("sum", asked(rng, kind), str(told[kind]), evidence=(("the numbers", lines),))
    evidence = (("the number", (line,)),)
    chance = rng.random()
    if chance < 0.2:
        answer = "odd" if number % 2 else "even"
        return Fact("sum", asked(rng, "even or odd"), answer, evidence=evidence)
    if chance < 0.45:
        limit = rng.choice((5, 10, 20, 50, 100, 500, 1000, max(1, number - 3), number + 3, 2 * number))
        kind = rng.choice(("larger than", "smaller than"))
        yes = number > limit if kind == "larger than" else number < limit
        question = asked(rng, kind, "", str(limit))
        return Fact("sum", question, yes_no(yes), evidence=evidence) if limit != number else None
    by = rng.choice((1, 1, 2, 5, 10))
    counted = {"plus": number + by, "next number": number + 1, "number before": number - 1}
    if number <= 100:
        counted["double"] = 2 * number
    kind = rng.choice(tuple(counted))
    return Fact("sum", asked(rng, kind, "", str(by)), str(counted[kind]), evidence=evidence)


def figures(rng: Random, scene: Scene) -> Fact | None:
    """The price, time, percentage, year, speed, room or gate, where one line has figures."""
    digits = [line for line in scene.lines if any(letter.isdigit() for letter in line.text)]
    if len(digits) != 1 or not is_print(scene):
        return None
    [line] = digits
    text = line.text
    for kind in ("price", "time", "percentage"):
        if re.fullmatch(PATTERNS[kind], text):
            return _part(asked(rng, kind), text, line)
    if text.isdigit() and 1900 <= int(text) <= 2040:
        return _part(asked(rng, "year"), text, line)
    word, _, rest = text.lower().partition(" ")
    if word in PLACES and rest.isdigit():
        kind = word if word in QUESTIONS and rng.random() < 0.4 else "numbered"
        return _part(asked(rng, kind, "", word), rest, line)
    unit = UNITS.get(rest, "")
    if not word.isdigit() or not unit or (unit == "time" and not 0 < int(word) <= 12):
        return None
    return _part(asked(rng, unit), text, line)


def meaning(rng: Random, scene: Scene) -> Fact | None:
    """Which city, person or day is written, where one word is."""
    if not is_print(scene):
        return None
    known = [
        (kind, word.rstrip("!"), line)
        for line in scene.lines
        for word in line.text.split()
        if (kind := MEANING_OF.get(word.rstrip("!").lower())) is not None
    ]
    kinds = [kind for kind, *_ in known]
    single = [one for one in known if kinds.count(one[0]) == 1 and not {*AKIN.get(one[0], ())} & {*kinds}]
    if not single:
        return None
    kind, word, line = rng.choice(single)
    return _part(asked(rng, kind), word, line)


def mentions(rng: Random, scene: Scene) -> Fact | None:
    """Whether a word is anywhere in the print; some that are not are nearly there."""
    if not is_print(scene):
        return None
    line = rng.choice(scene.lines)
    words = [word.rstrip("!") for word in line.text.split()]
    right = rng.choice(words) if rng.random() < 0.7 else line.text
    yes = rng.random() < 0.5
    said = right if yes else unlike(rng, right) if rng.random() < 0.6 else rng.choice(KNOWN)
    said = said.upper() if right.isupper() else said  # one small letter among capitals would give itself away
    if not yes and any(said.lower().strip() in other.text.lower() for other in scene.lines):
        return None
    kind = "mentions" if said.replace(" ", "").isalpha() else "mentions figure"
    question = asked(rng, kind, "", said if rng.random() < 0.6 else said.lower())
    return Fact("says", question, yes_no(yes), evidence=(("the text", (line,)),))


def headed(rng: Random, scene: Scene) -> Fact | None:
    """The heading, the small print, what is above or below a line; and the only line in many words."""
    if not is_print(scene):
        return None
    lines = scene.lines
    if len(lines) == 1:
        [line] = lines
        if not all(word.rstrip("!").isalpha() for word in line.text.split()):
            return None
        return Fact("read", asked(rng, "name on it"), line.text, evidence=(("the text", lines),))
    heights = sorted(lines, key=lambda line: line.height)
    chance = rng.random()
    if chance < 0.25 and heights[-1] is lines[0] and heights[-1].height > LARGER * heights[-2].height:
        return _part(asked(rng, "heading"), lines[0].text, lines[0])
    if chance < 0.4 and heights[1].height > LARGER * heights[0].height:
        return _part(asked(rng, "small print"), heights[0].text, heights[0])
    if not apart(lines) or len({line.text.lower() for line in lines}) < len(lines):
        return None
    at = rng.randrange(len(lines) - 1)
    kind, said, line = ("line after", *lines[at : at + 2])
    if rng.random() < 0.5:
        kind, said, line = "line before", line, said
    if side_of(scene, said, line) != ("below" if kind == "line after" else "above"):
        return None
    return _part(asked(rng, kind, "", said.text), line.text, line)


def by_things(rng: Random, scene: Scene) -> Fact | None:
    """What is written beside a thing, and which thing is beside what is written."""
    found = only(rng, scene) if is_print(scene) else None
    if found is None:
        return None
    item, the = found[1], f"the {found[0]}"
    line = nearest(scene, item, scene.lines)
    if line is None or nearest(scene, line, scene.items) is not item:
        return None
    sort = "word" if line.text.rstrip("!").isalpha() else "number" if line.text.isdigit() else "text"
    the_text = f"the {sort}" if len(scene.lines) == 1 else f"the {sort} {line.text}"
    side, back = side_of(scene, item, line), side_of(scene, line, item)
    evidence = ((the, (item,)), ("the text", (line,)))
    chance = rng.random()
    if side and chance < 0.25:
        kind = "text above or" if side in ("above", "below") else "text left or"
        return Fact("either", asked(rng, kind, the, the_text), side.split()[0], evidence=evidence)
    if chance < 0.65:
        question = (
            asked(rng, "text by thing", the, SAID[side])
            if side and rng.random() < 0.6
            else asked(rng, "text beside thing", the)
        )
        return Fact("read part", question, line.text, evidence=evidence)
    question = (
        asked(rng, "thing by text", the_text, SAID[back])
        if back and rng.random() < 0.6
        else asked(rng, "thing beside text", the_text)
    )
    return Fact("beside", question, item.name, evidence=evidence)


WEIGHTS: dict[Callable[[Random, Scene], Fact | None], float] = {
    letters: 0.7,
    words_in: 0.8,
    case: 0.2,
    sort_of: 0.3,
    arithmetic: 0.7,
    figures: 2.5,
    meaning: 1.5,
    mentions: 0.4,
    headed: 0.7,
    by_things: 1.4,
    **looks.WEIGHTS,
    **lacking.WEIGHTS,
}
