"""`kestrel schedule`: an engine without a server. All prompts are asked at once and answered together.

Answers go to the console as a table, and with `--stream` as they come too. With `--json` they go to stdout as
one JSON line each, in the order they were asked, and errors go to stderr.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from kestrel_core.build import build_engine
from kestrel_core.config import RuntimeConfig, moondream_api_key
from kestrel_core.engine import InferenceEngine
from kestrel_core.protocol.errors import BadImage, InvalidRequest, KestrelError
from kestrel_core.protocol.messages import EngineResult, Request, Settings
from kestrel_core.protocol.names import harmless
from kestrel_core.protocol.wire import encode_result
from kestrel_core.skills.registry import SkillRegistry
from kestrel_core.skills.spec import SkillSpec

LINE_LENGTH = 60  # letters of a streamed line that are shown before its end, if there are several answers

Ending = EngineResult | KestrelError


def schedule(
    requests: Sequence[Request],
    skills: SkillRegistry,
    config: RuntimeConfig,
    stream: bool,
    as_json: bool,
    console: Console,
) -> bool:
    """Ask all of them and show their answers. False when one of them got none."""
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
        bar = progress.add_task("loading", total=None)
        built = build_engine(
            config,
            skills,
            lambda done, total: progress.update(bar, completed=done, total=total),
            api_key=moondream_api_key(),
        )
    engine = InferenceEngine(built)
    live = Live(console, several=len(requests) > 1) if stream and not as_json else None
    began = time.monotonic()
    endings = asyncio.run(_ask_all(engine, requests, live, as_json))
    if not as_json:
        console.print(_table(endings, time.monotonic() - began))
    return not any(isinstance(ending, KestrelError) for ending in endings)


def parse_arguments(texts: Sequence[str], skill: SkillSpec) -> dict[str, Any]:
    """`name=value` as the skill takes it: a text as it is, anything else as JSON."""
    kinds = {argument.name: argument.kind for argument in skill.arguments}
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidRequest(f'--argument is "{text}"; it must be NAME=VALUE')
        try:
            found[name] = value if kinds.get(name, str) is str else json.loads(value)
        except ValueError:
            raise InvalidRequest(f'--argument {name} is "{value}", which is no JSON') from None
    return found


def requests_for(
    skill: SkillSpec,
    prompts: Sequence[str],
    images: Sequence[str],
    arguments: Mapping[str, Any],
    settings: Settings,
    stream: bool = False,
    repeat: int = 1,
) -> list[Request]:
    """Prompts and pictures as the requests they make: one picture for all prompts, or one for each.

    A prompt is the text that the skill requires: the question, the object. Where it requires none, there is a
    request for each picture.
    """
    if repeat < 1:
        raise InvalidRequest(f"--repeat is {repeat}; it must be at least 1")
    for image in images:
        if not Path(image).is_file():
            raise BadImage(f"there is no picture {image}")
    pairs: list[tuple[str | None, dict[str, str]]]
    required = [argument.name for argument in skill.arguments if argument.required and argument.kind is str]
    name = next((name for name in required if name not in arguments), None)
    if name is None:
        if prompts or (skill.image == "required" and not images):
            raise InvalidRequest(f"{skill.name} takes no prompt, but one --image or more")
        pairs = [(image, {}) for image in images] or [(None, {})]
    elif not prompts:
        raise InvalidRequest(f"{skill.name} needs a prompt; give one or more")
    elif len(images) not in (0, 1, len(prompts)):
        raise InvalidRequest(
            f"there are {len(prompts)} prompts and {len(images)} pictures; "
            "give one --image for all prompts or one for each"
        )
    else:
        of_each = list(images) if len(images) == len(prompts) else [*images, None][:1] * len(prompts)
        pairs = [(image, {name: prompt}) for image, prompt in zip(of_each, prompts, strict=True)]
    return [
        # Streamed wherever the skill can be, so that the first text is timed; refused where it cannot.
        Request(
            skill.name,
            {**arguments, **more},
            image,
            settings,
            str(number),
            stream=stream or skill.streams,
        )
        for number, (image, more) in enumerate(repeat * pairs, 1)
    ]


async def _ask_all(
    engine: InferenceEngine, requests: Sequence[Request], live: "Live | None", as_json: bool
) -> list[Ending]:
    asked = [asyncio.create_task(_ask(engine, request, live)) for request in requests]
    endings = []
    try:
        for number, task in enumerate(asked, 1):
            ending = await task
            endings.append(ending)
            if not as_json:
                continue  # the table will have it
            if isinstance(ending, KestrelError):
                print(f"kestrel: request {number}: {ending}", file=sys.stderr)
            else:
                print(encode_result(ending), flush=True)
        return endings
    finally:  # also when interrupted: no request stays behind
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        await engine.shutdown()


async def _ask(engine: InferenceEngine, request: Request, live: "Live | None") -> Ending:
    number = int(request.request_id)
    try:
        async with await engine.open(request) as answer:
            async for chunk in answer:
                if live is not None and chunk.kind == "text":
                    live.show(number, chunk.text)
            return await answer.result()
    except KestrelError as error:
        return error
    finally:
        if live is not None:
            live.end(number)


class Live:
    """Streamed text. One answer is shown as it comes, several in lines that begin with their number."""

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
        self._console.out(harmless(text), end="", highlight=False)
        self._console.file.flush()


def _table(endings: Sequence[Ending], took_s: float) -> Table:
    results = [ending for ending in endings if isinstance(ending, EngineResult)]
    num_tokens = sum(result.metrics.output_tokens for result in results)
    table = Table(
        caption=f"{len(results)} of {len(endings)} answered, {num_tokens:,} tokens in {took_s:.2f} s",
        show_lines=len(endings) > 1,
    )
    table.add_column("", justify="right")
    table.add_column("answer", ratio=1, overflow="fold")
    for title in ("end", "tokens", "cached", "ttft ms", "total ms"):
        table.add_column(title, justify="right", no_wrap=True)
    for number, ending in enumerate(endings, 1):
        if isinstance(ending, KestrelError):
            table.add_row(str(number), Text(harmless(str(ending))), ending.code)
            continue
        usage = ending.metrics
        table.add_row(
            str(number),
            Text(harmless(_answer(ending.output))),
            ending.finish_reason,
            f"{usage.input_tokens:,} + {usage.output_tokens:,}",
            f"{usage.cached_tokens:,}",
            f"{usage.ttft_ms:,.1f}",
            f"{usage.ttft_ms + usage.decode_time_ms:,.1f}",
        )
    return table


def _answer(output: Mapping[str, Any]) -> str:
    """The answer of any skill in lines: texts as they are, one line for each thing found."""
    said = [f"({output['reasoning']['text']})"] if "reasoning" in output else []
    for key, value in output.items():
        if key == "reasoning":
            continue
        if isinstance(value, list):
            said += [_thing(one) for one in value]
        else:
            said.append(value if isinstance(value, str) else f"{key} {value}")
    return "\n".join(said)


def _thing(found: Any) -> str:
    if not isinstance(found, Mapping):
        return str(found)
    parts = []
    for name, value in found.items():
        if name == "svg_path":
            parts.append(f"outline of {value.count('M') + value.count('L')} vertices")
        elif isinstance(value, Mapping):
            parts.append(_thing(value))
        else:
            parts.append(f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(parts)
