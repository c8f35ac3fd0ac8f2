"""From a conversation to a request: the query skill, or the skill that a slash command names."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from kestrel_core.protocol.asking import make_request
from kestrel_core.protocol.fields import PARAMETERS
from kestrel_core.protocol.messages import EngineResult, Request
from kestrel_gateway.errors import blaming
from kestrel_gateway.house import House
from kestrel_gateway.openai.commands import command_document, command_request, read_command
from kestrel_gateway.openai.conversation import Conversation
from kestrel_gateway.openai.reading import refused

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and how its answer is told."""

    request: Request
    is_command: bool  # its answer is a document
    num_top: int = 0  # log probabilities beside that of each token
    picture_param: str = ""  # the field of the body that the picture came in

    def content(self, result: EngineResult) -> str:
        return command_document(result) if self.is_command else result.text

    def thoughts(self, result: EngineResult) -> str | None:
        """What the model thought; in a command's answer it is a part of the document."""
        reasoning = result.output.get("reasoning")
        return None if reasoning is None or self.is_command else str(reasoning["text"])


async def ask(
    house: House,
    model: str,
    conversation: Conversation,
    settings: Mapping[str, Any],
    *,
    thinks: bool,
    stream: bool,
    num_top: int = 0,
    cache_key: str | None = None,
) -> Asked:
    """Requests with different `cache_key`s share nothing that was computed."""
    with blaming(conversation.param):
        command = read_command(conversation.last)
    with blaming("model"):
        adapter = house.adapter_of(model, command and command.arguments.get("adapter"))
    given = {**settings, "adapter": adapter}
    with blaming("prompt_cache_key"):
        salt = PARAMETERS["cache_salt"].check(cache_key or "")
    image, place = None, ""
    if conversation.picture is not None:
        place = f"{conversation.picture.part}.image_url"
        with blaming(place):
            image = await house.picture(conversation.picture.value)
    if command is not None:
        with blaming(conversation.param):
            request = command_request(command, image, given)
        return Asked(replace(request, cache_salt=salt), True, num_top, place)
    arguments = {"question": conversation.question, "reasoning": thinks or None, "settings": given}
    request = make_request("query", image, arguments, stream=stream)
    return Asked(replace(request, cache_salt=salt), False, num_top, place)


def thinks(reasoning: bool | None, effort: str | None) -> bool:
    """Any effort but none is to think first; the model has no degrees of it."""
    if reasoning is not None and effort is not None and reasoning != (effort != "none"):
        raise refused("reasoning", f"reasoning and reasoning_effort ({effort}) disagree; send one of them")
    return bool(reasoning) if effort is None else effort != "none"


def model_of(house: House, request: Request) -> str:
    """The model's own name, whichever name it was asked by."""
    adapter = request.settings.adapter
    return f"{house.model}/{adapter}" if adapter else house.model
