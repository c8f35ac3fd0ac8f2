"""How far a long run is: a bar or a status on a terminal, and a few lines in a log, which has neither."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINES = 10  # in a log, for a whole count
LINE_EVERY_S = 30.0  # in a log, for a status
NUMBER = re.compile(r"\d[\d,.]*")


@contextmanager
def loading(console: Console) -> Iterator[Callable[[int, int], None]]:
    """Yields a function for the loading of a model: called with how much is done, and of how much."""
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("weights", total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


@contextmanager
def counted(what: str, total: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number of items that were just finished."""
    began, done = time.monotonic(), 0
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what, total=total)

        def advance(count: int) -> None:
            nonlocal done
            before, done = done, done + count
            progress.advance(bar, count)
            if not console.is_terminal and before * LINES // total < done * LINES // total:
                console.print(f"{what}: {done} of {total}, {time.monotonic() - began:.0f} s", highlight=False)

        yield advance


@contextmanager
def told(console: Console) -> Iterator[Callable[[str], None]]:
    """Yields a function to call with what is being done now.

    A log gets a line when something new begins, with the seconds since the start, and from time to time when
    only numbers change.
    """
    began_s = said_s = time.monotonic()
    seen = set[str]()
    with console.status("") as status:

        def say(text: str) -> None:
            nonlocal said_s
            status.update(text)
            now_s, kind = time.monotonic(), NUMBER.sub("", text)
            if not console.is_terminal and (kind not in seen or now_s - said_s >= LINE_EVERY_S):
                said_s = now_s
                seen.add(kind)
                console.print(f"{now_s - began_s:.0f} s: {text}", markup=False, highlight=False)

        yield say
