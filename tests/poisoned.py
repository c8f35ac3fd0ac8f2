"""Engines over a fake runtime that some requests poison, and how to compare what requests meet in them."""

from dataclasses import replace
from typing import Any

import pytest
from fake_runtime import LETTERS
from fakes import FakeEngine, Heard

from kestrel_core.loop.sequence import Outcome, Prompt, Reply
from kestrel_core.loop.step import Readout, Sample
from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Request
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language, SkillSpec
from kestrel_core.skills.text import TextReply

both = pytest.mark.parametrize("overlaps", [False, True])

UNSOUND, UNKNOWN = 290, 291  # tokens of which the runtime makes no numbers, and nothing at all


class PoisonedReply(TextReply):
    def __init__(self, request: Request, language: Language, where: str) -> None:
        super().__init__(request, language, "answer")
        self._where = where
        self._num_taken = 0

    def readout(self, ahead: int = 0) -> Readout:
        if self._where == "readout" and self._num_taken + ahead >= 2:
            raise ZeroDivisionError
        if self._where == "no readout":
            return None  # type: ignore[return-value]
        return super().readout(ahead)

    def take(self, sample: Sample) -> Outcome:
        self._num_taken += 1
        if self._where == "take" and self._num_taken == 2:
            raise ZeroDivisionError
        if self._where == "no text" and self._num_taken == 2:
            return Outcome(5, finish="stop")  # type: ignore[arg-type]
        return super().take(sample._replace(token=LETTERS[0]))  # never ends by itself

    def cut(self) -> Outcome:
        if self._where == "cut":
            raise ZeroDivisionError
        return super().cut()

    def output(self) -> dict[str, Any]:
        if self._where == "output":
            raise ZeroDivisionError
        return super().output()


class PoisonedSkill(SkillSpec):
    """A third party's skill that raises where it is told to."""

    name = "poisoned"
    arguments = (Argument("where"), Argument("tokens", list))
    image = "optional"
    streams = True
    greedy = True

    def prompt(self, request: Request, language: Language) -> Prompt:
        if request.arguments["where"] == "prompt":
            raise ZeroDivisionError
        if request.arguments["where"] == "no prompt":
            return Prompt((), request.image is not None)
        if request.arguments["where"] == "no idea":
            return None  # type: ignore[return-value]
        return Prompt((1, 2, 3), request.image is not None)

    def reply(self, request: Request, language: Language) -> Reply:
        if request.arguments["where"] == "reply":
            raise ZeroDivisionError
        return PoisonedReply(request, language, request.arguments["where"])


def make_engine(**options: Any) -> FakeEngine:
    engine = FakeEngine(skills=builtin_skills().with_skill(PoisonedSkill()), **options)
    engine.runtime.not_finite.add(UNSOUND)
    engine.runtime.failing |= {UNKNOWN, "late"}
    engine.runtime.adapters.failing.add("broken")
    return engine


def alone(request: Request) -> Heard:
    """The same request, with nobody else there."""
    engine = make_engine(max_adapters=1)
    heard = engine.submit(replace(request, priority=0, timeout_s=None))
    engine.run_until_idle()
    engine.check_idle()
    return heard


def same(heard: Heard, other: Heard) -> bool:
    """The same answer, streamed the same way, at the same cost; or the same error."""
    if isinstance(heard.end, KestrelError) or isinstance(other.end, KestrelError):
        return (type(heard.end), str(heard.end)) == (type(other.end), str(other.end))
    one, two = heard.end.result, other.end.result
    return (
        (one.output, one.finish_reason, heard.streamed) == (two.output, two.finish_reason, other.streamed)
        and one.metrics.input_tokens == two.metrics.input_tokens
        and one.metrics.output_tokens == two.metrics.output_tokens
    )
