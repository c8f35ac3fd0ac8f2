"""The error tree. Each type fixes its wire code; nobody parses the text.

    KestrelError                INTERNAL      anything we raise on purpose
    ├── InvalidRequest          INVALID_ARG   cannot be served as asked
    │   ├── PromptTooLong       INVALID_ARG
    │   ├── BadImage            INVALID_ARG
    │   ├── UnsupportedSkill    INVALID_ARG   the model has no such skill
    │   └── UnknownAdapter      NOT_FOUND
    ├── Overloaded              UNAVAILABLE   the queue is full
    │   └── ShuttingDown        UNAVAILABLE   the server finishes what it has and takes nothing new
    ├── Cancelled               CANCELLED     by the caller
    │   └── DeadlinePassed      CANCELLED
    ├── EngineFailed            INTERNAL      our own fault, this request ends here
    └── BadCheckpoint           INVALID_ARG   unusable weights, config or tokenizer; stops the start

A message says what was asked, what the limit is, and what to do. It is a sentence or two, holds no traceback
and, over the wire, no path.
"""

from typing import ClassVar


class KestrelError(Exception):
    code: ClassVar[str] = "INTERNAL"


class InvalidRequest(KestrelError):
    code = "INVALID_ARG"


class PromptTooLong(InvalidRequest):
    pass


class BadImage(InvalidRequest):
    pass


class UnsupportedSkill(InvalidRequest):
    pass


class UnknownAdapter(InvalidRequest):
    code = "NOT_FOUND"


class Overloaded(KestrelError):
    code = "UNAVAILABLE"


class ShuttingDown(Overloaded):
    pass


class Cancelled(KestrelError):
    code = "CANCELLED"


class DeadlinePassed(Cancelled):
    pass


class EngineFailed(KestrelError):
    pass


class BadCheckpoint(KestrelError):
    code = "INVALID_ARG"
