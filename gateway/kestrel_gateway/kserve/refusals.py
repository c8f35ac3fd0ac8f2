"""Errors as Triton's clients know them: a text that begins with a code, or a status of gRPC."""

import re

import grpc  # type: ignore[import-untyped]
import msgspec
from starlette.responses import Response

from kestrel_core.protocol.errors import (
    DeadlinePassed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    ServerUnreachable,
    TooLarge,
)
from kestrel_gateway.errors import HttpError, UnknownModel, refusal

PATHS = re.compile(r"/v2(/.*)?", re.DOTALL)
STREAM = "/generate_stream"
KEPT = ("retry-after", "allow", "www-authenticate")  # headers of a refusal, whatever its envelope

# What HTTP alone knows, as the errors of the wire: a client finds the same class again.
OF_HTTP: dict[int, type[KestrelError]] = {
    408: DeadlinePassed,
    413: TooLarge,
    429: Overloaded,
    503: ServerUnreachable,
}
STATUSES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}


def wire_text(error: KestrelError) -> str:
    if isinstance(error, UnknownModel):
        return str(error)  # Triton's own words, which have no code
    if isinstance(error, HttpError):
        return OF_HTTP.get(error.status, InvalidRequest)(str(error)).wire_text
    return error.wire_text


def grpc_status(error: KestrelError) -> grpc.StatusCode:
    return STATUSES.get(error.status, grpc.StatusCode.INTERNAL)


def refusal_at(path: str, error: KestrelError) -> Response:
    """The answer to whoever asked at this path: under /v2 it is Triton's envelope, elsewhere OpenAI's."""
    answer = refusal(error)
    if not PATHS.fullmatch(path):
        return answer
    body = msgspec.json.encode({"error": wire_text(error)})
    kind = "application/json"
    if path.endswith(STREAM):
        body, kind = b"data: " + body + b"\n\n", "text/event-stream; charset=utf-8"
    kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
    return Response(body, error.status, headers=kept | {"content-type": kind})
