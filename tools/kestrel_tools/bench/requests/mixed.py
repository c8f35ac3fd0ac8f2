"""Mixed requests: which skill, picture and settings the n-th one brings, and whether its caller stays.

Deterministic in a seed, and endless. Pictures of many sizes are drawn once. What is asked about is a copy
with a number in its comment: to every cache another picture, and made in no time.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyvips

from kestrel_core.engine import EngineStream, InferenceEngine
from kestrel_core.moondream.config import MoondreamConfig
from kestrel_core.protocol.errors import Cancelled, EngineFailed, InvalidRequest
from kestrel_core.protocol.messages import EngineResult
from kestrel_tools.bench.requests.charts import SIZES, draw_chart

# Width, height: small and thin ones, of one tile; usual ones, up to 6 megapixels; very long ones, with more
# crops than the tiling's budget. Pictures of random sizes are added: buffers of many sizes are needed.
PHOTOS = (
    *((1, 1), (64, 48), (378, 378), (3000, 120)),
    *((640, 480), (768, 1024), (1280, 720), (1920, 1080), (2048, 1536), (3000, 2000)),
    *((10_000, 400), (400, 6_000)),
)
NUM_ODD = 24
ODD_SIDES = (50, 2000)  # shortest, longest
AGAIN = 0.3  # share of pictures that were asked about before, within the last
AGAIN_WITHIN = 100  # requests
LEAVING = 0.1  # share of callers that leave before their answer is complete
LONGEST = 200  # tokens of an answer
OBJECTS = ("red circle", "bar", "person in a yellow raincoat", "7", "legend")
WEIGHTS = {
    "query": 6,
    "query, reasoning": 2,
    "query, no picture": 2,
    "caption, short": 2,
    "caption, normal": 2,
    "caption, long": 2,
    "detect": 3,
    "point": 3,
    "segment": 2,
    "bad picture": 1,
    "bad argument": 1,
}
BAD_ARGUMENTS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (  # skill, arguments, settings
    ("sing", {"song": "any"}, {}),
    ("caption", {"length": "endless"}, {}),
    ("query", {"question": " "}, {}),
    ("query", {"question": "Why?", "reasoning": "yes"}, {}),
    ("query", {"question": "Why?"}, {"max_tokens": 0}),
    ("query", {"question": "Why?"}, {"temperature": "hot"}),
    ("query", {"question": "Why?"}, {"adapter": "nobody's"}),
    ("query", {"question": "Why?", "spatial_refs": [[0.5, 7.0]]}, {}),
    ("point", {}, {}),
    ("detect", {"object": 7}, {}),
)


class Call(NamedTuple):
    """One request, and what its caller does with it."""

    kind: str  # what it is counted as
    skill: str
    image: bytes | None
    arguments: dict[str, Any]
    settings: dict[str, Any]
    stream: bool = False
    bad: bool = False  # an error is the right answer
    leave_after: int | None = None  # chunks
    patience_s: float | None = None
    timeout_s: float | None = None  # kept by the engine, while patience is the caller's


class Mixture:
    def __init__(self, seed: int, shape: MoondreamConfig, max_context: int, texts: Sequence[str]) -> None:
        """Asks only what a model of this `shape` can do. No text has more tokens than letters."""
        self._seed = seed
        self._dialog = shape.dialog
        self._texts = texts
        self._max_letters = max((max_context - shape.image_prefix_length) // 4, 1)
        self._bad_arguments = (*BAD_ARGUMENTS, ("query", {"question": "why " * max_context}, {}))
        possible = {
            "query, reasoning": shape.dialog.reasons,
            "query, no picture": shape.dialog.text_only,
            "segment": shape.tokenizer.templates.segment is not None,
        }
        self._weights = {kind: weight for kind, weight in WEIGHTS.items() if possible.get(kind, True)}
        rng = Random(f"{seed} sizes")
        odd = [(round(_even(rng, *ODD_SIDES)), round(_even(rng, *ODD_SIDES))) for _ in range(NUM_ODD)]
        with ThreadPoolExecutor() as threads:
            charts = threads.map(draw_chart, range(2 * len(SIZES)))
            self._drawn = [*charts, *threads.map(draw_photo, (*PHOTOS, *odd))]

    @property
    def kinds(self) -> list[str]:
        return list(self._weights)

    def call(self, index: int) -> Call:
        rng = Random(f"{self._seed} {index}")
        [kind] = rng.choices(self.kinds, list(self._weights.values()))
        back = rng.randint(1, AGAIN_WITHIN) if rng.random() < AGAIN else 0
        image = self.picture(max(index - back, 0))
        if kind == "bad picture":
            damaged = rng.choice((image[: len(image) // 2], image[:10], b"no picture", b""))
            return Call(kind, "query", damaged, {"question": "Why?"}, {}, bad=True)
        if kind == "bad argument":
            skill, arguments, settings = rng.choice(self._bad_arguments)
            return Call(kind, skill, image, arguments, settings, bad=True)
        skill, _, rest = kind.partition(", ")
        is_text = skill in ("query", "caption")
        call = Call(
            kind,
            skill,
            image if rest != "no picture" else None,
            self._arguments(rng, skill, rest),
            text_settings(rng) if is_text else {"max_objects": rng.choice((1, 5, 20, None))},
            stream=is_text and rng.random() < 0.5,
        )
        return leaving(rng, call) if rng.random() < LEAVING else call

    def picture(self, number: int) -> bytes:
        return with_comment(self._drawn[number % len(self._drawn)], f"{self._seed} {number}".encode())

    def _arguments(self, rng: Random, skill: str, rest: str) -> dict[str, Any]:
        if skill == "caption":
            return {"length": rest}
        refs = [[0.25, 0.5], [0.125, 0.25, 0.5, 0.75]] if rng.random() < 0.2 else None
        if not self._dialog.spatial_refs or rest == "no picture" or skill in ("detect", "segment"):
            refs = None
        if skill != "query":
            return {"object": rng.choice(OBJECTS)[: self._max_letters], "spatial_refs": refs}
        question = " ".join(rng.choices(self._texts, k=rng.choice((1, 1, 1, 4, 12))))
        return {
            "question": question[: self._max_letters],
            "reasoning": rest == "reasoning",
            "spatial_refs": refs,
        }


def text_settings(rng: Random) -> dict[str, Any]:
    settings: dict[str, Any] = {"max_tokens": round(_even(rng, 1, LONGEST)), "temperature": 0.0}
    if rng.random() < 0.5:
        settings |= {
            "temperature": rng.choice((0.3, 0.7, 1.0, 1.5)),
            "top_p": rng.choice((0.3, 0.9, 1.0)),
            "top_k": rng.choice((0, 1, 40)),
            "seed": rng.getrandbits(32),
        }
    if rng.random() < 0.1:
        settings["logprobs"] = rng.choice((1, 5, 20))
    if rng.random() < 0.1:
        settings["stop"] = [".", "the end"]
    return settings


def leaving(rng: Random, call: Call) -> Call:
    """The same call, but its caller leaves: after some chunks, after a while, or by a deadline it sent."""
    if call.stream:
        return call._replace(leave_after=rng.randint(1, 8))
    moment = rng.uniform(0.001, 0.5)
    return call._replace(patience_s=moment) if rng.random() < 0.5 else call._replace(timeout_s=moment)


async def make_call(engine: InferenceEngine, call: Call) -> str:
    """The field of a tally that it counts for. Raises what should not happen."""
    try:
        async with asyncio.timeout(call.patience_s):
            answer = await engine.submit(
                call.skill,
                call.image,
                call.arguments,
                settings=call.settings,
                stream=call.stream,
                timeout_s=call.timeout_s,
            )
            if isinstance(answer, EngineStream):
                answer = await _listen(answer, call.leave_after)
    except TimeoutError:
        return "left"
    except Cancelled:
        if call.timeout_s is None:
            raise
        return "left"
    except InvalidRequest:
        if not call.bad:
            raise
        return "refused"
    if call.bad:
        raise EngineFailed(f"{call.skill} was answered, with {call.arguments} and {call.settings}")
    if answer.finish_reason != "cancelled":
        return "answered"
    if call.leave_after is None:
        raise EngineFailed("was cancelled, though its caller stayed")
    return "left"


async def _listen(stream: EngineStream, leave_after: int | None) -> EngineResult:
    num_chunks = 0
    async for _ in stream:
        num_chunks += 1
        if num_chunks == leave_after:
            stream.cancel()
    return await stream.result()


def draw_photo(size: tuple[int, int]) -> bytes:
    """The JPEG file of a few soft colours."""
    width, height = size
    spots = np.random.default_rng(size).integers(0, 256, (8, 8, 3), np.uint8)
    image = pyvips.Image.new_from_memory(spots, 8, 8, 3, "uchar")
    image = image.copy(interpretation="srgb").resize(width / 8, vscale=height / 8)
    return bytes(image.jpegsave_buffer(Q=85))


def with_comment(file: bytes, text: bytes) -> bytes:
    """The same picture, and another file: JPEG takes comments behind its first mark, PNG before its end."""
    if file.startswith(b"\xff\xd8"):
        return b"".join((file[:2], b"\xff\xfe", (2 + len(text)).to_bytes(2, "big"), text, file[2:]))
    chunk, end = b"tEXtComment\0" + text, len(file) - 12
    length, check = (len(chunk) - 4).to_bytes(4, "big"), crc32(chunk).to_bytes(4, "big")
    return b"".join((file[:end], length, chunk, check, file[end:]))


def _even(rng: Random, least: float, most: float) -> float:
    """A number between the two, evenly spread on a logarithmic scale."""
    return float(least * (most / least) ** rng.random())
