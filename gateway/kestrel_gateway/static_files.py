"""A file of a page, as it is served: what it may do in a browser, and when a browser has it already."""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

# A page takes nothing from elsewhere, sends nothing elsewhere, and stands in nobody's frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # kept, but asked about each time: the ETag tells whether it is the same
}
KINDS = {  # not the machine's own table of types: what a browser may run must not depend on it
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


class File:
    """A file as it is served, with the tag by which a browser knows that it has it already."""

    def __init__(self, name: str, data: bytes) -> None:
        self._data = data
        self._kind = KINDS[Path(name).suffix]
        self._headers = {**HEADERS, "ETag": f'"{hashlib.sha256(data).hexdigest()[:32]}"'}

    async def answer(self, request: Request) -> Response:
        known = {
            tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")
        }
        if self._headers["ETag"] in known:
            return Response(status_code=304, headers=self._headers)
        return Response(self._data, headers=self._headers, media_type=self._kind)
