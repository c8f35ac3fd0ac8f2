"""`kestrel eval asked`: an engine or a server on hand-written questions, with every wrong answer."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.names import harmless
from kestrel_tools.bench.results import write_document
from kestrel_tools.progress import counted
from kestrel_tools.scenes.answers import Answers, answering
from kestrel_tools.scenes.score import Outcome

from .options import AskedOptions
from .questions import Question, read_questions
from .rules import TEXTS

AT_ONCE = 64
MAX_SHOWN = 200  # letters of a wrong answer


def eval_asked(options: AskedOptions, config: RuntimeConfig, console: Console) -> bool:
    """Prints the tables; True when as many are right as are required."""
    questions = read_questions(options.folder)
    with answering(options.url, config, console) as answers:
        found = outcomes(answers, questions, console)
    told = document(questions, found)
    print_scores(told, console)
    write_document(options.report, told)
    return options.require is None or bool(told["right"] >= options.require * told["of"])


def outcomes(answers: Answers, questions: Sequence[Question], console: Console) -> list[Outcome]:
    """What is refused is a wrong answer, unless all are."""
    found: list[Outcome] = []
    with counted("answers", len(questions), console) as advance:
        for start in range(0, len(questions), AT_ONCE):
            chunk = questions[start : start + AT_ONCE]
            found += [answer.outcome for answer in answers([question.request for question in chunk])]
            advance(len(chunk))
    if isinstance(found[0], KestrelError) and all(isinstance(one, KestrelError) for one in found):
        raise found[0]
    return found


def document(questions: Sequence[Question], found: Sequence[Outcome]) -> dict[str, Any]:
    right = [question.is_right(outcome) for question, outcome in zip(questions, found, strict=True)]
    return {
        "right": sum(right),
        "of": len(right),
        "kinds": _shares(zip((question.kind for question in questions), right, strict=True)),
        "drawn": _shares(zip((question.drawn for question in questions), right, strict=True)),
        "answers": [
            {
                "line": question.number,
                "asked": question.request.request_id,
                "skill": question.request.skill,
                "kind": question.kind,
                "said": said(question.request.skill, outcome),
                "wanted": question.wanted,
                "right": is_right,
            }
            for question, outcome, is_right in zip(questions, found, right, strict=True)
        ],
    }


def _shares(judged: Iterator[tuple[str, bool]]) -> dict[str, dict[str, int]]:
    rows: dict[str, list[bool]] = defaultdict(list)
    for name, right in judged:
        rows[name].append(right)
    return {name: {"right": sum(rows[name]), "of": len(rows[name])} for name in sorted(rows)}


def said(skill: str, outcome: Outcome) -> str:
    if isinstance(outcome, KestrelError):
        return f"{type(outcome).__name__}: {outcome}"[:MAX_SHOWN]
    if skill in TEXTS:
        return str(outcome.get(TEXTS[skill], ""))[:MAX_SHOWN]
    places = outcome.get("objects", outcome.get("points", ()))
    shown = "; ".join(" ".join(f"{edge:.2f}" for edge in place.values()) for place in places)
    return f"{len(places)} found ({shown})"[:MAX_SHOWN]


def print_scores(told: Mapping[str, Any], console: Console) -> None:
    table = Table(title=f"{told['of']:,} questions", title_justify="left")
    for name in ("what", "right", "of", ""):
        table.add_column(name, justify="left" if name == "what" else "right")
    for part in ("kinds", "drawn"):
        for name, row in told[part].items():
            table.add_row(name, *_cells(row))
        table.add_section()
    table.add_row("all", *_cells(told))
    for answer in told["answers"]:
        if not answer["right"]:
            line = f"{answer['line']} {answer['asked']} -> {answer['said']} (wanted: {answer['wanted']})"
            console.print(harmless(line), markup=False, highlight=False, soft_wrap=True)
    console.print(table)


def _cells(row: Mapping[str, int]) -> tuple[str, str, str]:
    return f"{row['right']:,}", f"{row['of']:,}", f"{row['right'] / row['of']:.1%}"
