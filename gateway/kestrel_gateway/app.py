"""The gateway as an ASGI application: the table of its paths."""

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from kestrel_gateway.health import answer_live, answer_ready
from kestrel_gateway.house import House
from kestrel_gateway.playground.pages import page_routes
from kestrel_gateway.reception import Reception, endpoint
from kestrel_gateway.rest import answer_skill

SKILLS = ("query", "caption", "detect", "point", "segment")
LIVE = ("/livez", "/healthz", "/v1/health/live", "/v2/health/live")
READY = ("/readyz", "/health", "/ping", "/v1/health/ready", "/v2/health/ready")


def make_app(house: House) -> ASGIApp:
    routes = [
        *(Route(f"/v1/{skill}", endpoint(house, answer_skill, skill), methods=["POST"]) for skill in SKILLS),
        *(Route(path, endpoint(house, answer_live)) for path in LIVE),
        *(Route(path, endpoint(house, answer_ready)) for path in READY),
        *page_routes(house),
    ]
    return Reception(house, Router(routes, redirect_slashes=False))
