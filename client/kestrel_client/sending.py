"""Makes a request ready to be sent: its picture becomes bytes, its tensors are packed, its timeout is set."""

from dataclasses import replace

from kestrel_core.protocol.messages import Request

from .exchange import MAX_TIMEOUT_S, Exchange, Retry
from .pictures import encoded
from .tensors import to_message


def make_exchange(request: Request, timeout_s: float | None, retry: Retry, url: str) -> Exchange:
    """Reads files and encodes images, so it may take a while. `timeout_s` is for requests that have none."""
    if request.image is not None:
        request = replace(request, image=encoded(request.image))
    given = request.timeout_s if request.timeout_s is not None else timeout_s
    return Exchange(to_message(request), None if given is None else min(given, MAX_TIMEOUT_S), retry, url)
