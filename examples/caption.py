"""Describe a picture, and show the words as they come.

    python examples/caption.py client/samples/shapes.png [short|normal|long]

The bundled model knows drawings; KESTREL_MODEL=moondream2 KESTREL_DEVICE=cuda is for photographs.
"""

import asyncio
import os
import sys
from pathlib import Path

from kestrel_core import InferenceEngine, RuntimeConfig

BUNDLED = {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}  # unless told otherwise


async def main(picture: str, length: str = "normal") -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment({**BUNDLED, **os.environ}))
    try:
        stream = await engine.caption(Path(picture).read_bytes(), length, stream=True)
        async for chunk in stream:
            print(chunk.text, end="", flush=True)
        result = await stream.result()
        print(f"\n({result.finish_reason}, first words after {result.metrics.ttft_ms:.0f} ms)")
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PICTURE [short|normal|long]")
    asyncio.run(main(*sys.argv[1:]))
