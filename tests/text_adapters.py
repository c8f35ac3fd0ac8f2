"""In place of adapters: files of text, and what reads them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kestrel_core.protocol.errors import BadAdapter


@dataclass(frozen=True)
class Text:
    """What the first file of an adapter says."""

    said: str

    @property
    def num_bytes(self) -> int:
        return len(self.said)


class TextReader:
    """Reads files, and notes which."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.meanwhile: Callable[[Path], object] = lambda path: None

    def __call__(self, path: Path) -> Text:
        self.paths.append(path)
        file = path if path.is_file() else sorted(path.iterdir())[0]
        said = file.read_text()
        self.meanwhile(path)
        if said.startswith("broken"):
            raise BadAdapter("it is broken")
        return Text(said)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now
