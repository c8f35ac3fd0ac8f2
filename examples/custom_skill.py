"""A skill of your own: a question that can only be answered with yes or no, in a single token.

    python examples/custom_skill.py client/samples/shapes.png "Is there a green star?"

A skill says how to ask and how to read. Here the model is asked as for any query, but all that can be read
from it is the first token of a yes or of a no. The engine batches and caches it like its own skills.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine
from kestrel_core.loop.sequence import Outcome, Prompt
from kestrel_core.loop.step import Kind, Readout, Sample
from kestrel_core.protocol.messages import EngineResult, Request
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spec import Language
from kestrel_core.skills.text import QuerySkill

BUNDLED = {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}  # unless told otherwise


class YesNoReply:
    def __init__(self, yes: set[int], no: set[int]) -> None:
        self._yes = yes
        self._readout = Readout(Kind.TOKEN, choices=(*sorted(yes), *sorted(no)))
        self._answer: bool | None = None

    def readout(self, ahead: int = 0) -> Readout:
        return self._readout

    def take(self, sample: Sample) -> Outcome:
        self._answer = sample.token in self._yes
        return Outcome(finish="stop")

    def cut(self) -> Outcome:
        return Outcome(finish="length")

    def output(self) -> dict[str, Any]:
        return {"yes": self._answer}


class YesNoSkill:
    name = "yes_no"
    greedy = True

    def prompt(self, request: Request, language: Language) -> Prompt:
        return QuerySkill().prompt(request, language)

    def reply(self, request: Request, language: Language) -> YesNoReply:
        def begin(*words: str) -> set[int]:
            return {language.tokenizer.encode(word)[0] for word in words}

        yes, no = begin("Yes", " Yes"), begin("No", " No")
        return YesNoReply(yes - no, no - yes)  # where a lone space is a token, it says neither


async def main(picture: str, *questions: str) -> None:
    image = Path(picture).read_bytes()
    skills = builtin_skills().with_skill(YesNoSkill())
    engine = await InferenceEngine.create(
        RuntimeConfig.from_environment({**BUNDLED, **os.environ}), skills=skills
    )
    try:
        answers = [engine.submit("yes_no", image, question=question) for question in questions]
        for question, result in zip(questions, await asyncio.gather(*answers), strict=True):
            assert isinstance(result, EngineResult)
            print(f"{question} {'yes' if result.output['yes'] else 'no'}")
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
