"""What may wait at once, and for how long."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueLimits:
    max_count: int
    max_bytes: int
    max_context: int
    priority_s: float
    default_timeout_s: float | None
    max_prepared_bytes: int
    max_costly: int = 1  # costly pictures that are decoded at once
    share_pictures: bool = False  # between salts
