"""What all paths share: who answers, which model that is, where pictures come from, whether we are ending."""

import math
import time
from dataclasses import replace
from typing import Any

from kestrel_core.protocol.about import SkillAbout
from kestrel_core.protocol.asking import AsyncCalls
from kestrel_core.protocol.errors import InvalidRequest, KestrelError, ShuttingDown
from kestrel_core.protocol.messages import Request, check_request
from kestrel_core.protocol.names import shown
from kestrel_core.protocol.wire import check_own_arguments
from kestrel_gateway.admission.allowance import Allowance
from kestrel_gateway.admission.keys import Keys
from kestrel_gateway.admission.memory import Memory
from kestrel_gateway.admission.tallies import Tallies
from kestrel_gateway.admission.turns import Turns
from kestrel_gateway.errors import UnknownModel
from kestrel_gateway.options import GatewayOptions
from kestrel_gateway.process.drain import Drain
from kestrel_gateway.reading.pictures import Pictures
from kestrel_gateway.records.keeper import Keeper
from kestrel_gateway.records.metrics import OTHER, Metrics
from kestrel_gateway.records.visits import Visit
from kestrel_gateway.upstream.replicas import Replicas

ALIAS = "moondream"  # the name of the Triton model, which every client may use
# What Moondream's own client asks for where its user names no model: there is one here, and that is meant.
UNSAID = "moondream3-preview"


class House:
    def __init__(self, options: GatewayOptions, upstream: AsyncCalls) -> None:
        self.options = options
        self.upstream = upstream if isinstance(upstream, Replicas) else Replicas.alone(upstream)
        tallies = Tallies(options.shared / "tallies.sqlite" if options.shared else None)
        allowance = Allowance(options.max_caller_requests, options.max_hang_ups_per_s)
        self.keys = Keys(options.api_keys, tallies, allowance)
        self.memory = Memory(options.max_open_bytes)
        self.turns = Turns()
        self.pictures = Pictures(options)
        self.drain = Drain(options.drain_s, options.exit_timeout_s)
        self.started = int(time.time())  # when the model was "created", as OpenAI's lists call it
        self.keeper = Keeper(options.run_status)
        self.metrics = Metrics(self.keeper)
        self.upstream.tell(self.metrics.note_upstream)
        self.upstream.lanes.tell = self.metrics.note_held

    @property
    def model(self) -> str:
        """Its name, as the server says; until it has, the one that always works."""
        about = self.upstream.known
        return ALIAS if about is None else about.model

    @property
    def skills(self) -> tuple[SkillAbout, ...]:
        """What the server can do; nothing is known of that before it has answered."""
        about = self.upstream.known
        return () if about is None else about.skills

    def check_ready(self) -> None:
        """Raises from the moment of SIGTERM, before the first real answer, and while nobody answers."""
        if self.drain.is_draining:
            raise ShuttingDown("this server is ending")
        self.upstream.check()

    @property
    def is_ready(self) -> bool:
        try:
            self.check_ready()
        except KestrelError:
            return False
        return True

    async def picture(self, value: Any) -> bytes:
        return await self.pictures.read(value)

    def adapter_of(self, model: Any, *others: Any) -> str | None:
        """The adapter in a model's name, `base/adapter`; the base has to be the one that is served.

        The base ends at the first slash: an adapter from a hub has one of its own. `others` are adapters
        that the request names beside the model. They have to be the same one.
        """
        if model is None or model == "":
            return None
        if not isinstance(model, str):
            raise InvalidRequest("model must be a name")
        base, _, adapter = model.partition("/")
        if base not in (self.model, ALIAS, UNSAID):
            raise UnknownModel(f'there is no model "{shown(model)}"; this server has {self.model}')
        if adapter and any(other not in (None, "", adapter) for other in others):
            named = f'model names the adapter "{shown(adapter)}"'
            raise InvalidRequest(f"{named} and the setting adapter another one; send one of them")
        return adapter or None

    def _listed(self, adapter: str | None) -> str:
        """The adapter as metrics may call it: what callers write must not become a label."""
        about = self.upstream.known
        if adapter is None or (about is not None and adapter in about.adapters):
            return adapter or ""
        return OTHER

    def admitted(self, request: Request, visit: Visit) -> Request:
        """The request as it is sent, if its inputs are within their limits."""
        check_request(request, self.options.inputs)
        check_own_arguments(request, self.options.inputs)
        return self.as_sent(request, visit)

    def as_sent(self, request: Request, visit: Visit, left_s: float = math.inf) -> Request:
        """Permitted, with its id, its place in the caller's trace, a deadline within `left_s`.

        It says whose it is, so that callers share the engine evenly.
        """
        if isinstance(request.image, bytes):
            visit.hold(len(request.image))
        request = self.keys.permitted(visit.key, request)
        visit.model = self.model
        visit.adapter = self._listed(request.settings.adapter)
        visit.ask(request)
        return replace(
            request,
            request_id=visit.request_id,
            traceparent=visit.traceparent,
            timeout_s=min(request.timeout_s or self.options.timeout_s, left_s),
            tenant=visit.caller,
        )
