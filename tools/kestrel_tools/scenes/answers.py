"""Who answers: an engine in this process, or a server. Each is asked by a fixed number of callers.

A caller asks its next request as soon as the last one was answered, so latencies are those of a closed loop.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import NamedTuple

from rich.console import Console

from kestrel_core.build import Engine, assemble_engine, open_model
from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_core.protocol.messages import Chunk, Event, Finished, Request
from kestrel_core.skills.registry import builtin_skills
from kestrel_tools.progress import loading

from .asking import TEXTS
from .score import Outcome

SERVER_CALLERS = 8


class Answer(NamedTuple):
    outcome: Outcome
    latency_s: float


Answers = Callable[[Sequence[Request]], list[Answer]]


@contextmanager
def answering(url: str | None, config: RuntimeConfig, console: Console) -> Iterator[Answers]:
    """The answers of the server at `url`, or of an engine that is made here."""
    if url is not None:
        with closing(ServerAnswers(url, SERVER_CALLERS)) as server:
            yield server
        return
    with loading(console) as progress:
        model = open_model(config, progress)
    engine = assemble_engine(model, config, builtin_skills())
    with closing(EngineAnswers(engine, config.max_batch_size)) as answers:
        yield answers


class EngineAnswers:
    """From an engine whose loop is turned here.

    `preempt` is the probability that a sequence is preempted after a step, whatever room there is.
    """

    def __init__(self, engine: Engine, callers: int, preempt: float = 0.0, seed: int = 0) -> None:
        self.engine = engine
        self._callers = callers
        self._preempt = preempt
        self._rng = random.Random(seed)

    def __call__(self, requests: Sequence[Request]) -> list[Answer]:
        loop, scheduler = self.engine.loop, self.engine.loop.scheduler
        answers: list[Answer | None] = [None] * len(requests)
        waiting = deque(enumerate(requests))
        while waiting or loop.num_open:
            while waiting and loop.num_open < self._callers:
                self._submit(*waiting.popleft(), answers)
            if loop.num_open:
                loop.step(wait=True)
            if scheduler.running and self._rng.random() < self._preempt:
                scheduler.preempt(self._rng.choice(scheduler.running))
        return [answer for answer in answers if answer is not None]

    def close(self) -> None:
        self.engine.close()

    def _submit(self, index: int, request: Request, answers: list[Answer | None]) -> None:
        pieces: list[str] = []
        began = time.perf_counter()

        def sink(event: Event) -> None:
            if isinstance(event, Chunk):
                if event.kind == "text":
                    pieces.append(event.text)
                return
            outcome: Outcome = event if isinstance(event, KestrelError) else dict(event.result.output)
            if isinstance(event, Finished) and request.stream:
                outcome = check_pieces("".join((*pieces, event.rest.text)), request.skill, outcome)
            answers[index] = Answer(outcome, time.perf_counter() - began)

        try:
            self.engine.loop.submit(request, sink)
        except KestrelError as error:
            answers[index] = Answer(error, time.perf_counter() - began)


class ServerAnswers:
    """From a server, over gRPC, through the client package."""

    def __init__(self, url: str, callers: int) -> None:
        # Imported here, since it needs the extra `triton`, which an engine does not.
        from kestrel_client import Client, ServerUnreachable

        self._client = Client(url)
        self._unreachable = ServerUnreachable
        self._threads = ThreadPoolExecutor(callers)

    def __call__(self, requests: Sequence[Request]) -> list[Answer]:
        return list(self._threads.map(self._ask, requests))

    def close(self) -> None:
        self._threads.shutdown()
        self._client.close()

    def _ask(self, request: Request) -> Answer:
        began = time.perf_counter()
        try:
            outcome: Outcome = self._outcome(request)
        except self._unreachable:
            raise  # no other request would be answered either
        except KestrelError as error:
            outcome = error
        return Answer(outcome, time.perf_counter() - began)

    def _outcome(self, request: Request) -> Outcome:
        answer = self._client.submit(request)
        if not request.stream:
            return dict(answer.output)
        text = "".join(chunk.text for chunk in answer if chunk.kind == "text")
        return check_pieces(text, request.skill, dict(answer.result().output))


def check_pieces(text: str, skill: str, outcome: Outcome) -> Outcome:
    """Streamed pieces have to add up to the answer."""
    if isinstance(outcome, KestrelError) or outcome[TEXTS[skill]] == text:
        return outcome
    return EngineFailed(f"the pieces are {text!r}, and the answer is {outcome[TEXTS[skill]]!r}")
