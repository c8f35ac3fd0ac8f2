"""Foreign names and texts as people are shown them: the nearest known name, short, no control characters."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean max_tokens?`, or a list of all that is known if none is near."""
    name, names = name[:100], list(known)  # comparing takes long for a long name, and none is so long
    by_lower = {one.lower(): one for one in names}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[close[0]]}?" if close else f"; known are {', '.join(names) or 'none'}"


def shown(value: object, limit: int = 80) -> str:
    """A foreign value for an error text: cut short, control characters escaped."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def harmless(text: str) -> str:
    """Without control characters: what a model writes must not steer the terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)
