"""A request for a response as it is sent: its fields, its items and their parts.

Nothing is kept between requests, so whatever refers to an earlier one is refused.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from msgspec import Struct

from kestrel_gateway.house import House
from kestrel_gateway.openai.asking import Asked, Effort, ask, thinks
from kestrel_gateway.openai.conversation import Picture, Role, Turn, read_conversation
from kestrel_gateway.openai.reading import (
    ModelName,
    OpenAIBody,
    StreamOptions,
    Temperature,
    TokenLimit,
    TopLogprobs,
    TopP,
    refused,
)

LOGPROBS = "message.output_text.logprobs"


class InputText(Struct, tag="input_text", tag_field="type"):
    text: str


class OutputText(Struct, tag="output_text", tag_field="type"):
    """Of an earlier answer."""

    text: str


class Thought(Struct, tag="reasoning_text", tag_field="type"):
    text: str


class InputImage(Struct, tag="input_image", tag_field="type"):
    image_url: str
    detail: str | None = None
    file_id: None = None


class Item(Struct, forbid_unknown_fields=True):
    """The last fields are those of an answer that is sent back; what they hold is not read."""

    type: Literal["message", "reasoning"] = "message"
    role: Role | None = None
    content: str | list[InputText | OutputText | InputImage | Thought] | None = None
    id: Any = None
    status: Any = None
    phase: Any = None
    summary: Any = None
    encrypted_content: Any = None


class ReasoningOptions(Struct):
    effort: Effort | None = None
    summary: Any = None  # thoughts come as they are, never summed up


class TextFormat(Struct):
    type: Literal["text"]


class TextOptions(Struct):
    format: TextFormat | None = None
    verbosity: Any = None


class ResponseBody(OpenAIBody):
    model: ModelName
    input: str | list[Item]
    instructions: str | None = None
    max_output_tokens: TokenLimit | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None
    top_logprobs: TopLogprobs | None = None
    include: list[Literal["message.output_text.logprobs"]] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None

    unserved: ClassVar = {
        "previous_response_id": (),
        "conversation": (),
        "background": (False,),
        "prompt": (),
        "tools": ([],),
        "tool_choice": ("none", "auto"),
        "max_tool_calls": (),
        "truncation": ("disabled",),
        "context_management": (),
        "moderation": (),
        "image": (),
        "access_programs": (),
    }
    ignored: ClassVar = (
        "store",
        "user",
        "service_tier",
        "safety_identifier",
        "prompt_cache_options",
        "prompt_cache_retention",
        "parallel_tool_calls",
    )
    hints: ClassVar = {
        "include[]": f"only {LOGPROBS} is served",
        "input[].type": "an item is a message; tools are not served",
        "input[].role": "an item is of the system, developer, user or assistant",
        "input[].content[].type": "a part is of type input_text or input_image",
        "input[].content[].file_id": "no files are kept; send image_url",
        "text.format.type": "only text is served",
    }


async def read_response(house: House, body: ResponseBody) -> Asked:
    wants_logprobs = bool(body.include)
    if body.top_logprobs and not wants_logprobs:
        raise refused("top_logprobs", f'top_logprobs needs include to have "{LOGPROBS}"')
    if body.stream_options is not None and not body.stream:
        raise refused("stream_options", "stream_options needs stream to be true")
    settings = {
        "max_tokens": body.max_output_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "logprobs": max(1, body.top_logprobs or 0) if wants_logprobs else None,
    }
    return await ask(
        house,
        body.model,
        read_conversation(list(_turns(body)), "input"),
        settings,
        thinks=thinks(None, body.reasoning.effort if body.reasoning else None),
        stream=bool(body.stream),
        num_top=body.top_logprobs or 0,
        cache_key=body.prompt_cache_key,
    )


def _turns(body: ResponseBody) -> Iterator[Turn]:
    if body.instructions:
        yield Turn("system", (body.instructions,), (), "instructions")
    if isinstance(body.input, str):
        yield Turn("user", (body.input,), (), "input")
        return
    for index, item in enumerate(body.input):
        if item.type == "message":
            yield _turn(item, f"input[{index}]")


def _turn(item: Item, place: str) -> Turn:
    if item.role is None:
        raise refused(f"{place}.role", f"{place}.role: it is required")
    param = f"{place}.content"
    content = item.content or ()
    if isinstance(content, str):
        return Turn(item.role, (content,), (), param)
    texts = tuple(part.text for part in content if isinstance(part, InputText | OutputText))
    pictures = tuple(
        Picture(part.image_url, f"{param}[{at}]")
        for at, part in enumerate(content)
        if isinstance(part, InputImage)
    )
    return Turn(item.role, texts, pictures, param)
