"""Headers that go along with every request, and servers that want one."""

import asyncio

import grpc
import pytest
from client.fake_triton import FakeTriton, break_off, refuse

from kestrel_client import AsyncClient, Client, InvalidRequest, Retry, ServerUnreachable

SECRET = {"Triton-Grpc-Protocol-Kestrel": "s3cret"}
SENT = ("triton-grpc-protocol-kestrel", "s3cret")
AT_ONCE = Retry(limit=3, first_wait_s=0.001)


def test_headers_go_along_with_every_request_and_every_attempt(fake: FakeTriton) -> None:
    fake.scripts.append(refuse("UNAVAILABLE: the queue is full"))

    async def ask() -> None:
        async with AsyncClient(fake.url, headers=SECRET) as client:
            await client.query(None, "what?")

    with Client(fake.url, headers=SECRET, retry=AT_ONCE) as client:
        client.query(None, "what?")
    asyncio.run(ask())
    assert len(fake.headers) == 3
    assert all(SENT in headers.items() for headers in fake.headers)


def test_without_headers_none_of_ours_are_sent(fake: FakeTriton) -> None:
    with Client(fake.url) as client:
        client.query(None, "what?")
    assert set(fake.headers[0]) == {"user-agent"}


@pytest.mark.parametrize("headers", [{"two words": "x"}, {"name": "a\nb"}, {"name": "é"}, {"": "x"}])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_header_that_cannot_be_sent_is_refused_at_once(
    kind: type[Client | AsyncClient], headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidRequest, match="cannot be sent"):
        kind("localhost:1", headers=headers)


def test_a_server_that_asks_for_a_secret_is_not_called_absent(fake: FakeTriton) -> None:
    details = "This protocol is restricted, expecting header 'triton-grpc-protocol-kestrel'"
    fake.scripts += [break_off(grpc.StatusCode.UNAVAILABLE, details=details)] * 4
    with Client(fake.url, retry=AT_ONCE) as client, pytest.raises(ServerUnreachable) as caught:
        client.query(None, "what?")
    assert "triton-grpc-protocol-kestrel" in str(caught.value) and "headers=" in str(caught.value)
