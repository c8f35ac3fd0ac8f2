"""`GET /v1/models`: the model that is served and its adapters, in OpenAI's form."""

from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from kestrel_core.protocol.names import shown
from kestrel_gateway.errors import UnknownModel, blaming
from kestrel_gateway.house import House
from kestrel_gateway.records.visits import visit_of


async def list_models(house: House, http: HttpRequest) -> Response:
    names = [house.model, *(f"{house.model}/{adapter}" for adapter in _adapters(house, http))]
    return _json({"object": "list", "data": [_card(house, name) for name in names]})


async def show_model(house: House, http: HttpRequest) -> Response:
    """By a name that is listed, or by the alias that every server's model has."""
    name = http.path_params["id"]
    with blaming("model"):
        adapter = house.adapter_of(name)
        is_named = name != "" and not name.endswith("/")
        if not is_named or (adapter is not None and adapter not in _adapters(house, http)):
            raise UnknownModel(f'there is no model "{shown(name)}"; this server has {house.model}')
    return _json(_card(house, name))


def _adapters(house: House, http: HttpRequest) -> list[str]:
    """Those that the caller may use."""
    about = house.upstream.known
    return house.keys.usable(visit_of(http).key, () if about is None else about.adapters)


def _card(house: House, name: str) -> dict[str, Any]:
    about = house.upstream.known
    limit = {} if about is None else {"max_model_len": about.max_context}
    return {
        "id": name,
        "object": "model",
        "created": house.started,
        "owned_by": "kestrel",
        "root": house.model,
        "parent": house.model if "/" in name else None,
        **limit,
    }


def _json(document: Any) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")
