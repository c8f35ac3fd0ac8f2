"""Fetches a picture from its address, for hosts that the operator has named, and from nowhere else.

A name is resolved once, every address it has is checked, and the connection is made to a checked address: a
name that changes its mind between check and connection gains nothing. Redirects are not followed, proxies
of the environment are not used, and size and time are bounded. What went wrong inside stays inside: a caller
must not learn from us what there is in our network.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import h11

from kestrel_core.protocol.names import shown
from kestrel_gateway.errors import FetchFailed
from kestrel_gateway.options import GatewayOptions

PORTS = {"http": 80, "https": 443}
MAX_ADDRESS = 2048
READ_BYTES = 64 * 1024
UNREACHABLE = "its host cannot be reached from here"
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

GLOBAL_V6 = ipaddress.ip_network("2000::/3")
# Within what Python calls global: addresses that lead to another one, to a cloud's own services, or to many.
NOT_PUBLIC = [
    ipaddress.ip_network(network)
    for network in (
        "192.88.99.0/24",  # relays from IPv6
        "168.63.129.16/32",  # Azure, to each machine in it
        "224.0.0.0/4",
        "2001::/23",  # Teredo and others that carry an IPv4 address
        "2002::/16",  # 6to4, likewise
        "3fff::/20",  # examples
    )
]


def is_public(address: IPAddress) -> bool:
    """An address that anybody on the Internet could connect to."""
    if address.version == 6 and address not in GLOBAL_V6:  # among them IPv4 in IPv6, NAT64, link-local
        return False
    is_reserved = any(address.version == it.version and address in it for it in NOT_PUBLIC)
    return address.is_global and not is_reserved


async def resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@dataclass(frozen=True, slots=True)
class Target:
    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


class Fetcher:
    def __init__(
        self,
        options: GatewayOptions,
        resolve: Resolve = resolve,
        is_allowed: Callable[[IPAddress], bool] = is_public,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = [host.lower() for host in options.image_hosts]
        self._max_bytes = min(options.max_fetched_bytes, options.max_image_bytes)
        self._timeout_s = options.fetch_timeout_s
        self._turns = asyncio.Semaphore(options.max_fetches)
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._trust = trust or ssl.create_default_context()

    async def fetch(self, address: str) -> bytes:
        target = self._target(address)
        try:
            async with asyncio.timeout(self._timeout_s), self._turns:
                return await self._get(target)
        except TimeoutError:
            raise FetchFailed(
                f"the picture was not here within {self._timeout_s:g} s; send its bytes"
            ) from None
        except (OSError, ssl.SSLError, h11.ProtocolError, UnicodeError):
            raise FetchFailed(f"the picture cannot be fetched: {UNREACHABLE}; send its bytes") from None

    def _target(self, address: str) -> Target:
        if len(address) > MAX_ADDRESS:
            raise FetchFailed(f"the picture's address has more than {MAX_ADDRESS:,} letters; shorten it")
        if not address.isascii() or not address.isprintable() or " " in address or "\\" in address:
            raise FetchFailed("the picture's address has letters that must be written as %XX")
        try:
            parts = urlsplit(address)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise FetchFailed("the picture's address cannot be read; send https://HOST/PATH") from None
        if "@" in parts.netloc:
            raise FetchFailed("the picture's address has a user in it; leave that out")
        scheme = parts.scheme.lower()
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        target = Target(scheme, host, port or PORTS[scheme], path)
        if not any(_fits(allowed, target) for allowed in self._hosts):
            raise FetchFailed(
                f'pictures are not fetched from "{shown(target.host_header)}"; send the bytes, '
                "or ask whoever runs this server to allow it with --allow-image-hosts"
            )
        return target

    async def _get(self, target: Target) -> bytes:
        reader, writer = await self._connected(target)
        try:
            connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_BYTES)
            writer.write(_request(connection, target))
            return await self._read(connection, reader)
        finally:
            writer.transport.abort()  # one answer each; a polite end could wait for the other side

    async def _connected(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        found = [ipaddress.ip_address(it) for it in await self._resolve(target.host, target.port)]
        if not found or not all(self._is_allowed(it) for it in found):
            raise OSError("not an address of the Internet")
        options: dict[str, Any] = {"limit": READ_BYTES}
        if target.scheme == "https":
            options |= {"ssl": self._trust, "server_hostname": target.host}
        for address in found[:-1]:
            try:
                return await asyncio.open_connection(str(address), target.port, **options)
            except OSError:
                continue  # a machine may have no IPv6, say
        return await asyncio.open_connection(str(found[-1]), target.port, **options)

    async def _read(self, connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
        parts, size = [], 0
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(READ_BYTES))
            elif isinstance(event, h11.Response):
                self._check(event)
            elif isinstance(event, h11.Data):
                size += len(event.data)
                self._check_size(size)
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return b"".join(parts)
            elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                raise OSError("no answer")

    def _check(self, answer: h11.Response) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
        if 300 <= answer.status_code < 400:
            raise FetchFailed(
                "the picture's address leads to another one, which is not followed; send that one"
            )
        if answer.status_code != 200:
            raise FetchFailed(f"the picture's host answered {answer.status_code}; send its bytes")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not kind.startswith("image/"):
            raise FetchFailed(f'the address holds "{shown(kind)}" and no picture; it must be image/...')
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise FetchFailed("the picture's host encodes it, though it was asked not to; send its bytes")
        declared = headers.get("content-length", "0")
        self._check_size(int(declared) if declared.isdecimal() else 0)

    def _check_size(self, count: int) -> None:
        if count > self._max_bytes:
            raise FetchFailed(
                f"the picture has more than {self._max_bytes:,} bytes, which is the limit for fetched ones"
            )


def _fits(allowed: str, target: Target) -> bool:
    """`img.example.com` is that host, `*.example.com` all below it; other ports only if they are named."""
    name, _, port = allowed.rpartition(":") if allowed.rpartition(":")[2].isdecimal() else (allowed, "", "")
    if target.port != (int(port) if port else PORTS[target.scheme]):
        return False
    return target.host.endswith(name[1:]) if name.startswith("*.") else target.host == name


def _request(connection: h11.Connection, target: Target) -> bytes:
    headers = [
        ("Host", target.host_header),
        ("User-Agent", "kestrel-gateway"),
        ("Accept", "image/*"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    asked = connection.send(h11.Request(method="GET", target=target.path, headers=headers))
    return (asked or b"") + (connection.send(h11.EndOfMessage()) or b"")
