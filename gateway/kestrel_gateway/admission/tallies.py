"""Counts that all workers keep together: how often each key asked, and how many of its requests are running.

One small SQLite database, in a file that the workers share or in the memory of the only one. It is the store
behind the moving windows of `limits`: each key has a ring of the times of its last requests, so that asking
and refusing cost the same however high the limit is.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from limits.storage import MovingWindowSupport, Storage

WAIT_S = 1.0  # for another worker, whose own work here takes some 50 us
PAUSE_S = 0.0001  # SQLite itself would sleep for milliseconds
TABLES = """
    CREATE TABLE IF NOT EXISTS rings (key TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS hits (key TEXT, place INTEGER, at REAL, PRIMARY KEY (key, place))
        WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS running (key TEXT, pid INTEGER, count INTEGER, PRIMARY KEY (key, pid))
        WITHOUT ROWID;
"""


class Tallies(Storage, MovingWindowSupport):
    STORAGE_SCHEME = None

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.clock = clock  # the same one in all processes of a machine
        self._pid = os.getpid()
        # Transactions are begun by hand. One thread at a time uses it, though not always the same.
        self._database = sqlite3.connect(
            path or ":memory:", timeout=WAIT_S, isolation_level=None, check_same_thread=False
        )
        # Nothing here has to outlive the machine, so nothing waits for the disk.
        self._database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;" + TABLES)
        self._database.execute("DELETE FROM running WHERE pid = ?", (self._pid,))  # of a process long gone
        self._database.execute("PRAGMA busy_timeout = 0")

    def close(self) -> None:
        self._database.close()

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Note a request, unless `limit` of them are younger than `expiry` seconds."""
        now = self.clock()
        with self._transaction():
            size, oldest = self._ring(key, limit)
            if oldest is not None and oldest > now - expiry:
                return False
            self._database.execute("INSERT OR REPLACE INTO hits VALUES (?, ?, ?)", (key, size % limit, now))
            self._database.execute("INSERT OR REPLACE INTO rings VALUES (?, ?)", (key, size + 1))
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest request that still counts was, and how many there are."""
        since = self.clock() - expiry
        _, oldest = self._ring(key, limit)
        if oldest is not None and oldest > since:
            return oldest, limit
        [(first, count)] = self._database.execute(
            "SELECT min(at), count(*) FROM hits WHERE key = ? AND at > ?", (key, since)
        )
        return self.clock() if first is None else first, count

    def begin(self, key: str, limit: int) -> bool:
        """Count one more running request, unless there are `limit` already."""
        with self._transaction():
            if self._num_running(key) >= limit:
                self._forget_the_dead()
                if self._num_running(key) >= limit:
                    return False
            self._database.execute(
                "INSERT INTO running VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
                (key, self._pid),
            )
        return True

    def end(self, key: str) -> None:
        with self._transaction():
            self._database.execute(
                "UPDATE running SET count = count - 1 WHERE key = ? AND pid = ?", (key, self._pid)
            )

    def _ring(self, key: str, limit: int) -> tuple[int, float | None]:
        """How many requests there were, and when the one was whose place the next one takes."""
        found = self._database.execute(
            "SELECT size, at FROM rings LEFT JOIN hits ON hits.key = rings.key AND place = size % ?"
            " WHERE rings.key = ?",
            (limit, key),
        ).fetchone()
        return found or (0, None)

    def _num_running(self, key: str) -> int:
        [(count,)] = self._database.execute("SELECT total(count) FROM running WHERE key = ?", (key,))
        return int(count)

    def _forget_the_dead(self) -> None:
        """A worker that was killed ends none of its requests itself."""
        for (pid,) in self._database.execute("SELECT DISTINCT pid FROM running").fetchall():
            if not _lives(pid):
                self._database.execute("DELETE FROM running WHERE pid = ?", (pid,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._lock()
        try:
            yield
        finally:
            self._database.execute("COMMIT")

    def _lock(self) -> None:
        """What is read must not change before it is written."""
        until = time.monotonic() + WAIT_S
        while True:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:  # another worker has it
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE_S)

    # The rest of a store of `limits` is for windows of other kinds, which are not used here.

    @property
    def base_exceptions(self) -> type[Exception]:
        return sqlite3.Error

    def check(self) -> bool:
        return True

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        raise NotImplementedError

    def get(self, key: str) -> int:
        raise NotImplementedError

    def get_expiry(self, key: str) -> float:
        raise NotImplementedError

    def clear(self, key: str) -> None:
        raise NotImplementedError

    def reset(self) -> int | None:
        raise NotImplementedError


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
