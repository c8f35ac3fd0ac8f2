"""What `kestrel parity` printed as its last line, for tests."""

from collections.abc import Callable
from typing import Any

Parity = Callable[..., tuple[int, dict[str, Any]]]  # its arguments; its exit code and that line


def names(document: dict[str, Any], passed: bool) -> set[str]:
    return {stage["stage"] for stage in document["stages"] if stage["passed"] is passed}


def engine_stages(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {stage["stage"]: stage for stage in document["stages"] if stage["stage"].startswith("engine")}
