"""Describe a picture, and show the words as they come.

KESTREL_MODEL=moondream2 python examples/caption.py photo.jpg [short|normal|long]
"""

import asyncio
import sys
from pathlib import Path

from kestrel_core.config import RuntimeConfig
from kestrel_core.engine import InferenceEngine


async def main(picture: str, length: str = "normal") -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment())
    try:
        stream = await engine.caption(Path(picture).read_bytes(), length, stream=True)
        async for chunk in stream:
            print(chunk.text, end="", flush=True)
        result = await stream.result()
        print(f"\n({result.finish_reason}, first words after {result.metrics.ttft_ms:.0f} ms)")
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
