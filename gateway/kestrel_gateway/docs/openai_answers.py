"""Schemas of what OpenAI's paths give: no struct writes those documents, so they are told here."""

from collections.abc import Mapping
from typing import Any

from kestrel_gateway.docs.schemas import TEXT, Schema

COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}


def _all(properties: Mapping[str, Schema], *optional: str) -> Schema:
    """An object that has all of these, but for the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


USAGE = _all(
    {
        "prompt_tokens": COUNT,
        "completion_tokens": COUNT,
        "total_tokens": COUNT,
        "prompt_tokens_details": _all({"cached_tokens": COUNT}),
    }
)
TOKEN: dict[str, Schema] = {"token": TEXT, "logprob": NUMBER, "bytes": _or_null(_list(COUNT))}
HEAD: dict[str, Schema] = {"id": TEXT, "created": COUNT, "model": TEXT, "system_fingerprint": TEXT}
FINISH: Schema = {"enum": ["stop", "length"]}
MODEL = _all(
    {
        "id": TEXT,
        "object": {"const": "model"},
        "created": COUNT,
        "owned_by": TEXT,
        "root": TEXT,
        "parent": _or_null(TEXT),
    },
    "root",
    "parent",
)
CHAT_CHOICE = _all(
    {
        "index": COUNT,
        "message": _all(
            {
                "role": {"const": "assistant"},
                "content": TEXT,
                "refusal": {"type": "null"},
                "reasoning": TEXT,
            },
            "reasoning",
        ),
        "logprobs": _or_null(
            _all({"content": _list(_all({**TOKEN, "top_logprobs": _list(_all(TOKEN))})), "refusal": {}})
        ),
        "finish_reason": FINISH,
    }
)
ANSWERS: dict[str, Schema] = {
    "Model": MODEL,
    "ModelList": _all({"object": {"const": "list"}, "data": _list(MODEL)}),
    "ChatCompletion": _all(
        {
            **HEAD,
            "object": {"const": "chat.completion"},
            "choices": _list(CHAT_CHOICE, minItems=1),
            "usage": USAGE,
        }
    ),
}
