"""Describe a picture, and show the words as they come.

    python examples/caption.py client/samples/shapes.png [short|normal|long]

The bundled model knows drawings; KESTREL_MODEL=moondream2 KESTREL_DEVICE=cuda is for photographs.
"""

import argparse
import asyncio
import os

from kestrel_core import InferenceEngine, KestrelError, RuntimeConfig

BUNDLED = {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}  # unless told otherwise


async def main(picture: str, length: str = "normal") -> None:
    engine = await InferenceEngine.create(RuntimeConfig.from_environment({**BUNDLED, **os.environ}))
    try:
        stream = await engine.caption(picture, length, stream=True)
        async for chunk in stream:
            print(chunk.text, end="", flush=True)
        result = await stream.result()
        print(f"\n({result.finish_reason}, first words after {result.metrics.ttft_ms:.0f} ms)")
    finally:
        await engine.shutdown()


if __name__ == "__main__":
    command = argparse.ArgumentParser()
    command.add_argument("picture", metavar="PICTURE")
    command.add_argument("length", nargs="?", choices=("short", "normal", "long"), default="normal")
    given = command.parse_args()
    try:
        asyncio.run(main(given.picture, given.length))
    except KestrelError as error:
        command.error(str(error))
