"""`POST /v1/chat/completions`: a conversation with a picture, whole or as chunks.

Where OpenAI and the model have defaults that differ (temperature, top_p, max_tokens), the model's are used.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from kestrel_core.protocol.errors import KestrelError
from kestrel_core.protocol.fields import MAX_INT32
from kestrel_core.protocol.messages import Chunk, EngineResult
from kestrel_gateway import errors
from kestrel_gateway.answering import EventResponse, EventWriter, answer_whole, event
from kestrel_gateway.bodies import read_json
from kestrel_gateway.house import House
from kestrel_gateway.openai.answers import Document, Head, finish_reason, logprob_items, usage
from kestrel_gateway.openai.asking import Asked, ask, model_of, thinks
from kestrel_gateway.openai.conversation import Picture, Role, Turn, read_conversation
from kestrel_gateway.openai.reading import OpenAIBody, read_body, refused
from kestrel_gateway.visits import visit_of

DONE = b"data: [DONE]\n\n"
NoTools = Annotated[list[Any], Meta(max_length=0)]
Stops = str | Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(max_length=4)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ImageURL(Struct):
    url: str
    detail: str | None = None


class TextPart(Struct, tag="text", tag_field="type"):
    text: str


class ImagePart(Struct, tag="image_url", tag_field="type"):
    image_url: str | ImageURL


class Message(Struct, forbid_unknown_fields=True):
    """The last fields are those of an answer that is sent back; what they hold is not read."""

    role: Role
    content: str | list[TextPart | ImagePart] | None = None
    name: str | None = None
    tool_calls: NoTools | None = None
    function_call: None = None
    audio: None = None
    refusal: Any = None
    annotations: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    provider_specific_fields: Any = None


class StreamOptions(Struct):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatBody(OpenAIBody):
    model: str
    messages: Annotated[list[Message], Meta(min_length=1)]
    max_completion_tokens: Annotated[int, Meta(ge=1, le=MAX_INT32)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=MAX_INT32)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=MAX_INT32)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: Stops | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    reasoning: bool | None = None
    reasoning_effort: Effort | None = None
    prompt_cache_key: str | None = None

    unserved: ClassVar = {
        "n": (1,),
        "presence_penalty": (0, 0.0),
        "frequency_penalty": (0, 0.0),
        "repetition_penalty": (1, 1.0),
        "min_tokens": (0,),
        "ignore_eos": (False,),
        "response_format": ({"type": "text"},),
        "tools": ([],),
        "tool_choice": ("none", "auto"),
        "functions": ([],),
        "function_call": ("none", "auto"),
        "logit_bias": ({},),
        "modalities": (["text"],),
        "audio": (),
        "prediction": (),
        "web_search_options": (),
        "moderation": (),
    }
    ignored: ClassVar = (
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_options",
        "prompt_cache_retention",
        "parallel_tool_calls",
        "verbosity",
    )
    hints: ClassVar = {
        "messages[].role": "a message is of the system, developer, user or assistant; tools are not served",
        "messages[].content[].type": "a part is of type text or image_url",
        "messages[].tool_calls": "tools are not served",
        "messages[].function_call": "functions are not served",
        "messages[].audio": "sound is not served",
        "stop": "a text, or up to 4 of them",
    }


async def answer_chat(house: House, http: HttpRequest) -> ASGIApp:
    visit = visit_of(http)
    body = read_body(ChatBody, await read_json(http, house.options))
    _check(body)
    asked = await read_chat(house, body)
    request = await house.admitted(asked.request, visit)
    head = Head(f"chatcmpl-{visit.request_id}", model_of(house, asked))
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        writer = ChatEvents(head, asked, with_usage)
        return EventResponse(house.upstream, request, visit, writer, house.options)
    result = await answer_whole(house.upstream, request, visit, http.receive)
    return Response(msgspec.json.encode(completion(head, asked, result)), media_type="application/json")


async def read_chat(house: House, body: ChatBody) -> Asked:
    settings = {
        "max_tokens": body.max_completion_tokens or body.max_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "top_k": body.top_k,
        "seed": body.seed,
        "stop": body.stop,
        "logprobs": max(1, body.top_logprobs or 0) if body.logprobs else None,
    }
    return await ask(
        house,
        body.model,
        read_conversation([_turn(message, at) for at, message in enumerate(body.messages)], "messages"),
        settings,
        thinks=thinks(body.reasoning, body.reasoning_effort),
        stream=bool(body.stream),
        num_top=body.top_logprobs or 0,
        cache_key=body.prompt_cache_key,
    )


def _check(body: ChatBody) -> None:
    """What one field means for another."""
    limits = {body.max_tokens, body.max_completion_tokens} - {None}
    if len(limits) > 1:
        raise refused(
            "max_tokens",
            f"max_tokens is {body.max_tokens} and max_completion_tokens {body.max_completion_tokens}; "
            "both name the same limit, so send one of them",
        )
    if body.top_logprobs is not None and not body.logprobs:
        raise refused("top_logprobs", "top_logprobs needs logprobs to be true")
    if body.stream_options is not None and not body.stream:
        raise refused("stream_options", "stream_options needs stream to be true")


def _turn(message: Message, index: int) -> Turn:
    param = f"messages[{index}].content"
    content = message.content or ()
    if isinstance(content, str):
        return Turn(message.role, (content,), (), param)
    texts = tuple(part.text for part in content if isinstance(part, TextPart))
    pictures = tuple(
        Picture(_address(part), f"{param}[{at}]")
        for at, part in enumerate(content)
        if isinstance(part, ImagePart)
    )
    return Turn(message.role, texts, pictures, param)


def _address(part: ImagePart) -> str:
    return part.image_url if isinstance(part.image_url, str) else part.image_url.url


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
                "logprobs": _logprobs(asked, result),
                "finish_reason": finish_reason(result),
            }
        ],
        "usage": usage(result.metrics),
    }


def _logprobs(asked: Asked, result: EngineResult) -> Document | None:
    tokens = result.output.get("logprobs")
    return None if tokens is None else {"content": logprob_items(tokens, asked.num_top), "refusal": None}


class ChatEvents(EventWriter):
    def __init__(self, head: Head, asked: Asked, with_usage: bool) -> None:
        self._head = head.document("chat.completion.chunk")
        self._asked = asked
        self._usage: Document = {"usage": None} if with_usage else {}

    def first(self) -> Iterator[bytes]:
        yield self._event({"role": "assistant", "content": "", "refusal": None})

    def chunk(self, chunk: Chunk) -> Iterator[bytes]:
        yield self._event({"content" if chunk.kind == "text" else "reasoning": chunk.text})

    def last(self, result: EngineResult) -> Iterator[bytes]:
        if self._asked.is_command:
            yield self._event({"content": self._asked.content(result)})
        yield self._event({}, _logprobs(self._asked, result), finish_reason(result))
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
