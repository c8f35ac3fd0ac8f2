"""The command behind `client/run.py`: every skill once against a running server, with timings.

Exit code 0: all answered, or not among the model's skills; 1: a skill or a picture failed; 2: nothing could
be asked.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kestrel_core.protocol.errors import (
    BadImage,
    InvalidRequest,
    KestrelError,
    ServerUnreachable,
    UnsupportedSkill,
)
from kestrel_core.protocol.messages import EngineResult
from kestrel_core.protocol.names import harmless

from . import completion, drawing, table
from .client import Client

QUESTION, OBJECT = "What is in this picture?", "object"
# What is asked of the skills every server has; any other is asked with what the command line gives.
SKILLS: dict[str, tuple[str, ...]] = {
    "query": ("question",),
    "caption": (),
    "detect": ("object",),
    "point": ("object",),
    "segment": ("object",),
}
STREAMED = ("query", "caption")


@dataclass(frozen=True, slots=True)
class Answered:
    """What one skill gave: its result, or the error in its place, and the time that the client measured."""

    image: Path
    skill: str
    result: EngineResult | KestrelError
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
        if not options.image:
            raise BadImage("--image is required: the picture to ask about")
        if options.argument and options.skill in ("all", *SKILLS):
            raise InvalidRequest("--argument is for a skill of the server's own, which --skill names")
        if options.draw is not None and find_spec("PIL") is None:
            raise KestrelError("--draw needs Pillow; install it with `pip install pillow`")
        asked, bad = ask_about_all(options)
        if options.draw is not None:
            draw_all(options, asked)
    except KestrelError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    for path, reason in bad.items():
        print(f"{parser.prog}: {path}: {reason}", file=sys.stderr)
    if options.json:
        print(json.dumps(document(options, asked, bad), ensure_ascii=False))
    else:
        table.show([_row(one, len(options.image) > 1) for one in asked])
    return int(bool(bad) or any(one.failed for one in asked))


def make_parser() -> argparse.ArgumentParser:
    name = Path(sys.argv[0]).name
    parser = argparse.ArgumentParser(
        prog="kestrel-client" if name == "__main__.py" else name,
        description="Ask a running server every skill once about a picture, and show answers and timings.",
        epilog="Exit code 0: answered, or not among the model's skills; 1: a skill or a picture failed; "
        "2: no server, or nothing to ask.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--url", default="localhost:8001", metavar="HOST:PORT", help="Triton's gRPC (default: %(default)s)"
    )
    parser.add_argument("--image", type=Path, action="append", metavar="FILE", help="the picture; repeatable")
    parser.add_argument("--question", metavar="TEXT", help=f'what query asks (default: "{QUESTION}")')
    parser.add_argument(
        "--object", metavar="TEXT", help=f'what detect, point and segment look for (default: "{OBJECT}")'
    )
    skill = parser.add_argument(
        "--skill",
        default="all",
        metavar="SKILL",
        help=f"just one: {', '.join(SKILLS)}, or another that the server has (default: %(default)s)",
    )
    completion.suggest(skill, ("all", *SKILLS))
    parser.add_argument(
        "--argument",
        type=_argument,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of a skill of the server's own, as JSON or text; repeatable",
    )
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="limit of each text (default: the model's own)"
    )
    parser.add_argument("--adapter", metavar="NAME", help="a LoRA adapter of the server's (default: none)")
    parser.add_argument(
        "--draw",
        type=Path,
        metavar="FILE",
        help="write a copy of the picture with boxes, points and outlines",
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


def _argument(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def ask_about_all(options: argparse.Namespace) -> tuple[list[Answered], dict[Path, BadImage]]:
    """Stops at once if there is no server. A bad picture is one error; the others are still asked about."""
    asked: list[Answered] = []
    bad: dict[Path, BadImage] = {}
    with Client(options.url, timeout_s=options.timeout) as client:
        for image in options.image:
            try:
                asked += _ask_about(client, image, options)
            except BadImage as error:
                if len(options.image) == 1:
                    raise
                bad[image] = error
    return asked, bad


def _ask_about(client: Client, image: Path, options: argparse.Namespace) -> Iterator[Answered]:
    for skill in SKILLS if options.skill == "all" else (options.skill,):
        yield _ask_one(client, image, skill, options)


def _ask_one(client: Client, image: Path, skill: str, options: argparse.Namespace) -> Answered:
    start, first_text_ms = time.perf_counter(), None
    shown: Callable[[str], object] = (lambda text: None) if options.json else _write
    result: EngineResult | KestrelError
    try:
        if skill in STREAMED and options.stream:
            with client.ask(skill, image, stream=True, **_arguments(skill, options)) as stream:
                for chunk in stream:
                    if first_text_ms is None:
                        first_text_ms = (time.perf_counter() - start) * 1e3
                        shown(f"{skill}: ")
                    shown(chunk.text)
                result = stream.result()
        else:
            result = client.ask(skill, image, **_arguments(skill, options))
    except (ServerUnreachable, BadImage):
        raise
    except KestrelError as error:
        result = error
    finally:
        time_ms = (time.perf_counter() - start) * 1e3
        if first_text_ms is not None:
            shown("\n")
    return Answered(image, skill, result, time_ms, first_text_ms)


def _arguments(skill: str, options: argparse.Namespace) -> dict[str, Any]:
    if skill not in SKILLS:
        own = {name: getattr(options, name) for name in ("question", "object", "max_tokens", "adapter")}
        return own | dict(options.argument)
    given = {"question": options.question or QUESTION, "object": options.object or OBJECT}
    limit = {"max_tokens": options.max_tokens} if skill in STREAMED else {}
    return {name: given[name] for name in SKILLS[skill]} | limit | {"adapter": options.adapter}


def draw_all(options: argparse.Namespace, asked: Sequence[Answered]) -> None:
    """One picture to the file that was named, several to files beside it with the pictures' names."""
    images = list(dict.fromkeys(options.image))
    stems = [image.stem for image in images]
    for number, image in enumerate(images, 1):
        if all(one.image != image for one in asked):
            continue  # it could not be read
        target: Path = options.draw
        if len(images) > 1:
            name = image.stem if stems.count(image.stem) == 1 else f"{number}-{image.stem}"
            target = target.with_stem(f"{target.stem}-{name}")
        drawing.draw(image, target, [one.result for one in asked if one.image == image])


def document(
    options: argparse.Namespace, asked: Sequence[Answered], bad: dict[Path, BadImage]
) -> dict[str, Any]:
    pictures = [
        {"image": str(image), **_of_picture([one for one in asked if one.image == image], bad.get(image))}
        for image in dict.fromkeys(options.image)
    ]
    return {"url": options.url, **(pictures[0] if len(pictures) == 1 else {"images": pictures})}


def _of_picture(asked: Sequence[Answered], bad: BadImage | None) -> dict[str, Any]:
    if bad is not None:
        return {"error": {"code": bad.code, "message": str(bad)}}
    skills: dict[str, dict[str, Any]] = {}
    for one in asked:
        skills[one.skill] = {"time_ms": one.time_ms, "first_text_ms": one.first_text_ms}
        if isinstance(one.result, EngineResult):
            skills[one.skill]["response"] = table.response(one.result)
        else:
            key = "error" if one.failed else "unsupported"
            skills[one.skill][key] = {"code": one.result.code, "message": str(one.result)}
    return {"skills": skills}


def _row(one: Answered, with_picture: bool) -> tuple[str, ...]:
    result, first = one.result, one.first_text_ms
    return (
        f"{one.image.name}: {one.skill}" if with_picture else one.skill,
        table.summary(result),
        f"{one.time_ms:,.0f} ms",
        "" if first is None else f"{first:,.0f} ms",
        str(result.metrics.output_tokens) if isinstance(result, EngineResult) else "",
    )


def _write(text: str) -> None:
    sys.stdout.write(harmless(text))
    sys.stdout.flush()
