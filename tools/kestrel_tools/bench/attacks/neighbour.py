"""A normal user: asks twice a second, knows every answer beforehand, and notes how long each one took."""

import asyncio
import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from kestrel_core.protocol.errors import EngineFailed, ServerUnreachable
from kestrel_tools.bench.attacks.doors import PATIENCE_S, Reply, Target, post
from kestrel_tools.bench.requests.mixed import with_comment
from kestrel_tools.bench.results import Row, percentile

PICTURES = Path(__file__).parents[2] / "doctor/pictures"
GREEDY = {"temperature": 0, "max_tokens": 12}
ASKED: Sequence[tuple[str, str, dict[str, Any]]] = (  # path, picture, fields
    ("/v1/query", "circles.png", {"question": "How many circles are there?", "settings": GREEDY}),
    ("/v1/detect", "shapes.png", {"object": "green star"}),
    ("/v1/query", "shapes.png", {"question": "What color is the star?", "settings": GREEDY}),
    ("/v1/caption", "shapes.png", {"length": "short", "settings": GREEDY}),
    ("/v1/point", "circles.png", {"object": "green circle"}),
)
TOLD_ANEW = ("request_id", "metrics")  # of each answer


@dataclass(slots=True)
class Seen:
    """What became of a user's requests."""

    latencies_ms: list[float] = field(default_factory=list)  # of right answers
    wrong: int = 0
    refused: int = 0
    hung: int = 0

    def row(self) -> Row:
        found = self.latencies_ms
        shares = {f"p{share}_ms": percentile(found, share / 100) if found else None for share in (50, 95)}
        counts = {"wrong": self.wrong, "refused": self.refused, "hung": self.hung}
        return {"requests": len(found) + sum(counts.values()), **shares, **counts}


def fields_of(number: int) -> tuple[str, dict[str, Any]]:
    """Every other picture is a file that nobody has sent before."""
    path, name, fields = ASKED[number % len(ASKED)]
    file = (PICTURES / name).read_bytes()
    if number % 2:
        file = with_comment(file, f"{monotonic()} {number}".encode())
    return path, {"image_url": f"data:image/png;base64,{base64.b64encode(file).decode()}", **fields}


def answer_in(reply: Reply) -> dict[str, Any]:
    """What must be the same each time."""
    return {name: value for name, value in reply.document.items() if name not in TOLD_ANEW}


class Neighbour:
    def __init__(self, target: Target) -> None:
        self._target = target
        self.known: list[dict[str, Any]] = []

    async def learn(self) -> None:
        """Asks everything alone, once."""
        for number in range(len(ASKED)):
            reply = await post(self._target, *fields_of(number))
            if reply.status == 0:
                raise ServerUnreachable(
                    f"no gateway answers at {self._target.host}:{self._target.port}; start one with "
                    "`kestrel serve --demo`, or name its port with --url (8080 unless told otherwise)"
                )
            if reply.status != 200:
                raise EngineFailed(f"the server answered {reply.status}: {reply.body[:200]!r}")
            self.known.append(answer_in(reply))

    async def ask(self, number: int, seen: Seen) -> None:
        began = monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                reply = await post(self._target, *fields_of(number))
        except TimeoutError:
            seen.hung += 1
            return
        if reply.status != 200:
            seen.refused += 1
        elif answer_in(reply) != self.known[number % len(ASKED)]:
            seen.wrong += 1
        else:
            seen.latencies_ms.append(1000 * (monotonic() - began))

    async def ask_on(self, rate: float, is_over: Callable[[], bool]) -> Seen:
        """At its pace, whether earlier requests have ended or not. Returns when all have."""
        seen, number = Seen(), 0
        began = monotonic()
        async with asyncio.TaskGroup() as group:
            while not is_over():
                group.create_task(self.ask(number, seen))
                number += 1
                await asyncio.sleep(max(began + number / rate - monotonic(), 0))
        return seen
