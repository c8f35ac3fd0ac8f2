"""Serves the playground: the files of this package, the client's samples, and what the page has to know.

All files are read once, when the table of paths is made; there is no other way to a file than that table.
Nobody needs a key to see the page.
"""

import hashlib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import kestrel_client
from kestrel_gateway.house import House
from kestrel_gateway.reception import endpoint

# The page takes nothing from elsewhere, sends nothing elsewhere, and stands in nobody's frame.
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
GRPC_PORT = 8001
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


def page_routes(house: House) -> list[Route]:
    static = {entry.name: entry.read_bytes() for entry in files(__package__).joinpath("static").iterdir()}
    samples = {path.name: path.read_bytes() for path in _samples()}
    served = {
        "/": File("index.html", static.pop("index.html")),
        **{f"/playground/{name}": File(name, data) for name, data in static.items()},
        **{f"/samples/{name}": File(name, data) for name, data in samples.items()},
    }
    return [
        Route("/playground/about.json", endpoint(house, answer_about, sorted(samples))),
        *(Route(path, file.answer) for path, file in served.items()),
    ]


async def answer_about(house: House, request: Request, samples: list[str]) -> Response:
    """What the page cannot know by itself. No skills: the server has not told them yet."""
    port = house.options.upstreams[0].rpartition(":")[2]
    return JSONResponse(
        {
            "model": house.model,
            "skills": [skill.to_json() for skill in house.skills],
            "samples": samples,
            "has_keys": house.keys.are_asked_for,
            "max_picture_bytes": house.options.max_body_bytes - 2**20,  # a form has words beside its picture
            "grpc_port": int(port) if port.isdecimal() else GRPC_PORT,
        },
        headers=HEADERS,
    )


def _samples() -> Iterable[Path]:
    """A wheel has them inside the client's package, a checkout beside it."""
    package = Path(kestrel_client.__file__).parent
    folder = next(place for place in (package / "samples", package.parent / "samples") if place.is_dir())
    return sorted(folder.glob("*.png"))
