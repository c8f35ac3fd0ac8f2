"""Names of adapters become adapters: from the folder on this machine, from Hugging Face, from Moondream.

`AdapterStore.resolve` is called in workers' threads. What was read stays in memory, by the stamps of its
files: a replaced file is read again, a broken one only once. What reads a file is handed in. No torch.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from kestrel_core.intake.hosted_adapters import HostedAdapters
from kestrel_core.intake.local_adapters import LocalAdapters, files_of
from kestrel_core.protocol.errors import AdapterUnreachable, BadAdapter, KestrelError, UnknownAdapter
from kestrel_core.protocol.names import nearest, shown

ATTEMPTS = 3  # to read files while somebody replaces them
MAX_REMEMBERED = 1000  # files, broken ones among them
FAILURE_S = 10.0  # how long a remote adapter that could not be had is not asked for again

Stamps = tuple[tuple[object, ...], ...]


class Loaded(Protocol):
    @property
    def num_bytes(self) -> int: ...


T = TypeVar("T", bound=Loaded)


class Remote(Protocol):
    """Where adapters are fetched from that are not on this machine yet."""

    def knows(self, name: str) -> bool:
        """Whether the name has the form of its names."""
        ...

    def fetch(self, name: str) -> Path:
        """The file or folder on this machine, after downloading it where it has to be."""
        ...


@dataclass(frozen=True)
class _Read(Generic[T]):
    stamps: Stamps
    outcome: T | BadAdapter

    @property
    def num_bytes(self) -> int:
        return 0 if isinstance(self.outcome, BadAdapter) else self.outcome.num_bytes


class AdapterStore(Generic[T]):
    def __init__(
        self,
        read: Callable[[Path], T],
        folder: Path | None = None,
        hub: bool = False,
        api_key: str | None = None,
        *,
        max_cached_bytes: int = 1 << 30,
        max_download_bytes: int = 1 << 30,
        download_s: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._max_cached_bytes = max_cached_bytes
        self._local = LocalAdapters(folder, clock)
        self._remotes: list[Remote] = []
        if hub:
            from kestrel_core.intake.hub_adapters import (
                HubAdapters,
            )  # late: it takes 0.3 s, and most need it not

            self._remotes.append(HubAdapters(max_download_bytes, download_s))
        if api_key is not None:
            self._remotes.append(HostedAdapters(api_key, max_download_bytes, download_s))
        self._lock = threading.Lock()
        self._running: dict[str, Future[T]] = {}
        self._remembered: OrderedDict[Path, _Read[T]] = OrderedDict()  # the longest unused first
        self._fetched: dict[str, Path] = {}
        self._failed: dict[str, tuple[float, KestrelError]] = {}

    def names(self) -> tuple[str, ...]:
        """The adapters of the folder."""
        return self._local.names()

    def is_local(self, name: str) -> bool:
        """Whether resolving asks no network. Asks no disk."""
        fetched = name in self._fetched or name in self._local.listed
        return fetched or not any(remote.knows(name) for remote in self._remotes)

    def resolve(self, name: str) -> T:
        """The adapter of a name. Blocks; whoever asks for a name that is being loaded waits for that."""
        with self._lock:
            running = self._running.get(name)
            mine: Future[T] | None = None
            if running is None:
                mine = self._running[name] = Future()
        if mine is None:
            assert running is not None
            try:
                return running.result()
            except KestrelError as error:
                raise _again(error) from error
        try:
            adapter = self._load(name)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(adapter)
            return adapter
        finally:
            with self._lock:
                del self._running[name]

    def _load(self, name: str) -> T:
        place = self._local.find(name) or self._fetch(name)
        try:
            return self._read_once(place)
        except BadAdapter as error:
            raise BadAdapter(f'adapter "{shown(name)}" cannot be used: {error}') from error

    def _fetch(self, name: str) -> Path:
        if (place := self._fetched.get(name)) is not None and place.exists():
            return place
        remote = next((remote for remote in self._remotes if remote.knows(name)), None)
        if remote is None:
            raise UnknownAdapter(f'there is no adapter "{shown(name)}"{nearest(name, self.names())}')
        until, failure = self._failed.get(name, (0.0, None))
        if failure is not None and self._clock() < until:
            raise _again(failure)
        try:
            place = remote.fetch(name)
        except (UnknownAdapter, AdapterUnreachable, BadAdapter) as error:
            self._remember_failure(name, error)
            raise
        self._fetched[name] = place
        return place

    def _remember_failure(self, name: str, error: KestrelError) -> None:
        with self._lock:
            if len(self._failed) >= MAX_REMEMBERED:
                self._failed.clear()
            self._failed[name] = (self._clock() + FAILURE_S, error)

    def _read_once(self, place: Path) -> T:
        """What is in memory if the files are still those, else what is read now."""
        for _ in range(ATTEMPTS):
            stamps = _stamps(place)
            with self._lock:
                known = self._remembered.get(place)
                if known is not None and known.stamps == stamps:
                    self._remembered.move_to_end(place)
                    return _outcome(known)
            try:
                outcome: T | BadAdapter = self._read(place)
            except BadAdapter as error:
                outcome = error
            if _stamps(place) == stamps:
                read = _Read(stamps, outcome)
                self._remember(place, read)
                return _outcome(read)
        raise BadAdapter("its files are being replaced; ask again when that is done")

    def _remember(self, place: Path, read: _Read[T]) -> None:
        with self._lock:
            self._remembered[place] = read
            self._remembered.move_to_end(place)
            total = sum(one.num_bytes for one in self._remembered.values())
            while len(self._remembered) > 1 and (
                total > self._max_cached_bytes or len(self._remembered) > MAX_REMEMBERED
            ):
                total -= self._remembered.popitem(last=False)[1].num_bytes


def _outcome(read: _Read[T]) -> T:
    if isinstance(read.outcome, BadAdapter):
        raise _again(read.outcome)
    return read.outcome


def _stamps(place: Path) -> Stamps:
    """What changes when a file is written or replaced."""
    stamps: list[tuple[object, ...]] = []
    try:
        for file in files_of(place):
            status = file.stat()
            stamps.append((str(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
    except OSError as error:
        raise BadAdapter(f"its files cannot be read: {error.strerror}") from error
    return tuple(stamps)


def _again(error: KestrelError) -> KestrelError:
    """The same error, to be raised once more: a raised one collects the traces of all who raise it."""
    return type(error)(str(error))
