"""OpenAI's paths as the document tells of them: their bodies are structs, their answers stand here."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kestrel_gateway.docs.schemas import EXAMPLE_PICTURE, TEXT, Schema, ref
from kestrel_gateway.openai.chat_body import ChatBody
from kestrel_gateway.openai.completions import CompletionBody
from kestrel_gateway.openai.reading import OpenAIBody
from kestrel_gateway.openai.response_body import ResponseBody

COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
NULL: Schema = {"type": "null"}
ANYTHING: Schema = {}


class OfOpenAI(NamedTuple):
    """A path that takes a body. `answer` is the name of a schema, `events` an example of a stream."""

    summary: str
    body: type[OpenAIBody]
    answer: str
    example: dict[str, Any]
    events: str


QUESTION = "What is in the picture?"
OF_OPENAI = {
    "/v1/chat/completions": OfOpenAI(
        "A conversation, with a picture or without one",
        ChatBody,
        "ChatCompletion",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": EXAMPLE_PICTURE}},
                        {"type": "text", "text": QUESTION},
                    ],
                }
            ],
            "max_tokens": 64,
        },
        'data: {"object": "chat.completion.chunk", "choices": [...]}\n\ndata: [DONE]\n\n',
    ),
    "/v1/completions": OfOpenAI(
        "A text without a picture",
        CompletionBody,
        "Completion",
        {"prompt": "What is a kestrel?", "max_tokens": 64},
        'data: {"object": "text_completion", "choices": [...]}\n\ndata: [DONE]\n\n',
    ),
    "/v1/responses": OfOpenAI(
        "OpenAI's newer way to ask, without its memory",
        ResponseBody,
        "Response",
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_image", "image_url": EXAMPLE_PICTURE},
                        {"type": "input_text", "text": QUESTION},
                    ],
                }
            ],
            "max_output_tokens": 64,
        },
        'event: response.created\ndata: {"type": "response.created", ...}\n\n',
    ),
}


def _all(properties: Mapping[str, Schema], *optional: str) -> Schema:
    """An object that has all of these, but for the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, NULL]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one(*words: str) -> Schema:
    return {"enum": list(words)}


USAGE = _all(
    {
        "prompt_tokens": COUNT,
        "completion_tokens": COUNT,
        "total_tokens": COUNT,
        "prompt_tokens_details": _all({"cached_tokens": COUNT, "image_tokens": COUNT, "text_tokens": COUNT}),
        "completion_tokens_details": _all({"reasoning_tokens": COUNT}),
    }
)
TOKEN: dict[str, Schema] = {"token": TEXT, "logprob": NUMBER, "bytes": _or_null(_list(COUNT))}
LOGPROB = _all({**TOKEN, "top_logprobs": _list(_all(TOKEN))})
HEAD: dict[str, Schema] = {"id": TEXT, "created": COUNT, "model": TEXT, "system_fingerprint": TEXT}
FINISH = _one("stop", "length")
MESSAGE = _all({"role": _one("assistant"), "content": TEXT, "refusal": NULL, "reasoning": TEXT}, "reasoning")
CHAT_CHOICE = _all(
    {
        "index": COUNT,
        "message": MESSAGE,
        "logprobs": _or_null(_all({"content": _list(LOGPROB), "refusal": NULL})),
        "finish_reason": FINISH,
    }
)
OLD_LOGPROBS = _all(
    {
        "tokens": _list(TEXT),
        "token_logprobs": _list(NUMBER),
        "top_logprobs": _list({"type": "object", "additionalProperties": NUMBER}),
        "text_offset": _list(COUNT),
    }
)
ITEM = _all(
    {
        "id": TEXT,
        "type": _one("message", "reasoning"),
        "status": _one("completed", "incomplete"),
        "role": _one("assistant"),
        "summary": _list(ANYTHING),
        "content": _list(
            _all(
                {
                    "type": _one("output_text", "reasoning_text"),
                    "text": TEXT,
                    "annotations": _list(ANYTHING),
                    "logprobs": _list(LOGPROB),
                },
                "annotations",
                "logprobs",
            )
        ),
    },
    "role",
    "summary",
)
ANSWERS: dict[str, Schema] = {
    "Model": _all(
        {
            "id": TEXT,
            "object": _one("model"),
            "created": COUNT,
            "owned_by": TEXT,
            "root": TEXT,
            "parent": _or_null(TEXT),
        },
        "root",
        "parent",
    ),
    "ModelList": _all({"object": _one("list"), "data": _list(ref("Model"))}),
    "ChatCompletion": _all(
        {**HEAD, "object": _one("chat.completion"), "choices": _list(CHAT_CHOICE), "usage": USAGE}
    ),
    "Completion": _all(
        {
            **HEAD,
            "object": _one("text_completion"),
            "choices": _list(
                _all(
                    {
                        "index": COUNT,
                        "text": TEXT,
                        "logprobs": _or_null(OLD_LOGPROBS),
                        "finish_reason": FINISH,
                    }
                )
            ),
            "usage": USAGE,
        }
    ),
    "Response": _all(
        {
            "id": TEXT,
            "object": _one("response"),
            "created_at": COUNT,
            "status": _one("completed", "incomplete"),
            "error": NULL,
            "incomplete_details": _or_null(_all({"reason": TEXT})),
            "model": TEXT,
            "output": _list(ITEM),
            "usage": _all(
                {
                    "input_tokens": COUNT,
                    "input_tokens_details": _all({"cached_tokens": COUNT}),
                    "output_tokens": COUNT,
                    "output_tokens_details": _all({"reasoning_tokens": COUNT}),
                    "total_tokens": COUNT,
                }
            ),
        }
    ),
}
