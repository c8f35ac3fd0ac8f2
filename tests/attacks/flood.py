"""Very many questions of one caller at once, over every door: answered right, or told to wait."""

import asyncio
import json
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import grpc
import grpc.aio
import numpy as np
from attacks.stack import Stack
from tritonclient.grpc import service_pb2

from kestrel_tools.bench.attacks.doors import (
    PATIENCE_S,
    STREAM_INFER,
    Target,
    connected,
    head,
    metadata,
    post,
)
from kestrel_tools.bench.attacks.neighbour import PICTURES
from kestrel_tools.bench.attacks.requests import GENERATE, infer_request, tensor

MAX_TOKENS = 8
CALLS_OF_CONNECTION = 10  # a server may let the rest of many calls wait at their client
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


@dataclass(frozen=True)
class Question:
    """About one of the bundled pictures, greedily."""

    picture: str
    text: str

    @property
    def file(self) -> bytes:
        return (PICTURES / self.picture).read_bytes()

    def for_rest(self) -> dict[str, Any]:
        settings = {"temperature": 0, "max_tokens": MAX_TOKENS}
        return {"question": self.text, "image_url": b64encode(self.file).decode(), "settings": settings}

    def for_generate(self) -> dict[str, Any]:
        asked = {"SKILL": "query", "QUESTION": self.text, "IMAGE": b64encode(self.file).decode()}
        return {**asked, "TEMPERATURE": 0, "MAX_TOKENS": MAX_TOKENS}

    def for_grpc(self) -> bytes:
        request = infer_request(QUESTION=self.text.encode(), IMAGE=self.file)
        tensor(request, "TEMPERATURE", "FP32", [1], np.float32(0).tobytes())
        tensor(request, "MAX_TOKENS", "INT32", [1], np.int32(MAX_TOKENS).tobytes())
        message: bytes = request.SerializeToString()
        return message


QUESTIONS = (
    Question("circles.png", "How many circles are there?"),
    Question("shapes.png", "What color is the star?"),
    Question("shapes.png", "How many shapes are there?"),
)
WAIT = "told to wait"
Ended = str  # an answer, WAIT, or what is wrong


async def over_http(target: Target, path: str, body: bytes) -> Ended:
    given = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    try:
        async with connected(target) as (reader, writer):
            writer.write(head(target, path, given) + body)
            top, _, text = (await reader.read()).partition(b"\r\n\r\n")
    except OSError as error:
        return f"no answer: {type(error).__name__}"
    status, *headers = top.decode().lower().split("\r\n")
    if " 429 " in f"{status} ":
        after = [line.partition(": ")[2] for line in headers if line.startswith("retry-after: ")]
        return WAIT if after and int(after[0]) > 0 else f"429 without Retry-After: {headers}"
    if " 200 " not in f"{status} ":
        return f"{status}: {text[:200]!r}"
    document = json.loads(text)
    return answer_in(document["TEXT_OUTPUT"] if path == GENERATE else text)


async def over_grpc(channel: Any, target: Target, message: bytes) -> Ended:
    begin = channel.stream_stream(STREAM_INFER, request_serializer=None, response_deserializer=None)
    call = begin(iter([message]), metadata=metadata(target))
    try:
        heard = [service_pb2.ModelStreamInferResponse.FromString(data) async for data in call]
    except grpc.aio.AioRpcError as error:
        is_told = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and error.details()
        return WAIT if is_told else f"{error.code()}: {error.details()}"
    if len(heard) != 1:
        return f"{len(heard)} responses"
    if said := heard[0].error_message:
        return WAIT if said.startswith("UNAVAILABLE: ") else str(said)
    return answer_in(heard[0].infer_response.raw_output_contents[0][4:])


def answer_in(document: str | bytes) -> str:
    return str(json.loads(document)["answer"])


class Flood:
    def __init__(self, stack: Stack) -> None:
        self._rest = stack.attacker
        self._kserve = replace(stack.attacker, port=stack.served.http_port)
        self._answers: list[str] = []
        self._rest_bodies = [json.dumps(it.for_rest()).encode() for it in QUESTIONS]
        self._generate_bodies = [json.dumps(it.for_generate()).encode() for it in QUESTIONS]
        self._messages = [it.for_grpc() for it in QUESTIONS]

    async def learn(self) -> None:
        """Each question alone. No two may have the same answer, or nobody could tell them apart."""
        for question in QUESTIONS:
            reply = await post(self._rest, "/v1/query", question.for_rest())
            assert reply.status == 200, reply
            self._answers.append(answer_in(reply.body))
        assert len({*self._answers}) == len(QUESTIONS), self._answers

    async def sent(self, num_http: int, num_grpc: int) -> "tuple[Counter[str], Counter[str]]":
        """How all of them ended, by HTTP (half of them as REST, half as KServe) and by gRPC."""
        async with connections(self._rest, -(-num_grpc // CALLS_OF_CONNECTION)) as channels:
            by_http = asyncio.gather(*(self._one(number, self._http) for number in range(num_http)))
            by_grpc = asyncio.gather(
                *(
                    self._one(number, self._grpc(channels[number % len(channels)]))
                    for number in range(num_grpc)
                )
            )
            return Counter(await by_http), Counter(await by_grpc)

    async def _one(self, number: int, ask: "Callable[[int], Awaitable[Ended]]") -> str:
        try:
            async with asyncio.timeout(PATIENCE_S):
                ended = await ask(number)
        except TimeoutError:
            return "hung"
        return "right" if ended == self._answers[number % len(QUESTIONS)] else ended

    async def _http(self, number: int) -> Ended:
        which = number % len(QUESTIONS)
        if number % 2:
            return await over_http(self._rest, "/v1/query", self._rest_bodies[which])
        return await over_http(self._kserve, GENERATE, self._generate_bodies[which])

    def _grpc(self, channel: Any) -> "Callable[[int], Awaitable[Ended]]":
        return lambda number: over_grpc(channel, self._rest, self._messages[number % len(QUESTIONS)])


@asynccontextmanager
async def connections(target: Target, number: int) -> AsyncIterator[Sequence[Any]]:
    async with AsyncExitStack() as held:
        made = (grpc.aio.insecure_channel(target.grpc, options=OWN_CONNECTION) for _ in range(number))
        yield [await held.enter_async_context(channel) for channel in made]
