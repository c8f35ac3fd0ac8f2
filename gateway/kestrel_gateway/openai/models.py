"""`GET /v1/models`: which model is served, in OpenAI's form."""

from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from kestrel_core.protocol.names import shown
from kestrel_gateway.errors import UnknownModel, blaming
from kestrel_gateway.house import ALIAS, House


async def list_models(house: House, http: HttpRequest) -> Response:
    return _json({"object": "list", "data": [_card(house, house.model)]})


async def show_model(house: House, http: HttpRequest) -> Response:
    """By the name that it is listed by, or by the name that every server's model has."""
    name = http.path_params["id"]
    with blaming("model"):
        if name not in (house.model, ALIAS):
            raise UnknownModel(f'there is no model "{shown(name)}"; this server has {house.model}')
    return _json(_card(house, name))


def _card(house: House, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": house.started,
        "owned_by": "kestrel",
        "root": house.model,
        "parent": None,
    }


def _json(document: Any) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")
