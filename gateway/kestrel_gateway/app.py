"""The gateway as an ASGI application: the table of its paths."""

from collections.abc import Sequence

from starlette.requests import Request as HttpRequest
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Scope

from kestrel_core.skills.registry import builtin_skills
from kestrel_gateway.docs.pages import docs_routes
from kestrel_gateway.health import LIVE, READY, answer_live, answer_metrics, answer_ready
from kestrel_gateway.house import House
from kestrel_gateway.kserve.http import kserve_routes
from kestrel_gateway.openai.chat import answer_chat
from kestrel_gateway.openai.completions import answer_completion
from kestrel_gateway.openai.models import list_models, show_model
from kestrel_gateway.openai.responses import answer_response
from kestrel_gateway.playground.pages import page_routes
from kestrel_gateway.reception import Reception, endpoint
from kestrel_gateway.records.engine_metrics import engine_metrics_routes
from kestrel_gateway.records.visits import Observer
from kestrel_gateway.rest import answer_skill


def make_app(house: House, observers: Sequence[Observer] = ()) -> ASGIApp:
    built_in = builtin_skills().names
    routes = [
        *(Route(f"/v1/{name}", endpoint(house, answer_skill, name), methods=["POST"]) for name in built_in),
        Route("/v1/models", endpoint(house, list_models)),
        Route("/v1/models/{id:path}", endpoint(house, show_model)),
        Route("/v1/chat/completions", endpoint(house, answer_chat), methods=["POST"]),
        Route("/v1/completions", endpoint(house, answer_completion), methods=["POST"]),
        Route("/v1/responses", endpoint(house, answer_response), methods=["POST"]),
        *(Route(path, endpoint(house, answer_live)) for path in LIVE),
        *(Route(path, endpoint(house, answer_ready)) for path in READY),
        Route("/metrics", endpoint(house, answer_metrics)),
        *engine_metrics_routes(house),
        *kserve_routes(house),
        *docs_routes(house),
        *page_routes(house),
        OwnSkills(house),  # last: a path of ours is never a skill's
    ]
    return Reception(house, Router(routes, redirect_slashes=False), (house.metrics, *observers))


class OwnSkills(Route):
    """A path for each skill that the server has beside Moondream's; which those are it says itself."""

    def __init__(self, house: House) -> None:
        async def answer(request: HttpRequest) -> ASGIApp:
            return await answer_skill(house, request, request.path_params["skill"])

        super().__init__("/v1/{skill}", answer, methods=["POST"])
        self._house = house

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        names = {skill.name for skill in self._house.skills}
        if match is not Match.NONE and found["path_params"]["skill"] not in names:
            return Match.NONE, {}
        return match, found
