"""The OpenAPI document: every path, what it takes, and every answer it can give.

A path of a skill follows from what the server says of the skill, a path of OpenAI's from the struct that
reads its body, an error's status and codes from the error classes. What else there is, the tables below say.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kestrel_core.protocol.about import SkillAbout, own_version
from kestrel_core.protocol.errors import BadCheckpoint, KestrelError
from kestrel_gateway.docs import schemas
from kestrel_gateway.docs.of_openai import ANSWERS, OF_OPENAI, OfOpenAI
from kestrel_gateway.docs.schemas import EXAMPLE_PICTURE, TEXT, Schema, ref
from kestrel_gateway.errors import TYPES
from kestrel_gateway.health import LIVE, READY

WORDS = {
    400: "It cannot be served as asked; the message says why.",
    401: "No key, or an unknown one.",
    403: "The key is not for this.",
    404: "There is no such path, model or adapter.",
    408: "The request was not sent in time.",
    413: "The body, the picture or a text is over its limit.",
    414: "The address is too long.",
    415: "The content type is not served.",
    429: "The queue is full, or the key has asked too often. Retry-After says when to ask again.",
    431: "The headers are too large.",
    500: "A fault of ours.",
    503: "Starting, ending, or nobody answers. Retry-After says when to ask again.",
    504: "The deadline has passed.",
}
OF_READING = (401, 414, 429, 431, 500, 503)
OF_ASKING = (400, 403, 404, 408, 413, 415, 504, *OF_READING)
EXAMPLES: dict[str, dict[str, Any]] = {
    "query": {
        "image_url": EXAMPLE_PICTURE,
        "question": "What is in the picture?",
        "settings": {"max_tokens": 64},
    },
    "caption": {"image_url": EXAMPLE_PICTURE, "length": "short"},
    "detect": {"image_url": EXAMPLE_PICTURE, "object": "red circle"},
    "point": {"image_url": EXAMPLE_PICTURE, "object": "red circle"},
    "segment": {"image_url": EXAMPLE_PICTURE, "object": "red circle"},
}
EVENT = {  # each of them
    "type": "object",
    "properties": {"data": TEXT | {"contentMediaType": "application/json"}},
    "required": ["data"],
}
SKILL_EVENTS = 'data: {"chunk": "A red", "completed": false, "request_id": "1"}\n\n'


def document(skills: Sequence[SkillAbout], model: str, has_keys: bool) -> dict[str, Any]:
    paths: dict[str, Any] = {f"/v1/{skill.name}": {"post": _skill(skill)} for skill in skills}
    paths |= {path: {"post": _openai(path, known)} for path, known in OF_OPENAI.items()}
    paths |= {path: {"get": operation} for path, operation in _reading()}
    security: list[dict[str, list[str]]] = [{"bearer": []}, {"moondream": []}]
    for path, methods in paths.items():
        for operation in methods.values():
            is_open = not path.startswith("/v1/") or path.startswith("/v1/health/")
            operation["security"] = [] if is_open else security if has_keys else [{}, *security]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kestrel",
            "version": own_version(),
            "description": f"Moondream's REST and OpenAI's API. The model here is {model}. Every error has "
            "the same envelope; every answer has the header X-Request-Id.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in ("skills", "openai", "server")],
        "paths": paths,
        "components": {
            "schemas": schemas.parts([known.body for known in OF_OPENAI.values()]) | ANSWERS,
            "responses": {str(status): _refusal(status) for status in WORDS},
            "headers": HEADERS,
            "parameters": PARAMETERS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "moondream": {"type": "apiKey", "in": "header", "name": "X-Moondream-Auth"},
            },
        },
    }


def _skill(skill: SkillAbout) -> dict[str, Any]:
    example = EXAMPLES.get(skill.name)
    json: dict[str, Any] = {"schema": schemas.skill_request(skill)}
    if example:
        json["examples"] = {"picture": {"value": example}}
    streams = skill.streams or skill.name in schemas.STREAMING
    words = "" if skill.supported else " The model that is served does not know this skill."
    return {
        "operationId": skill.name,
        "tags": ["skills"],
        "summary": f"{skill.meaning[:1].upper()}{skill.meaning[1:]}",
        "description": f"Gives {skill.answers}.{words}" if skill.answers else words.strip(),
        "parameters": _of_every_request(),
        "requestBody": {
            "required": True,
            "content": {
                "application/json": json,
                "multipart/form-data": {"schema": schemas.skill_form(skill)},
            },
        },
        "responses": _responses(schemas.skill_answer(skill), OF_ASKING, SKILL_EVENTS if streams else ""),
    }


def _openai(path: str, known: OfOpenAI) -> dict[str, Any]:
    example = {"model": "moondream", **known.example}
    content = {"schema": ref(known.body.__name__), "examples": {"picture": {"value": example}}}
    return {
        "operationId": _id(path.removeprefix("/v1/")),
        "tags": ["openai"],
        "summary": known.summary,
        "parameters": _of_every_request(),
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": _responses(ref(known.answer), OF_ASKING, known.events),
    }


def _reading() -> Iterator[tuple[str, dict[str, Any]]]:
    """All that is had with GET."""
    yield (
        "/v1/models",
        _get("models", "openai", "The model that is served, and its adapters", ref("ModelList"), OF_READING),
    )
    one = _get("model", "openai", "One model", ref("Model"), (404, *OF_READING))
    name = {"name": "id", "in": "path", "required": True, "schema": TEXT, "example": "moondream"}
    yield "/v1/models/{id}", one | {"parameters": [name, *one["parameters"]]}
    status = {"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]}
    for path in LIVE:
        yield path, _get(_id(path), "server", "Whether the gateway lives", status, (500,))
    for path in READY:
        yield path, _get(_id(path), "server", "Whether the model answers", status, (500, 503))
    for path, (kind, words) in PAGES.items():
        operation = _get(_id(path), "server", words, {}, (500, 503))
        operation["responses"]["200"]["content"] = {kind: {}}
        yield path, operation


def _get(name: str, tag: str, summary: str, answer: Schema, statuses: Iterable[int]) -> dict[str, Any]:
    return {
        "operationId": name,
        "tags": [tag],
        "summary": summary,
        "parameters": [{"$ref": "#/components/parameters/RequestId"}],
        "responses": _responses(answer, statuses),
    }


def _responses(answer: Schema, statuses: Iterable[int], events: str = "") -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": answer}}
    if events:
        content["text/event-stream"] = {"schema": EVENT, "example": events}
    made: dict[str, Any] = {
        "200": {"description": "The answer.", "headers": _headers("X-Request-Id"), "content": content}
    }
    return made | {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _refusal(status: int) -> dict[str, Any]:
    codes = sorted({kind.reason for kind in _errors(KestrelError) if kind.status == status})
    example = {"error": {"message": WORDS[status], "type": TYPES.get(status), "param": None, "code": None}}
    if codes:
        example["error"]["code"] = codes[0]
    names = ["X-Request-Id", *(["Retry-After"] if status in (429, 503) else [])]
    said = f" `code`: {', '.join(codes)}." if codes else ""
    return {
        "description": WORDS[status] + said,
        "headers": _headers(*names),
        "content": {"application/json": {"schema": ref("Error"), "example": example}},
    }


def _errors(kind: type[KestrelError]) -> Iterator[type[KestrelError]]:
    if kind is not BadCheckpoint:  # which no request meets
        yield kind
        for below in kind.__subclasses__():
            yield from _errors(below)


def _of_every_request() -> list[dict[str, str]]:
    return [{"$ref": f"#/components/parameters/{name}"} for name in PARAMETERS]


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _id(path: str) -> str:
    return path.strip("/").replace("/", "_").replace(".", "_")


PAGES = {
    "/metrics": ("text/plain", "What was counted, for Prometheus"),
    "/openapi.json": ("application/json", "This document"),
    "/docs": ("text/html", "This document, to read"),
}
HEADERS = {
    "X-Request-Id": {"schema": TEXT, "description": "As it was sent, or made here."},
    "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds."},
}
PARAMETERS = {
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "schema": TEXT,
        "description": "Up to 128 visible ASCII letters, which come back with the answer and stand in logs "
        "and traces. Any other is replaced.",
    },
    "Trace": {
        "name": "traceparent",
        "in": "header",
        "schema": TEXT,
        "description": "The caller's span, as W3C writes it. Any other begins a trace of its own.",
    },
}
