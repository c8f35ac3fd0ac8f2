"""A client for the Triton model `moondream`: synchronous and asynchronous, typed, without torch."""

from kestrel_core.protocol.errors import (
    BadImage,
    Cancelled,
    EngineFailed,
    InvalidRequest,
    KestrelError,
    Overloaded,
    UnknownAdapter,
    UnsupportedSkill,
)

from .async_client import AsyncAnswerStream, AsyncClient
from .client import AnswerStream, Client
from .errors import ServerUnreachable
from .exchange import Retry
from .results import (
    Answer,
    Box,
    Caption,
    Detection,
    Grounding,
    Point,
    Points,
    Reasoning,
    Result,
    Segment,
    Segments,
)

__all__ = [
    "Answer",
    "AnswerStream",
    "AsyncAnswerStream",
    "AsyncClient",
    "BadImage",
    "Box",
    "Cancelled",
    "Caption",
    "Client",
    "Detection",
    "EngineFailed",
    "Grounding",
    "InvalidRequest",
    "KestrelError",
    "Overloaded",
    "Point",
    "Points",
    "Reasoning",
    "Result",
    "Retry",
    "Segment",
    "Segments",
    "ServerUnreachable",
    "UnknownAdapter",
    "UnsupportedSkill",
]
