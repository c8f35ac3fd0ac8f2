"""A skill of your own, in one file: how many of something there are, counted over point's decoding.

    python examples/custom_skill.py client/samples/circles.png "green circle"

Serve it, and ask for it like any other; nothing else has to be changed:

    KESTREL_SKILLS=examples/custom_skill.py:Count kestrel serve --demo
    python client/run.py --image client/samples/circles.png --skill count --object "green circle"
    curl localhost:8000/v2/models/moondream/generate -d '{"SKILL": "count", "OBJECT": "...", "IMAGE": "..."}'

A skill says what it takes, how to ask and how to read. An argument that has a tensor of its own (OBJECT here)
comes in that; all others (`least` here) come in ARGUMENTS, a JSON object.
"""

import argparse
import asyncio
import os
from typing import Any

from kestrel_core import Argument, InferenceEngine, KestrelError, Language, Request, RuntimeConfig
from kestrel_core.loop.sequence import Reply
from kestrel_core.skills.arguments import takes
from kestrel_core.skills.registry import builtin_skills
from kestrel_core.skills.spatial import ObjectsReply, PointSkill

BUNDLED = {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}  # unless told otherwise


class Count(PointSkill):
    """Asks as point does; its answer is the number, and whether that is enough."""

    name = "count"
    meaning = "how many there are of what fits the words"
    arguments = (
        takes("object", required=True),
        Argument("least", int, "so many are enough", default=1, least=0, most=1000),
    )
    answers = "`count`, and `enough`: whether there are at least as many as asked for"

    def reply(self, request: Request, language: Language) -> Reply:
        return CountReply(request, language)


class CountReply(ObjectsReply):
    def __init__(self, request: Request, language: Language) -> None:
        super().__init__(request, language, with_size=False)
        self._least = request.arguments["least"]

    def output(self) -> dict[str, Any]:
        count = len(super().output()["points"])
        return {"count": count, "enough": count >= self._least}


async def main(picture: str, *objects: str) -> None:
    config = RuntimeConfig.from_environment({**BUNDLED, **os.environ})
    engine = await InferenceEngine.create(config, skills=builtin_skills().with_skill(Count()))
    try:
        answers = await asyncio.gather(*(engine.ask("count", picture, object=one) for one in objects))
        for one, answer in zip(objects, answers, strict=True):
            print(f"{one}: {answer.output['count']}")
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    command = argparse.ArgumentParser()
    command.add_argument("picture", metavar="PICTURE")
    command.add_argument("objects", nargs="+", metavar="OBJECT")
    given = command.parse_args()
    try:
        asyncio.run(main(given.picture, *given.objects))
    except KestrelError as error:
        command.error(str(error))
