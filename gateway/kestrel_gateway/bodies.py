"""Reads the body of a request: limits first, then bytes, then JSON or the fields of a form."""

import asyncio
from typing import Any

import msgspec
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.names import shown
from kestrel_gateway.errors import BodyTooLarge, ClientGone, SlowSender, UnsupportedMedia
from kestrel_gateway.options import GatewayOptions

Body = dict[str, Any]
_decoder = msgspec.json.Decoder()


def content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_json(request: Request, options: GatewayOptions) -> Body:
    """A JSON object. Other content types are refused: any web page may send them, without asking."""
    given = content_type(request)
    if given != "application/json" and not (given.startswith("application/") and given.endswith("+json")):
        raise UnsupportedMedia(
            f'the content type is "{shown(given)}"; send JSON with "Content-Type: application/json"'
        )
    return parse_json(await read_bytes(request, options), options.max_values)


async def read_bytes(request: Request, options: GatewayOptions) -> bytes:
    limit = options.max_body_bytes
    too_large = BodyTooLarge(f"the request has more than {limit:,} bytes, which is the limit")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > limit:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(options.body_timeout_s):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise SlowSender(
            f"the request was not here within {options.body_timeout_s:g} s; send it faster, or less of it"
        ) from None
    except ClientDisconnect:
        raise ClientGone("the client went away while it sent its request") from None
    return b"".join(parts)


def parse_json(data: bytes, max_values: int) -> Body:
    """Values are counted before they are made: a text needs no comma, a million small values do."""
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > max_values:
        raise InvalidRequest(f"the JSON has more than {max_values:,} values, which is the limit")
    try:
        body = _decoder.decode(data)
    except RecursionError:
        raise InvalidRequest("the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the body is not JSON: {shown(str(error))}") from None
    if not isinstance(body, dict):
        raise InvalidRequest('the body must be a JSON object, such as {"question": "What is this?"}')
    return body


async def read_form(request: Request, options: GatewayOptions) -> Body:
    """The fields of a multipart form: texts as `str`, files as `bytes`."""
    data = await read_bytes(request, options)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": data}

    again = Request(request.scope, receive)
    try:
        async with again.form(max_files=4, max_fields=64, max_part_size=options.max_body_bytes) as form:
            fields: Body = {}
            for name, value in form.multi_items():
                if name in fields:
                    raise InvalidRequest(f"{shown(name)} is given twice")
                fields[name] = value if isinstance(value, str) else await value.read()
            return fields
    except MultiPartException as error:
        raise InvalidRequest(f"the form cannot be read: {shown(error.message)}") from None
