"""What NVIDIA's driver says of a GPU: its name, its memory, how busy it is. Through its own library, NVML.

The busy share is the driver's: of each of its sampling periods (a sixth of a second to one) the part in which
a kernel ran, whoever started it. So it holds for a server in another process as well. None everywhere means
that the library is not here, and nothing was measured.
"""

import ctypes
import threading
from statistics import fmean
from time import monotonic

import torch

WATCH_S = 0.1


class Gpu:
    """One GPU, by the number that torch gives it. Raises OSError where NVML does not know it."""

    def __init__(self, index: int) -> None:
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self._handle = ctypes.c_void_p()
        self._call("nvmlInit_v2")
        # Torch counts only the devices that CUDA_VISIBLE_DEVICES leaves it; NVML counts all.
        uuid = str(torch.cuda.get_device_properties(index).uuid).removeprefix("GPU-")
        self._call("nvmlDeviceGetHandleByUUID", f"GPU-{uuid}".encode(), ctypes.byref(self._handle))

    @property
    def driver(self) -> str:
        text = ctypes.create_string_buffer(96)
        self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return text.value.decode()

    @property
    def used_bytes(self) -> int:
        memory = (ctypes.c_ulonglong * 3)()  # total, free, used
        self._call("nvmlDeviceGetMemoryInfo", self._handle, ctypes.byref(memory))
        return int(memory[2])

    @property
    def busy(self) -> float:
        rates = (ctypes.c_uint * 2)()  # of the GPU, of its memory
        self._call("nvmlDeviceGetUtilizationRates", self._handle, ctypes.byref(rates))
        return int(rates[0]) / 100

    def _call(self, name: str, *arguments: object) -> None:
        try:
            code = getattr(self._nvml, name)(*arguments)
        except AttributeError:
            raise OSError(f"this NVML has no {name}") from None
        if code != 0:
            raise OSError(f"{name} gave {code}")


def find_gpu(device: str) -> Gpu | None:
    """The GPU of a device, named as in RuntimeConfig; None for a CPU, or where NVML is not installed."""
    chosen = torch.device(device)
    if chosen.type != "cuda" or not torch.cuda.is_available():
        return None
    try:
        return Gpu(chosen.index or 0)
    except OSError:
        return None


class GpuWatch:
    """Looks at a GPU in a thread while something else is measured."""

    def __init__(self, gpu: Gpu | None) -> None:
        self._gpu = gpu
        self._samples: list[tuple[float, float, int]] = []  # when, busy share, bytes in use
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="bench-gpu", daemon=True)

    def __enter__(self) -> "GpuWatch":
        if self._gpu is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._gpu is not None:
            self._thread.join()

    def busy_share(self, begin_s: float, end_s: float) -> float | None:
        shares = [share for at, share, _ in self._samples if begin_s <= at <= end_s]
        return fmean(shares) if shares else None

    def max_used_bytes(self, begin_s: float, end_s: float) -> int | None:
        return max((used for at, _, used in self._samples if begin_s <= at <= end_s), default=None)

    def _look(self) -> None:
        assert self._gpu is not None
        while not self._over.wait(WATCH_S):
            try:
                self._samples.append((monotonic(), self._gpu.busy, self._gpu.used_bytes))
            except OSError:
                return
