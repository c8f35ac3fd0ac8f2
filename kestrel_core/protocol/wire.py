"""The Triton contract in both directions: named tensors to a `Request`, results and chunks to JSON.

Knows nothing of Triton's own classes: values are what the tensors hold (bytes, numbers, arrays), so that the
server's model and the clients share it.
"""

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kestrel_core.protocol.errors import BadImage, InvalidRequest
from kestrel_core.protocol.messages import Chunk, EngineResult, Request, number, parse_settings

TEXTS = ("SKILL", "QUESTION", "OBJECT", "LENGTH", "ADAPTER")
NUMBERS = ("TEMPERATURE", "TOP_P", "MAX_TOKENS", "MAX_OBJECTS", "SEED", "LOGPROBS", "PRIORITY")
FLAGS = ("REASONING", "STREAM")
INPUTS = (*TEXTS, *NUMBERS, *FLAGS, "IMAGE", "SPATIAL_REFS", "STOP")
SETTINGS = ("TEMPERATURE", "TOP_P", "MAX_TOKENS", "MAX_OBJECTS", "ADAPTER", "SEED", "LOGPROBS")
ARGUMENTS = {"QUESTION": "question", "OBJECT": "object", "LENGTH": "length", "REASONING": "reasoning"}
STREAMING_SKILLS = ("query", "caption")


def decode_request(
    inputs: Mapping[str, Any],
    request_id: str,
    timeout_us: int = 0,
    parameters: Mapping[str, Any] | None = None,
) -> Request:
    """A request from tensor values: each a flat sequence, or rows of numbers for SPATIAL_REFS.

    `parameters` are the request parameters of HTTP JSON: `spatial_refs` as a JSON string, and `timeout`.
    """
    parameters = parameters or {}
    for name in parameters:  # over HTTP, whatever is no input by its exact name ends up here
        if name.upper() in INPUTS and name != "spatial_refs":
            raise InvalidRequest(f"{name} is no parameter; send the input {name.upper()}")
    values: dict[str, Any] = {name: _text(name, inputs[name]) for name in TEXTS if name in inputs}
    values |= {name: _only(name, inputs[name]) for name in (*NUMBERS, *FLAGS) if name in inputs}
    if not values.get("SKILL"):
        raise InvalidRequest("SKILL is required: query, caption, detect, point or segment")
    skill, stream = values["SKILL"], bool(values.get("STREAM", False))
    if stream and skill not in STREAMING_SKILLS:
        raise InvalidRequest(f"STREAM is for {' and '.join(STREAMING_SKILLS)}; {skill} answers in one piece")
    settings = {name.lower(): values[name] for name in SETTINGS if name in values}
    if "STOP" in inputs:
        settings["stop"] = [_decoded("STOP", stop) for stop in inputs["STOP"]]
    arguments = {ours: values[name] for name, ours in ARGUMENTS.items() if name in values}
    refs = _spatial_refs(inputs.get("SPATIAL_REFS"), parameters.get("spatial_refs"))
    if refs is not None:
        arguments["spatial_refs"] = refs
    return Request(
        skill=skill,
        arguments=arguments,
        image=decode_image_input(_only("IMAGE", inputs["IMAGE"])) if "IMAGE" in inputs else None,
        settings=parse_settings(settings),
        request_id=request_id,
        stream=stream,
        priority=number("PRIORITY", values.get("PRIORITY", 0), int, -(2**31), 2**31 - 1),
        timeout_s=_timeout_s(timeout_us or parameters.get("timeout", 0)),
    )


def decode_image_input(value: Any) -> bytes:
    """Encoded image bytes as they are; base64 text or a data URL decoded, since JSON carries nothing else."""
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, bytes):
        raise BadImage(f"IMAGE is a {type(value).__name__}; send the bytes of a picture, or base64 of them")
    if not data:
        raise BadImage("IMAGE is empty; send the bytes of a picture, or base64 of them")
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


def encode_chunk(chunk: Chunk) -> str:
    return _json({"chunk": chunk.text, "completed": False, "token_index": chunk.token_index})


def encode_result(result: EngineResult, rest: Chunk | None = None) -> str:
    """The one response, or the last of a stream when `rest`, its remaining text, is given."""
    document = {
        "request_id": result.request_id,
        "finish_reason": result.finish_reason,
        **result.output,
        "metrics": asdict(result.metrics),
    }
    if rest is not None:
        document |= {"chunk": rest.text, "completed": True}
    return _json(document)


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _only(name: str, value: Any) -> Any:
    items = list(value)
    if len(items) != 1:
        raise InvalidRequest(f"{name} has {len(items)} values; it takes one")
    return items[0].item() if hasattr(items[0], "item") else items[0]


def _text(name: str, value: Any) -> str:
    return _decoded(name, _only(name, value))


def _decoded(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value, "utf-8")
    except (UnicodeDecodeError, TypeError):
        raise InvalidRequest(f"{name} is not UTF-8 text") from None


def _spatial_refs(tensor: Any, text: Any) -> list[list[float]] | None:
    if tensor is None and text is None:
        return None
    try:
        rows = json.loads(text) if tensor is None else tensor
        return [[float(number) for number in row] for row in rows]
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidRequest(
            "SPATIAL_REFS must be rows of numbers; over HTTP they are the parameter spatial_refs, a JSON "
            'string such as "[[0.1, 0.2], [0.1, 0.2, 0.5, 0.6]]"'
        ) from None


def _timeout_s(microseconds: Any) -> float | None:
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        raise InvalidRequest(f"timeout is {microseconds!r}; it is a number of microseconds")
    if not math.isfinite(microseconds) or microseconds < 0:
        raise InvalidRequest(f"timeout is {microseconds}; it is a number of microseconds, 0 for none")
    return microseconds / 1e6 if microseconds else None


def _looks_like_base64(data: bytes) -> bool:
    """No picture begins with 16 letters of base64: JPEG, PNG, WebP, GIF, TIFF and AVIF all break that."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n"
    return not data[:16].strip(letters)
