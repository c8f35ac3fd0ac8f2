"""Lets a console go on that nobody hears any more: a pipe whose reader has ended, a terminal that was closed.

rich ends a program that writes to a broken pipe. A server must not end because `tee` has, nor for its last
words to a terminal: Triton and the gateway would go with it, and so would the requests under way.
"""

import errno
import os
from contextlib import suppress
from typing import IO, Any, cast

from rich.console import Console

GONE = (errno.EPIPE, errno.EIO)  # EIO: a terminal that was closed


def keep_on_unheard(console: Console) -> None:
    """From now on whatever is written there and cannot be is lost, and nothing else happens."""
    console.file = cast(IO[str], _Lossy(console.file))


class _Lossy:
    """A file that never fails; in all else it is the given one."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        try:
            self._file.write(text)
        except OSError as error:
            self._note(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        """What cannot be written stays in the buffer, and at its end Python would fail once more over it."""
        if error.errno not in GONE:
            return  # a disk that is full may have room again
        with suppress(OSError):  # it has no descriptor, or there is no other left
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)
