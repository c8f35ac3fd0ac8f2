"""What all paths share: who answers, which model that is, where pictures come from, whether we are ending."""

from dataclasses import replace
from typing import Any

from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.errors import InvalidRequest
from kestrel_core.protocol.messages import Request
from kestrel_core.protocol.names import shown
from kestrel_gateway.drain import Drain
from kestrel_gateway.errors import UnknownModel
from kestrel_gateway.keys import Keys
from kestrel_gateway.memory import Memory
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.pictures import Pictures
from kestrel_gateway.tallies import Tallies
from kestrel_gateway.visits import Visit

ALIAS = "moondream"  # the name of the Triton model, which every client may use


class House:
    def __init__(self, options: GatewayOptions, upstream: AsyncCalls) -> None:
        self.options = options
        self.upstream = upstream
        tallies = Tallies(options.shared / "tallies.sqlite" if options.shared else None)
        self.keys = Keys(options.api_keys, tallies)
        self.memory = Memory(options.max_open_bytes)
        self.pictures = Pictures(options)
        self.drain = Drain(options.drain_s, options.exit_timeout_s)
        self.model = ALIAS  # until the server has said which it is

    async def check_answers(self) -> None:
        """Raises unless the model gives a real answer."""
        await self.upstream.query(question="?", max_tokens=1, temperature=0.0, timeout_s=5.0)

    async def picture(self, value: Any) -> bytes:
        return await self.pictures.read(value)

    def adapter_of(self, model: Any) -> str | None:
        """The adapter in a model's name, `base/adapter`; the base has to be the one that is served."""
        if model is None or model == "":
            return None
        if not isinstance(model, str):
            raise InvalidRequest("model must be a name")
        base, _, adapter = model.partition("/")
        if base not in (self.model, ALIAS):
            raise UnknownModel(f'there is no model "{shown(model)}"; this server has {self.model}')
        return adapter or None

    async def admitted(self, request: Request, visit: Visit) -> Request:
        """The request as it is sent: one that its key allows, with its id, and with a deadline."""
        if isinstance(request.image, bytes):
            visit.hold(len(request.image))
        request = self.keys.permitted(visit.key, request)
        timeout_s = request.timeout_s or self.options.timeout_s
        visit.model = self.model
        return replace(request, request_id=visit.request_id, timeout_s=timeout_s)
