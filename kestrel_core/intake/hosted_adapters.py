"""Adapters that Moondream hosts: `finetune_id@step`, and the older variants by their id alone. No torch.

The service answers with the file, or with where it lies. The key goes to the service alone, never to where
it points. A downloaded file is kept for good, in `~/.cache/kestrel/adapters`.
"""

import json
import logging
import os
import re
import secrets
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from kestrel_core.protocol.errors import AdapterUnreachable, BadAdapter, UnknownAdapter
from kestrel_core.protocol.names import shown

ENDPOINT = "https://api.moondream.ai"
NAME = re.compile(r"(?P<id>[A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:@(?P<step>[0-9]{1,12}))?")
SOCKET_S = 15.0
PIECE_BYTES = 1 << 20
MAX_ANSWER_BYTES = 64 << 10  # of an answer that says where the file lies
MAX_HOPS = 4

log = logging.getLogger("kestrel")


class HostedAdapters:
    def __init__(
        self,
        api_key: str,
        max_bytes: int,
        download_s: float,
        endpoint: str | None = None,
        cache: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api_key = api_key
        self._max_bytes = max_bytes
        self._download_s = download_s
        self._endpoint = (endpoint or os.environ.get("MOONDREAM_ENDPOINT") or ENDPOINT).rstrip("/")
        self._cache = (cache or _cache_folder()) / _folder_name(self._endpoint)
        self._clock = clock

    def knows(self, name: str) -> bool:
        return NAME.fullmatch(name) is not None

    def fetch(self, name: str) -> Path:
        for kept in (self._cache / f"{name}.pt", self._cache / f"{name}.safetensors"):
            if kept.is_file():
                return kept
        log.info("adapter %s: fetching it from %s", name, self._endpoint)
        try:
            return self._download(name)
        except HTTPError as error:
            error.close()
            if error.code in (404, 410):
                gone = "is no longer kept" if error.code == 410 else "is unknown"
                raise UnknownAdapter(f'adapter "{shown(name)}" {gone} at {self._endpoint}') from error
            if error.code in (401, 403):
                reason = "refuses the key in MOONDREAM_API_KEY"
                raise AdapterUnreachable(
                    f'adapter "{shown(name)}" cannot be fetched: {self._endpoint} {reason}'
                ) from error
            raise self._unreachable(name, f"it answers {error.code}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise self._unreachable(name, str(error) or type(error).__name__) from error

    def _unreachable(self, name: str, reason: str) -> AdapterUnreachable:
        return AdapterUnreachable(
            f'adapter "{shown(name)}" cannot be fetched from {self._endpoint} ({reason}); try again later'
        )

    def _download(self, name: str) -> Path:
        deadline = self._clock() + self._download_s
        match = NAME.fullmatch(name)
        assert match is not None
        path = (
            f"/v1/tuning/finetunes/{quote(match['id'])}/checkpoints/{match['step']}/download"
            if match["step"]
            else f"/v1/variants/{quote(match['id'])}/download"
        )
        url: str | None = self._endpoint + path
        headers = {"User-Agent": "kestrel", "X-Moondream-Auth": self._api_key}
        for _ in range(MAX_HOPS):
            assert url is not None
            with _open(Request(url, headers=headers)) as answer:
                url = self._pointed_at(url, answer)
                if url is None:
                    return self._keep(name, answer, deadline)
            headers.pop("X-Moondream-Auth", None)
        raise ValueError("it sends from place to place")

    def _pointed_at(self, url: str, answer: Any) -> str | None:
        """Where the file lies, if this answer is not the file."""
        if answer.status in (301, 302, 303, 307, 308):
            found = answer.headers.get("Location")
        elif answer.headers.get_content_type() == "application/json":
            content = json.loads(answer.read(MAX_ANSWER_BYTES))
            found = content.get("url") if isinstance(content, dict) else None
        else:
            return None
        if not isinstance(found, str):
            raise ValueError("it does not say where the file lies")
        found = urljoin(url, found)
        safe = {"https", urlsplit(self._endpoint).scheme}
        if urlsplit(found).scheme not in safe:
            raise ValueError("it points to an address that is not https")
        return found

    def _keep(self, name: str, answer: Any, deadline: float) -> Path:
        self._cache.mkdir(parents=True, exist_ok=True)
        partial = self._cache / f".{secrets.token_hex(8)}"
        try:
            with partial.open("wb") as file:
                start = self._copy(name, answer, file, deadline)
            kept = self._cache / f"{name}{_suffix(start)}"
            os.replace(partial, kept)
        finally:
            partial.unlink(missing_ok=True)
        log.info("adapter %s: fetched %d bytes", name, kept.stat().st_size)
        return kept

    def _copy(self, name: str, answer: Any, file: IO[bytes], deadline: float) -> bytes:
        """Copy all of it, and return how it begins."""
        length = answer.headers.get("Content-Length")
        start, done = b"", 0
        while True:
            if self._clock() > deadline:
                raise TimeoutError(f"it took more than {self._download_s:g} s")
            piece: bytes = answer.read1(PIECE_BYTES)
            done += len(piece)
            if max(done, int(length or 0)) > self._max_bytes:
                raise BadAdapter(
                    f'adapter "{shown(name)}" has more than the {self._max_bytes:,} bytes that are downloaded'
                )
            if not piece:
                break
            start = (start + piece)[:16]
            file.write(piece)
        if length is not None and done != int(length):
            raise OSError("it stopped half-way")
        return start


class _AnyStatus(HTTPErrorProcessor):
    """Answers that point elsewhere are ours to follow: the key must not come along."""

    def http_response(self, request: Request, response: Any) -> Any:
        return response if response.status < 400 else super().http_response(request, response)

    https_response = http_response


def _open(request: Request) -> Any:
    opener = OpenerDirector()  # with no handlers for files or ftp
    for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, _AnyStatus):
        opener.add_handler(handler())
    return opener.open(request, timeout=SOCKET_S)


def _suffix(start: bytes) -> str:
    if start.startswith(b"PK"):
        return ".pt"
    if start[8:9] == b"{":
        return ".safetensors"
    raise ValueError("what it sent is neither a torch nor a safetensors file")


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kestrel" / "adapters"


def _folder_name(endpoint: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", urlsplit(endpoint).netloc) or "_"
