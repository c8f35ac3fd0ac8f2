"""Kernels in CUDA C++: compiled where they run, kept in a folder, launched through the driver.

A source includes no headers and takes a second or two to compile, and what is built has no tie to torch's
binary interface. It needs nvcc, or the folder as another machine filled it: an image can bring it along.
"""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

Value = ctypes.c_void_p | ctypes.c_int | ctypes.c_float  # an argument of a kernel

FOLDER_VARIABLE = "CUBIN_CACHE_DIR"
COMPILE_S = 120.0
BFLOAT16 = 9  # CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
L2_128_BYTES = 2  # CU_TENSOR_MAP_L2_PROMOTION_L2_128B
SWIZZLES = {32: 1, 64: 2, 128: 3}  # CU_TENSOR_MAP_SWIZZLE_*, by the bytes that are swizzled together
MAX_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
MAP_BYTES = 128
MAP_ALIGNMENT = 64


class CannotBuild(RuntimeError):
    """There is no compiler, or it refuses, or the driver does."""


class Box(NamedTuple):
    """How copies cut a tensor: its sizes and steps in bytes, the fastest first, and the sizes of a copy."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # of all dimensions but the first, whose elements touch
    box: tuple[int, ...]
    swizzle: int  # bytes


def cache_folder() -> Path:
    """Where the option cache_folder says (`runtime.compiled`), or in the user's cache."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else home / "kestrel" / "kernels"


def find_compiler() -> Path | None:
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places = [shutil.which("nvcc"), *(f"{home}/bin/nvcc" for home in (*homes, "/usr/local/cuda"))]
    return next((Path(place) for place in places if place and Path(place).is_file()), None)


def build(source: str, name: str, folder: Path | None = None, arch: str = "90a") -> bytes:
    """The source as machine code: from the folder, or compiled and left there."""
    folder = folder or cache_folder()
    stem = f"{name}-sm_{arch}-{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    nvcc = find_compiler()
    if nvcc is None:
        kept = sorted(folder.glob(f"{stem}-*.cubin"))
        if not kept:
            raise CannotBuild(f"there is no nvcc, and {folder} has no {stem}")
        return kept[-1].read_bytes()
    path = folder / f"{stem}-{_version(nvcc)}.cubin"
    if path.is_file():
        return path.read_bytes()
    made = _compile(nvcc, source, arch)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(made)
        os.replace(file.name, path)  # two processes may do this at a time
    except OSError:
        pass  # it is compiled again next time
    return made


def _version(nvcc: Path) -> str:
    told = _run([str(nvcc), "--version"])
    found = re.search(r"V(\d+(\.\d+)+)", told)
    return found.group(1) if found else "unknown"


def _compile(nvcc: Path, source: str, arch: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        at, to = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        at.write_text(source)
        target = f"-gencode=arch=compute_{arch},code=sm_{arch}"
        _run([str(nvcc), "-O3", "-std=c++17", target, "-cubin", "-o", str(to), str(at)])
        return to.read_bytes()


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(str(error)) from error
    if done.returncode:
        raise CannotBuild(f"{command[0]} says: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


class Driver:
    """The few functions of libcuda that are needed, in the context that torch has made for its thread."""

    def __init__(self) -> None:
        try:
            self._lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CannotBuild(f"no CUDA driver: {error}") from error

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self._lib, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._lib.cuGetErrorString(status, ctypes.byref(text))
            raise CannotBuild(f"{name}: {text.value.decode() if text.value else status}")


class TensorMaps:
    """Boxes of one tensor, as a kernel takes them."""

    def __init__(self, driver: Driver, pointer: int, boxes: Sequence[Box]) -> None:
        self._memory = ctypes.create_string_buffer(MAP_BYTES * len(boxes) + MAP_ALIGNMENT)
        start = -(-ctypes.addressof(self._memory) // MAP_ALIGNMENT) * MAP_ALIGNMENT
        self.addresses = [start + MAP_BYTES * i for i in range(len(boxes))]
        for address, box in zip(self.addresses, boxes, strict=True):
            rank = len(box.sizes)
            driver.call(
                "cuTensorMapEncodeTiled",
                ctypes.c_void_p(address),
                BFLOAT16,
                ctypes.c_uint32(rank),
                ctypes.c_void_p(pointer),
                (ctypes.c_uint64 * rank)(*box.sizes),
                (ctypes.c_uint64 * (rank - 1))(*box.strides),
                (ctypes.c_uint32 * rank)(*box.box),
                (ctypes.c_uint32 * rank)(*(1,) * rank),
                0,  # not interleaved
                SWIZZLES[box.swizzle],
                L2_128_BYTES,
                0,  # zeros outside
            )


class Kernel:
    """One function of a cubin, whose blocks have so many bytes of shared memory."""

    def __init__(self, driver: Driver, cubin: bytes, name: str, shared_bytes: int) -> None:
        self._driver = driver
        self._cubin = cubin  # the driver may read it later
        self._shared_bytes = shared_bytes
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(self._module), cubin)
        driver.call("cuModuleGetFunction", ctypes.byref(self._function), self._module, name.encode())
        driver.call("cuFuncSetAttribute", self._function, MAX_DYNAMIC_SHARED_BYTES, shared_bytes)

    def launch(
        self, blocks: int, threads: int, stream: int, addresses: Sequence[int], *values: Value
    ) -> None:
        """`addresses` are of arguments in memory, which come first; the launch copies them."""
        all_of_them = [*addresses, *(ctypes.addressof(value) for value in values)]
        arguments = (ctypes.c_void_p * len(all_of_them))(*all_of_them)
        self._driver.call(
            "cuLaunchKernel",
            self._function,
            *(ctypes.c_uint(size) for size in (blocks, 1, 1, threads, 1, 1, self._shared_bytes)),
            ctypes.c_void_p(stream),
            arguments,
            None,
        )
