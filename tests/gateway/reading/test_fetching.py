"""Pictures by their address: only from named hosts, only at public addresses, within size and time.

The host is a small server of this test's own, on loopback. What may be connected to is handed to the
fetcher, so that loopback counts as public here and nowhere else.
"""

import asyncio
import ipaddress
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_server import running

from kestrel_gateway.errors import FetchFailed
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.reading.fetching import Fetcher, Resolve, is_public

PICTURE = b"\x89PNG" * 1000
FINE = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"
INSIDE = [
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.8.8", "169.254.169.254"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1"),
    *("198.51.100.1", "203.0.113.1", "168.63.129.16", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:93.184.215.14"),
    *("64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::1", "3fff::1"),
    *("fc00::1", "fd00::1", "fe80::1", "fe80::1%2", "fec0::1", "ff02::1"),
]
Say = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Host:
    """Answers every request by `say`; notes what it was asked."""

    def __init__(self, say: Say) -> None:
        self.asked: list[bytes] = []
        self.port = 0
        self._say = say

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            await self._say(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the fetcher has gone
        finally:
            writer.close()


def saying(answer: bytes) -> Say:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return say


@asynccontextmanager
async def hosting(say: Say) -> AsyncIterator[Host]:
    host = Host(say)
    async with await asyncio.start_server(host, "127.0.0.1", 0) as server:
        host.port = server.sockets[0].getsockname()[1]
        yield host


def fetcher(
    host: Host, *addresses: str, names: Sequence[str] = ("img.example.com",), **limits: Any
) -> Fetcher:
    """Any name resolves to these addresses."""
    allowed = tuple(f"{name}:{host.port}" for name in names)
    found = resolving(*addresses or ("127.0.0.1",))
    return Fetcher(_options(allowed, **limits), found, is_allowed=lambda it: it.is_loopback or is_public(it))


def resolving(*addresses: str) -> Resolve:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


def _options(hosts: Sequence[str], **limits: Any) -> GatewayOptions:
    return GatewayOptions(("unused:1",), image_hosts=tuple(hosts), **limits)


def fetched(
    say: Say, *addresses: str, path: str = "/a.png?b=c#d", **limits: Any
) -> tuple[bytes, list[bytes]]:
    async def run() -> tuple[bytes, list[bytes]]:
        async with hosting(say) as host:
            it = fetcher(host, *addresses, **limits)
            return await it.fetch(f"http://img.example.com:{host.port}{path}"), host.asked

    return asyncio.run(run())


def failure(say: Say, *addresses: str, **limits: Any) -> str:
    with pytest.raises(FetchFailed) as caught:
        fetched(say, *addresses, **limits)
    assert (caught.value.status, caught.value.reason) == (400, "image_fetch_failed")
    return str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        FINE + b"Content-Length: 4000\r\n\r\n" + PICTURE,
        FINE + b"\r\n" + PICTURE,  # to the end of the connection
        FINE + b"Transfer-Encoding: chunked\r\n\r\nfa0\r\n" + PICTURE + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + FINE + b"Content-Length: 4000\r\n\r\n" + PICTURE,
    ],
)
def test_a_picture_is_fetched_by_the_name_of_its_host(answer: bytes) -> None:
    picture, [asked] = fetched(saying(answer))
    assert picture == PICTURE
    first, *headers = asked.lower().split(b"\r\n")
    assert first == b"get /a.png?b=c http/1.1"
    assert any(header.startswith(b"host: img.example.com:") for header in headers)
    assert not any(header.startswith((b"cookie", b"authorization")) for header in headers)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "leads to another one"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "answered 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<", '"text/html"'),
        (b"HTTP/1.1 200 OK\r\n\r\n" + PICTURE, "no picture"),
        (FINE + b"Content-Encoding: gzip\r\n\r\n" + PICTURE, "encodes it"),
        (FINE + b"Content-Length: 99999999999\r\n\r\n", "10,485,760"),
        (FINE + b"Content-Length: 5000\r\n\r\n" + PICTURE, "cannot be reached"),
        (FINE + b"a: " + b"b" * 200_000 + b"\r\n\r\n", "cannot be reached"),
        (b"220 smtp.example.com ESMTP\r\n", "cannot be reached"),
        (b"", "cannot be reached"),
    ],
)
def test_an_answer_that_is_no_picture_is_refused(answer: bytes, said: str) -> None:
    assert said in failure(saying(answer))


def test_an_endless_picture_is_left_at_the_limit() -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(FINE + b"\r\n")
        while True:
            writer.write(b"a" * 65536)
            await writer.drain()

    assert "more than 100,000 bytes" in failure(say, max_fetched_bytes=100_000)


def test_a_slow_picture_is_left_in_time() -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(FINE + b"Content-Length: 4000\r\n\r\n")
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.05)

    assert "within 0.3 s" in failure(say, fetch_timeout_s=0.3)


def test_another_address_is_tried_where_the_first_does_not_answer() -> None:
    picture, _ = fetched(saying(FINE + b"\r\n" + PICTURE), "127.0.0.2", "127.0.0.1")
    assert picture == PICTURE


def test_a_name_is_resolved_once_and_one_bad_address_is_enough() -> None:
    """A second resolution would give the address inside, which the first one did not."""
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async def run() -> None:
        async with hosting(saying(FINE + b"\r\n" + PICTURE)) as host:
            options = _options([f"img.example.com:{host.port}"])
            it = Fetcher(options, rebinding, is_allowed=lambda found: found.is_loopback)
            assert await it.fetch(f"http://img.example.com:{host.port}/") == PICTURE
            assert len(host.asked) == 1 and answers == [["10.0.0.1"]]
            mixed = fetcher(host, "127.0.0.1", "10.0.0.1")
            with pytest.raises(FetchFailed, match="cannot be reached"):
                await mixed.fetch(f"http://img.example.com:{host.port}/")
            assert len(host.asked) == 1

    asyncio.run(run())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made with openssl")
def test_over_https_the_host_has_to_prove_its_name(tmp_path: Path) -> None:
    """It is asked for the name in the address, though the connection is made to a number."""
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=img.example.com",
    ]
    command += ["-addext", "subjectAltName=DNS:img.example.com", "-out", certificate, "-keyout", key]
    subprocess.run(command, check=True, capture_output=True)
    served, trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=certificate)
    served.load_cert_chain(certificate, key)
    names = []
    served.sni_callback = lambda _, name, __: names.append(name)  # type: ignore[assignment]

    async def run() -> None:
        host = Host(saying(FINE + b"\r\n" + PICTURE))
        async with await asyncio.start_server(host, "127.0.0.1", 0, ssl=served) as server:
            port = server.sockets[0].getsockname()[1]
            options = _options([f"img.example.com:{port}", f"other.example.com:{port}"])
            trusting = Fetcher(options, resolving("127.0.0.1"), lambda it: it.is_loopback, trust)
            assert await trusting.fetch(f"https://img.example.com:{port}/") == PICTURE
            assert names == ["img.example.com"]
            with pytest.raises(FetchFailed, match="cannot be reached"):
                await trusting.fetch(f"https://other.example.com:{port}/")
            plain = Fetcher(options, resolving("127.0.0.1"), lambda it: it.is_loopback)
            with pytest.raises(FetchFailed, match="cannot be reached"):
                await plain.fetch(f"https://img.example.com:{port}/")
            assert len(host.asked) == 1

    asyncio.run(run())


def test_so_many_are_fetched_at_once() -> None:
    most = open_now = 0

    async def say(writer: asyncio.StreamWriter) -> None:
        nonlocal most, open_now
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.01)
        open_now -= 1
        writer.write(FINE + b"\r\n" + PICTURE)

    async def run() -> None:
        async with hosting(say) as host:
            it = fetcher(host, max_fetches=2)
            await asyncio.gather(*(it.fetch(f"http://img.example.com:{host.port}/") for _ in range(10)))

    asyncio.run(run())
    assert most == 2


@pytest.mark.parametrize(
    ("address", "is_taken"),
    [
        ("http://img.example.com/a", True),
        ("HTTPS://IMG.example.com/a", True),
        ("https://img.example.com:443/a", True),
        ("https://img.example.com:8443/a", False),
        ("http://img.example.com:443/a", False),
        ("https://other.example.com:8443/a", True),
        ("https://other.example.com/a", False),
        ("https://example.com/a", False),
        ("https://a.cdn.example.com/", True),
        ("https://b.a.cdn.example.com/", True),
        ("https://cdn.example.com/", False),
        ("https://evilcdn.example.com/", False),
        ("https://img.example.com.evil.com/", False),
        ("https://evil.com/img.example.com", False),
        ("https://img.example.com@evil.com/", False),
        ("https://user:word@img.example.com/", False),
        ("https://evil.com\\@img.example.com/", False),
        ("https://img.example.com\t/", False),
        ("https://img.example.com/ a", False),
        ("https://img.example.com/\u00e9", False),
        ("https://img\uff0eexample.com/", False),
        ("https://img.example.com./", False),
        ("https://[::1]/", False),
        ("https://[::1/", False),
        ("https://img.example.com:99999/", False),
        ("https:///a", False),
        ("https://img.example.com/" + "a" * 3000, False),
    ],
)
def test_only_named_hosts_are_asked(address: str, is_taken: bool) -> None:
    resolved: list[str] = []

    async def noting(host: str, port: int) -> Sequence[str]:
        resolved.append(host)
        return []

    async def run() -> None:
        hosts = ("img.example.com", "other.example.com:8443", "*.cdn.example.com")
        with pytest.raises(FetchFailed):
            await Fetcher(_options(hosts), noting).fetch(address)

    asyncio.run(run())
    assert bool(resolved) == is_taken


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        *((address, False) for address in INSIDE),
    ],
)
def test_an_address_inside_is_not_public(address: str, is_one: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) == is_one


def test_the_gateway_refuses_an_address_inside_without_telling_why() -> None:
    with running(image_hosts=("localhost",)) as gateway:
        said = []
        for address in ("http://localhost/a.png", "https://localhost/a.png", "http://127.0.0.1/a.png"):
            status, answer, _ = gateway.post("/v1/caption", {"image_url": address})
            assert (status, answer["error"]["code"]) == (400, "image_fetch_failed")
            assert answer["error"]["param"] == "image_url"
            said.append(answer["error"]["message"])
        assert said[0] == said[1] and "cannot be reached" in said[0]
        assert gateway.upstream.asked == []


def test_nothing_is_fetched_unless_hosts_are_named() -> None:
    with running() as gateway:
        status, answer, _ = gateway.post("/v1/caption", {"image_url": "http://img.example.com/a.png"})
        assert (status, answer["error"]["code"]) == (400, "image_decode_failed")
