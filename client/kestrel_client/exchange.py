"""One request from the first attempt to its outcome, apart from how bytes travel.

The synchronous and the asynchronous stream both turn an `Exchange`: they open a gRPC stream per attempt, hand
over every response, and say when the stream has ended; it tells them what to show, whether to try again and
when. A request is only sent again while none of its answer has arrived: so nobody sees an answer begin twice.
"""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2

from kestrel_core.protocol.errors import Cancelled, EngineFailed, KestrelError, Overloaded

from .ask import Ask
from .errors import ServerUnreachable, error_of_message, error_of_status
from .results import Result

R = TypeVar("R", bound=Result)

# How much later than the server the client gives up: the server's own word about a passed deadline is better.
GRACE_S = 1.0

CLOSED = "the request was cancelled by its caller"

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    # A name with several addresses is several replicas: every request, a stream of its own, goes to the next.
    ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}'),
    # A refused connection is tried anew at the pace of `Retry`, not after gRPC's own second and more.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
]


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to `limit` further attempts where no server answers or its queue is full; each wait doubles."""

    limit: int = 3
    first_wait_s: float = 0.1
    max_wait_s: float = 2.0

    def wait_s(self, attempt: int) -> float:
        # Up to half of it is chance, lest all clients of a server that was away come back together.
        return min(self.first_wait_s * 2.0**attempt, self.max_wait_s) * random.uniform(0.5, 1.0)


DEFAULT_RETRY = Retry()


class Exchange(Generic[R]):
    def __init__(
        self, ask: Ask[R], retry: Retry, url: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._retry = retry
        self._url = url
        self._clock = clock
        self._deadline = None if ask.timeout_s is None else clock() + ask.timeout_s
        self._attempt = 0
        self._answering = False
        self._refusal: KestrelError | None = None
        self._result: R | None = None
        self._rest = ""
        self._outcome: R | KestrelError | None = None

    @property
    def settled(self) -> bool:
        return self._outcome is not None

    def begin(self) -> tuple[service_pb2.ModelInferRequest, float | None]:
        """The next attempt's request, told how long it has, and the gRPC timeout."""
        left_s = self._left_s()
        if left_s is None:
            return self._ask.request, None
        self._ask.request.parameters["timeout"].int64_param = max(1, round(left_s * 1e6))
        return self._ask.request, left_s + GRACE_S

    def receive(self, response: service_pb2.ModelStreamInferResponse) -> str:
        """What this response adds to the answer; of the last one `rest` tells, once the stream has ended."""
        if response.error_message:
            self._refusal = error_of_message(response.error_message, self._ask.skill)
            return ""
        try:
            document = _document(response.infer_response)
            if document is None:
                return ""
            self._answering = True
            if not document.get("completed", True):
                return str(document["chunk"])
            self._result, self._rest = self._ask.answer.of(document), str(document.get("chunk", ""))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._refusal = EngineFailed(f"the server's response is not the contract's: {error!r}")
        return ""

    def end(self, broken: grpc.RpcError | Cancelled | None = None) -> float | None:
        """An attempt's stream is over: seconds to wait before the next one, or None for settled."""
        if self._result is not None:  # whole: what became of the stream behind it does not matter
            self._outcome = self._result
            return None
        error = self._failure(broken)
        if isinstance(error, Overloaded | ServerUnreachable) and not self._answering:
            wait_s, left_s = self._retry.wait_s(self._attempt), self._left_s()
            if self._attempt < self._retry.limit and (left_s is None or wait_s < left_s):
                self._attempt += 1
                self._refusal = None
                return wait_s
        self._outcome = error
        raise error from (broken if broken is not error else None)

    def rest(self) -> str:
        """The text that came with the last response, once."""
        rest, self._rest = self._rest, ""
        return rest

    def outcome(self) -> R:
        assert self._outcome is not None
        if isinstance(self._outcome, KestrelError):
            raise self._outcome
        return self._outcome

    def _failure(self, broken: grpc.RpcError | Cancelled | None) -> KestrelError:
        if isinstance(broken, Cancelled):
            return broken
        if self._refusal is not None:
            return self._refusal
        if broken is not None:
            return error_of_status(broken, self._url, self._ask.timeout_s, self._answering)
        return EngineFailed("the server ended the stream without an answer; ask again")

    def _left_s(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._clock()


def _document(response: service_pb2.ModelInferResponse) -> dict[str, Any] | None:
    """The JSON of one response; None where it holds nothing but the final flag."""
    for output, content in zip(response.outputs, response.raw_output_contents, strict=True):
        if output.name == "TEXT_OUTPUT":
            document: dict[str, Any] = json.loads(content[4:])  # behind its length, as Triton packs strings
            return document
    return None
