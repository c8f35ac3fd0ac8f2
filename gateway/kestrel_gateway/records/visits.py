"""One request as the log, the metrics and the traces tell of it: who, what, how long, how it ended.

Never a picture, a prompt or an answer.
"""

import ipaddress
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from kestrel_core.protocol.messages import EngineResult, Request, Usage, parse_traceparent

REQUEST_ID = re.compile(r"[!-~]{1,128}")
# Asked every few seconds by machines: neither logged, traced nor waited for.
PROBES = ("/livez", "/healthz", "/readyz", "/health", "/ping", "/metrics", "/v1/health", "/v2/health")
MODEL_READY = re.compile(r"/v2/models/[^/]*(/versions/[^/]*)?/ready")
OBJECTS = ("objects", "points", "segments")


class Observer(Protocol):
    """Told of each visit three times, in the event loop: it must not wait for anything."""

    def began(self, visit: "Visit") -> None: ...

    def asked(self, visit: "Visit") -> None:
        """Its first request is about to be sent. Not every visit comes so far."""

    def ended(self, visit: "Visit") -> None: ...


@dataclass(slots=True)
class Visit:
    request_id: str
    method: str
    path: str
    traceparent: str = ""  # of the caller; once asked, what the server that answers continues
    tracestate: str = ""
    observers: Sequence[Observer] = ()
    route: str = ""  # the path as the table of routes has it; empty where it has none
    began: float = field(default_factory=time.monotonic)
    key: str = ""  # the name of the caller's key; empty where there are none
    address: str = ""  # of the caller, as `address_of` tells it
    skill: str = ""
    model: str = ""
    adapter: str = ""  # as the server lists it; "other", where it lists none of that name
    upstream: str = ""
    is_stream: bool = False
    request: Request | None = None
    picture_param: str = "image_url"  # the field of the body that the picture came in
    adapter_param: str = "adapter"  # the same for the adapter: `model`, where OpenAI's clients name it
    first_chunk_s: float | None = None  # from the beginning of the visit
    finish_reason: str = ""
    usage: Usage | None = None
    num_objects: int | None = None  # boxes, points or outlines; None where the skill gives none
    status: int = 0
    outcome: str = ""  # "ok", "gone", or an error's reason
    latency_s: float = 0.0
    hold: Callable[[int], None] = lambda count: None  # counts bytes that the request keeps in memory

    @property
    def is_probe(self) -> bool:
        return self.path.startswith(PROBES) or MODEL_READY.fullmatch(self.path) is not None

    @property
    def caller(self) -> str:
        """Who shares the engine with other callers: a key, or an address where there are none."""
        return f"key {self.key}" if self.key else f"address {self.address}"

    @property
    def ttft_s(self) -> float | None:
        """As the caller saw it; of an answer in one piece, as the engine measured it."""
        if self.first_chunk_s is not None or self.usage is None:
            return self.first_chunk_s
        return self.usage.ttft_ms / 1000

    def ask(self, request: Request) -> None:
        is_first = self.request is None
        self.skill, self.request = request.skill, request
        if is_first:
            for observer in self.observers:
                observer.asked(self)

    def saw_first_chunk(self) -> None:
        if self.first_chunk_s is None:
            self.first_chunk_s = time.monotonic() - self.began

    def saw_result(self, result: EngineResult) -> None:
        self.finish_reason, self.usage = result.finish_reason, result.metrics
        found = next((result.output[key] for key in OBJECTS if key in result.output), None)
        self.num_objects = None if found is None else len(found)

    def end(self, status: int, outcome: str) -> None:
        self.status, self.outcome = status, outcome
        self.latency_s = time.monotonic() - self.began


def begin_visit(
    headers: Headers, method: str, path: str, host: str, observers: Sequence[Observer] = ()
) -> Visit:
    """`host`: the address that the request comes from; empty if it is not known."""
    traceparent = parse_traceparent(headers.get("traceparent", ""))
    visit = Visit(
        request_id=request_id_of(headers),
        method=method,
        path=path,
        traceparent=traceparent,
        tracestate=headers.get("tracestate", "") if traceparent else "",
        observers=observers,
        address=address_of(host),
    )
    for observer in observers:
        observer.began(visit)
    return visit


def request_id_of(headers: Headers) -> str:
    """The caller's own, or a new one."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else secrets.token_hex(12)


@lru_cache(1024)
def address_of(host: str) -> str:
    """An address as one caller has it: of IPv6 the first half, since the second is anybody's to choose."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:64]
    if isinstance(address, ipaddress.IPv6Address):
        known = address.ipv4_mapped
        return str(known) if known else str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def visit_of(connection: HTTPConnection) -> Visit:
    visit: Visit = connection.scope["visit"]
    return visit
