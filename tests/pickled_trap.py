"""What must never be unpickled."""

from pathlib import Path


class Touch:
    """Unpickled by a careless loader, it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)
