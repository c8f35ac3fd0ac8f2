"""Printed lines: what they say, and how much room they take in a font. No torch."""

import re
from dataclasses import replace
from random import Random
from string import ascii_uppercase

import numpy as np

from kestrel_tools.scenes.world import Rgb

from .atlas import CAPITAL, CHARACTERS, LETTER, Fonts
from .scene import Line, Points, turned
from .vocabulary import MORE_WORDS, OTHER_WORDS, PHRASES, WORDS

MOST_LETTERS = 15  # "Ice cream sales"
LEAST_CAPITAL = 8.5  # a capital's height in pixels, where it is to be read
ORIGIN = 1.0  # pixels left of a letter in its cell
WHOLE = LETTER / CAPITAL  # a cell's height in capitals

KNOWN = (*WORDS, *MORE_WORDS)
# Syllables of words that no list has. A model that knows all words it is shown reads the first letters, and
# guesses the rest.
STARTS = "b bl br c ch cl cr d dr f fl fr g gr h j k l m n p pl pr qu r s sc sh sl sn sp st sw t th tr v w z"
VOWELS = "a a a e e e i i o o u u ai ea ee ie oa oo ou y"
ENDS = "b ck d f g k l ll m n n nd ng nk nt p r r rd rk rn rt s s sh ss st t t th w x"
SYLLABLES = tuple(tuple(part.split()) for part in (STARTS, VOWELS, ENDS))
MOST_MADE_UP = 10  # letters
_LISTED = frozenset(KNOWN)
PLACES = ("gate", "room", "row", "seat", "floor", "table", "track", "exit", "level", "lane", "bus")
UNITS = ("km", "kg", "cm", "m", "l", "mph", "am", "pm", "EUR", "C")


def printed_text(rng: Random) -> str:
    """Words in every case, known or made up, several together, numbers, prices, times, codes and letters."""
    kinds = ("word", "made up", "words", "number", "sign", "code", "letters")
    [kind] = rng.choices(kinds, (31, 9, 25, 13, 9, 5, 8))
    match kind:
        case "word":
            return cased(rng, rng.choice(KNOWN))
        case "made up":
            return cased(rng, made_up(rng))
        case "words":
            several = [any_word(rng) for _ in range(rng.choice((2, 2, 2, 3)))]
            if rng.random() < 0.12:
                several[-1] = str(rng.randrange(100))
            while len(" ".join(several)) > MOST_LETTERS:
                several.pop()
            return cased(rng, " ".join(several))
        case "number":
            return _number(rng)
        case "sign":
            return _sign(rng)
        case "code":
            return _code(rng)
    return "".join(rng.choices(ascii_uppercase, k=rng.randint(2, 5)))


def everyday_text(rng: Random) -> str:
    """As training prints it: what the scores print, and words and phrases that their list lacks."""
    [kind] = rng.choices(("phrase", "word", "words", "other"), (12, 10, 8, 70))
    match kind:
        case "phrase":
            return cased(rng, rng.choice(PHRASES))
        case "word":
            return cased(rng, rng.choice(OTHER_WORDS))
        case "words":
            both = [rng.choice(OTHER_WORDS), any_word(rng)]
            rng.shuffle(both)
            text = " ".join(both)
            return cased(rng, text if len(text) <= MOST_LETTERS else both[0])
    return printed_text(rng)


def any_word(rng: Random) -> str:
    return rng.choice(KNOWN) if rng.random() < 0.78 else made_up(rng)


def made_up(rng: Random) -> str:
    """One to three syllables that can be spoken."""
    starts, vowels, ends = SYLLABLES
    word = ""
    for _ in range(rng.choice((1, 2, 2, 2, 3))):
        start = rng.choice(starts) if word or rng.random() < 0.85 else ""
        word += start + rng.choice(vowels) + (rng.choice(ends) if rng.random() < 0.55 else "")
    return word[:MOST_MADE_UP]


def is_known(text: str) -> bool:
    """Whether it is of words from the list, and of figures."""
    return all(word in _LISTED for word in re.findall("[a-z]+", text.lower()))


def _number(rng: Random) -> str:
    chance = rng.random()
    if chance < 0.15:
        return str(rng.randint(1900, 2040))
    if chance < 0.25:
        return f"{rng.randrange(1, 100)},{rng.randrange(1000):03}"
    if chance < 0.32:
        return f"{rng.randrange(100)}.{rng.randrange(10)}"
    return str(rng.randrange(10 ** rng.randint(1, 5)))


def _sign(rng: Random) -> str:
    forms = (
        f"${rng.randint(1, 99)}.{rng.choice(('00', '50', '95', '99', f'{rng.randrange(100):02}'))}",
        f"{rng.choice((5, 10, 20, 25, 30, 50, 75, 100, rng.randrange(100)))}%",
        f"{rng.randint(0, 23)}:{rng.choice(('00', '15', '30', '45', f'{rng.randrange(60):02}'))}",
        f"No. {rng.randint(1, 99)}",
        f"{cased(rng, any_word(rng))}!",
        f"{rng.randrange(1, 200)} {rng.choice(UNITS)}",
        cased(rng, f"{rng.choice(PLACES)} {rng.randint(1, 60)}"),
        cased(rng, rng.choice(("open", "closed"))),
    )
    return rng.choice(forms)


def _code(rng: Random) -> str:
    """As of rooms, gates, products and plates."""
    letters = "".join(rng.choices(ascii_uppercase, k=rng.randint(1, 3)))
    digits = str(rng.randrange(10 ** rng.randint(1, 3)))
    pair = (letters, digits) if rng.random() < 0.75 else (digits, letters)
    return rng.choice(("", "", "-", " ")).join(pair)


def cased(rng: Random, text: str) -> str:
    return rng.choices((text.upper(), text.title(), text), (45, 30, 25))[0]


def starts_of(fonts: Fonts, font: int, text: str) -> list[float]:
    """Where each letter begins, in pixels of the cells, and where the last ends."""
    advances = fonts.advances[font, [CHARACTERS.index(letter) for letter in text]]
    return [0.0, *np.cumsum(advances).tolist()]


def ink_of(fonts: Fonts, font: int, text: str) -> Points:
    """Corners of every letter's ink about the middle of the line, in heights of a cell."""
    starts, corners = starts_of(fonts, font, text), []
    for start, letter in zip(starts, text, strict=False):
        left, top, right, bottom = fonts.inks[font, CHARACTERS.index(letter)].tolist()
        if right > left:
            left, right = start - ORIGIN + left, start - ORIGIN + right
            corners += [(left, top), (right, top), (left, bottom), (right, bottom)]
    middle = (starts[-1] / 2, LETTER / 2)
    return (np.array(corners) - middle) / LETTER


def reach_of(
    fonts: Fonts, font: int, text: str, height: float, angle: float, unit: tuple[float, float]
) -> tuple[Points, Points]:
    """How far the ink reaches from the middle of the line, as fractions of the picture: least and most."""
    points = turned(ink_of(fonts, font, text), angle) * height * unit
    return points.min(0), points.max(0)


def line_at(
    fonts: Fonts,
    text: str,
    font: int,
    height: float,
    rgb: Rgb,
    unit: tuple[float, float],
    at: tuple[float, float],
    align: tuple[float, float] = (0.5, 0.5),
    angle: float = 0.0,
) -> Line:
    """A line whose ink has its left end, middle or right end (0, 0.5 or 1; so too for y) at a point."""
    low, high = reach_of(fonts, font, text, height, angle, unit)
    x, y = (np.array(at) - low - np.array(align) * (high - low)).tolist()
    line = Line(text, font, x, y, height, angle, rgb, (0.0, 0.0, 0.0, 0.0))
    box = (x + float(low[0]), y + float(low[1]), x + float(high[0]), y + float(high[1]))
    return replace(line, box=box)


def least_height(unit: tuple[float, float], pixels: tuple[int, int]) -> float:
    """Height of a cell whose capitals can be read at `pixels` (height, width)."""
    return LEAST_CAPITAL * WHOLE / min(unit[1] * pixels[0], unit[0] * pixels[1])
