"""How right the answers to lines are, without an adapter and with it, in one table. No torch."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import hypot
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from kestrel_core.protocol.errors import BadAdapter, KestrelError, UnknownAdapter
from kestrel_core.protocol.messages import Request, Settings
from kestrel_core.protocol.names import harmless
from kestrel_tools.progress import counted
from kestrel_tools.scenes.answers import Answers
from kestrel_tools.scenes.score import Outcome, box_of, match_boxes

from .lessons import TEXTS, WANTED
from .lines import Asked

NEAR = 0.05  # of the picture: how far from the wanted place a point may be
AT_ONCE = 64  # lines; their pictures are in memory
SHOWN = 5  # answers in the table's tail
MAX_SHOWN = 60  # letters of each
MEANINGS = {
    "query exact": "the answer is the wanted one; case and spaces do not count",
    "caption exact": "the same for captions",
    "caption F1": "words in common",
    "detect F1": "boxes, at IoU 0.5",
    "detect IoU": "mean over the hits",
    "point F1": f"points, at most {NEAR:g} of the picture away",
    "point distance": "mean over the hits; lower is better",
}
Rows = dict[str, tuple[float, int]]  # by name: the score, and of how many


class Hits(NamedTuple):
    num_given: int
    num_wanted: int
    closeness: tuple[float, ...]  # of the hits: IoU of boxes, distance of points


def outcomes(
    answers: Answers, lines: Sequence[Asked], adapter: str | None, console: Console
) -> list[Outcome]:
    """Asks every line. An adapter that cannot be used raises; any other error is a wrong answer."""
    found: list[Outcome] = []
    what = "answers" if adapter is None else "answers with the adapter"
    with counted(what, len(lines), console) as advance:
        for start in range(0, len(lines), AT_ONCE):
            chunk = lines[start : start + AT_ONCE]
            for answer in answers([request_of(line, adapter) for line in chunk]):
                if isinstance(answer.outcome, UnknownAdapter | BadAdapter):
                    raise answer.outcome
                found.append(answer.outcome)
            advance(len(chunk))
    return found


def request_of(line: Asked, adapter: str | None) -> Request:
    """As it is asked for a score: greedily, and with the picture's bytes."""
    image, wanted = line.request.image, line.wanted
    if line.request.skill in TEXTS:
        # An answer that is much longer than the wanted one is wrong already.
        settings = Settings(temperature=0.0, max_tokens=32 + 4 * len(wanted), adapter=adapter)
    else:
        settings = Settings(max_objects=max(50, 2 * len(wanted)), adapter=adapter)
    data = image.read_bytes() if hasattr(image, "read_bytes") else image
    return replace(line.request, image=data, settings=settings)


def score(lines: Sequence[Asked], found: Sequence[Outcome]) -> Rows:
    rates: dict[str, list[float]] = defaultdict(list)
    hits: dict[str, list[Hits]] = defaultdict(list)
    for line, outcome in zip(lines, found, strict=True):
        skill, wanted = line.request.skill, line.wanted
        said = {} if isinstance(outcome, KestrelError) else outcome
        if skill in TEXTS:
            text = str(said.get(WANTED[skill], ""))
            rates[f"{skill} exact"].append(plain(text) == plain(wanted))
            if skill == "caption":
                rates["caption F1"].append(words_in_common(text, wanted))
        else:
            hits[skill].append(_hits(skill, said.get(WANTED[skill], ()), wanted))
    rows: Rows = {name: (sum(values) / len(values), len(values)) for name, values in rates.items()}
    for skill, all_hits in hits.items():
        rows |= _rows_of_hits(skill, all_hits)
    return {name: rows[name] for name in MEANINGS if name in rows}


def is_right(line: Asked, outcome: Outcome) -> bool:
    if isinstance(outcome, KestrelError):
        return False
    skill = line.request.skill
    said = outcome.get(WANTED[skill])
    if skill in TEXTS:
        return plain(str(said)) == plain(line.wanted)
    found = _hits(skill, said or (), line.wanted)
    return len(found.closeness) == found.num_given == found.num_wanted


def plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def words_in_common(said: str, wanted: str) -> float:
    """F1 of the words, each as often as it stands there."""
    one, other = Counter(plain(said).split()), Counter(plain(wanted).split())
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _hits(skill: str, said: Iterable[Mapping[str, float]], wanted: Sequence[Mapping[str, float]]) -> Hits:
    given = list(said)
    if skill == "detect":
        pairs = match_boxes([box_of(box) for box in given], [box_of(box) for box in wanted])
        return Hits(len(given), len(wanted), tuple(overlap for _, _, overlap in pairs))
    distances = sorted(
        (hypot(one["x"] - other["x"], one["y"] - other["y"]), i, j)
        for i, one in enumerate(given)
        for j, other in enumerate(wanted)
    )
    taken: list[tuple[float, int, int]] = []
    for distance, i, j in distances:
        if distance <= NEAR and all(i != a and j != b for _, a, b in taken):
            taken.append((distance, i, j))
    return Hits(len(given), len(wanted), tuple(distance for distance, _, _ in taken))


def _rows_of_hits(skill: str, hits: Sequence[Hits]) -> Rows:
    closeness = [value for one in hits for value in one.closeness]
    either = sum(one.num_given + one.num_wanted for one in hits)
    # Where nothing is wanted and nothing is found, all is right.
    rows: Rows = {f"{skill} F1": (2 * len(closeness) / either if either else 1.0, len(hits))}
    if closeness:
        name = "detect IoU" if skill == "detect" else "point distance"
        rows[name] = sum(closeness) / len(closeness), len(closeness)
    return rows


def document(lines: Sequence[Asked], columns: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    """The scores of every column (`without`, `with`), and the first answers in which they differ."""
    scored = {name: score(lines, found) for name, found in columns.items()}
    names = [name for name in MEANINGS if any(name in rows for rows in scored.values())]
    rows = [
        {
            "name": name,
            "of": max(rows[name][1] for rows in scored.values() if name in rows),
            **{column: round(rows[name][0], 4) if name in rows else None for column, rows in scored.items()},
        }
        for name in names
    ]
    answers = [
        {
            "line": line.number,
            "asked": _asked(line.request),
            "wanted": _said(line.wanted),
            **{column: _said_by(line, found[index]) for column, found in columns.items()},
            "right": {column: is_right(line, found[index]) for column, found in columns.items()},
        }
        for index, line in enumerate(lines)
    ]
    return {"lines": len(lines), "columns": list(columns), "scores": rows, "answers": answers}


def print_scores(found: Mapping[str, Any], console: Console) -> None:
    columns = found["columns"]
    table = Table(title=f"{found['lines']:,} lines", title_justify="left")
    for name in ("what", "of", *columns, ""):
        table.add_column(name, justify="right" if name in ("of", *columns) else "left")
    for row in found["scores"]:
        values = ["-" if row[column] is None else f"{row[column]:.4f}" for column in columns]
        table.add_row(row["name"], f"{row['of']:,}", *values, MEANINGS[row["name"]])
    console.print(table)
    wrong = [answer for answer in found["answers"] if not answer["right"][columns[-1]]]
    for answer in wrong[:SHOWN]:
        told = f"line {answer['line']}, {answer['asked']}: {answer[columns[-1]]} (wanted: {answer['wanted']})"
        console.print(harmless(told), markup=False, highlight=False)


def _asked(request: Request) -> str:
    return f"{request.skill} {next(iter(request.arguments.values()), '')}".strip()[:MAX_SHOWN]


def _said_by(line: Asked, outcome: Outcome) -> str:
    if isinstance(outcome, KestrelError):
        return f"{type(outcome).__name__}: {outcome}"[:MAX_SHOWN]
    return _said(outcome.get(WANTED[line.request.skill]))


def _said(value: Any) -> str:
    return value[:MAX_SHOWN] if isinstance(value, str) else f"{len(value or ())} found"
