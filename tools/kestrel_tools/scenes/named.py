"""Which things a caption speaks of, and how many of each."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from kestrel_tools.things.names import NUMBERS, nouns, plural

from .world import COLOURS, SHAPES

COUNTS = {name: number for number, name in enumerate(NUMBERS) if number}


def named(text: str, texts: Sequence[str] = ()) -> Counter[str]:
    """The coloured shapes and the things, each as often as it is said to be there: "two dogs" are two.

    `texts` are printed in the picture: a caption that quotes them names nothing by it.
    """
    for printed in sorted(texts, key=len, reverse=True):
        text = re.sub(rf"(text|says|,) {re.escape(printed)}", r"\1", text)
    pattern, singular = _pattern()
    found: Counter[str] = Counter()
    for match in pattern.finditer(text[:1].lower() + re.sub(r"\. [A-Z]", lambda m: m[0].lower(), text[1:])):
        number, name = match["number"], match["name"]
        found[singular[name]] += COUNTS.get(number, 1)
    return found


@cache
def _pattern() -> tuple[re.Pattern[str], dict[str, str]]:
    names = [noun.name for noun in nouns()] + [f"{colour} {shape}" for colour in COLOURS for shape in SHAPES]
    singular = {form: name for name in names for form in (plural(name), name)}
    # Longer ones first: a hot dog is no dog.
    forms = "|".join(map(re.escape, sorted(singular, key=len, reverse=True)))
    return re.compile(rf"\b(?:(?P<number>{'|'.join(COUNTS)}) )?(?P<name>{forms})\b"), singular
