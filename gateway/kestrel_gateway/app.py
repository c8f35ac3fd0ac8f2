"""The gateway as an ASGI application: the table of its paths."""

from collections.abc import Sequence

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from kestrel_gateway.docs.pages import docs_routes
from kestrel_gateway.health import LIVE, READY, answer_live, answer_metrics, answer_ready
from kestrel_gateway.house import House
from kestrel_gateway.openai.chat import answer_chat
from kestrel_gateway.openai.models import list_models, show_model
from kestrel_gateway.reception import Reception, endpoint
from kestrel_gateway.rest import answer_skill
from kestrel_gateway.visits import Observer

SKILLS = ("query", "caption", "detect", "point", "segment")


def make_app(house: House, observers: Sequence[Observer] = ()) -> ASGIApp:
    routes = [
        *(Route(f"/v1/{skill}", endpoint(house, answer_skill, skill), methods=["POST"]) for skill in SKILLS),
        Route("/v1/models", endpoint(house, list_models)),
        Route("/v1/models/{id:path}", endpoint(house, show_model)),
        Route("/v1/chat/completions", endpoint(house, answer_chat), methods=["POST"]),
        *(Route(path, endpoint(house, answer_live)) for path in LIVE),
        *(Route(path, endpoint(house, answer_ready)) for path in READY),
        Route("/metrics", endpoint(house, answer_metrics)),
        *docs_routes(house),
    ]
    return Reception(house, Router(routes, redirect_slashes=False), (house.metrics, *observers))
