"""How far a long run is: a bar or a status on a terminal, and a few lines in a log, which has neither."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINES = 10  # of a count, in a log
LINE_EVERY_S = 30.0  # of a status, in a log


@contextmanager
def loading(console: Console) -> Iterator[Callable[[int, int], None]]:
    """Yields what a model's loading is to call with how much is done, and of how much."""
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("weights", total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


@contextmanager
def counted(what: str, total: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Yields what is to be called with how many more are done."""
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
    """Yields what is to be called with what is being done now."""
    said_s = float("-inf")
    with console.status("") as status:

        def say(text: str) -> None:
            nonlocal said_s
            status.update(text)
            if not console.is_terminal and time.monotonic() - said_s >= LINE_EVERY_S:
                said_s = time.monotonic()
                console.print(text, markup=False, highlight=False)

        yield say
