"""French for the small world: nouns and their gender, adjectives that agree, numbers, places, captions.

The world itself is English (`kestrel_tools.scenes`): a `Phrase` reads its words, and says them in French.
"""

import unicodedata
from typing import NamedTuple, Self

from kestrel_tools.scenes.facts import place
from kestrel_tools.scenes.phrases import plural
from kestrel_tools.scenes.world import Scene, Thing


class Noun(NamedTuple):
    one: str
    many: str
    feminine: bool

    @property
    def elides(self) -> bool:
        """Whether "le" and "de" lose their vowel before it."""
        return self.one[0] in "aeéo"


NOUNS = {
    "circle": Noun("cercle", "cercles", False),
    "square": Noun("carré", "carrés", False),
    "triangle": Noun("triangle", "triangles", False),
    "star": Noun("étoile", "étoiles", True),
    "cross": Noun("croix", "croix", True),
    "ring": Noun("anneau", "anneaux", False),
    "diamond": Noun("losange", "losanges", False),
    "heart": Noun("cœur", "cœurs", False),
    "shape": Noun("forme", "formes", True),
    "object": Noun("objet", "objets", False),
    "thing": Noun("chose", "choses", True),
}
# Masculine and feminine. Those named after a thing never change.
ADJECTIVES = {
    "red": ("rouge", "rouge"),
    "orange": ("orange", "orange"),
    "yellow": ("jaune", "jaune"),
    "green": ("vert", "verte"),
    "cyan": ("cyan", "cyan"),
    "blue": ("bleu", "bleue"),
    "purple": ("violet", "violette"),
    "pink": ("rose", "rose"),
    "brown": ("marron", "marron"),
    "black": ("noir", "noire"),
    "gray": ("gris", "grise"),
    "white": ("blanc", "blanche"),
    "small": ("petit", "petite"),
    "big": ("grand", "grande"),
}
NEVER_PLURAL = ("orange", "cyan", "brown")
NUMBERS = ("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit")
PLACES = {
    "top left": "en haut à gauche",
    "top": "en haut",
    "top right": "en haut à droite",
    "left": "à gauche",
    "center": "au centre",
    "right": "à droite",
    "bottom left": "en bas à gauche",
    "bottom": "en bas",
    "bottom right": "en bas à droite",
}
SINGULARS = {plural(noun): noun for noun in NOUNS} | {noun: noun for noun in NOUNS}


def agreeing(adjective: str, feminine: bool, many: bool = False) -> str:
    """The French of an English adjective."""
    form = ADJECTIVES[adjective][feminine]
    return form + "s" if many and adjective not in NEVER_PLURAL and form[-1] != "s" else form


class Phrase(NamedTuple):
    """A noun with its adjectives, such as "big red circle"."""

    noun: Noun
    size: str | None
    colour: str | None

    @classmethod
    def of(cls, thing: Thing, sized: bool = False) -> Self:
        return cls(NOUNS[thing.shape], thing.size if sized else None, thing.colour)

    @classmethod
    def read(cls, words: str) -> Self | None:
        """From English words, with or without an article; None where one of them is not of this world."""
        *adjectives, noun = [word for word in words.split() if word not in ("a", "an", "the")]
        sizes = [word for word in adjectives if word in ("small", "big")]
        colours = [word for word in adjectives if word in ADJECTIVES and word not in sizes]
        if noun not in SINGULARS or len(sizes) + len(colours) < len(adjectives):
            return None
        return cls(NOUNS[SINGULARS[noun]], *(found[0] if found else None for found in (sizes, colours)))

    @property
    def feminine(self) -> bool:
        return self.noun.feminine

    @property
    def pronoun(self) -> str:
        return "elle" if self.feminine else "il"

    def bare(self, many: bool = False) -> str:
        """Without article: a size before the noun, a colour after it."""
        size, colour = (agreeing(a, self.feminine, many) if a else "" for a in (self.size, self.colour))
        return " ".join(filter(None, (size, self.noun.many if many else self.noun.one, colour)))

    def a(self) -> str:
        return f"{'une' if self.feminine else 'un'} {self.bare()}"

    def the(self) -> str:
        if self._elides:
            return f"l'{self.bare()}"
        return f"{'la' if self.feminine else 'le'} {self.bare()}"

    def of_the(self) -> str:
        return f"de {self.the()}" if self.feminine or self._elides else f"du {self.bare()}"

    def of_many(self) -> str:
        return f"d'{self.bare(True)}" if self._elides else f"de {self.bare(True)}"

    @property
    def _elides(self) -> bool:
        return self.size is None and self.noun.elides


def without_accents(text: str) -> str:
    """As it was telegraphed: "carre", "etoile", "coeur", "a gauche"."""
    letters = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "OE"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def caption(scene: Scene, length: str) -> str:
    """What `kestrel_tools.scenes.facts.caption_text` says, in French."""
    printed = scene.print.text if scene.print else ""
    if not scene.things:
        return f"Seulement le texte {printed}." if printed else "Une image vide."
    if length == "short":
        names = [Phrase.of(thing).a() for thing in scene.things] + [f"le texte {printed}"] * bool(printed)
        return f"{capitalized(_listed(names))}."
    names = [Phrase.of(thing, sized=True).a() for thing in scene.things]
    if length == "normal":
        sentences = [
            f"De gauche à droite : {_listed(names)}." if len(names) > 1 else capitalized(names[0]) + "."
        ]
    else:
        count = "une forme" if len(names) == 1 else f"{NUMBERS[len(names)]} formes"
        places = [PLACES[place(thing)] for thing in scene.things]
        sentences = [f"Il y a {count}."]
        sentences += [f"{capitalized(name)} {where}." for name, where in zip(names, places, strict=True)]
    return " ".join(sentences + [f"Le texte dit {printed}."] * bool(printed))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} et {names[-1]}"
