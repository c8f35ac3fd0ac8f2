"""A request of KServe v2 becomes ours, whichever protocol it came by.

Callers' ids are kept, since they tell answers on one stream apart by them.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kestrel_core.protocol.about import ABOUT
from kestrel_core.protocol.errors import InvalidRequest, UnknownSkill
from kestrel_core.protocol.messages import Request
from kestrel_core.protocol.names import nearest, shown
from kestrel_core.protocol.wire import decode_request
from kestrel_core.skills.registry import builtin_skills
from kestrel_gateway.house import House
from kestrel_gateway.records.visits import Visit

ID = re.compile(r"[ -~]{0,128}")
# Triton reads them itself and shows them to no model.
UNSEEN = ("priority", "headers", "id")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request holds, its values checked against their types and shapes alone."""

    id: str
    tensors: Mapping[str, Any]
    parameters: Mapping[str, Any]


async def admitted(house: House, asked: Asked, visit: Visit, left_s: float | None = None) -> Request:
    """The request as it is sent. `left_s`: what is left of the deadline that the call itself has."""
    parameters = {name: value for name, value in asked.parameters.items() if name not in UNSEEN}
    request = decode_request(asked.tensors, asked.id, parameters=parameters, limits=house.options.inputs)
    check_skill(house, request.skill)
    if request.image is not None:
        await house.picture(request.image)  # for its size: bytes stay as they are
    visit.request_id = asked.id or visit.request_id
    visit.traceparent = visit.traceparent or request.traceparent
    # Its inputs were checked as they were decoded.
    return house.as_sent(request, visit, math.inf if left_s is None else left_s)


def check_skill(house: House, name: str) -> None:
    """Before it becomes a label of metrics. What a server can do is known once it has answered."""
    names = [skill.name for skill in house.skills] or builtin_skills().names
    if not name:
        raise InvalidRequest(f"SKILL is required: {', '.join(names)}")
    if name not in names and name != ABOUT:
        raise UnknownSkill(f'there is no skill "{shown(name)}"{nearest(name, names)}')


def check_id(given: object) -> str:
    if not isinstance(given, str) or not ID.fullmatch(given):
        raise InvalidRequest(f'the id is "{shown(given)}"; it may be up to 128 printable letters of ASCII')
    return given
