"""The gateway in this process, on a real socket, over a scripted upstream; and a client of plain HTTP."""

import asyncio
import http.client
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from client.fake_triton import OUTPUTS

from kestrel_core.protocol.about import About
from kestrel_core.protocol.asking import AnswerStream, AsyncCalls
from kestrel_core.protocol.errors import Cancelled, KestrelError
from kestrel_core.protocol.messages import Chunk, EngineResult, FinishReason, Request, Usage
from kestrel_core.protocol.results import typed
from kestrel_core.protocol.wire import encode_request
from kestrel_gateway.house import House
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.process.serving import listening, serve_house
from kestrel_gateway.records.visits import Observer

USAGE = Usage(740, 3, 730, 0.5, 12.5, 45.2, 15.0)
# Gives chunks, and raises what goes wrong; the result follows from the request's skill.
Script = Callable[[Request], AsyncIterator[Chunk]]


async def well(request: Request) -> AsyncIterator[Chunk]:
    """A red circle, in three pieces if pieces are asked for."""
    if request.stream:
        for index, text in enumerate(("a ", "red ", "circle")):
            yield Chunk(text, index + 1)


def failing(error: KestrelError, after: int = 0) -> Script:
    """So many chunks, then the error."""

    async def script(request: Request) -> AsyncIterator[Chunk]:
        for index in range(after):
            yield Chunk("a ", index + 1)
        raise error

    return script


async def endless(request: Request) -> AsyncIterator[Chunk]:
    """A chunk, then nothing for ever."""
    if request.stream:
        yield Chunk("a ", 1)
    await asyncio.Event().wait()


class FakeAnswer(AnswerStream[EngineResult]):
    def __init__(self, request: Request, script: Script, result: EngineResult) -> None:
        self.request = request
        self.is_cancelled = threading.Event()
        self._chunks = script(request)
        self._result = result
        self._reading: asyncio.Future[Chunk] | None = None
        self._done = False

    @property
    def is_done(self) -> bool:
        return self._done

    def cancel(self) -> None:
        self.is_cancelled.set()
        if self._reading is not None:
            self._reading.cancel()

    async def next_chunk(self) -> Chunk | None:
        if self.is_cancelled.is_set():
            raise Cancelled("cancelled")
        self._reading = asyncio.ensure_future(anext(self._chunks))
        try:
            return await self._reading
        except asyncio.CancelledError:  # of whoever reads, or by `cancel`
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise Cancelled("cancelled") from None
        except (StopAsyncIteration, KestrelError) as error:
            self._done = True
            if isinstance(error, KestrelError):
                raise
            return None

    async def result(self) -> EngineResult:
        while await self.next_chunk() is not None:
            pass
        return typed(self._result)


class FakeUpstream(AsyncCalls):
    """Each request takes the next of `scripts`; when there are none left, it is answered well."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.asked: list[Request] = []
        self.answers: list[FakeAnswer] = []
        self.usage = USAGE
        self.outputs = dict(OUTPUTS)
        self.finish_reason: FinishReason = "stop"

    async def open(self, request: Request) -> FakeAnswer:
        encode_request(request)  # which refuses what a client would refuse to send
        script = self.scripts.pop(0) if self.scripts else well
        self.asked.append(request)
        output = self.outputs.get(request.skill, {"text": "done"})
        result = EngineResult(request.request_id, self.finish_reason, output, self.usage)
        self.answers.append(FakeAnswer(request, script, result))
        return self.answers[-1]


@dataclass
class Running:
    port: int
    house: House
    upstream: Any  # a `FakeUpstream`, unless the test brought something else

    def call_model(self, name: str) -> None:
        """As if the server had said that it serves this one."""
        self.house.upstream.replicas[0].about = About(name, "1.0", 2048, ())

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """Status, document and headers. Bytes are sent as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, data, {"Content-Type": "application/json", **_headers(headers)})

    def get(self, path: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
        return self.ask("GET", path, None, _headers(headers))

    def leaver(self, path: str, body: Any) -> http.client.HTTPConnection:
        """A client whose request has reached the upstream, and who may go now."""
        before = len(self.upstream.answers)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        while len(self.upstream.answers) == before:
            time.sleep(0.001)
        return connection

    def events(self, path: str, body: Any, **headers: str) -> list[Any]:
        """The documents of a stream; `[DONE]` as it is."""
        status, text, sent = self.post(path, body, **headers)
        assert status == 200, text
        assert sent["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]

    def ask(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        sent = {name.lower(): value for name, value in answer.getheaders()}
        is_json = sent.get("content-type") == "application/json"
        return answer.status, json.loads(text) if is_json else text, sent


@contextmanager
def running(
    upstream: AsyncCalls | None = None, observers: Sequence[Observer] = (), **options: Any
) -> Iterator[Running]:
    upstream = upstream or FakeUpstream()
    given = GatewayOptions(("unused:1",), **{"drain_s": 0.0, "exit_timeout_s": 5.0, **options})
    house = House(given, upstream)
    for replica in house.upstream.replicas:
        replica.is_found_well()
    with listening("127.0.0.1", 0) as door:
        port = door.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(serve_house(house, [door], observers)))
        thread.start()
        try:
            yield Running(port, house, upstream)
        finally:
            house.drain.begin()
            thread.join(60)
            assert not thread.is_alive()


def _headers(given: dict[str, str]) -> dict[str, str]:
    """Keywords as names of headers: `x_request_id` is X-Request-Id."""
    return {name.replace("_", "-"): value for name, value in given.items()}
