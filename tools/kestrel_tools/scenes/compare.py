"""Asks the same requests in several ways: batch, cache, preemption and streams must not change an answer."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace

from kestrel_core.build import LoadedModel, assemble_engine
from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.messages import Request

from .answers import Answer, Answers, EngineAnswers, ServerAnswers
from .asking import TEXTS

CALLERS = 8
PREEMPT = 0.3
MAX_LISTED = 10


@dataclass
class Way:
    """One way to ask, and what came of it."""

    name: str
    answers: Answers
    happened: Callable[[], str]  # in words: what shows that requests really went this way
    streams: bool = False
    times: int = 1
    num_compared: int = 0
    num_different: int = 0
    different: list[dict[str, str]] = field(default_factory=list)

    def compare(self, requests: Sequence[Request], plain: Sequence[Answer], rng: random.Random) -> None:
        """Ask again, in another order."""
        chosen = [i for i, request in enumerate(requests) if not self.streams or request.skill in TEXTS]
        for _ in range(self.times):
            rng.shuffle(chosen)
            answers = self.answers([replace(requests[i], stream=self.streams) for i in chosen])
            for i, answer in zip(chosen, answers, strict=True):
                self._note(requests[i], plain[i], answer)

    def _note(self, request: Request, plain: Answer, answer: Answer) -> None:
        self.num_compared += 1
        # Errors are no answers: two of them are not equal either.
        if isinstance(answer.outcome, dict) and plain.outcome == answer.outcome:
            return
        self.num_different += 1
        if len(self.different) < MAX_LISTED:
            asked = f"{request.request_id} {request.skill}: {next(iter(request.arguments.values()))}"
            pair = {"plain": str(plain.outcome), self.name: str(answer.outcome)}
            self.different.append({"asked": asked, **pair})


@contextmanager
def engine_ways(model: LoadedModel, config: RuntimeConfig) -> Iterator[tuple[Answers, list[Way]]]:
    """The plain way (one at a time, no cache) and the others, all over one set of weights."""
    alone = replace(config, max_batch_size=1, prefix_cache=False, kv_cache_tokens=None)
    together = replace(alone, max_batch_size=CALLERS)
    context = config.max_context or model.network.config.text.max_context
    # Room for one whole context only, so sequences are preempted as soon as one needs all of it.
    tight = replace(together, prefix_cache=True, kv_cache_tokens=context)
    with ExitStack() as open_ones:

        def asked(chosen: RuntimeConfig, callers: int, preempt: float = 0.0) -> EngineAnswers:
            answers = EngineAnswers(assemble_engine(model, chosen), callers, preempt)
            return open_ones.enter_context(closing(answers))

        plain = asked(alone, 1)
        batched = asked(together, CALLERS)
        cached = asked(replace(alone, prefix_cache=True), 1)
        preempted = asked(tight, CALLERS, PREEMPT)
        streamed = asked(replace(together, prefix_cache=True), CALLERS)

        def from_cache() -> str:
            metrics = cached.engine.loop.metrics
            share = metrics.cached_tokens / max(1, metrics.prompt_tokens)
            return f"{share:.0%} of the prompts from the cache"

        metrics, scheduler = batched.engine.loop.metrics, preempted.engine.loop.scheduler
        yield (
            plain,
            [
                Way("batched", batched, lambda: f"{metrics.steps:,} steps of up to {CALLERS}"),
                Way("cached", cached, from_cache, times=2),
                Way("preempted", preempted, lambda: f"{scheduler.num_preemptions:,} preemptions"),
                Way("streamed", streamed, lambda: "pieces add up", streams=True),
            ],
        )


@contextmanager
def server_ways(url: str) -> Iterator[tuple[Answers, list[Way]]]:
    """What a server shows from outside: one caller, several, and streams."""
    with closing(ServerAnswers(url, 1)) as plain, closing(ServerAnswers(url, CALLERS)) as several:
        yield (
            plain,
            [
                Way("batched", several, lambda: f"{CALLERS} callers"),
                Way("streamed", several, lambda: "pieces add up", streams=True),
            ],
        )
