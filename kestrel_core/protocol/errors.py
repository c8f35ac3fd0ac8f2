"""The error tree. Each type fixes its wire code, its finer reason and its HTTP status; no text is parsed.

                                code          reason                status
    KestrelError                INTERNAL      internal              500     anything we raise on purpose
    ├── InvalidRequest          INVALID_ARG   invalid_request       400     cannot be served as asked
    │   ├── PromptTooLong       INVALID_ARG   prompt_too_long       400
    │   ├── TooLarge            INVALID_ARG   payload_too_large     413     over a limit of bytes or counts
    │   ├── BadImage            INVALID_ARG   image_decode_failed   400
    │   ├── UnknownSkill        INVALID_ARG   unknown_skill         400     the server has no such skill
    │   ├── UnsupportedSkill    INVALID_ARG   unsupported_skill     400     the model has no such skill
    │   ├── BadAdapter          INVALID_ARG   bad_adapter           400     wrong shape, rank, base or file
    │   └── UnknownAdapter      NOT_FOUND     unknown_adapter       404
    ├── Overloaded              UNAVAILABLE   queue_full            429
    │   └── ShuttingDown        UNAVAILABLE   shutting_down         503     draining, or its engine has failed
    ├── Cancelled               CANCELLED     cancelled             499     by the caller
    │   └── DeadlinePassed      CANCELLED     deadline_passed       504
    ├── EngineFailed            INTERNAL      engine_failed         500     our own fault
    ├── AdapterUnreachable      UNAVAILABLE   adapter_unreachable   503     cannot be fetched now
    ├── BadCheckpoint           INVALID_ARG   bad_checkpoint        500     unusable weights; stops the start
    └── ServerUnreachable       UNAVAILABLE   unreachable           503     no server, or none any more

On the wire an error is `CODE: reason: text`. The first class of each code in this tree leaves out its reason,
which would add nothing: `CODE: text`. A client finds the same class by these first words (`error_from_text`).

A text says what was asked, what the limit is, and what to do. It is a sentence or two, holds no traceback
and, over the wire, no path.
"""

from collections.abc import Iterator
from typing import ClassVar


class KestrelError(Exception):
    code: ClassVar[str] = "INTERNAL"
    reason: ClassVar[str] = "internal"
    status: ClassVar[int] = 500

    @property
    def wire_text(self) -> str:
        """The whole message. It begins with the code, since Triton drops codes on most ways to a client."""
        is_plain = type(self) is _first_of(self.code)
        return f"{self.code}: {self}" if is_plain else f"{self.code}: {self.reason}: {self}"


class InvalidRequest(KestrelError):
    code = "INVALID_ARG"
    reason = "invalid_request"
    status = 400


class PromptTooLong(InvalidRequest):
    reason = "prompt_too_long"


class TooLarge(InvalidRequest):
    reason = "payload_too_large"
    status = 413


class BadImage(InvalidRequest):
    reason = "image_decode_failed"


class UnknownSkill(InvalidRequest):
    reason = "unknown_skill"


class UnsupportedSkill(InvalidRequest):
    reason = "unsupported_skill"


class BadAdapter(InvalidRequest):
    reason = "bad_adapter"


class UnknownAdapter(InvalidRequest):
    code = "NOT_FOUND"
    reason = "unknown_adapter"
    status = 404


class Overloaded(KestrelError):
    code = "UNAVAILABLE"
    reason = "queue_full"
    status = 429


class ShuttingDown(Overloaded):
    reason = "shutting_down"
    status = 503


class Cancelled(KestrelError):
    code = "CANCELLED"
    reason = "cancelled"
    status = 499


class DeadlinePassed(Cancelled):
    reason = "deadline_passed"
    status = 504


class EngineFailed(KestrelError):
    reason = "engine_failed"


class AdapterUnreachable(KestrelError):
    code = "UNAVAILABLE"
    reason = "adapter_unreachable"
    status = 503


class BadCheckpoint(KestrelError):
    code = "INVALID_ARG"
    reason = "bad_checkpoint"


class ServerUnreachable(KestrelError):
    """`may_have_begun`: the request may have reached the server, and may even be what ended it."""

    code = "UNAVAILABLE"
    reason = "unreachable"
    status = 503

    def __init__(self, text: str, may_have_begun: bool = False) -> None:
        super().__init__(text)
        self.may_have_begun = may_have_begun


def caused(error: KestrelError, cause: Exception) -> KestrelError:
    """The same error, for a log to say what caused it. Otherwise only `raise ... from` notes that."""
    error.__cause__ = cause
    return error


def error_from_text(message: str) -> KestrelError:
    """The error that a message of ours stands for; any other text is an `EngineFailed`."""
    code, _, text = message.partition(": ")
    reason, _, rest = text.partition(": ")
    kinds: list[type[KestrelError]] = [*_tree(KestrelError), KestrelError]
    for kind in kinds:
        if kind.code == code and kind.reason == reason:
            return kind(rest)
    known = _first_of(code)
    return EngineFailed(message) if known is None else known(text)


def _first_of(code: str) -> type[KestrelError] | None:
    """The most general error of a code, which needs no reason beside it."""
    return next((kind for kind in _tree(KestrelError) if kind.code == code), None)


def _tree(kind: type[KestrelError]) -> Iterator[type[KestrelError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _tree(below)
