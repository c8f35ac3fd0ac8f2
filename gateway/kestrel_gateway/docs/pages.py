"""`/openapi.json`, and `/docs`: a page that shows it, without anything from elsewhere.

Nobody needs a key to read them.
"""

from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from kestrel_core.protocol.about import SkillAbout
from kestrel_core.skills.registry import builtin_skills
from kestrel_gateway.docs.openapi import document
from kestrel_gateway.house import House
from kestrel_gateway.reception import endpoint
from kestrel_gateway.static_files import HEADERS, File

FILES = {"/docs": "docs.html", "/docs/docs.js": "docs.js", "/docs/docs.css": "docs.css"}


def docs_routes(house: House) -> list[Route]:
    static = files(__package__).joinpath("static")
    return [
        Route("/openapi.json", endpoint(house, answer_openapi)),
        *(Route(path, File(name, static.joinpath(name).read_bytes()).answer) for path, name in FILES.items()),
    ]


async def answer_openapi(house: House, http: HttpRequest) -> Response:
    made = describe(house)
    return Response(msgspec.json.encode(made), headers=HEADERS, media_type="application/json")


def describe(house: House) -> dict[str, Any]:
    return document(house.skills or built_in(), house.model, house.keys.are_asked_for)


def built_in() -> tuple[SkillAbout, ...]:
    """Moondream's skills, for as long as no server has said which it has."""
    return tuple(
        SkillAbout(
            skill.name,
            skill.meaning,
            skill.answers,
            skill.image,
            skill.streams,
            True,
            skill.settings,
            skill.arguments,
        )
        for skill in builtin_skills()
    )
