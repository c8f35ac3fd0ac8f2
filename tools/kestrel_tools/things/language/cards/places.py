"""Words for cells and for where they are: the top row, the third card, directly below. No torch."""

from collections.abc import Sequence
from random import Random

from kestrel_tools.things.language.fact import ORDINALS
from kestrel_tools.things.scene import Card, Cards

from .words import CELLS, OTHER_CELLS

# Where print is a number of its own, or a day, "the third one" may be another.
NUMBERED = ("choices", "board", "forecast", "calendar")
LOOSE = ("thing", "item", "object", "article", "option", "choice")
IN_WORDS = {"box": "in", "field": "in", "cell": "in", "square": "in", "picture": "in"}


def words_of(rng: Random, cards: Cards) -> tuple[str, str]:
    """What a cell is called, and what all are."""
    return rng.choice(CELLS.get(cards.kind, OTHER_CELLS))


def framed_of(rng: Random, cards: Cards) -> tuple[str, str]:
    """The same where something is on it, or in it."""
    words = words_of(rng, cards)
    return ("picture", "pictures") if words[0] in LOOSE else words


def is_even(cards: Cards) -> bool:
    """Whether there are columns, not rows alone."""
    return len(cards.rows) > 1 and len({len(row) for row in cards.rows}) == 1 and cards.kind != "shelf"


def flat(cards: Cards) -> list[Card]:
    return [card for row in cards.rows for card in row]


def _steps(at: int, count: int, first: str, last: str, near: str) -> list[str]:
    """Words for one of several rows or columns: "top", "second"; `near` is "upper" where there are two."""
    words = [ORDINALS[at]]
    if at == 0:
        words += [first, first, first, near if count == 2 else f"{first}most"]
    elif at == count - 1:
        words = [last, last, "last"]
    elif count == 3:
        words += ["middle", "middle"]
    return words


def row_words(rng: Random, cards: Cards, at: int) -> str:
    """ "the top row", "the middle shelf"."""
    count = len(cards.rows)
    if cards.kind != "shelf":
        return f"the {rng.choice(_steps(at, count, 'top', 'bottom', 'upper'))} row"
    if at in (0, count - 1):
        return (
            f"the {'top' if at == 0 else rng.choice(('bottom', 'lowest'))} {rng.choice(('shelf', 'board'))}"
        )
    if count == 3 and rng.random() < 0.6:
        return "the middle shelf"
    below = count - 1 - at
    counted, end = (at, "top") if at <= below else (below, "bottom")
    return f"the {ORDINALS[counted]} shelf from the {end}"


def in_row(rng: Random, cards: Cards, at: int) -> tuple[str, str]:
    """ "in the top row", "the top row"."""
    row = row_words(rng, cards, at)
    return f"{'on' if cards.kind == 'shelf' else 'in'} {row}", row


def column_words(rng: Random, at: int, count: int) -> str:
    return f"the {rng.choice(_steps(at, count, 'left', 'right', 'left'))} column"


def places_of(rng: Random, cards: Cards) -> list[tuple[str, Card]]:
    """Some cells, and words for where they are that fit no other."""
    rows = cards.rows
    if len(rows) == 1:
        return _in_line(rng, cards, rows[0], "left")
    if all(len(row) == 1 for row in rows):
        return _in_line(rng, cards, [row[0] for row in rows], "top")
    return _in_rows(rng, cards) + (_in_grid(rng, cards) if is_even(cards) else [])


def _on_the(rng: Random, cards: Cards, which: str) -> str | None:
    """ "on the third card"; None where "the third" may be understood otherwise."""
    if cards.kind == "shelf" or cards.kind in NUMBERED:
        return None
    one, _ = framed_of(rng, cards)
    return f"{IN_WORDS.get(one, 'on')} the {which} {one}"


def _in_line(rng: Random, cards: Cards, line: Sequence[Card], side: str) -> list[tuple[str, Card]]:
    """From the left, or from the top."""
    if len(line) < 2:
        return []
    at = rng.randrange(min(len(line), len(ORDINALS)))
    found = [(f"{ORDINALS[at]} from the {side}", line[at])]
    if (words := _on_the(rng, cards, ORDINALS[at])) is not None:
        found += [(words, line[at]), (f"{words} from the {side}", line[at])]
    if len(line) > 2 and (words := _on_the(rng, cards, "last")) is not None:
        found.append((words, line[-1]))
    if len(line) in (3, 5, 7):
        found.append(("[right|] in the [middle|middle|center]", line[len(line) // 2]))
    return found


def _in_rows(rng: Random, cards: Cards) -> list[tuple[str, Card]]:
    rows, at = cards.rows, rng.randrange(len(cards.rows))
    row, (in_it, the_row) = rows[at], in_row(rng, cards, at)
    column, found = rng.randrange(len(row)), []
    if len(row) > 1:
        found.append((f"{ORDINALS[column]} from the left {in_it}", row[column]))
        which = "last" if column == len(row) - 1 and rng.random() < 0.5 else ORDINALS[column]
        if (words := _on_the(rng, cards, which)) is not None:
            found.append((f"{words} {in_it}", row[column]))
    if len(row) in (3, 5):
        found.append((f"in the middle of {the_row}", row[len(row) // 2]))
    if (words := _on_the(rng, cards, "[very|] first")) is not None:
        found.append((words, rows[0][0]))
    if (words := _on_the(rng, cards, "[very|] last")) is not None:
        found.append((words, rows[-1][-1]))
    if len(rows[0]) > 2 and (words := _on_the(rng, cards, "third")) is not None:
        found.append((words, rows[0][2]))
    return found


def _in_grid(rng: Random, cards: Cards) -> list[tuple[str, Card]]:
    """Corners, and the middle if one cell is there."""
    rows, (up, side) = cards.rows, rng.choices((0, -1), k=2)
    corner = f"[{'bottom|lower' if up else 'top|upper'}] {'right' if side else 'left'}"
    found = [(f"in the {corner} corner", rows[up][side])] * 2
    if len(rows) % 2 and len(rows[0]) % 2:
        middle = rows[len(rows) // 2][len(rows[0]) // 2]
        found += [("[right|exactly|] in the [middle|center]", middle)] * 2
    return found


def somewhere(rng: Random, cards: Cards) -> tuple[int, int]:
    at = rng.randrange(len(cards.rows))
    return at, rng.randrange(len(cards.rows[at]))


def next_to(cards: Cards, at: int, column: int, down: int, across: int) -> tuple[Card, ...] | None:
    """The next cell that way, nothing beyond the last; None where a row is shifted against the other."""
    if across:
        row = cards.rows[at]
        return (row[column + across],) if 0 <= column + across < len(row) else ()
    if not 0 <= at + down < len(cards.rows):
        return ()
    (left, _, right, _), found = cards.rows[at][column].box, []
    for other in cards.rows[at + down]:
        shared = min(right, other.box[2]) - max(left, other.box[0])
        if shared > 0.9 * (right - left):
            found.append(other)
        elif shared > 0.1 * (right - left):
            return None
    return tuple(found)


def plainly(at: int, count: int, words: tuple[str, str, str]) -> str:
    if at in (0, count - 1):
        return words[0] if at == 0 else words[2]
    return words[1] if count == 3 else ORDINALS[at]


def place_in_row(at: int, count: int) -> str | None:
    """None where it is as well the third from one side as from the other."""
    if count <= 3:
        return plainly(at, count, ("left", "middle", "right"))
    if at in (0, count - 1):
        return "far left" if at == 0 else "far right"
    if at in (1, count - 2):
        return f"second from the {'left' if at == 1 else 'right'}"
    return "middle" if 2 * at == count - 1 else None
