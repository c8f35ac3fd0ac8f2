"""Mixed requests over REST: right ones, whole and streamed, greedy and seeded; wrong ones; callers who leave.

Every answer is held against the one that the same request had when it was asked alone.
"""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kestrel_core.moondream.config import MOONDREAM_TINY
from kestrel_tools.bench.attacks.doors import PATIENCE_S, Reply, Target, connected, head, send_http
from kestrel_tools.bench.requests.chart_questions import OF_WORDS
from kestrel_tools.bench.requests.mixed import Call, Mixture

TOLD_ANEW = ("request_id", "metrics")


def mixed_calls(number: int, seed: int = 0) -> list[Call]:
    mixture = Mixture(seed, MOONDREAM_TINY, 1024, OF_WORDS)
    return [mixture.call(index) for index in range(number)]


def as_rest(call: Call) -> tuple[str, bytes]:
    picture = {} if call.image is None else {"image_url": base64.b64encode(call.image).decode()}
    settings = {name: value for name, value in call.settings.items() if value is not None}
    arguments = {name: value for name, value in call.arguments.items() if value is not None}
    fields = {**picture, **arguments, "settings": settings, **({"stream": True} if call.stream else {})}
    return f"/v1/{call.skill}", json.dumps(fields).encode()


def content(reply: Reply) -> Any:
    """What must be the same each time; of a stream, its last event."""
    text = reply.body.decode()
    if text.startswith(("data: ", ":")):
        text = [line for line in text.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
    document = json.loads(text)
    if "logprobs" in document:  # their last digits depend on who else is computed at the time
        document["logprobs"] = [token["token_id"] for token in document["logprobs"]]
    return {name: value for name, value in document.items() if name not in (*TOLD_ANEW, "chunk", "completed")}


@dataclass
class Told:
    """What became of all requests."""

    counts: "Counter[str]" = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, outcome: str, call: Call, more: object = "") -> None:
        self.counts[outcome] += 1
        if outcome in ("wrong", "hung") and len(self.problems) < 20:
            self.problems.append(f"{outcome}: {call.kind} {call.arguments} {call.settings} {more}")


class Storm:
    def __init__(self, target: Target, calls: Sequence[Call]) -> None:
        self._target = target
        self._calls = calls
        self._alone: list[tuple[int, Any]] = []  # status and content
        self.told = Told()

    async def learn(self) -> None:
        """Ask each alone, those of leavers too."""
        for call in self._calls:
            reply = await send_http(self._target, *as_rest(call))
            assert (400 <= reply.status < 500) if call.bad else reply.status == 200, (call.kind, reply)
            self._alone.append((reply.status, content(reply) if reply.status == 200 else None))

    async def rage(self, callers: int, is_over: Callable[[], bool]) -> None:
        """So many callers at a time, each with the next request when its last one has ended."""
        numbers = iter(range(10**9))

        async def caller() -> None:
            while not is_over():
                number = next(numbers) % len(self._calls)
                await self._one(self._calls[number], self._alone[number])

        await asyncio.gather(*(caller() for _ in range(callers)))

    async def _one(self, call: Call, alone: tuple[int, Any]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                if call.leave_after or call.patience_s or call.timeout_s:
                    await self._leave(call)
                    return
                reply = await send_http(self._target, *as_rest(call))
        except TimeoutError:
            self.told.add("hung", call)
            return
        if reply.status in (0, 429) or reply.status >= 500:
            self.told.add("refused" if reply.status in (429, 503, 504) else "failed", call, reply)
            await asyncio.sleep(0.1)
        elif reply.status != alone[0] or (reply.status == 200 and content(reply) != alone[1]):
            late = reply.status == 200 and "error" in content(reply)  # of a stream that was cut off
            self.told.add("failed" if late else "wrong", call, f"{content(reply)} and alone {alone[1]}")
        else:
            self.told.add("as alone", call)

    async def _leave(self, call: Call) -> None:
        path, body = as_rest(call)
        given = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        try:
            async with connected(self._target) as (reader, writer):
                writer.write(head(self._target, path, given) + body)
                if call.stream:
                    await reader.readline()
                await asyncio.sleep(call.patience_s or call.timeout_s or 0.05)
        except OSError:
            pass
        self.told.add("left", call)
