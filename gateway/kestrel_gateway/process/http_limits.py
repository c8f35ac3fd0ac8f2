"""HTTP itself within limits: uvicorn's protocol, which bounds neither headers nor the time until they end.

What comes before a request is known is refused here, in the same envelope as everything else: too many
connections, headers that are too long, too many or too slow, and what is no HTTP at all.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import httptools
import uvicorn
from starlette.datastructures import Headers
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.errors import BadHttp, Full, HeadersTooLarge, SlowSender, TargetTooLong
from kestrel_gateway.kserve.refusals import refusal_at
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.records.visits import address_of, request_id_of

NUM_SPARE = 16  # connections over the limit, on which health is told and nothing else
SPARE_HEADER_S = 1.0  # so that nobody keeps those
MAX_PIPELINED = 16  # requests that a client sends before their turn; each costs memory
LINGER_S = 2.0
OF_AN_UPGRADE = (b"upgrade", b"http2-settings")  # headers, and words of `Connection` that name them
LOOK_S = 0.02
LINGER_BYTES = 64 * 2**20
LEAST_READ = 16 * 2**10  # bytes in each `write_timeout_s`, of a client that reads slowly
RefusalAgain = Callable[[str, Headers, str], KestrelError | None]  # given path, headers and address


class LingeringTransport:
    """A transport whose close waits for the rest of a body, so that its sender reads why it was refused.

    Closing a socket that has unread bytes resets the connection, and the answer is lost on the way. What was
    written is sent before, but not for ever: who does not read is left.
    """

    def __init__(self, inner: asyncio.Transport, protocol: "LimitedProtocol") -> None:
        self.write = inner.write
        self._inner = inner
        self._protocol = protocol
        self._is_closing = False

    def close(self) -> None:
        if self.is_closing():
            return
        self._is_closing = True
        self._protocol.await_reader()
        if self._protocol.has_read_all or not self._inner.can_write_eof():
            self._inner.close()
            return
        self._inner.write_eof()
        self._inner.resume_reading()
        self._protocol.linger(self._inner)

    def is_closing(self) -> bool:
        return self._is_closing or self._inner.is_closing()

    def pause_reading(self) -> None:
        if not self._is_closing:
            self._inner.pause_reading()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class LimitedProtocol(HttpToolsProtocol):
    limits: GatewayOptions
    note_refusal: Callable[[str], None]  # told why
    refusal_again: RefusalAgain  # why a caller who was refused already would be so again
    health: frozenset[bytes]  # paths; whoever looks at them would take a full gateway for a dead one

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.has_read_all = True  # of the newest request
        self._running: RequestResponseCycle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None  # while what was written waits for its reader
        self._header_timeout_s = self.limits.header_timeout_s
        self._is_spare = False
        self._is_in_head = False
        self._num_heads = 0  # that began
        self._head_bytes = 0  # of lines that are read
        self._raw_bytes = 0  # of pieces that lie within the head, whether read or not
        self._keeps_alive = True
        self._is_deaf = False
        self._is_upgrade = False  # a head that asks for another protocol, and is read once more without that
        self._path = ""  # of the newest request, once its headers are known
        self._num_dropped = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = cast(asyncio.Transport, LingeringTransport(transport, self))
        self.flow = FlowControl(self.transport)
        num_over = len(self.connections) - self.limits.max_connections
        if num_over > NUM_SPARE:
            self._refuse(self._full())
            return
        if num_over > 0:
            self._is_spare, self._header_timeout_s = True, min(SPARE_HEADER_S, self._header_timeout_s)
        self._start_timer()

    def _full(self) -> Full:
        limit = self.limits.max_connections
        return Full(f"{limit:,} connections are open, which is the limit; try again")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_unread_timer()
        self.has_read_all = True  # there is nobody left to linger for
        super().connection_lost(exc)
        if self._running is not None:  # uvicorn tells the newest request alone, which may not have begun
            self._running.disconnected = True
            self._running.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread_timer()
        if self.transport.is_closing():  # which waits for the little that is left
            self.await_reader()

    def await_reader(self) -> None:
        """A client that neither reads nor leaves is left, whatever it asked for."""
        if self._unread_timer is None:
            wait_s, unread = self.limits.write_timeout_s, self.transport.get_write_buffer_size()
            self._unread_timer = self.loop.call_later(wait_s, self._look_at_reader, unread)

    def _look_at_reader(self, unread_before: int) -> None:
        self._unread_timer = None
        if unread_before - self.transport.get_write_buffer_size() >= LEAST_READ:
            self.await_reader()
        else:
            self.transport.abort()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            self._drop(len(data))
            return
        self._unset_keepalive_if_required()
        head = self._num_heads if self._is_in_head else None
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self._refuse(cause if isinstance(cause, KestrelError) else BadHttp(NO_HTTP))
        except httptools.HttpParserUpgrade as upgrade:
            self._begin_again(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(BadHttp(NO_HTTP))
        else:
            self._watch_head(len(data) if head == self._num_heads else 0)

    def _begin_again(self, rest: bytes) -> None:
        """The parser took what follows a head with `Upgrade` for another protocol, the body too. It is
        answered in the HTTP it came in, so a new parser reads the same head without that wish.
        """
        line = b"%s %s HTTP/%s\r\n" % (
            self.parser.get_method(),
            self.url,
            self.parser.get_http_version().encode(),
        )
        head = b"".join(b"%s: %s\r\n" % header for header in without_upgrade(self.headers))
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self._is_upgrade = False
        self.data_received(line + head + b"\r\n" + rest)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._num_heads += 1
        self._is_in_head, self._head_bytes, self._raw_bytes = True, 0, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.limits.max_target_bytes:
            raise TargetTooLong(
                f"the path has more than {self.limits.max_target_bytes:,} bytes, which is the limit; "
                "send values in the body"
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > self.limits.max_headers:
            raise HeadersTooLarge(f"there are more than {self.limits.max_headers:,} headers; send fewer")
        self._head_bytes += len(name) + len(value)
        self._check_head()

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            raise BadHttp("too many requests were sent before their turn; wait for answers")
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise BadHttp("CONNECT is for proxies, and this is none")
            self._is_upgrade = True
            return
        path = self.url.partition(b"?")[0]
        self._path = path.decode("ascii", "replace")
        if self.client is not None and (
            refusal := self.refusal_again(self._path, Headers(raw=self.headers), address_of(self.client[0]))
        ):
            raise refusal
        if self._is_spare and path not in self.health:
            raise self._full()
        super().on_headers_complete()
        self._is_in_head, self.has_read_all = False, False
        self._stop_timer()
        # An answer before the end of the body ends the connection, and says so.
        self._keeps_alive, self.cycle.keep_alive = self.cycle.keep_alive and not self._is_spare, False

    def on_message_complete(self) -> None:
        if self._is_upgrade:
            return
        self.has_read_all = True
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keeps_alive
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def linger(self, transport: asyncio.Transport) -> None:
        """Drop what still comes, for a while; then close."""
        self._is_deaf = True
        self.connections.discard(self)
        self._stop_timer()
        self._timer = self.loop.call_later(LINGER_S, transport.abort)

    def _drop(self, count: int) -> None:
        self._num_dropped += count
        if self._num_dropped > LINGER_BYTES:
            self.transport.abort()

    def _watch_head(self, more: int) -> None:
        """Called after bytes came: headers that are not complete yet have a limit of time, and of bytes."""
        if self._is_in_head:
            self._raw_bytes += more
            try:
                self._check_head()
            except HeadersTooLarge as error:
                self._refuse(error)
                return
        if self._timer is None and (self._is_in_head or not self._is_answering):
            self._start_timer()

    def _check_head(self) -> None:
        limit = self.limits.max_header_bytes
        if max(self._head_bytes, self._raw_bytes) > limit:
            raise HeadersTooLarge(f"the headers have more than {limit:,} bytes, which is the limit")

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self._header_timeout_s, self._look_again)

    def _look_again(self) -> None:
        """If this process was busy for so long, what came meanwhile is read before anybody is called late."""
        self._timer = self.loop.call_later(LOOK_S, self._time_is_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_is_up(self) -> None:
        self._timer = None
        if self._is_answering:
            self._start_timer()  # half of a next request is no reason to break off this one
        elif self._is_in_head:
            limit = self._header_timeout_s
            self._refuse(SlowSender(f"the headers were not here within {limit:g} s; send them faster"))
        else:
            self.transport.close()  # nothing was asked

    def _refuse(self, error: KestrelError) -> None:
        """Say why, and close the connection; what was asked properly before is answered first."""
        self.note_refusal(error.reason)
        self._stop_timer()
        if self._is_answering:
            if self.pipeline or (self.cycle.response_started and not self.has_read_all):
                self.transport.abort()
                return
            if self.has_read_all:
                self._is_deaf, self.has_read_all, self.cycle.keep_alive = True, False, False
                return
            self.cycle.disconnected = True  # so that nobody waits for the rest of its body
            self.cycle.message_event.set()
        self.has_read_all = False
        answer = refusal_at(self._path, error)
        answer.headers["x-request-id"] = request_id_of(Headers(raw=self.headers or []))
        lines = [STATUS_LINE[error.status], b"connection: close\r\n"]
        lines += [name + b": " + value + b"\r\n" for name, value in answer.raw_headers]
        body = b"" if self.parser.get_method() == b"HEAD" else bytes(answer.body)
        self.transport.write(b"".join([*lines, b"\r\n", body]))
        self.transport.close()


def without_upgrade(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """These headers, but for what asks for another protocol than this."""
    for name, value in headers:
        if name == b"connection":
            kept = [word for word in value.split(b",") if word.strip().lower() not in OF_AN_UPGRADE]
            if kept:
                yield name, b",".join(kept)
        elif name not in OF_AN_UPGRADE:
            yield name, value


NO_HTTP = "this is no HTTP/1.1 that can be read"


def limited(
    options: GatewayOptions,
    note_refusal: Callable[[str], None],
    refusal_again: RefusalAgain,
    health: Iterable[str],
) -> type[asyncio.Protocol]:
    """The protocol with these limits, as uvicorn takes it. `health` are the paths that tell it."""
    given = {
        "limits": options,
        "note_refusal": staticmethod(note_refusal),
        "refusal_again": staticmethod(refusal_again),
        "health": frozenset(path.encode() for path in health),
    }
    return type("Limited", (LimitedProtocol,), given)
