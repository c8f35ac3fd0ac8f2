"""`POST /v1/responses`: OpenAI's newer way to ask, without its memory: nothing is kept between requests.

As events, each item is added, then its part, which grows until both are done; then comes the whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Chunk, EngineResult
from kestrel_gateway.answering import EventResponse, EventWriter, answer_whole, event
from kestrel_gateway.house import House
from kestrel_gateway.openai.answers import Document, Head, logprob_items
from kestrel_gateway.openai.asking import model_of
from kestrel_gateway.openai.reading import read_body
from kestrel_gateway.openai.response_body import ResponseBody, read_response
from kestrel_gateway.openai.response_items import Answered, text_part, thought_part
from kestrel_gateway.reading.bodies import read_json
from kestrel_gateway.records.visits import visit_of


async def answer_response(house: House, http: HttpRequest) -> ASGIApp:
    visit = visit_of(http)
    body = read_body(ResponseBody, await read_json(http, house.options))
    asked = await read_response(house, body)
    visit.picture_param, visit.adapter_param = asked.picture_param, "model"
    request = house.admitted(asked.request, visit)
    answered = Answered(Head(visit.request_id, model_of(house, request)), body, asked)
    if body.stream:
        return EventResponse(house.upstream, request, visit, ResponseEvents(answered), house.options)
    result = await answer_whole(house.upstream, request, visit, http.receive)
    return Response(msgspec.json.encode(answered.whole(result)), media_type="application/json")


class ResponseEvents(EventWriter):
    def __init__(self, answered: Answered) -> None:
        self._answered = answered
        self._num_events = 0
        self._index = -1  # of the item that grows; there is none yet
        self._item_id = ""
        self._thoughts: list[str] = []
        self._is_speaking = False

    def first(self) -> Iterator[bytes]:
        begun = self._answered.begun()
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)

    def chunk(self, chunk: Chunk) -> Iterator[bytes]:
        if chunk.kind == "reasoning":
            yield from self._think(chunk.text)
        else:
            yield from self._speak(chunk.text, chunk.logprobs)

    def last(self, result: EngineResult) -> Iterator[bytes]:
        is_command = self._answered.asked.is_command
        yield from self._speak(self._answered.asked.content(result) if is_command else "")
        part = self._answered.text_part(result)
        yield self._of_part("response.output_text.done", text=part["text"], logprobs=part["logprobs"])
        yield from self._end(part, self._answered.message(result))
        whole = self._answered.whole(result)
        yield self._event(f"response.{whole['status']}", response=whole)

    def failure(self, error: KestrelError) -> Iterator[bytes]:
        yield self._event("response.failed", response=self._answered.failed(error))

    def _think(self, text: str) -> Iterator[bytes]:
        if not self._thoughts:
            yield from self._begin(self._answered.reasoning(None), thought_part(""))
        self._thoughts.append(text)
        yield self._of_part("response.reasoning_text.delta", delta=text)

    def _speak(self, text: str, tokens: Sequence[Mapping[str, Any]] = ()) -> Iterator[bytes]:
        if not self._is_speaking:
            self._is_speaking = True
            yield from self._end_thoughts()
            yield from self._begin(self._answered.message(None), text_part("", []))
        if text:
            logprobs = logprob_items(tokens, self._answered.asked.num_top)
            yield self._of_part("response.output_text.delta", delta=text, logprobs=logprobs)

    def _end_thoughts(self) -> Iterator[bytes]:
        if self._thoughts:
            thoughts = "".join(self._thoughts)
            yield self._of_part("response.reasoning_text.done", text=thoughts)
            yield from self._end(thought_part(thoughts), self._answered.reasoning(thoughts))

    def _begin(self, item: Document, part: Document) -> Iterator[bytes]:
        self._index += 1
        self._item_id = item["id"]
        yield self._event("response.output_item.added", output_index=self._index, item=item)
        yield self._of_part("response.content_part.added", part=part)

    def _end(self, part: Document, item: Document) -> Iterator[bytes]:
        yield self._of_part("response.content_part.done", part=part)
        yield self._event("response.output_item.done", output_index=self._index, item=item)

    def _of_part(self, kind: str, **fields: Any) -> bytes:
        return self._event(kind, item_id=self._item_id, output_index=self._index, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        document = {"type": kind, "sequence_number": self._num_events, **fields}
        self._num_events += 1
        return f"event: {kind}\n".encode() + event(document)
