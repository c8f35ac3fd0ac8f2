"""A client for the Triton model `moondream`: synchronous and asynchronous, typed, without torch."""

from kestrel_core.protocol.errors import (
    BadAdapter,
    BadImage,
    Cancelled,
    DeadlinePassed,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    PromptTooLong,
    ServerUnreachable,
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

from .async_client import AsyncAnswerStream, AsyncClient
from .client import Client, ClientStream
from .exchange import Retry

__all__ = [
    "Answer",
    "AsyncAnswerStream",
    "AsyncClient",
    "BadAdapter",
    "BadImage",
    "Box",
    "Cancelled",
    "Caption",
    "Chunk",
    "Client",
    "ClientStream",
    "DeadlinePassed",
    "Detection",
    "EngineFailed",
    "EngineResult",
    "Grounding",
    "InvalidRequest",
    "KestrelError",
    "Overloaded",
    "Point",
    "Points",
    "PromptTooLong",
    "Reasoning",
    "Request",
    "Retry",
    "Segment",
    "Segments",
    "ServerUnreachable",
    "Settings",
    "ShuttingDown",
    "TooLarge",
    "UnknownAdapter",
    "UnknownSkill",
    "UnsupportedSkill",
    "Usage",
]
