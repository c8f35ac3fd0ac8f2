"""Ports of 127.0.0.1 for the servers that tests start, which nobody else is given before they listen.

They are not the kernel's choice: what it calls free now it may give to the next outgoing connection. These
are below those that it gives away, and below those where `kestrel serve` hides Triton. Each process of pytest
has a slice of its own, since several of them run side by side.
"""

import socket
from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice

SLICE = 400
FIRSTS = range(10_000, 20_000, SLICE)


def free_ports(number: int) -> list[int]:
    free = filter(_is_free, _of_this_process())
    return list(islice(free, number))


@cache
def _of_this_process() -> Iterator[int]:
    """Whoever has the first port of a slice has all of it, until the process ends."""
    for first in FIRSTS:
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", first))
        except OSError:
            holder.close()
            continue
        holder.detach()  # stays open
        return cycle(range(first + 1, first + SLICE))
    raise OSError(f"{len(FIRSTS)} other processes test here already; end one of them")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
        return True
