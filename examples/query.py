"""Ask questions about a picture, several at once; the engine reads the picture only the first time.

    KESTREL_MODEL=moondream2 python examples/query.py photo.jpg "What is this?" "What colour is it?"

Every option of the engine is a KESTREL_* variable: KESTREL_DEVICE=cpu, KESTREL_MODEL_PATH=..., and so on.
"""

import asyncio
import sys
from pathlib import Path

from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine


async def main(picture: str, *questions: str) -> None:
    image = Path(picture).read_bytes()
    engine = await InferenceEngine.create(RuntimeConfig.from_environment())
    try:
        answers = [engine.query(image, question, settings={"max_tokens": 256}) for question in questions]
        for question, result in zip(questions, await asyncio.gather(*answers), strict=True):
            print(f"{question}\n  {result.output['answer']}")
            print(f"  {result.metrics.output_tokens} tokens, {result.metrics.cached_tokens} from the cache")
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
