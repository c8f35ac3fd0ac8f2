"""The Triton contract in both directions: `Request` <-> named tensors, chunks and results <-> JSON.

Knows nothing of Triton's own classes: values are what the tensors hold (bytes, numbers, arrays), so that the
server's model, the clients and the gateway share it. Errors travel as their `wire_text` and come back by
`errors.error_from_text`.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from kestrel_core.protocol.arguments import MAX_TEXT_BYTES, Argument, to_float
from kestrel_core.protocol.errors import BadImage, InvalidRequest, TooLarge
from kestrel_core.protocol.fields import (
    ARGUMENTS,
    BY_NAME,
    LATER,
    PARAMETERS,
    SETTINGS,
    TRITONS_OWN,
    Field,
)
from kestrel_core.protocol.limits import DEFAULTS, OF_THE_SERVER, InputLimits
from kestrel_core.protocol.messages import (
    Chunk,
    EngineResult,
    Finished,
    Request,
    Usage,
    parse_settings,
    parse_traceparent,
)
from kestrel_core.protocol.names import nearest, shown
from kestrel_core.protocol.results import typed

REFS_FORM = (
    "SPATIAL_REFS must be rows of numbers; over HTTP they are the parameter spatial_refs, a JSON string "
    'such as "[[0.1, 0.2], [0.1, 0.2, 0.5, 0.6]]"'
)

MEASURED = tuple(field.name for field in fields(Usage))
ROW_LETTERS = 120  # of a row of SPATIAL_REFS as JSON, at most


# Requests


def encode_request(request: Request) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """The tensors of a request, by name, and its parameters. The image has to be bytes by now."""
    tensors: dict[str, list[Any]] = {"SKILL": [request.skill]}
    parameters: dict[str, str] = {}
    for key, value in request.arguments.items():
        if value is None:
            continue
        if key == "spatial_refs":  # a tensor's rows have one length, so points and boxes could not be mixed
            rows = OF_THE_SERVER.of(ARGUMENTS[key].argument).check(value)
            parameters[key] = json.dumps(_rows(rows))
        elif key in ARGUMENTS:
            tensors[ARGUMENTS[key].name] = [OF_THE_SERVER.of(ARGUMENTS[key].argument).check(value)]
    for key, field in SETTINGS.items():
        value = getattr(request.settings, key)
        if value is not None and value != getattr(type(request.settings)(), key):
            tensors[field.name] = list(value) if isinstance(value, tuple) else [value]
    if own := _own_arguments(request):
        tensors["ARGUMENTS"] = [own]
    if request.image is not None:
        tensors["IMAGE"] = [request.image]
    if request.stream:
        tensors["STREAM"] = [True]
    if request.priority:
        tensors["PRIORITY"] = [request.priority]
    if request.cache_salt:
        parameters["cache_salt"] = PARAMETERS["cache_salt"].check(request.cache_salt)
    if request.traceparent:
        parameters["traceparent"] = request.traceparent
    if request.tenant:
        parameters["tenant"] = PARAMETERS["tenant"].check(request.tenant)
    return tensors, parameters


def decode_request(
    tensors: Mapping[str, Any],
    request_id: str,
    timeout_us: int = 0,
    parameters: Mapping[str, Any] | None = None,
    limits: InputLimits = DEFAULTS,
) -> Request:
    """A request from tensor values: each a flat sequence, or rows of numbers for SPATIAL_REFS.

    `parameters` are the request's own, as `fields.PARAMETERS` names them. Whether the skill takes these
    arguments is checked later, against its `SkillSpec`. A longer text costs no more here.
    """
    parameters = parameters or {}
    for name in parameters:
        _refuse_unknown_parameter(name)
    values = {}
    for name, value in tensors.items():
        if name not in BY_NAME:
            raise InvalidRequest(f'there is no input "{shown(name)}"{nearest(name, BY_NAME)}')
        _check_rank(BY_NAME[name], value)
        if name != "SPATIAL_REFS":
            values[name] = _value(BY_NAME[name], value, limits)
    arguments = {field.key: values[field.name] for field in ARGUMENTS.values() if field.name in values}
    most = limits.of(ARGUMENTS["spatial_refs"].argument)
    refs = _spatial_refs(tensors.get("SPATIAL_REFS"), parameters.get("spatial_refs"), most)
    if refs is not None:
        arguments["spatial_refs"] = refs
    for key, value in _parse_own_arguments(values.get("ARGUMENTS")).items():
        if key in ARGUMENTS:
            raise InvalidRequest(f"ARGUMENTS holds {key}; send the input {ARGUMENTS[key].name}")
        arguments[key] = value
    return Request(
        skill=values.get("SKILL", ""),
        arguments=arguments,
        image=_image(values["IMAGE"]) if "IMAGE" in values else None,
        settings=parse_settings(
            {key: values[f.name] for key, f in SETTINGS.items() if f.name in values}, limits
        ),
        request_id=request_id,
        stream=bool(values.get("STREAM", False)),
        priority=limits.of(BY_NAME["PRIORITY"].argument).check(values.get("PRIORITY", 0)),
        timeout_s=_timeout_s(timeout_us or parameters.get("timeout", 0)),
        cache_salt=PARAMETERS["cache_salt"].check(parameters.get("cache_salt", "")),
        traceparent=parse_traceparent(parameters.get("traceparent")),
        tenant=PARAMETERS["tenant"].check(parameters.get("tenant", "")),
    )


def decode_image_input(data: bytes) -> bytes:
    """Encoded image bytes as they are; base64 text or a data URL decoded, since JSON carries nothing else."""
    head = data[:64].lstrip()
    if head.startswith(b"data:"):
        scheme, comma, data = data.lstrip().partition(b",")
        if not comma or not scheme.rstrip().endswith(b";base64"):
            raise BadImage("IMAGE is a data URL, but not of the form data:image/...;base64,...")
    elif head.startswith((b"http://", b"https://", b"file://")):
        raise BadImage("IMAGE is an address; pictures are never fetched: send the bytes, or base64 of them")
    elif not _looks_like_base64(data):
        return data
    try:
        return base64.b64decode(data.translate(None, b"\r\n\t "), validate=True)
    except (binascii.Error, ValueError):
        raise BadImage("IMAGE is neither an encoded picture nor valid base64") from None


# Responses


def encode_chunk(chunk: Chunk) -> str:
    key = "chunk" if chunk.kind == "text" else "reasoning_chunk"
    document: dict[str, Any] = {key: chunk.text, "completed": False, "token_index": chunk.token_index}
    if chunk.logprobs:
        document["logprobs"] = chunk.logprobs
    return _json(document)


def encode_result(result: EngineResult, rest: Chunk | None = None) -> str:
    """The one response, or the last of a stream when `rest`, its remaining text, is given."""
    document = {
        "request_id": result.request_id,
        "finish_reason": result.finish_reason,
        **result.output,
        "metrics": {name: getattr(result.metrics, name) for name in MEASURED},
    }
    if rest is not None:
        document |= {"chunk": rest.text, "completed": True}
        if rest.logprobs:  # beside those of the whole answer
            document["chunk_logprobs"] = rest.logprobs
    return _json(document)


def decode_response(text: str | bytes) -> Chunk | Finished:
    """A response's JSON. Raises KeyError, TypeError, ValueError or AttributeError where it is not ours."""
    document: dict[str, Any] = json.loads(text)
    if not document.get("completed", True):
        index = int(document["token_index"])
        if "reasoning_chunk" in document:
            return Chunk(str(document["reasoning_chunk"]), index, "reasoning")
        return Chunk(str(document["chunk"]), index, "text", tuple(document.get("logprobs", ())))
    usage = document.pop("metrics")
    metrics = Usage(**{name: usage.get(name, 0) for name in MEASURED})
    rest, logprobs = str(document.pop("chunk", "")), tuple(document.pop("chunk_logprobs", ()))
    document.pop("completed", None)
    request_id, reason = str(document.pop("request_id")), document.pop("finish_reason")
    result = typed(EngineResult(request_id, reason, document, metrics))
    return Finished(result, Chunk(rest, metrics.output_tokens, "text", logprobs))


# Values


def _refuse_unknown_parameter(name: str) -> None:
    """Over HTTP, everything that is not exactly the name of an input arrives as a parameter."""
    if name in PARAMETERS or name == "id" or name.startswith(TRITONS_OWN):
        return
    if name.upper() in BY_NAME:
        raise InvalidRequest(f"{name} is no parameter; send the input {name.upper()}")
    if name.upper() in LATER:
        raise InvalidRequest(f"{name} is not served yet")
    raise InvalidRequest(f'there is no input "{shown(name)}"{nearest(name, (*BY_NAME, *PARAMETERS))}')


def _check_rank(field: Field, value: Any) -> None:
    """Of arrays; plain lists have no shape, and what they hold is checked as it is."""
    shape = getattr(value, "shape", None)
    if shape is None or len(shape) == len(field.dims):
        return
    if field.name == "SPATIAL_REFS":
        raise InvalidRequest(REFS_FORM)
    raise InvalidRequest(f"{field.name} has the shape {list(shape)}; it takes {list(field.dims)}")


def _value(field: Field, value: Any, limits: InputLimits) -> Any:
    """What a tensor holds. Only cheap checks are made here."""
    count, argument = len(value), limits.of(field.argument)
    if field.dims == (-1,):
        if count > argument.max_items:
            raise TooLarge(
                f"{field.name} has {count:,} strings; at most {argument.max_items:,} are taken"
                f"{argument.named_setting}"
            )
        return [_text(field, one, limits.each_stop) for one in value]
    if count != 1:
        raise InvalidRequest(f"{field.name} has {count:,} values; it takes one")
    one = value[0].item() if hasattr(value[0], "item") else value[0]
    return _text(field, one, argument) if field.type == "STRING" and field.name != "IMAGE" else one


def _text(field: Field, value: Any, argument: Argument) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise InvalidRequest(f"{field.name} is a {type(value).__name__}; it must be a string")
    if len(value) > argument.max_bytes:
        raise TooLarge(
            f"{field.name} has {len(value):,} bytes and the limit is {argument.max_bytes:,}"
            f"{argument.named_setting}; shorten it"
        )
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{field.name} is not UTF-8 text") from None


def _image(value: Any) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, bytes):
        raise BadImage(f"IMAGE is a {type(value).__name__}; send the bytes of a picture, or base64 of them")
    if not data:
        raise BadImage("IMAGE is empty; send the bytes of a picture, or base64 of them")
    return data


def _spatial_refs(tensor: Any, text: Any, argument: Argument) -> list[list[float]] | None:
    if tensor is None and text is None:
        return None
    most = argument.max_items
    limit = f"at most {most:,} rows of 2 or 4 numbers are taken{argument.named_setting}"
    if tensor is None:
        if not isinstance(text, str):
            raise InvalidRequest(REFS_FORM)
        if len(text) > max(MAX_TEXT_BYTES, ROW_LETTERS * most):
            raise TooLarge(f"SPATIAL_REFS has {len(text):,} letters; {limit}")
    else:
        size = getattr(tensor, "size", len(tensor))
        if size > 4 * most or len(tensor) > most:
            raise TooLarge(f"SPATIAL_REFS has {len(tensor):,} rows, {size:,} numbers; {limit}")
    try:
        return _rows(json.loads(text) if tensor is None else tensor)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidRequest(REFS_FORM) from None


def _rows(refs: Sequence[Sequence[float]]) -> list[list[float]]:
    try:
        return [[to_float(number) for number in row] for row in refs]
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest(REFS_FORM) from None


def check_own_arguments(request: Request, limits: InputLimits) -> None:
    """Raises if what is for a skill of somebody's own, by whatever names, is larger than its limit."""
    limits.of(BY_NAME["ARGUMENTS"].argument).check(_own_arguments(request))


def _own_arguments(request: Request) -> str:
    """As JSON; empty if there are none."""
    own = {key: value for key, value in request.arguments.items() if key not in ARGUMENTS}
    own = {key: value for key, value in own.items() if value is not None}
    try:
        return _json(own) if own else ""
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"ARGUMENTS cannot be written as JSON ({shown(str(error))})") from None


def _parse_own_arguments(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        own = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest('ARGUMENTS must be a JSON object, such as {"least": 2}') from None
    if not isinstance(own, dict):
        raise InvalidRequest('ARGUMENTS must be a JSON object, such as {"least": 2}')
    return own


def _timeout_s(microseconds: Any) -> float | None:
    is_number = isinstance(microseconds, int | float) and not isinstance(microseconds, bool)
    if not is_number or not 0 <= microseconds < 2**63:
        given = shown(repr(microseconds))
        raise InvalidRequest(f"timeout is {given}; it is a number of microseconds, 0 for none")
    return microseconds / 1e6 or None


def _looks_like_base64(data: bytes) -> bool:
    """No picture begins with 16 letters of base64: JPEG, PNG, WebP, GIF, TIFF and AVIF all break that."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n"
    return not data[:16].strip(letters)


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)
