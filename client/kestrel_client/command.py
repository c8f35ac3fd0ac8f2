"""The command behind `client/run.py`: every skill once against a running server, with timings.

Exit code 0: all answered, or not among the model's skills; 1: a skill failed; 2: nothing could be asked.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kestrel_core.protocol.errors import BadImage, KestrelError, UnsupportedSkill

from . import completion, drawing
from .client import AnswerStream, Client
from .errors import ServerUnreachable
from .results import Answer, Caption, Detection, Points, Result, Segments

SKILLS = ("query", "caption", "detect", "point", "segment")
MAX_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one skill: its result, or the error in its place, and the time as seen from here."""

    skill: str
    result: Result | KestrelError
    time_ms: float
    first_text_ms: float | None

    @property
    def failed(self) -> bool:
        return isinstance(self.result, KestrelError) and not isinstance(self.result, UnsupportedSkill)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.print_completion:
        print(completion.script(parser, options.print_completion), end="")
        return 0
    try:
        if options.image is None:
            raise BadImage("--image is required: the picture to ask about")
        if options.draw is not None and find_spec("PIL") is None:
            raise KestrelError("--draw needs Pillow; install it with `pip install pillow`")
        outcomes = ask_all(options)
        if options.draw is not None:
            drawing.draw(options.image, options.draw, [outcome.result for outcome in outcomes])
    except KestrelError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps(document(options, outcomes), ensure_ascii=False))
    else:
        show(outcomes)
    return int(any(outcome.failed for outcome in outcomes))


def make_parser() -> argparse.ArgumentParser:
    name = Path(sys.argv[0]).name
    parser = argparse.ArgumentParser(
        prog="kestrel-client" if name == "__main__.py" else name,
        description="Ask a running server every skill once about a picture, and show answers and timings.",
        epilog="Exit code 0: answered, or not among the model's skills; 1: a skill failed; 2: no server, "
        "or nothing to ask.",
    )
    parser.add_argument(
        "--url", default="localhost:8001", metavar="HOST:PORT", help="Triton's gRPC (default: %(default)s)"
    )
    parser.add_argument("--image", type=Path, metavar="FILE", help="the picture")
    parser.add_argument(
        "--question",
        default="What is in this picture?",
        metavar="TEXT",
        help='query (default: "%(default)s")',
    )
    parser.add_argument(
        "--object",
        default="object",
        metavar="TEXT",
        help='what detect, point and segment look for (default: "%(default)s")',
    )
    parser.add_argument(
        "--skill", default="all", choices=("all", *SKILLS), help="just one of them (default: %(default)s)"
    )
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="limit of each text (default: the model's own)"
    )
    parser.add_argument(
        "--draw", type=Path, metavar="FILE", help="write a copy of the picture with boxes and points"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="per skill (default: %(default)g)"
    )
    parser.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="show text while it is written (default: yes)",
    )
    parser.add_argument(
        "--print-completion", choices=tuple(completion.SHELLS), help="print a completion script for the shell"
    )
    return parser


def ask_all(options: argparse.Namespace) -> list[Asked]:
    """Stops at once where there is no server, or no picture: the other skills would only say so again."""
    shown: Callable[[str], object] = (lambda text: None) if options.json else _write
    image, text = options.image, {"stream": options.stream, "max_tokens": options.max_tokens}
    with Client(options.url, timeout_s=options.timeout) as client:
        asks: dict[str, Callable[[], Result | AnswerStream[Any]]] = {
            "query": lambda: client.query(image, options.question, **text),
            "caption": lambda: client.caption(image, **text),
            "detect": lambda: client.detect(image, options.object),
            "point": lambda: client.point(image, options.object),
            "segment": lambda: client.segment(image, options.object),
        }
        chosen = SKILLS if options.skill == "all" else (options.skill,)
        return [ask_one(skill, asks[skill], shown) for skill in chosen]


def ask_one(
    skill: str, ask: Callable[[], Result | AnswerStream[Any]], shown: Callable[[str], object]
) -> Asked:
    start, first_text_ms = time.perf_counter(), None
    result: Result | KestrelError
    try:
        answer = ask()
        if isinstance(answer, AnswerStream):
            with answer:
                for text in answer:
                    if first_text_ms is None:
                        first_text_ms = (time.perf_counter() - start) * 1e3
                        shown(f"{skill}: ")
                    shown(text)
                answer = answer.result()
        result = answer
    except (ServerUnreachable, BadImage):
        raise
    except KestrelError as error:
        result = error
    finally:
        time_ms = (time.perf_counter() - start) * 1e3
        if first_text_ms is not None:
            shown("\n")
    return Asked(skill, result, time_ms, first_text_ms)


def document(options: argparse.Namespace, outcomes: Sequence[Asked]) -> dict[str, Any]:
    skills: dict[str, dict[str, Any]] = {}
    for outcome in outcomes:
        skills[outcome.skill] = {"time_ms": outcome.time_ms, "first_text_ms": outcome.first_text_ms}
        if isinstance(outcome.result, Result):
            skills[outcome.skill]["response"] = outcome.result.raw
        else:
            key = "error" if outcome.failed else "unsupported"
            skills[outcome.skill][key] = {"code": outcome.result.code, "message": str(outcome.result)}
    return {"url": options.url, "image": str(options.image), "skills": skills}


def show(outcomes: Sequence[Asked]) -> None:
    """A table, by rich where it is installed."""
    head = ("skill", "answer", "time", "first text", "tokens")
    rows = [_row(outcome) for outcome in outcomes]
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        for row in (head, *rows):
            print("  ".join((row[0].ljust(8), *(cell.rjust(10) for cell in row[2:]), row[1])).rstrip())
        return
    table = Table()
    for name in head:
        table.add_column(name, justify="left" if name in ("skill", "answer") else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as Text: an answer may hold what rich reads as markup
    Console().print(table)


def _row(outcome: Asked) -> tuple[str, str, str, str, str]:
    result, first = outcome.result, outcome.first_text_ms
    return (
        outcome.skill,
        _summary(result),
        f"{outcome.time_ms:,.0f} ms",
        "" if first is None else f"{first:,.0f} ms",
        str(result.metrics.output_tokens) if isinstance(result, Result) else "",
    )


def _summary(result: Result | KestrelError) -> str:
    match result:
        case Answer(text=text) | Caption(text=text):
            return " ".join(_harmless(text).split())
        case Detection(objects=boxes):
            return _several([f"({b.x_min:.2f}, {b.y_min:.2f})-({b.x_max:.2f}, {b.y_max:.2f})" for b in boxes])
        case Points(points=points):
            return _several([f"({point.x:.2f}, {point.y:.2f})" for point in points])
        case Segments(segments=segments):
            return _several([segment.svg_path for segment in segments])
        case UnsupportedSkill():
            return "not a skill of this model"
        case _:
            assert isinstance(result, KestrelError)
            return f"failed: {result.code}: {result}"


def _several(found: Sequence[str]) -> str:
    if not found:
        return "none found"
    more = ", ..." if len(found) > MAX_SHOWN else ""
    return f"{len(found)}: {', '.join(found[:MAX_SHOWN])}{more}"


def _write(text: str) -> None:
    sys.stdout.write(_harmless(text))
    sys.stdout.flush()


def _harmless(text: str) -> str:
    """Without control characters: what a model writes must not steer the terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)
