"""Reads the body of a request: limits first, then bytes, then JSON or the fields of a form."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.names import shown
from kestrel_gateway.errors import BodyTooLarge, ClientGone, Forbidden, SlowSender, UnsupportedMedia
from kestrel_gateway.options import GatewayOptions

Body = dict[str, Any]
MARKS = (b",", b"[", b"{")  # one of them stands before each value of JSON but the first
SLICE_BYTES = 2**20  # that are worked on before others get their turn
MAX_FILES = 4
MAX_FIELDS = 64
SENT_BY_SCRIPTS = "x-requested-with"  # which no browser lets a page send to another site that does not agree
_decoder = msgspec.json.Decoder()


def content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_json(request: Request, options: GatewayOptions) -> Body:
    check_json(request)
    return await read_object(request, options)


def check_json(request: Request) -> None:
    """Other content types are refused: any web page may send them, without asking."""
    given = content_type(request)
    if given != "application/json" and not (given.startswith("application/") and given.endswith("+json")):
        raise UnsupportedMedia(
            f'the content type is "{shown(given)}"; send JSON with "Content-Type: application/json"'
        )


def check_form(request: Request) -> None:
    """Any web page may send a form without asking, to a server on its reader's own machine too. Its browser
    then says where it comes from: to localhost and over https whether that is another site, else the host.
    """
    site = request.headers.get("sec-fetch-site")
    if site == "cross-site" or (site is None and _is_of_another_host(request.headers)):
        raise Forbidden("a page of another site sends this form; pages elsewhere may not ask this server")


def _is_of_another_host(headers: Headers) -> bool:
    """A proxy may have changed the host, so our own page says that it is ours."""
    if "origin" not in headers or SENT_BY_SCRIPTS in headers:
        return False
    origin = _host(headers["origin"])
    return origin is None or origin != _host(f"//{headers.get('host', '')}")


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


async def read_object(request: Request, options: GatewayOptions) -> Body:
    """A JSON object, whatever its content type."""
    data = await read_bytes(request, options)
    num_values = 0
    for start in range(0, len(data), SLICE_BYTES):
        num_values += count_values(data, start, start + SLICE_BYTES)
        if start:
            await asyncio.sleep(0)
    body = decode_json(data, num_values, options.max_values)
    if not isinstance(body, dict):
        raise InvalidRequest('the body must be a JSON object, such as {"question": "What is this?"}')
    return body


async def read_bytes(request: Request, options: GatewayOptions) -> bytes:
    limit = options.max_body_bytes
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > limit:
        raise _too_large(limit)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedMedia(f'the body is encoded as "{shown(encoding)}"; send it as it is')
    parts, size = [], 0
    try:
        async with asyncio.timeout(options.body_timeout_s):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
    except TimeoutError:
        raise SlowSender(
            f"the request was not here within {options.body_timeout_s:g} s; send it faster, or less of it"
        ) from None
    except ClientDisconnect:
        raise ClientGone("the client went away while it sent its request") from None
    return b"".join(parts)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"the request has more than {limit:,} bytes, which is the limit")


def count_values(data: bytes, start: int = 0, stop: int | None = None) -> int:
    """At least as many as there are: a long text needs none of the marks, a million small values do."""
    return sum(data.count(mark, start, stop) for mark in MARKS)


def decode_json(data: bytes, num_values: int, max_values: int) -> Any:
    """Values have been counted before they are made."""
    if num_values > max_values:
        raise InvalidRequest(f"the JSON has more than {max_values:,} values, which is the limit")
    try:
        return _decoder.decode(data)
    except RecursionError:
        raise InvalidRequest("the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the body is not JSON: {shown(str(error))}") from None


class FormParser(MultiPartParser):
    """Takes forms that are whole, with texts in UTF-8. Starlette alone leaves out a last part that does not
    end, and reads other texts as Latin-1.
    """

    spool_max_size = 2**40  # the body is in memory already; no file of it on a disk
    is_whole = False  # until its last boundary

    def on_part_end(self) -> None:
        part = self._current_part
        if part.file is not None:
            super().on_part_end()
            return
        try:
            self.items.append((part.field_name, part.data.decode()))
        except UnicodeDecodeError:
            raise MultiPartException(f"{part.field_name} is not UTF-8 text") from None

    def on_end(self) -> None:
        self.is_whole = True


async def read_form(request: Request, options: GatewayOptions) -> Body:
    """The fields of a multipart form: texts as `str`, files as `bytes`."""
    _, parameters = parse_options_header(request.headers.get("content-type", ""))
    charset = parameters.get(b"charset", b"utf-8").lower()
    if charset not in (b"utf-8", b"utf8", b"us-ascii"):  # some that Python knows take time squared
        raise UnsupportedMedia(f'the form\'s charset is "{shown(charset.decode("latin-1"))}"; send UTF-8')
    data = await read_bytes(request, options)
    parser = FormParser(
        Headers({"content-type": request.headers["content-type"]}),
        _slices(data),
        max_files=MAX_FILES,
        max_fields=MAX_FIELDS,
        max_part_size=options.max_body_bytes,
    )
    try:
        async with asyncio.timeout(options.body_timeout_s):
            form = await parser.parse()
    except MultiPartException as error:
        raise InvalidRequest(f"the form cannot be read: {shown(error.message)}") from None
    except TimeoutError:
        raise InvalidRequest("the form takes too long to read; is its boundary in its files too?") from None
    fields: Body = {}
    try:
        if not parser.is_whole:
            raise InvalidRequest("the form ends before its last boundary; send all of it")
        for name, value in form.multi_items():
            if name in fields:
                raise InvalidRequest(f"{shown(name)} is given twice")
            fields[name] = value if isinstance(value, str) else await value.read()
    finally:
        await form.close()
    return fields


async def _slices(data: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(data), SLICE_BYTES):
        yield data[start : start + SLICE_BYTES]
        await asyncio.sleep(0)
