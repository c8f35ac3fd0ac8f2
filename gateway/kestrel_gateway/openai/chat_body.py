"""A chat as it is sent: its fields, its messages and their parts."""

from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from kestrel_gateway.house import House
from kestrel_gateway.openai.asking import Asked, Effort, ask, thinks
from kestrel_gateway.openai.conversation import Picture, Role, Turn, read_conversation
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
    refused,
)

NoTools = Annotated[list[Any], Meta(max_length=0)]


class ImageURL(Struct):
    url: str
    detail: str | None = None


class TextPart(Struct, tag="text", tag_field="type"):
    text: str


class ImagePart(Struct, tag="image_url", tag_field="type"):
    image_url: str | ImageURL


class RefusalPart(Struct, tag="refusal", tag_field="type"):
    """Of an answer that is sent back. It says nothing that is read."""

    refusal: str


class Message(Struct, forbid_unknown_fields=True):
    """The last fields are those of an answer that is sent back; what they hold is not read."""

    role: Role
    content: str | list[TextPart | ImagePart | RefusalPart] | None = None
    name: str | None = None
    tool_calls: NoTools | None = None
    function_call: None = None
    audio: None = None
    refusal: Any = None
    annotations: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    provider_specific_fields: Any = None


class ChatBody(OpenAIBody):
    model: ModelName
    messages: Annotated[list[Message], Meta(min_length=1)]
    max_completion_tokens: TokenLimit | None = None
    max_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_k: TopK | None = None
    seed: Seed | None = None
    stop: Stops | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    reasoning: bool | None = None
    reasoning_effort: Effort | None = None
    prompt_cache_key: str | None = None

    unserved: ClassVar = {
        **NOT_YET,
        "response_format": ({"type": "text"},),
        "tools": ([],),
        "tool_choice": ("none", "auto"),
        "functions": ([],),
        "function_call": ("none", "auto"),
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
        **HINTS,
    }


async def read_chat(house: House, body: ChatBody) -> Asked:
    _check(body)
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
