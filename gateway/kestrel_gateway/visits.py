"""One HTTP request as the log, the metrics and the traces tell of it: who, what, how long, how it ended.

Never a picture, a prompt or an answer.
"""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from kestrel_core.protocol.messages import Request, Usage

REQUEST_ID = re.compile(r"[!-~]{1,128}")


@dataclass(slots=True)
class Visit:
    request_id: str
    method: str
    path: str
    traceparent: str = ""
    began: float = field(default_factory=time.monotonic)
    key: str = ""  # the name of the caller's key; empty where there are none
    skill: str = ""
    model: str = ""
    upstream: str = ""
    is_stream: bool = False
    request: Request | None = None
    first_chunk_s: float | None = None  # from the beginning of the visit
    finish_reason: str = ""
    usage: Usage | None = None
    status: int = 0
    outcome: str = ""  # "ok", "gone", or an error's reason
    latency_s: float = 0.0
    hold: Callable[[int], None] = lambda count: None  # counts bytes that the request keeps in memory

    def saw_first_chunk(self) -> None:
        if self.first_chunk_s is None:
            self.first_chunk_s = time.monotonic() - self.began

    def end(self, status: int, outcome: str) -> None:
        self.status, self.outcome = status, outcome
        self.latency_s = time.monotonic() - self.began


def begin_visit(connection: HTTPConnection) -> Visit:
    given = connection.headers.get("x-request-id", "")
    return Visit(
        request_id=given if REQUEST_ID.fullmatch(given) else secrets.token_hex(12),
        method=connection.scope["method"],
        path=connection.scope["path"],
        traceparent=connection.headers.get("traceparent", ""),
    )


def visit_of(connection: HTTPConnection) -> Visit:
    visit: Visit = connection.scope["visit"]
    return visit
