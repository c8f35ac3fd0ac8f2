"""What a caller asks. Frozen, checked by whoever takes it from outside, trusted inside."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
