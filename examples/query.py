"""Ask questions about a picture, several at once; the engine reads the picture only the first time.

    python examples/query.py client/samples/circles.png "How many circles are there?" "Is there a star?"

Every option of the engine is a KESTREL_* variable. Without any, the bundled model answers on the CPU, which
knows drawings; KESTREL_MODEL=moondream2 KESTREL_DEVICE=cuda is for photographs.
"""

import argparse
import asyncio
import os

from kestrel_core import InferenceEngine, KestrelError, RuntimeConfig

BUNDLED = {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}  # unless told otherwise


async def main(picture: str, *questions: str) -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment({**BUNDLED, **os.environ}))
    try:
        answers = [engine.query(picture, question, max_tokens=256) for question in questions]
        for question, result in zip(questions, await asyncio.gather(*answers), strict=True):
            print(f"{question}\n  {result.text}")
            print(f"  {result.metrics.output_tokens} tokens, {result.metrics.cached_tokens} from the cache")
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    command = argparse.ArgumentParser()
    command.add_argument("picture", metavar="PICTURE")
    command.add_argument("questions", nargs="+", metavar="QUESTION")
    given = command.parse_args()
    try:
        asyncio.run(main(given.picture, *given.questions))
    except KestrelError as error:
        command.error(str(error))
