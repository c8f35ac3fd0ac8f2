"""How a CPU computes steps: by how many threads, and by whose products."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, thread_time
from typing import TypeVar

import torch
import torch.nn.functional as F

WINDOW_S = 0.2  # of steps, that are judged together
FREE_SHARE = 0.8  # of that time, for which the engine's thread runs if it has a core for itself
RETRY_S = 10.0  # after which more threads are tried again, and twice as long each time that it fails
MAX_RETRY_S = 320.0

Result = TypeVar("Result")


class CpuThreads:
    """A thread for each core, and fewer while others use the cores too.

    Every operation waits for the slowest of its threads. So one thread that shares its core slows all of them
    down, and on two busy cores one thread was twice as fast as two. It shows in how long the engine's own
    thread runs during a step: always, if nobody takes its core or that of a thread that it waits for.
    """

    def __init__(
        self,
        fixed: int | None = None,
        set_threads: Callable[[int], None] = torch.set_num_threads,
        clock: Callable[[], float] = perf_counter,
        own_clock: Callable[[], float] = thread_time,
    ) -> None:
        """With `fixed` there are always so many. `own_clock` counts the time for which this thread runs."""
        self._fixed = fixed
        self._most = fixed or torch.get_num_threads()
        self._set_threads = set_threads
        self._clock = clock
        self._own_clock = own_clock
        self._wall_s = self._own_s = 0.0
        self._retry_s = RETRY_S
        self._retry_at_s = 0.0
        self.count = 0  # none is set yet

    def run(self, step: Callable[[], Result]) -> Result:
        """Compute a step. Always in the same thread, since each has its own number of helpers."""
        if not self.count:
            self._use(self._most)
        began_s, own_began_s = self._clock(), self._own_clock()
        result = step()
        self._wall_s += self._clock() - began_s
        self._own_s += self._own_clock() - own_began_s
        if self._wall_s >= WINDOW_S and self._fixed is None:
            self._judge(self._own_s / self._wall_s >= FREE_SHARE)
            self._wall_s = self._own_s = 0.0
        return result

    def _judge(self, is_free: bool) -> None:
        now_s = self._clock()
        if not is_free and self.count > 1:
            self._use(self.count // 2)
            self._retry_at_s = now_s + self._retry_s
            self._retry_s = min(2 * self._retry_s, MAX_RETRY_S)
        elif is_free and self.count < self._most and now_s >= self._retry_at_s:
            self._use(min(2 * self.count, self._most))
        elif is_free and self.count == self._most:
            self._retry_s = RETRY_S

    def _use(self, count: int) -> None:
        self.count = count
        self._set_threads(count)


def in_a_thread_that_ends(compute: Callable[[], Result], leave: Callable[[], None]) -> Result:
    """Compute something that is not a step. Its thread's helpers end with it.

    Each thread has its own helpers, and keeps them. Once all threads together have more than there are cores,
    OpenMP's helpers sleep after every operation instead of waiting awake a little, which costs steps 4 %.

    `leave` is called where nobody waits for the result any more (Ctrl-C), so that the thread can end early.
    """
    with ThreadPoolExecutor(1) as own:
        computing = own.submit(compute)
        try:
            return computing.result()
        except BaseException:
            leave()
            raise


def cpu_threads(device: torch.device, dtype: torch.dtype, fixed: int | None) -> CpuThreads | None:
    """None for another device."""
    if device.type != "cpu":
        return None
    choose_products(lambda: product_s(dtype))
    return CpuThreads(fixed)


def choose_products(took_s: Callable[[], float]) -> None:
    """Take oneDNN's products, as torch does where it has them, unless others are quicker by a tenth.

    On ARM oneDNN packs both matrices anew for each product: one of 52 rows and 192 x 128 weights took 429 us
    that way and 93 by OpenBLAS, one of 980 rows 15 % more (Neoverse-N1, torch 2.13, float32). Where the CPU
    has units for bfloat16 it may well be the other way round.
    """
    use_onednn(True)
    by_onednn_s = took_s()
    use_onednn(False)
    use_onednn(by_onednn_s <= 1.1 * took_s())


def use_onednn(wanted: bool) -> None:
    torch.backends.mkldnn.enabled = wanted  # type: ignore[assignment]


def product_s(dtype: torch.dtype) -> float:
    """Seconds of a product as small as an expert's: the shortest of a few, by one thread, so that others do
    not matter. On ARM oneDNN takes a thread for each core all the same, which hides its packing in larger
    ones.
    """
    x, weight, times = torch.ones(32, 128, dtype=dtype), torch.ones(192, 128, dtype=dtype), list[float]()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for _ in range(20):
        began_s = perf_counter()
        F.linear(x, weight)
        times.append(perf_counter() - began_s)
    torch.set_num_threads(before)
    return min(times)
