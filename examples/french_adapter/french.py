"""French for the small world: nouns and their gender, colours, sizes that agree, numbers, places."""

import unicodedata
from typing import NamedTuple

from kestrel_tools.scenes.phrases import plural


class Noun(NamedTuple):
    word: str
    feminine: bool

    def a(self) -> str:
        return f"{'une' if self.feminine else 'un'} {self.word}"


NOUNS = {
    "circle": Noun("cercle", False),
    "square": Noun("carré", False),
    "triangle": Noun("triangle", False),
    "star": Noun("étoile", True),
    "cross": Noun("croix", True),
    "heart": Noun("cœur", False),
    "ring": Noun("anneau", False),
    "diamond": Noun("diamant", False),
    "shape": Noun("forme", True),
    "object": Noun("objet", False),
    "thing": Noun("chose", True),
}
SINGULARS = {plural(noun): noun for noun in NOUNS} | {noun: noun for noun in NOUNS}
COLOURS = {
    "red": "rouge",
    "orange": "orange",
    "yellow": "jaune",
    "green": "vert",
    "cyan": "cyan",
    "blue": "bleu",
    "purple": "violet",
    "pink": "rose",
    "brown": "marron",
    "black": "noir",
    "gray": "gris",
    "white": "blanc",
}
SIZES = {"small": ("petit", "petite"), "big": ("grand", "grande")}  # of masculine and feminine nouns
NUMBERS = ("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit")
# As short as the model's own: "en haut à gauche" is decided one word later than "top left".
PLACES = {
    "top left": "haut gauche",
    "top": "haut",
    "top right": "haut droite",
    "left": "gauche",
    "center": "centre",
    "right": "droite",
    "bottom left": "bas gauche",
    "bottom": "bas",
    "bottom right": "bas droite",
}


def noun_of(words: str) -> Noun | None:
    """Of English words such as "the big red circles", whose last one it is; None if it has no French here."""
    last = words.split()[-1]
    return NOUNS[SINGULARS[last]] if last in SINGULARS else None


def sized(size: str, noun: Noun) -> str:
    """The French of an English size, which agrees with its noun."""
    return SIZES[size][noun.feminine]


def without_accents(text: str) -> str:
    """As it was telegraphed: "carre", "etoile", "coeur", "a gauche"."""
    letters = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "OE"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
