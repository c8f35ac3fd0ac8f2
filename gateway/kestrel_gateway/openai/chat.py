"""`POST /v1/chat/completions`: a conversation with a picture, whole or as chunks.

Where OpenAI and the model have defaults that differ (temperature, top_p, max_tokens), the model's are used.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.messages import Chunk, EngineResult
from kestrel_gateway import errors
from kestrel_gateway.answering import EventResponse, EventWriter, answer_whole, event
from kestrel_gateway.house import House
from kestrel_gateway.openai.answers import DONE, Document, Head, finish_reason, logprob_items, usage
from kestrel_gateway.openai.asking import Asked, model_of
from kestrel_gateway.openai.chat_body import ChatBody, read_chat
from kestrel_gateway.openai.reading import read_body
from kestrel_gateway.reading.bodies import read_json
from kestrel_gateway.records.visits import visit_of


async def answer_chat(house: House, http: HttpRequest) -> ASGIApp:
    visit = visit_of(http)
    body = read_body(ChatBody, await read_json(http, house.options))
    asked = await read_chat(house, body)
    visit.picture_param, visit.adapter_param = asked.picture_param, "model"
    request = house.admitted(asked.request, visit)
    head = Head(f"chatcmpl-{visit.request_id}", model_of(house, request))
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        writer = ChatEvents(head, asked, with_usage)
        return EventResponse(house.upstream, request, visit, writer, house.options)
    result = await answer_whole(house.upstream, request, visit, http.receive)
    return Response(msgspec.json.encode(completion(head, asked, result)), media_type="application/json")


def completion(head: Head, asked: Asked, result: EngineResult) -> Document:
    message = {"role": "assistant", "content": asked.content(result), "refusal": None}
    if (thoughts := asked.thoughts(result)) is not None:
        message["reasoning"] = thoughts
    return {
        **head.document("chat.completion"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": _logprobs(result.output.get("logprobs"), asked.num_top),
                "finish_reason": finish_reason(result),
            }
        ],
        "usage": usage(result.metrics),
    }


def _logprobs(tokens: Sequence[Mapping[str, Any]] | None, num_top: int) -> Document | None:
    return {"content": logprob_items(tokens, num_top), "refusal": None} if tokens else None


class ChatEvents(EventWriter):
    def __init__(self, head: Head, asked: Asked, with_usage: bool) -> None:
        self._head = head.document("chat.completion.chunk")
        self._asked = asked
        self._usage: Document = {"usage": None} if with_usage else {}
        self._num_told = 0  # tokens whose log probabilities were sent

    def first(self) -> Iterator[bytes]:
        yield self._event({"role": "assistant", "content": "", "refusal": None})

    def chunk(self, chunk: Chunk) -> Iterator[bytes]:
        delta = {"content" if chunk.kind == "text" else "reasoning": chunk.text}
        self._num_told += len(chunk.logprobs)
        yield self._event(delta, _logprobs(chunk.logprobs, self._asked.num_top))

    def last(self, result: EngineResult) -> Iterator[bytes]:
        if self._asked.is_command:
            yield self._event({"content": self._asked.content(result)})
        untold = result.output.get("logprobs", ())[self._num_told :]
        yield self._event({}, _logprobs(untold, self._asked.num_top), finish_reason(result))
        if self._usage:
            yield event({**self._head, "choices": [], "usage": usage(result.metrics)})
        yield DONE

    def failure(self, error: KestrelError) -> Iterator[bytes]:
        yield event(errors.document(error))

    def _event(
        self, delta: Document, logprobs: Document | None = None, finish_reason: str | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
        return event({**self._head, "choices": [choice], **self._usage})
