"""One request from the first attempt to its end, apart from how bytes travel.

The synchronous and the asynchronous stream both drive an `Exchange`: they open a gRPC stream per attempt,
hand over every response, and say when the stream has ended. The exchange says what to show, whether to try
again, and when.

A request is only sent again if it was certainly not begun: it never reached a server, or a server refused it.
One that was lost with its server is not, since it may be what ended that server.
"""

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import grpc  # type: ignore[import-untyped]
from tritonclient.grpc import service_pb2

from kestrel_core.protocol.errors import (
    Cancelled,
    DeadlinePassed,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    ServerUnreachable,
    ShuttingDown,
    TooLarge,
    error_from_text,
)
from kestrel_core.protocol.messages import Chunk, EngineResult, Finished
from kestrel_core.protocol.results import check

from .tensors import from_message

# The client gives up so much later than the server, whose own error about a passed deadline says more.
GRACE_S = 1.0

CANCELLED = "the request was cancelled by its caller"
CLOSED = "the client was closed"
MAX_TIMEOUT_S = 30 * 86_400.0

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    # A name with several addresses is several replicas: every request, a stream of its own, goes to the next.
    ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}'),
    # A refused connection is tried anew at the pace of `Retry`, not after gRPC's own second and more.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
# What Triton itself says to requests that it does not take while it starts or ends, without a code of ours.
ENDING = ("has no available versions", "is not ready")
# The same about the model's process, which has died: of this request, maybe.
DEAD = "is not healthy"
# What gRPC says for a server of a call that met its word to go on the way, and that it never looked at.
CROSSED = "CANCELLED"
# What gRPC says, in small letters, of a request that never left; 503 is a balancer's that has no server.
NEVER_SENT = (
    "failed to connect",
    "connections to all",
    "errors resolving",
    "resolution failed",
    "status: 503",
)
# What gRPC says for asyncio, under the status INTERNAL, where a connection broke while a request was sent.
BROKEN_OFF = "Internal error from Core"
# What gRPC says of sizes, under the status RESOURCE_EXHAUSTED. Without them the server has all the calls it
# takes.
MESSAGE_SIZES = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)")
HEADERS_SIZE = "metadata size exceeds"
# What Triton says, under the status of a server that is away, to those who do not send its secret.
RESTRICTED = "This protocol is restricted"
HEADER_NAME, HEADER_VALUE = re.compile(r"[a-z0-9_.-]+"), re.compile(r"[ -~]*")


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to `limit` further attempts of what was certainly not begun; each wait doubles; 0 is none."""

    limit: int = 3
    first_wait_s: float = 0.1
    max_wait_s: float = 2.0

    def wait_s(self, attempt: int) -> float:
        # Up to half of it is random, so that not all clients of a server that was away come back together.
        return min(self.first_wait_s * 2.0**attempt, self.max_wait_s) * random.uniform(0.5, 1.0)


DEFAULT_RETRY = Retry()
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Exchange:
    def __init__(
        self,
        message: service_pb2.ModelInferRequest,
        timeout_s: float | None,
        retry: Retry,
        url: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._message = message
        self._timeout_s = timeout_s
        self._retry = retry
        self._url = url
        self._clock = clock
        self._deadline = None if timeout_s is None else clock() + timeout_s
        self._attempt = 0
        self._is_answering = False
        self._refusal: KestrelError | None = None
        self._finished: Finished | None = None
        self._ending: EngineResult | KestrelError | None = None

    @property
    def is_settled(self) -> bool:
        return self._ending is not None

    @property
    def is_answered(self) -> bool:
        """Whether all of the answer is here; what may follow is the end of the stream alone."""
        return self._finished is not None

    def begin(self) -> tuple[service_pb2.ModelInferRequest, float | None]:
        """The next attempt's request, told how long it has, and the gRPC timeout."""
        left_s = self._left_s()
        if left_s is None:
            return self._message, None
        self._message.parameters["timeout"].int64_param = max(1, round(left_s * 1e6))
        return self._message, left_s + GRACE_S

    def receive(self, response: service_pb2.ModelStreamInferResponse) -> Chunk | None:
        """The chunk in this response. The text of the last response is kept for `rest`."""
        if response.error_message:
            self._refusal = _refusal(response.error_message)
            return None
        try:
            event = from_message(response.infer_response)
            self._is_answering |= event is not None
            if isinstance(event, Finished):
                check(event.result)
                self._finished = event
                return None
            return event
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._refusal = EngineFailed(f"the server's response is not the contract's: {error!r}")
        return None

    def end(self, broken: grpc.RpcError | Cancelled | None = None) -> float | None:
        """An attempt's stream is over: seconds to wait before the next one, or None for settled."""
        if self._finished is not None:  # the answer is whole, whatever happened to the stream after it
            self._ending = self._finished.result
            return None
        error = self._failure(broken)
        if not self._is_answering and _was_not_begun(error, broken):
            wait_s, left_s = self._retry.wait_s(self._attempt), self._left_s()
            if self._attempt < self._retry.limit and (left_s is None or wait_s < left_s):
                self._attempt += 1
                self._refusal = None
                return wait_s
        self._ending = error
        raise error from (broken if broken is not error else None)

    def rest(self) -> Chunk | None:
        """The text that came with the last response, once. Raises the error of a request that failed."""
        self.ending()
        finished = self._finished
        if finished is None or not (finished.rest.text or finished.rest.logprobs):
            return None
        self._finished = finished._replace(rest=finished.rest._replace(text="", logprobs=()))
        return finished.rest

    def ending(self) -> EngineResult:
        assert self._ending is not None
        if isinstance(self._ending, KestrelError):
            raise self._ending
        return self._ending

    def _failure(self, broken: grpc.RpcError | Cancelled | None) -> KestrelError:
        if isinstance(broken, Cancelled):
            return broken
        if self._refusal is not None:
            return self._refusal
        if broken is not None:
            return self._of_status(broken)
        return EngineFailed("the server ended the stream without an answer; ask again")

    def _of_status(self, error: grpc.RpcError) -> KestrelError:
        """The error that a broken gRPC call stands for."""
        url, status, details = self._url, error.code(), error.details() or "no reason given"
        if status is grpc.StatusCode.CANCELLED and details == CROSSED:
            return ShuttingDown(f"{url} was ending when the request came; ask again")
        if (said := _in_words_of_servers(details)) is not None:
            return said
        if status is grpc.StatusCode.DEADLINE_EXCEEDED:
            if self._timeout_s is None:  # the deadline was a balancer's, for example
                return DeadlinePassed(f"{url} gave no answer in time ({details})")
            return DeadlinePassed(
                f"{url} gave no answer within {self._timeout_s:g} s; allow more with timeout_s"
            )
        if status is grpc.StatusCode.UNAVAILABLE and details.startswith(RESTRICTED):
            return ServerUnreachable(
                f"{url} answers only those who send its secret ({details}); ask the gateway in front of it, "
                "or pass the secret with headers={...}"
            )
        is_away = status is grpc.StatusCode.UNAVAILABLE or BROKEN_OFF in details
        if is_away and self._is_answering:
            return ServerUnreachable(f"{url} went away in the middle of the answer; ask again", True)
        if is_away and not _never_left(error):
            return ServerUnreachable(f"{url} went away before it answered ({details}); ask again", True)
        if is_away:
            return ServerUnreachable(
                f"no Triton server answers at {url}; start one with `kestrel serve --demo`, "
                "or name the port of its gRPC (8001 unless told otherwise; 8000 is HTTP)"
            )
        if status is grpc.StatusCode.UNIMPLEMENTED:
            return ServerUnreachable(
                f"{url} speaks gRPC, but not as Triton does ({details}); is the port right?"
            )
        if status is grpc.StatusCode.RESOURCE_EXHAUSTED:
            return _exhausted(details)
        if status is grpc.StatusCode.INVALID_ARGUMENT:
            return InvalidRequest(f"{details} (gRPC status {status.name})")
        kind = Cancelled if status is grpc.StatusCode.CANCELLED else EngineFailed
        return kind(f"{details} (gRPC status {status.name})")

    def _left_s(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._clock()


def metadata(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Headers as gRPC takes them. It would find out what cannot be sent only with the first request."""
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, value in lowered.items():
        if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            raise InvalidRequest(
                f"the header {name[:100]!r} cannot be sent; names are letters, digits, '_', '.' and '-', "
                "and values are printable ASCII"
            )
    return tuple(lowered.items())


def _refusal(message: str) -> KestrelError:
    """The error that a message in a stream stands for, whether it is ours or Triton's own."""
    return _in_words_of_servers(message) or EngineFailed(message)


def _in_words_of_servers(message: str) -> KestrelError | None:
    """None where neither the model nor Triton would say so."""
    error = error_from_text(message)
    if str(error) != message:  # it had a code, so other words in it may be a caller's own
        return error
    if any(words in message for words in ENDING):
        return ShuttingDown(f"the server is starting or ending ({message})")
    if DEAD in message:
        return ServerUnreachable(f"the process that runs the model has died ({message}); ask again", True)
    return None


def _exhausted(details: str) -> KestrelError:
    """Asked again, a request that is too large still is; one for which there was no room may find some."""
    if (sizes := MESSAGE_SIZES.search(details)) is not None:
        size, limit = map(int, sizes.groups())
        return TooLarge(
            f"the request has {size:,} bytes and the server takes {limit:,}; send a smaller picture or "
            "shorter texts"
        )
    if HEADERS_SIZE in details:
        return TooLarge(f"the headers are larger than the server takes ({details}); send fewer")
    return Overloaded(f"the server takes no more calls ({details}); try again later")


def _was_not_begun(error: KestrelError, broken: grpc.RpcError | Cancelled | None) -> bool:
    """Whether a server says that it refused, or gRPC that the request never left."""
    if isinstance(error, Overloaded):
        return True
    return isinstance(error, ServerUnreachable) and isinstance(broken, grpc.RpcError) and _never_left(broken)


def _never_left(error: grpc.RpcError) -> bool:
    details = (error.details() or "").lower()
    return error.code() is grpc.StatusCode.UNAVAILABLE and any(words in details for words in NEVER_SENT)
