"""Serve Moondream, the small vision-language models: the public surface.

    from kestrel_core import InferenceEngine, RuntimeConfig

Requests, results and errors are imported at once. The rest is imported when it is first used, so that a
client does not need the engine's dependencies.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kestrel_core.protocol.arguments import Argument
from kestrel_core.protocol.errors import (
    AdapterUnreachable,
    BadAdapter,
    BadCheckpoint,
    BadImage,
    Cancelled,
    DeadlinePassed,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    PromptTooLong,
    ShuttingDown,
    TooLarge,
    UnknownAdapter,
    UnknownSkill,
    UnsupportedSkill,
)
from kestrel_core.protocol.messages import Chunk, EngineResult, Request, Settings, Usage
from kestrel_core.protocol.results import (
    Answer,
    Box,
    Caption,
    Detection,
    Grounding,
    Point,
    Points,
    Reasoning,
    Segment,
    Segments,
)

if TYPE_CHECKING:
    from kestrel_core.config import RuntimeConfig
    from kestrel_core.engine import InferenceEngine
    from kestrel_core.skills.registry import SkillRegistry, builtin_skills
    from kestrel_core.skills.spec import Language, SkillSpec

LATE = {
    "InferenceEngine": "engine",
    "Language": "skills.spec",
    "RuntimeConfig": "config",
    "SkillRegistry": "skills.registry",
    "SkillSpec": "skills.spec",
    "builtin_skills": "skills.registry",
}

__all__ = [
    "AdapterUnreachable",
    "Answer",
    "Argument",
    "BadAdapter",
    "BadCheckpoint",
    "BadImage",
    "Box",
    "Cancelled",
    "Caption",
    "Chunk",
    "DeadlinePassed",
    "Detection",
    "EngineFailed",
    "EngineResult",
    "Grounding",
    "InferenceEngine",
    "InvalidRequest",
    "KestrelError",
    "Language",
    "Overloaded",
    "Point",
    "Points",
    "PromptTooLong",
    "Reasoning",
    "Request",
    "RuntimeConfig",
    "Segment",
    "Segments",
    "Settings",
    "ShuttingDown",
    "SkillRegistry",
    "SkillSpec",
    "TooLarge",
    "UnknownAdapter",
    "UnknownSkill",
    "UnsupportedSkill",
    "Usage",
    "builtin_skills",
]


def __getattr__(name: str) -> Any:
    if name not in LATE:
        raise AttributeError(f"kestrel_core has no {name}")
    return getattr(import_module(f"kestrel_core.{LATE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
