"""KServe v2 over HTTP, with the documents that Triton gives: descriptions, and answers as JSON or events."""

from collections.abc import Iterable

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.protocol.messages import Chunk, EngineResult
from kestrel_core.protocol.wire import encode_chunk, encode_result
from kestrel_gateway.answering import EventResponse, EventWriter, answer_whole, event
from kestrel_gateway.house import ALIAS, House
from kestrel_gateway.kserve.description import (
    OUTPUT,
    VERSION,
    check_model,
    model_config,
    model_metadata,
    server_metadata,
)
from kestrel_gateway.kserve.refusals import wire_text
from kestrel_gateway.kserve.request import admitted
from kestrel_gateway.kserve.tensors import read_document
from kestrel_gateway.reading.bodies import Body, check_json, content_type, read_object
from kestrel_gateway.reception import endpoint
from kestrel_gateway.records.visits import visit_of

# What curl and many libraries send where nobody says what it is. A web page may send it too, without asking,
# but its browser then says where it comes from.
UNSAID = ("", "application/x-www-form-urlencoded")
OF_BROWSERS = ("origin", "sec-fetch-site")
DECOUPLED = "HTTP end point doesn't support models with decoupled transaction policy"


def kserve_routes(house: House) -> list[BaseRoute]:
    made: list[BaseRoute] = [Route("/v2", endpoint(house, describe_server))]
    for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        made += [
            Route(path, endpoint(house, describe_model)),
            Route(f"{path}/config", endpoint(house, configure_model)),
            Route(f"{path}/ready", endpoint(house, answer_model_ready)),
            Route(f"{path}/generate", endpoint(house, generate), methods=["POST"]),
            Route(f"{path}/generate_stream", endpoint(house, generate_stream), methods=["POST"]),
            Route(f"{path}/infer", endpoint(house, refuse_infer), methods=["POST"]),
        ]
    return made


async def describe_server(house: House, http: HttpRequest) -> Response:
    return _json(server_metadata())


async def describe_model(house: House, http: HttpRequest) -> Response:
    _check_model(http)
    return _json(model_metadata())


async def configure_model(house: House, http: HttpRequest) -> Response:
    _check_model(http)
    return _json(model_config())


async def answer_model_ready(house: House, http: HttpRequest) -> Response:
    _check_model(http)
    house.check_ready()
    return Response(media_type="text/plain")


async def refuse_infer(house: House, http: HttpRequest) -> Response:
    _check_model(http)
    return Response(msgspec.json.encode({"error": DECOUPLED}), 501, media_type="application/json")


async def generate(house: House, http: HttpRequest) -> ASGIApp:
    body = await _read(house, http)
    asked, visit = read_document(body), visit_of(http)
    request = await admitted(house, asked, visit)
    if request.stream:
        raise InvalidRequest("STREAM is for generate_stream; generate gives one answer, so leave it out")
    result = await answer_whole(house.upstream, request, visit, http.receive)
    return _json(document(encode_result(result), asked.id))


async def generate_stream(house: House, http: HttpRequest) -> ASGIApp:
    body = await _read(house, http)
    asked, visit = read_document(body), visit_of(http)
    request = await admitted(house, asked, visit)
    writer = TritonEvents(asked.id, request.stream)
    return EventResponse(house.upstream, request, visit, writer, house.options)


def document(text: str, id: str) -> Body:
    """Around the text of one response."""
    return {OUTPUT: text, **({"id": id} if id else {}), "model_name": ALIAS, "model_version": VERSION}


class TritonEvents(EventWriter):
    def __init__(self, id: str, is_stream: bool) -> None:
        self._id = id
        self._is_stream = is_stream

    def chunk(self, chunk: Chunk) -> Iterable[bytes]:
        yield event(document(encode_chunk(chunk), self._id))

    def last(self, result: EngineResult) -> Iterable[bytes]:
        rest = Chunk("", result.metrics.output_tokens) if self._is_stream else None
        yield event(document(encode_result(result, rest), self._id))

    def failure(self, error: KestrelError) -> Iterable[bytes]:
        yield event({"error": wire_text(error)})


async def _read(house: House, http: HttpRequest) -> Body:
    _check_model(http)
    is_unsaid = content_type(http) in UNSAID and not any(name in http.headers for name in OF_BROWSERS)
    if not is_unsaid:
        check_json(http)
    return await read_object(http, house.options)


def _check_model(http: HttpRequest) -> None:
    check_model(http.path_params["model"], http.path_params.get("version", ""))


def _json(body: Body) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
