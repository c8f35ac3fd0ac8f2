"""The C heap under threads that decode pictures."""

import ctypes

M_MMAP_THRESHOLD = -3  # glibc's malloc.h
MAPPED_BYTES = 4 * 2**20


def keep_heap_level() -> bool:
    """Have glibc give large blocks back to the system; False where there is no glibc, and nothing is done.

    A block as large as a decoded picture is mapped by itself, and unmapped when it is freed. But each such
    free raises the size from which on blocks are mapped, to as much as 32 MiB; then pictures lie in the
    heaps of the threads, which break into fragments and grow for hours. A size that is set stays.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES))
