"""Errors as HTTP tells them: OpenAI's envelope with the same four keys on every path.

The errors of the engine and of the protocol bring their status with them (`kestrel_core.protocol.errors`);
those here are about HTTP alone.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from kestrel_core.protocol.errors import AdapterUnreachable, Cancelled, InvalidRequest, KestrelError
from kestrel_core.protocol.names import shown

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    414: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    431: "invalid_request_error",
    499: "invalid_request_error",
    500: "server_error",
    503: "service_unavailable",
    504: "timeout_error",
}
RETRY_AFTER_S = 1  # of a full queue; a server that ends or starts needs a little longer
RETRY_LATER_S = 2


class HttpError(KestrelError):
    """An error that only HTTP knows. It never travels to Triton: its code is none of the wire's."""

    code = "HTTP"


class BadHttp(HttpError):
    reason = "bad_http"
    status = 400


class FetchFailed(HttpError):
    reason = "image_fetch_failed"
    status = 400


class Unauthorized(HttpError):
    reason = "invalid_api_key"
    status = 401


class Forbidden(HttpError):
    reason = "not_allowed"
    status = 403


class NotFound(HttpError):
    reason = "not_found"
    status = 404


class UnknownModel(NotFound):
    reason = "model_not_found"


class WrongMethod(HttpError):
    """`allow`: the methods that there are."""

    reason = "method_not_allowed"
    status = 405

    def __init__(self, text: str, allow: str = "") -> None:
        super().__init__(text)
        self.allow = allow


class SlowSender(HttpError):
    reason = "body_timeout"
    status = 408


class BodyTooLarge(HttpError):
    reason = "payload_too_large"
    status = 413


class TargetTooLong(HttpError):
    reason = "uri_too_long"
    status = 414


class UnsupportedMedia(HttpError):
    reason = "unsupported_media_type"
    status = 415


class RateLimited(HttpError):
    """`after_s`: seconds until the caller may ask again."""

    reason = "rate_limited"
    status = 429

    def __init__(self, text: str, after_s: float = RETRY_AFTER_S) -> None:
        super().__init__(text)
        self.after_s = after_s


class TooManyAtOnce(RateLimited):
    """One caller has as many requests open as it may have."""

    reason = "too_many_at_once"


class Full(RateLimited):
    """All callers together have taken what room the gateway has."""

    reason = "overloaded"


class HeadersTooLarge(HttpError):
    reason = "headers_too_large"
    status = 431


class Busy(HttpError):
    """The gateway itself cannot do its work at the moment."""

    reason = "unavailable"
    status = 503


class ClientGone(Cancelled):
    """Nobody reads this one; the log does."""

    reason = "client_gone"


@contextmanager
def blaming(param: str) -> Iterator[None]:
    """Errors about a request that are raised inside are about this field."""
    try:
        yield
    except (InvalidRequest, AdapterUnreachable, HttpError) as error:
        if not hasattr(error, "param"):
            error.param = param  # type: ignore[union-attr]
        raise


def of_framework(error: HTTPException, method: str, path: str) -> KestrelError:
    """Starlette's own errors: a path or a method that there is not."""
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        what = f"{method} is not for {shown(path)}; it takes {allowed or 'other methods'}"
        return WrongMethod(what, allowed)
    if error.status_code == 404:
        return NotFound(f"there is no {shown(path)}; /docs lists what there is")
    return InvalidRequest(str(error.detail))


def document(error: KestrelError) -> dict[str, object]:
    return {
        "error": {
            "message": str(error),
            "type": TYPES.get(error.status, "server_error"),
            "param": getattr(error, "param", None),
            "code": error.reason,
        }
    }


def refusal(error: KestrelError) -> Response:
    headers = {}
    if error.status == 429:
        headers["Retry-After"] = str(max(1, math.ceil(getattr(error, "after_s", RETRY_AFTER_S))))
    elif error.status == 503:
        headers["Retry-After"] = str(RETRY_LATER_S)
    elif isinstance(error, WrongMethod):
        headers["Allow"] = error.allow
    elif error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        msgspec.json.encode(document(error)),
        error.status,
        headers=headers,
        media_type="application/json",
    )
