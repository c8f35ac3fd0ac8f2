"""What a caller asks and what comes back. Checked where it comes from outside, trusted inside."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kestrel_core.protocol.arguments import checked
from kestrel_core.protocol.errors import InvalidRequest, KestrelError
from kestrel_core.protocol.fields import ARGUMENTS, BY_NAME, OLD_NAMES, SETTINGS
from kestrel_core.protocol.limits import DEFAULTS, InputLimits

FinishReason = Literal["stop", "length", "cancelled"]
TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and sampling of one answer; None is the model's own default. What each may be: `fields`."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    max_objects: int | None = None
    adapter: str | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int = 0


def parse_settings(values: Mapping[str, Any] | None, limits: InputLimits = DEFAULTS) -> Settings:
    """A caller's settings, every value checked. Absent and None are the default."""
    given = dict(values or {})
    for name in OLD_NAMES.keys() & given.keys():
        raise InvalidRequest(f"{name} is called {OLD_NAMES[name]} now")
    if isinstance(given.get("stop"), str):
        given["stop"] = (given["stop"],)
    known = [limits.of(field.argument) for field in SETTINGS.values()]
    settings = checked(known, given, "there is no setting")
    if "stop" in settings:
        each = limits.each_stop
        settings["stop"] = tuple(each.check(stop) for stop in settings["stop"])
        if "" in settings["stop"]:
            raise InvalidRequest("STOP has an empty string; every answer would end before it began")
    return Settings(**settings)


@dataclass(frozen=True, slots=True)
class Request:
    """`arguments` are the skill's own, as its `SkillSpec` names them: question, object, length, ..."""

    skill: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    image: Any = None
    settings: Settings = field(default_factory=Settings)
    request_id: str = ""
    stream: bool = False
    priority: int = 0
    timeout_s: float | None = None
    cache_salt: str = ""  # requests of different salts share no cached KV and no cached picture
    traceparent: str = ""  # the caller's span, in W3C's form
    tenant: str = ""  # whose it is: tenants share the queue and the slots evenly


def check_request(request: Request, limits: InputLimits) -> None:
    """Raises if an input is larger than its limit. Long ones cost no more than short ones."""
    for key, value in request.arguments.items():
        if key in ARGUMENTS and value is not None:
            limits.of(ARGUMENTS[key].argument).check(value)
    parse_settings({name: getattr(request.settings, name) for name in SETTINGS}, limits)
    limits.of(BY_NAME["PRIORITY"].argument).check(request.priority)


def parse_traceparent(given: object) -> str:
    """As it came; empty if it is none, since a caller's tracing is no reason to refuse its request."""
    return given if isinstance(given, str) and TRACEPARENT.fullmatch(given) else ""


class Chunk(NamedTuple):
    """A piece of a streamed answer. All pieces of one kind together are the whole text of that kind."""

    text: str
    token_index: int
    kind: Literal["text", "reasoning"] = "text"
    logprobs: tuple[dict[str, Any], ...] = ()  # where asked for: of the tokens that end in this piece


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request took. `ttft_ms` is the sum of the times of queue, image, vision and prefill."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    queue_time_ms: float
    prefill_time_ms: float
    decode_time_ms: float
    ttft_ms: float
    image_tokens: int = 0  # of the input: positions of the picture
    reasoning_tokens: int = 0  # of the output
    image_time_ms: float = 0.0  # to decode the picture and cut its crops
    vision_time_ms: float = 0.0  # of the vision encoder


@dataclass(frozen=True)
class EngineResult:
    """An answer: `output` is the skill's own part of the contract's document."""

    request_id: str
    finish_reason: FinishReason
    output: Mapping[str, Any]
    metrics: Usage

    @property
    def text(self) -> str:
        """The answer, caption or continuation; an error where the skill gives no text."""
        for key in ("answer", "caption", "text"):
            if key in self.output:
                return str(self.output[key])
        raise AttributeError(f"this result has no text; its output has {', '.join(self.output)}")


class Finished(NamedTuple):
    """The last event of a request that was answered. `rest` is the text that no chunk held yet."""

    result: EngineResult
    rest: Chunk


# What a request's sink is given: any number of chunks, then exactly one of the others.
Event = Chunk | Finished | KestrelError
