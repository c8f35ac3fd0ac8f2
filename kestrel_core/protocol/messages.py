"""What a caller asks and what comes back. Checked where it comes from outside, trusted inside."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from kestrel_core.protocol.errors import InvalidRequest, KestrelError

MAX_STOPS = 16
MAX_STOP_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and sampling of one answer; None is the model's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    max_objects: int | None = None
    adapter: str | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int = 0


# What each number may be; None beside them means the model's default.
RANGES: dict[str, tuple[type, float, float]] = {
    "temperature": (float, 0.0, 100.0),
    "top_p": (float, 0.0, 1.0),
    "top_k": (int, 0, 2**31 - 1),
    "max_tokens": (int, 1, 2**31 - 1),
    "max_objects": (int, 1, 2**31 - 1),
    "seed": (int, -(2**63), 2**63 - 1),
    "logprobs": (int, 0, 20),
}


def parse_settings(values: Mapping[str, Any] | None) -> Settings:
    """A caller's `settings`, every value checked. Absent and None are the default."""
    given = {name: value for name, value in (values or {}).items() if value is not None}
    unknown = sorted(set(given) - {f.name for f in fields(Settings)})
    if unknown:
        known = ", ".join(f.name for f in fields(Settings))
        raise InvalidRequest(f"there is no setting {', '.join(map(str, unknown))}; there are {known}")
    for name, (kind, least, most) in RANGES.items():
        if name in given:
            given[name] = number(name.upper(), given[name], kind, least, most)
    if "adapter" in given and not isinstance(given["adapter"], str):
        raise InvalidRequest("ADAPTER must be a string")
    given["stop"] = _stops(given.get("stop", ()))
    return Settings(**given)


def number(name: str, value: Any, kind: type, least: float, most: float) -> Any:
    """A caller's number, checked."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not (kind is float and isinstance(value, float)):
        raise InvalidRequest(
            f"{name} is {value!r}; it must be {'a number' if kind is float else 'an integer'}"
        )
    if not least <= value <= most:  # so NaN is out too
        raise InvalidRequest(f"{name} is {value}; it can be from {least:g} to {most:g}")
    return kind(value)


def _stops(value: Any) -> tuple[str, ...]:
    stops = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(stops) > MAX_STOPS:
        raise InvalidRequest(f"STOP has {len(stops)} strings; at most {MAX_STOPS} are taken")
    for stop in stops:
        if not isinstance(stop, str) or not 0 < len(stop) <= MAX_STOP_LENGTH:
            raise InvalidRequest(f"STOP takes strings of 1 to {MAX_STOP_LENGTH} letters")
    return stops


@dataclass(frozen=True, slots=True)
class Request:
    """`arguments` are the skill's own: question, object, length, reasoning, spatial_refs."""

    skill: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    image: Any = None
    settings: Settings = field(default_factory=Settings)
    request_id: str = ""
    stream: bool = False
    priority: int = 0
    timeout_s: float | None = None


class Chunk(NamedTuple):
    """A piece of a streamed answer. All pieces together are the whole text."""

    text: str
    token_index: int


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    queue_time_ms: float
    prefill_time_ms: float
    decode_time_ms: float
    ttft_ms: float


@dataclass(frozen=True, slots=True)
class EngineResult:
    request_id: str
    finish_reason: Literal["stop", "length", "cancelled"]
    output: dict[str, Any]
    metrics: Usage


class Finished(NamedTuple):
    """The last event of a request that was answered. `rest` is the text no chunk had yet."""

    result: EngineResult
    rest: Chunk


# What a request's sink is given: any number of chunks, then exactly one of the others.
Event = Chunk | Finished | KestrelError
