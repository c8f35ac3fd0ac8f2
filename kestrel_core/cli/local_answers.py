"""`kestrel schedule`: an engine without a server. All prompts are asked at once and answered together.

Answers go to the console, as a table and, streamed, as they come; or to stdout as one JSON line each, in the
order they were asked, and what went wrong with the others to stderr.
"""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from kestrel_core.build import build_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import EngineStream, InferenceEngine
from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.protocol.messages import EngineResult, parse_settings
from kestrel_core.protocol.wire import encode_result

LINE_LENGTH = 60  # of a streamed answer among others, before it is shown without waiting for its end

Ending = EngineResult | KestrelError


class Question(NamedTuple):
    image: str | None  # its path
    arguments: dict[str, Any]


def schedule(
    questions: Sequence[Question],
    skill: str,
    settings: Mapping[str, Any],
    config: RuntimeConfig,
    stream: bool,
    as_json: bool,
    console: Console,
) -> bool:
    """Ask all questions and show their answers. False when one of them got none."""
    parse_settings(settings)  # said before the weights are read
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("loading", total=None)
        built = build_engine(
            config, progress=lambda done, total: progress.update(bar, completed=done, total=total)
        )
    engine = InferenceEngine(built)
    live = Live(console, several=len(questions) > 1) if stream and not as_json else None
    began = time.monotonic()
    outcomes = asyncio.run(_ask_all(engine, questions, skill, settings, live, as_json))
    if not as_json:
        console.print(_table(outcomes, time.monotonic() - began))
    return not any(isinstance(outcome, KestrelError) for outcome in outcomes)


def pair(
    prompts: Sequence[str],
    images: Sequence[str],
    skill: str,
    reasoning: bool = False,
    length: str | None = None,
    repeat: int = 1,
) -> list[Question]:
    """Prompts and pictures as the questions they make: one picture for all prompts, or one for each."""
    if repeat < 1:
        raise InvalidRequest(f"--repeat is {repeat}; it must be at least 1")
    if reasoning and skill != "query":
        raise InvalidRequest(f"--reasoning is for query, not for {skill}")
    if length is not None and skill != "caption":
        raise InvalidRequest(f"--length is for caption, not for {skill}")
    if skill == "caption":
        if prompts or not images:
            raise InvalidRequest("caption takes no prompt, but one --image or more")
        return repeat * [Question(image, {"length": length or "normal"}) for image in images]
    if not prompts:
        raise InvalidRequest(f"{skill} needs a prompt; give one or more")
    if len(images) not in (0, 1, len(prompts)):
        raise InvalidRequest(
            f"there are {len(prompts)} prompts and {len(images)} pictures; "
            "give one --image for all prompts or one for each"
        )
    of_each = list(images) if len(images) == len(prompts) else [*images, None][:1] * len(prompts)
    name, more = ("question", {"reasoning": reasoning}) if skill == "query" else ("object", {})
    return repeat * [
        Question(image, {name: prompt, **more}) for image, prompt in zip(of_each, prompts, strict=True)
    ]


async def _ask_all(
    engine: InferenceEngine,
    questions: Sequence[Question],
    skill: str,
    settings: Mapping[str, Any],
    live: "Live | None",
    as_json: bool,
) -> list[Ending]:
    asked = [
        asyncio.create_task(_ask(engine, number, question, skill, settings, live))
        for number, question in enumerate(questions, 1)
    ]
    outcomes = []
    try:
        for number, task in enumerate(asked, 1):
            outcome = await task
            outcomes.append(outcome)
            if not as_json:
                continue  # the table will have it
            if isinstance(outcome, KestrelError):
                print(f"kestrel: request {number}: {outcome}", file=sys.stderr)
            else:
                print(encode_result(outcome), flush=True)
        return outcomes
    finally:  # also when interrupted: whoever is still asked for ends here
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await engine.shutdown()


async def _ask(
    engine: InferenceEngine,
    number: int,
    question: Question,
    skill: str,
    settings: Mapping[str, Any],
    live: "Live | None",
) -> Ending:
    image, arguments = question
    try:
        answer = await engine.submit(
            skill, image, arguments, settings=settings, stream=True, request_id=str(number)
        )
        assert isinstance(answer, EngineStream)
        async for chunk in answer:
            if live is not None:
                live.show(number, chunk.text)
        return await answer.result()
    except KestrelError as error:
        return error
    finally:
        if live is not None:
            live.end(number)


class Live:
    """Streamed text: of one answer as it comes, of several in lines that say whose they are."""

    def __init__(self, console: Console, several: bool) -> None:
        self._console = console
        self._several = several
        self._lines: dict[int, str] = {}

    def show(self, number: int, text: str) -> None:
        if not self._several:
            self._print(text)
            return
        *lines, rest = (self._lines.get(number, "") + text).split("\n")
        if len(rest) >= LINE_LENGTH:
            lines, rest = [*lines, rest], ""
        self._lines[number] = rest
        for line in lines:
            self._print(f"{number:>3} | {line}\n")

    def end(self, number: int) -> None:
        if not self._several:
            self._print("\n")
        elif rest := self._lines.pop(number, ""):
            self._print(f"{number:>3} | {rest}\n")

    def _print(self, text: str) -> None:
        self._console.out(text, end="", highlight=False)
        self._console.file.flush()


def _table(outcomes: Sequence[Ending], took_s: float) -> Table:
    results = [outcome for outcome in outcomes if isinstance(outcome, EngineResult)]
    num_tokens = sum(result.metrics.output_tokens for result in results)
    table = Table(
        caption=f"{len(results)} of {len(outcomes)} answered, {num_tokens:,} tokens in {took_s:.2f} s",
        show_lines=len(outcomes) > 1,
    )
    table.add_column("", justify="right")
    table.add_column("answer", ratio=1, overflow="fold")
    for title in ("end", "tokens", "cached", "ttft ms", "total ms"):
        table.add_column(title, justify="right", no_wrap=True)
    for number, outcome in enumerate(outcomes, 1):
        if isinstance(outcome, KestrelError):
            table.add_row(str(number), Text(str(outcome)), outcome.code)
            continue
        usage = outcome.metrics
        table.add_row(
            str(number),
            Text(_answer(outcome.output)),
            outcome.finish_reason,
            f"{usage.input_tokens:,} + {usage.output_tokens:,}",
            f"{usage.cached_tokens:,}",
            f"{usage.ttft_ms:,.1f}",
            f"{usage.ttft_ms + usage.decode_time_ms:,.1f}",
        )
    return table


def _answer(output: Mapping[str, Any]) -> str:
    said = [value for key, value in output.items() if key in ("answer", "caption")]
    if "reasoning" in output:
        said.insert(0, f"({output['reasoning']['text']})")
    if said:
        return "\n".join(said)
    return "\n".join(
        ", ".join(f"{name} {number:.3f}" for name, number in found.items())
        for found in output.get("objects", output.get("points", ()))
    )
