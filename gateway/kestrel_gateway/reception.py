"""The way every HTTP request takes: it gets an id, is let in or not, is answered, and is told of at its end.

Whatever is raised on the way, by us or by the framework, becomes the error envelope of its path.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kestrel_core.protocol.errors import EngineFailed, KestrelError
from kestrel_gateway.errors import ClientGone, of_framework
from kestrel_gateway.house import House
from kestrel_gateway.kserve.refusals import refusal_at
from kestrel_gateway.records.visits import Observer, Visit, begin_visit

log = logging.getLogger("kestrel.gateway")


class Reception:
    def __init__(self, house: House, inside: ASGIApp, observers: Sequence[Observer] = ()) -> None:
        self._house = house
        self._inside = inside
        self._observers = observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._inside(scope, receive, send)
            return
        host = scope["client"][0] if scope.get("client") else ""
        visit = begin_visit(Headers(scope=scope), scope["method"], scope["path"], host, self._observers)
        scope["visit"], scope["app"] = visit, self  # a router without an app would write errors of its own
        drain = self._house.drain
        is_counted = not visit.is_probe
        drain.num_open += is_counted
        try:
            await self._answer(scope, receive, send, visit, is_counted)
        finally:
            visit.route = getattr(scope.get("route"), "path", "")
            try:
                for observer in self._observers:
                    observer.ended(visit)
            finally:
                drain.num_open -= is_counted

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, visit: Visit, is_counted: bool
    ) -> None:
        status, turns = 0, self._house.turns

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", visit.request_id.encode()),
                    *((b"connection", b"close"),) * self._house.drain.is_draining,
                ]
            await send(message)

        async def counted() -> Message:
            message = await receive()
            visit.hold(len(message.get("body", b"")))
            if message["type"] == "http.request" and not message.get("more_body", False):
                await turns.take(visit.caller)  # bodies too may all end together
            return message

        error: KestrelError | None = None
        try:
            if is_counted:
                self._house.drain.check()
            with (
                self._house.keys.admission(visit.path, Headers(scope=scope), visit.address) as visit.key,
                self._house.memory.share(visit.caller) as visit.hold,
            ):
                if is_counted:
                    await turns.take(visit.caller)
                await self._inside(scope, counted, tell)
        except (ClientGone, ClientDisconnect):
            visit.end(499, "gone")
            return
        except HTTPException as raised:
            error = of_framework(raised, visit.method, visit.path)
        except KestrelError as raised:
            error = raised
        except Exception as raised:
            log.exception("request %s failed", visit.request_id)
            error = EngineFailed(f"the gateway failed ({type(raised).__name__}); ask again")
        if error is not None:
            visit.outcome = error.reason
            if status == 0:
                await refusal_at(visit.path, error)(scope, receive, tell)
            error = None  # its traceback holds this frame, and with it the body: a circle, freed late
        visit.end(status, visit.outcome or "ok")


def endpoint(house: House, answer: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """A path's handler, given the house and what else the table of routes says."""

    async def handle(request: Any) -> Any:
        return await answer(house, request, *arguments)

    return handle
