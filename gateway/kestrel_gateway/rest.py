"""Moondream's own REST: one path a skill, JSON or a form in, JSON or events out.

A skill's fields are its arguments; settings of the answer stand in `settings` or beside them. Which fields a
skill takes is checked by the server that has the skill.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from kestrel_core.protocol.asking import make_request
from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.protocol.fields import BY_NAME, OLD_NAMES
from kestrel_core.protocol.messages import Chunk, EngineResult, Request
from kestrel_core.protocol.names import shown
from kestrel_gateway import errors
from kestrel_gateway.answering import EventResponse, EventWriter, answer_whole, event
from kestrel_gateway.house import House
from kestrel_gateway.reading.bodies import (
    Body,
    check_form,
    content_type,
    count_values,
    decode_json,
    read_form,
    read_json,
)
from kestrel_gateway.records.visits import visit_of

KINDS = {field.key: field.argument.kind for field in BY_NAME.values()}
WORDS = {"true": True, "1": True, "false": False, "0": False}


async def answer_skill(house: House, http: HttpRequest, skill: str) -> ASGIApp:
    visit, options = visit_of(http), house.options
    is_form = content_type(http) == "multipart/form-data"
    if is_form:
        check_form(http)
        body = of_form(await read_form(http, options), options.max_values)
    else:
        body = await read_json(http, options)
    request = house.admitted(await read_request(house, skill, body), visit)
    if request.stream and skill == "segment":  # it is told in events, but only once it is known
        whole = replace(request, stream=False)
        return EventResponse(house.upstream, whole, visit, OutlineEvents(visit.request_id), options)
    if request.stream:
        return EventResponse(house.upstream, request, visit, SkillEvents(visit.request_id), options)
    result = await answer_whole(house.upstream, request, visit, http.receive)
    return Response(msgspec.json.encode(document(result)), media_type="application/json")


async def read_request(house: House, skill: str, body: Body) -> Request:
    fields = _renamed(body)
    settings = _given(fields, "settings", {})
    if not isinstance(settings, Mapping):
        raise InvalidRequest("settings must be an object of names and values")
    settings = _renamed(settings)
    given = [fields.pop(name) for name in ("image_url", "image") if fields.get(name) is not None]
    if len(given) > 1:
        raise InvalidRequest("image and image_url are both given; send one picture")
    with errors.blaming("image_url"):
        image = await house.picture(given[0]) if given else None
    variant = _given(fields, "variant", None)
    model = _given(fields, "model", variant)
    with errors.blaming("model"):
        adapter = house.adapter_of(model, fields.get("adapter"), settings.get("adapter"))
    if adapter:
        fields["adapter"], settings["adapter"] = None, adapter
    stream = _given(fields, "stream", False)
    if "request_id" in fields:
        raise InvalidRequest("request_id is no field; send it as the header X-Request-Id")
    return make_request(skill, image, {**fields, "settings": settings}, stream=stream)


def _renamed(values: Mapping[str, Any]) -> Body:
    """By the names of today."""
    named = {name: value for name, value in values.items() if name not in OLD_NAMES}
    for old, name in OLD_NAMES.items():
        if values.get(old) is None:
            continue
        if named.get(name) is not None:
            raise InvalidRequest(f"{old} and {name} are both given, and mean the same; send {name}")
        named[name] = values[old]
    return named


def _given(fields: Body, name: str, default: Any) -> Any:
    """Null is as good as nothing; any other value is checked where it is used."""
    value = fields.pop(name, None)
    return default if value is None else value


def of_form(form: Body, max_values: int) -> Body:
    """A form's texts as the values they stand for."""
    return {name: _value(name, value, max_values) for name, value in form.items()}


def _value(name: str, value: Any, max_values: int) -> Any:
    kind = KINDS.get(OLD_NAMES.get(name, name), str)
    if not isinstance(value, str) or (kind is str and name != "settings") or name in ("image", "image_url"):
        return value
    if kind is bool:
        return WORDS.get(value.strip().lower(), value)
    if name == "stop":
        return value
    data = value.encode()
    try:
        return decode_json(data, count_values(data), max_values)
    except InvalidRequest:
        raise InvalidRequest(f'{name} is "{shown(value)}"; it must be written as JSON') from None


def document(result: EngineResult) -> dict[str, Any]:
    """What a skill's path gives: the contract's document, and what Moondream's clients read of an outline."""
    made: dict[str, Any] = {"request_id": result.request_id, **result.output}
    if "segments" in made:
        first = next(iter(made["segments"]), None)
        made["path"] = first["svg_path"] if first else ""
        made["bbox"] = first["bbox"] if first else None
    return made | {"finish_reason": result.finish_reason, "metrics": result.metrics}


class SkillEvents(EventWriter):
    def __init__(self, request_id: str) -> None:
        self._request_id = request_id

    def chunk(self, chunk: Chunk) -> Iterable[bytes]:
        key = "chunk" if chunk.kind == "text" else "reasoning_chunk"
        yield event({key: chunk.text, "completed": False, "request_id": self._request_id})

    def last(self, result: EngineResult) -> Iterable[bytes]:
        yield event({"chunk": "", "completed": True, **document(result)})

    def failure(self, error: KestrelError) -> Iterable[bytes]:
        yield event(errors.document(error) | {"completed": True, "request_id": self._request_id})


class OutlineEvents(SkillEvents):
    """The box first, then the path, then both: the three kinds of event that Moondream's clients know."""

    def last(self, result: EngineResult) -> Iterable[bytes]:
        whole = document(result)
        if whole["bbox"] is not None:
            yield event({"type": "bbox", "bbox": whole["bbox"]})
            yield event({"type": "path_delta", "chunk": whole["path"], "completed": False})
        yield event({"type": "final", "completed": True, **whole})
