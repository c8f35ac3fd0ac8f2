"""What is done about adapters outside the loop's thread: finding them by their names, and loading them.

There are two groups of threads. One takes the names that are found on this machine, and the loads; the other
takes those that may have to be fetched. So a slow download delays neither pictures nor the adapters that are
here.
"""

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol

from kestrel_core.loop.inbox import Ticket
from kestrel_core.loop.step import Adapter
from kestrel_core.protocol.errors import EngineFailed, KestrelError, ShuttingDown, UnknownAdapter, caused
from kestrel_core.protocol.names import shown

NUM_THREADS = 2  # in each group
TellFound = Callable[[Ticket, Adapter | KestrelError], None]
PutAdapter = Callable[[Adapter], None]
TellLoaded = Callable[[Adapter, float, KestrelError | None], None]  # after so many seconds


class AdapterSource(Protocol):
    def resolve(self, name: str) -> Adapter:
        """The adapter of this name, as it is now. Raises `UnknownAdapter` or `BadAdapter`."""
        ...

    def is_local(self, name: str) -> bool:
        """Whether the name is found on this machine, if it is found at all. This takes no time."""
        ...


class Threads(Protocol):
    def submit(self, work: Callable[[], None], /) -> object:
        """Raises RuntimeError once they are shut down."""
        ...

    def shutdown(self, wait: bool) -> None: ...


class DaemonThreads:
    """Threads that do not keep the process alive: nobody waits for a download when the server stops."""

    def __init__(self, name: str, count: int = NUM_THREADS) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_shut_down = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{at}", daemon=True) for at in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None], /) -> None:
        if self._is_shut_down:
            raise RuntimeError("the threads are shut down")
        self._work.put(work)

    def shutdown(self, wait: bool) -> None:
        """What has not begun is dropped."""
        self._is_shut_down = True
        try:
            while True:
                self._work.get_nowait()
        except Empty:
            pass
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


class Adapters:
    """Any thread may use it, and `tell` is called in any thread."""

    def __init__(
        self,
        source: AdapterSource,
        local: Threads | None = None,
        remote: Threads | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._local = local or DaemonThreads("kestrel-adapters")
        self._remote = remote or DaemonThreads("kestrel-fetch")
        self._clock = clock
        self._lock = threading.Lock()
        self._fetching: dict[str, list[tuple[Ticket, TellFound]]] = {}  # by name: who waits for it

    def find(self, ticket: Ticket, name: str, tell: TellFound) -> None:
        try:
            is_local = self._source.is_local(name)
        except Exception as error:
            return tell(ticket, _not_found(error))
        try:
            if is_local:
                self._local.submit(lambda: self._find_here(ticket, name, tell))
            else:
                self._fetch(ticket, name, tell)
        except RuntimeError:
            tell(ticket, ShuttingDown("the server is shutting down; try another one"))

    def load(
        self, adapter: Adapter, loader: Callable[[int], PutAdapter], index: int, tell: TellLoaded
    ) -> None:
        """Have a thread put the adapter in the place of this index. `loader` is the runtime's."""
        began_s = self._clock()
        try:
            put = loader(index)
            self._local.submit(lambda: self._load(adapter, put, began_s, tell))
        except Exception as error:
            tell(adapter, self._clock() - began_s, _not_loaded(error))

    def shut_down(self) -> None:
        """When no request is open any more. Loads are waited for, since the device is closed next."""
        self._remote.shutdown(wait=False)
        self._local.shutdown(wait=True)

    def _fetch(self, ticket: Ticket, name: str, tell: TellFound) -> None:
        """A name is fetched in one thread at a time, however many ask for it."""
        with self._lock:
            asking = self._fetching.setdefault(name, [])
            asking.append((ticket, tell))
            if len(asking) > 1:
                return
        try:
            self._remote.submit(lambda: self._find_elsewhere(name))
        except RuntimeError:
            with self._lock:
                del self._fetching[name]
            raise

    # In a thread of one of the groups

    def _find_here(self, ticket: Ticket, name: str, tell: TellFound) -> None:
        if not ticket.done:
            tell(ticket, self._resolve(name))

    def _find_elsewhere(self, name: str) -> None:
        with self._lock:
            if all(ticket.done for ticket, _ in self._fetching[name]):
                del self._fetching[name]
                return
        found = self._resolve(name)
        with self._lock:
            asking = self._fetching.pop(name)
        for ticket, tell in asking:
            tell(ticket, found)

    def _resolve(self, name: str) -> Adapter | KestrelError:
        try:
            return self._source.resolve(name)
        except Exception as error:
            return _not_found(error)

    def _load(self, adapter: Adapter, put: PutAdapter, began_s: float, tell: TellLoaded) -> None:
        error = None
        try:
            put(adapter)
        except Exception as cause:
            error = _not_loaded(cause)
        tell(adapter, self._clock() - began_s, error)


def no_adapters(name: str) -> UnknownAdapter:
    return UnknownAdapter(
        f'adapter "{shown(name)}" is not known: this server has no adapters; ask without one, or '
        "serve with a folder of them (adapters)"
    )


def _not_found(error: Exception) -> KestrelError:
    if isinstance(error, KestrelError):
        return error
    return caused(EngineFailed(f"the adapter could not be read ({type(error).__name__})"), error)


def _not_loaded(error: Exception) -> KestrelError:
    if isinstance(error, KestrelError):
        return error
    return caused(EngineFailed(f"the adapter could not be put on the device ({type(error).__name__})"), error)
