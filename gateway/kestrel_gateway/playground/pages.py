"""Serves the playground: the files of this package, the client's samples, and what the page has to know.

All files are read once, when the table of paths is made; there is no other way to a file than that table.
Nobody needs a key to see the page.
"""

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import kestrel_client
from kestrel_gateway.house import House
from kestrel_gateway.reception import endpoint
from kestrel_gateway.static_files import HEADERS, File

GRPC_PORT = 8001
OF_WORDS = 2**20  # bytes that a form may have beside its picture


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
            "max_picture_bytes": min(house.options.max_image_bytes, house.options.max_body_bytes - OF_WORDS),
            "grpc_port": house.options.kserve_grpc_port or (int(port) if port.isdecimal() else GRPC_PORT),
        },
        headers=HEADERS,
    )


def _samples() -> Iterable[Path]:
    """A wheel has them inside the client's package, a checkout beside it."""
    package = Path(kestrel_client.__file__).parent
    folder = next(place for place in (package / "samples", package.parent / "samples") if place.is_dir())
    return sorted(folder.glob("*.png"))
