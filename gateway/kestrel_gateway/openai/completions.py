"""`POST /v1/completions`: OpenAI's older way to ask, a text without a picture. The prompt is the question."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from kestrel_core.protocol.asking import make_request
from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.fields import ARGUMENTS
from kestrel_core.protocol.messages import Chunk, EngineResult, Request
from kestrel_gateway import errors
from kestrel_gateway.answering import EventResponse, EventWriter, answer_whole, event
from kestrel_gateway.house import House
from kestrel_gateway.openai.answers import DONE, Document, Head, finish_reason, usage
from kestrel_gateway.openai.asking import model_of
from kestrel_gateway.openai.reading import (
    HINTS,
    NOT_YET,
    ModelName,
    OpenAIBody,
    Seed,
    Stops,
    StreamOptions,
    Temperature,
    TokenLimit,
    TopK,
    TopLogprobs,
    TopP,
    read_body,
    refused,
)
from kestrel_gateway.reading.bodies import read_json
from kestrel_gateway.records.visits import visit_of


class CompletionBody(OpenAIBody):
    model: ModelName
    prompt: str | Annotated[list[str], Meta(min_length=1, max_length=1)]
    max_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    seed: Seed | None = None
    stop: Stops | None = None
    logprobs: TopLogprobs | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    unserved: ClassVar = {**NOT_YET, "best_of": (1,), "echo": (False,), "suffix": ("",)}
    ignored: ClassVar = ("user",)
    hints: ClassVar = {
        **HINTS,
        "prompt": "a text, or a list with one text",
        "prompt[]": "prompts are texts; tokens are not taken",
    }


async def answer_completion(house: House, http: HttpRequest) -> ASGIApp:
    visit = visit_of(http)
    body = read_body(CompletionBody, await read_json(http, house.options))
    asked = read_completion(house, body)
    request = house.admitted(asked, visit)
    visit.adapter_param = "model"
    head = Head(f"cmpl-{visit.request_id}", model_of(house, asked)).document("text_completion")
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        writer = CompletionEvents(head, body.logprobs or 0, with_usage)
        return EventResponse(house.upstream, request, visit, writer, house.options)
    result = await answer_whole(house.upstream, request, visit, http.receive)
    logprobs = _logprobs(result.output.get("logprobs"), body.logprobs or 0)
    choice = _choice(result.text, logprobs, finish_reason(result))
    document = {**head, "choices": [choice], "usage": usage(result.metrics)}
    return Response(msgspec.json.encode(document), media_type="application/json")


def read_completion(house: House, body: CompletionBody) -> Request:
    if body.stream_options is not None and not body.stream:
        raise refused("stream_options", "stream_options needs stream to be true")
    [prompt] = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if not prompt.strip():
        raise refused("prompt", "prompt has no text; say what you want to know")
    with errors.blaming("prompt"):
        ARGUMENTS["question"].argument.check(prompt)
    with errors.blaming("model"):
        adapter = house.adapter_of(body.model)
    settings = {
        "max_tokens": body.max_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "top_k": body.top_k,
        "seed": body.seed,
        "stop": body.stop,
        "logprobs": None if body.logprobs is None else max(1, body.logprobs),
        "adapter": adapter,
    }
    return make_request("query", None, {"question": prompt, "settings": settings}, stream=bool(body.stream))


def _choice(text: str, logprobs: Document | None, finish_reason: str | None) -> Document:
    return {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": finish_reason}


def _logprobs(tokens: Sequence[Mapping[str, Any]] | None, num_top: int, start: int = 0) -> Document | None:
    """`start` is the number of letters before the first of the tokens."""
    if not tokens:
        return None
    texts = [token["token"] for token in tokens]
    return {
        "tokens": texts,
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [
            {one["token"]: one["logprob"] for one in token["top"][:num_top]} for token in tokens
        ],
        "text_offset": list(accumulate(map(len, texts[:-1]), initial=start))[: len(texts)],
    }


class CompletionEvents(EventWriter):
    def __init__(self, head: Document, num_top: int, with_usage: bool) -> None:
        self._head = head
        self._num_top = num_top
        self._usage: Document = {"usage": None} if with_usage else {}
        self._num_told = 0  # tokens whose log probabilities were sent
        self._num_letters = 0  # of those tokens

    def chunk(self, chunk: Chunk) -> Iterator[bytes]:
        if chunk.kind == "text":
            yield self._event(_choice(chunk.text, self._told(chunk.logprobs), None))

    def last(self, result: EngineResult) -> Iterator[bytes]:
        untold = result.output.get("logprobs", ())[self._num_told :]
        yield self._event(_choice("", self._told(untold), finish_reason(result)))
        if self._usage:
            yield event({**self._head, "choices": [], "usage": usage(result.metrics)})
        yield DONE

    def failure(self, error: KestrelError) -> Iterator[bytes]:
        yield event(errors.document(error))

    def _told(self, tokens: Sequence[Mapping[str, Any]]) -> Document | None:
        logprobs = _logprobs(tokens, self._num_top, self._num_letters)
        self._num_told += len(tokens)
        self._num_letters += sum(len(token["token"]) for token in tokens)
        return logprobs

    def _event(self, choice: Document) -> bytes:
        return event({**self._head, "choices": [choice], **self._usage})
