"""Large blocks of the C heap, which are given back to the system once `keep_heap_level` was called."""

import ctypes
import subprocess
import sys

import pytest

from kestrel_core.intake.heap import keep_heap_level

# Frees a large block, which raises glibc's own threshold. Is a smaller block mapped by itself then?
IS_MAPPED = """
import ctypes
from kestrel_core.intake.heap import keep_heap_level

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd a b c d e".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
libc.malloc.restype = ctypes.c_void_p
if {wanted}:
    assert keep_heap_level()
libc.free(ctypes.c_void_p(libc.malloc(ctypes.c_size_t(24 << 20))))
before = libc.mallinfo2().hblks
libc.malloc(ctypes.c_size_t(6 << 20))
print(libc.mallinfo2().hblks - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33 or later")
@pytest.mark.parametrize("wanted", [False, True])
def test_a_block_of_a_picture_is_mapped_by_itself_whatever_was_freed_before(wanted: bool) -> None:
    told = subprocess.run(
        [sys.executable, "-c", IS_MAPPED.format(wanted=wanted)], capture_output=True, text=True
    )
    assert (told.stdout.strip(), told.stderr) == (str(int(wanted)), "")


def test_nothing_is_done_where_there_is_no_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_heap_level()
