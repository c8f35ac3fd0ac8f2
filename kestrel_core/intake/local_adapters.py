"""The folder of adapters on this machine: which names there are, and which file or sub-folder a name means.

A name is a path below the folder, whose suffix may be left out. Nothing outside the folder is ever reached,
by no spelling of a name and by no link. No torch.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kestrel_core.protocol.errors import BadAdapter
from kestrel_core.protocol.names import shown

PEFT_CONFIG = "adapter_config.json"
PEFT_TENSORS = "adapter_model.safetensors"
SUFFIXES = (".safetensors", ".pt")  # the first one wins where a name fits both
NAMED = ("adapter.safetensors", "final.safetensors", "final.pt", "adapter.pt")  # the first one there is read

MAX_NAME = 255
MAX_NAMES = 10_000
MAX_DEPTH = 4
LISTING_S = 1.0  # how old a listing of the names may be


class LocalAdapters:
    def __init__(self, folder: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._listed: tuple[str, ...] = ()
        self._listed_at = float("-inf")

    @property
    def listed(self) -> tuple[str, ...]:
        """The names as they were last looked up. No disk is asked."""
        return self._listed

    def names(self) -> tuple[str, ...]:
        with self._lock:
            if self._clock() - self._listed_at >= LISTING_S:
                self._listed = self._look()
                self._listed_at = self._clock()
            return self._listed

    def find(self, name: str) -> Path | None:
        """The file or sub-folder of a name, or None."""
        if self._folder is None or not is_name(name):
            return None
        exact = self._folder / name
        places = [exact.with_name(exact.name + suffix) for suffix in SUFFIXES]
        if exact.suffix in SUFFIXES or holds_adapter(exact):
            places.insert(0, exact)
        for place in places:
            if os.path.exists(place):
                self._refuse_outside(name, place)
                return place
        return None

    def _refuse_outside(self, name: str, place: Path) -> None:
        assert self._folder is not None
        root = self._folder.resolve()
        if not all(one.resolve().is_relative_to(root) for one in (place, *files_of(place))):
            raise BadAdapter(
                f'adapter "{shown(name)}" is a link that leaves the folder of adapters; copy the file there'
            )

    def _look(self) -> tuple[str, ...]:
        if self._folder is None:
            return ()
        found: set[str] = set()
        root = Path(os.path.realpath(self._folder))  # resolve() raises where it is a link to itself
        for name in _names_below(self._folder, root, MAX_DEPTH):
            found.add(name)
            if len(found) >= MAX_NAMES:
                break
        return tuple(sorted(found))


def is_name(name: str) -> bool:
    """Whether this could be the name of an adapter in the folder: a plain relative path."""
    return (
        len(name) <= MAX_NAME
        and name.isprintable()
        and all(part and not part.startswith(".") for part in name.split("/"))
    )


def holds_adapter(folder: Path) -> bool:
    """Whether a sub-folder is an adapter, and not only a place of several."""
    names = {file.name for file in files_of(folder)} if os.path.isdir(folder) else set()
    tensors = [name for name in names if name.endswith(SUFFIXES)]
    return PEFT_CONFIG in names or any(name in names for name in NAMED) or len(tensors) == 1


def files_of(place: Path) -> list[Path]:
    """The files that reading an adapter may open: itself, or those directly in its folder."""
    if not os.path.isdir(place):
        return [place]
    try:
        return sorted(file for file in place.iterdir() if file.name[0] != "." and os.path.isfile(file))
    except OSError:
        return []  # it went away, or is not ours to read


def _names_below(folder: Path, root: Path, depth: int, prefix: str = "") -> Iterator[str]:
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
        for entry in entries:
            is_folder = os.path.isdir(entry)
            if not is_folder and not os.path.isfile(entry):
                continue  # a pipe, or a link to nowhere
            if entry.is_symlink() and not entry.resolve().is_relative_to(root):
                continue  # it would be refused, and what lies outside is nobody's to know
            if is_folder:
                if holds_adapter(entry):
                    yield prefix + entry.name
                elif depth > 1:
                    yield from _names_below(entry, root, depth - 1, f"{prefix}{entry.name}/")
            elif entry.suffix in SUFFIXES:
                yield prefix + entry.stem
    except OSError:
        return  # it went away, or is not ours to read
