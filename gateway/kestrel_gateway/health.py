"""Whether the gateway lives, whether it is ready (the last real answer says so), and what it has counted.

Nobody is asked for that: those who look every second must not wait behind requests. `upstream.probing` asks.
"""

import asyncio

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from kestrel_core.protocol.errors import KestrelError
from kestrel_gateway.errors import refusal
from kestrel_gateway.house import House

LIVE = ("/livez", "/healthz", "/v1/health/live", "/v2/health/live")
READY = ("/readyz", "/health", "/ping", "/v1/health/ready", "/v2/health/ready")


async def answer_live(house: House, http: HttpRequest) -> Response:
    return JSONResponse({"status": "ok"})


async def answer_ready(house: House, http: HttpRequest) -> Response:
    try:
        house.check_ready()
    except KestrelError as error:
        return refusal(error)
    return JSONResponse({"status": "ok"})


async def answer_metrics(house: House, http: HttpRequest) -> Response:
    """In a thread of its own: several workers' numbers are read from files."""
    for replica in house.upstream.replicas:
        house.metrics.note_upstream(replica.name, replica.is_well)
    page, content_type = await asyncio.to_thread(house.metrics.page, http.headers.get("accept", ""))
    return Response(page, headers={"content-type": content_type})
