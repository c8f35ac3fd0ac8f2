"""Who has hung up before anything was begun for him costs the engine nothing."""

import asyncio

import pytest
from gateway_server import FakeUpstream
from starlette.datastructures import Headers
from starlette.types import Message

from kestrel_core.protocol.messages import Request
from kestrel_gateway.answering import answer_whole
from kestrel_gateway.errors import ClientGone
from kestrel_gateway.records.visits import begin_visit


def test_a_client_that_has_gone_already_is_not_asked_for() -> None:
    upstream = FakeUpstream()

    async def receive() -> Message:
        await asyncio.sleep(0)  # as a server that has read the end of the connection, and tells it next
        return {"type": "http.disconnect"}

    async def ask() -> None:
        visit = begin_visit(Headers(), "POST", "/v1/query", "127.0.0.1", ())
        await answer_whole(upstream, Request("query", {"question": "?"}), visit, receive)

    with pytest.raises(ClientGone, match="before anything was begun"):
        asyncio.run(ask())
    assert upstream.asked == []
