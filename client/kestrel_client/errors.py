"""What went wrong, as a type: the server's code word or gRPC's status turned back into the error tree.

The types are those of `kestrel_core.protocol.errors`, the same that an engine without a server raises; only
`ServerUnreachable` is the client's own.
"""

import re

import grpc  # type: ignore[import-untyped]

from kestrel_core.protocol.errors import (
    Cancelled,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    UnknownAdapter,
    UnsupportedSkill,
)


class ServerUnreachable(KestrelError):
    """No server, or none any more."""

    code = "UNAVAILABLE"


# One type per code word; the finer ones below INVALID_ARG have no word of their own.
TYPES: dict[str, type[KestrelError]] = {
    error.code: error for error in (InvalidRequest, UnknownAdapter, Overloaded, Cancelled, EngineFailed)
}
STATUSES = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.CANCELLED: Cancelled,
}


def error_of_message(message: str, skill: str) -> KestrelError:
    """The error a Triton message stands for. Triton drops the code, so the message begins with it."""
    code, _, text = message.partition(": ")
    if code not in TYPES:
        return EngineFailed(message)  # Triton's own words, such as those about an unknown model
    if code == UnsupportedSkill.code and re.match(rf"{re.escape(skill)} is not supported\b", text):
        return UnsupportedSkill(text)
    return TYPES[code](text)


def error_of_status(error: grpc.RpcError, url: str, timeout_s: float | None, answering: bool) -> KestrelError:
    """The error a broken gRPC call stands for; `answering`: part of the answer had come already."""
    status, details = error.code(), error.details() or "no reason given"
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Cancelled(f"{url} gave no answer within {timeout_s:g} s; allow more with timeout_s")
    if status is grpc.StatusCode.UNAVAILABLE and answering:
        return ServerUnreachable(f"{url} went away in the middle of the answer; ask again")
    if status is grpc.StatusCode.UNAVAILABLE:
        return ServerUnreachable(
            f"no Triton server answers at {url}; start one with `kestrel serve --demo`, "
            "or name the port of its gRPC (8001 unless told otherwise; 8000 is HTTP)"
        )
    if status is grpc.StatusCode.UNIMPLEMENTED:
        return ServerUnreachable(f"{url} speaks gRPC, but not as Triton does ({details}); is the port right?")
    return STATUSES.get(status, EngineFailed)(f"{details} (gRPC status {status.name})")
