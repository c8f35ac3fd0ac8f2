"""Judges what `facts` found: pure functions from facts to findings, so that they need no such machine."""

from pathlib import Path

from kestrel_core.triton.checks import NEEDED_BYTES, SHARED_MEMORY, WANTED_BYTES
from kestrel_tools.doctor.facts import GpuFacts, TritonFacts
from kestrel_tools.doctor.report import Finding, fault, ok, skipped, warning

# What constraints-gpu.txt (as docs/benchmarks were measured) and constraints-cpu.txt pin.
MEASURED_TORCH = {"cuda": "2.11", "cpu": "2.13"}
MEASURED_FLASHINFER = "0.6.0"
PYTHONS = ("3.11.", "3.12.")

# Triton and its libraries hold some 200 files; every connected client holds one more.
NEEDED_FILES, WANTED_FILES = 256, 1024
BFLOAT16_CAPABILITY = (8, 0)  # Ampere is the first with bfloat16 in hardware
# Besides the weights: one picture's activations, FlashInfer's workspace, the KV of one sequence.
WORK_BYTES = 2 * 2**30


def gib(count: float) -> str:
    return f"{count / 2**30:,.1f} GiB"


def judge_python(version: str, is_shared: bool) -> Finding:
    """`is_shared`: built with libpython as a shared library, which Triton's stub needs."""
    if not version.startswith(PYTHONS):
        tested = " and ".join(python.rstrip(".") for python in PYTHONS)
        return warning(f"Python {version}; tested are {tested}", "Use one of the tested versions.")
    if not is_shared:
        advice = "If Triton's Python stub does not start, take a Python built with --enable-shared."
        return warning(f"Python {version}, built without a shared library", advice)
    return ok(f"Python {version}, with its shared library")


def judge_torch(version: str | None, on_cuda: bool) -> Finding:
    if version is None:
        return fault("torch is not installed", "Install it: pip install torch.")
    measured = MEASURED_TORCH["cuda" if on_cuda else "cpu"]
    if not f"{version}.".startswith(f"{measured}."):
        advice = f"Speed and answers were measured with torch {measured}: install that if something is odd."
        return warning(f"torch {version}; measured was {measured}", advice)
    return ok(f"torch {version}, as measured")


def judge_gpu(facts: GpuFacts, is_asked_for: bool) -> Finding:
    if facts.name is not None:
        found = (
            f"{facts.name}, driver {facts.driver or 'unknown'}, CUDA {facts.torch_cuda} of torch, compute "
            f"capability {facts.capability[0]}.{facts.capability[1]}"
        )
        if facts.capability < BFLOAT16_CAPABILITY:
            advice = "Serve with --dtype float16, and expect less speed."
            return warning(f"{found}: it has no bfloat16", advice)
        return ok(found)
    if facts.torch_cuda is None and facts.has_file:
        advice = "Install a CUDA build of torch (README, GPU)."
        found = "there is an NVIDIA GPU, and torch is built without CUDA"
    elif facts.has_file:
        found = f"there is an NVIDIA GPU, and torch with CUDA {facts.torch_cuda} cannot use it"
        advice = "Update NVIDIA's driver, or install a torch for the CUDA that nvidia-smi names."
    elif is_asked_for:
        found, advice = "device cuda is asked for, and there is no such GPU", "Use --device cpu."
    else:
        return skipped("there is no NVIDIA GPU; a CPU serves the bundled model")
    return fault(found, advice) if is_asked_for else warning(found, advice)


def judge_gpu_memory(facts: GpuFacts, weights_bytes: int, work_bytes: int = WORK_BYTES) -> Finding:
    if facts.name is None:
        return skipped("there is no GPU to serve on")
    needed = weights_bytes + work_bytes
    found = f"{gib(facts.free_bytes)} free of {gib(facts.total_bytes)}, and the model needs {gib(needed)}"
    if facts.free_bytes < needed:
        return fault(found, "End what else uses the GPU (nvidia-smi lists it), or take a smaller model.")
    return ok(found)


def judge_flashinfer(version: str | None, on_cuda: bool) -> Finding:
    if not on_cuda:
        return skipped("FlashInfer needs a CUDA device")
    advice = f"Install it as measured: pip install flashinfer-python=={MEASURED_FLASHINFER}."
    if version is None:
        return warning("FlashInfer is not installed; attention will be slower", advice)
    if version != MEASURED_FLASHINFER:
        return warning(f"FlashInfer {version}; measured was {MEASURED_FLASHINFER}", advice)
    return ok(f"FlashInfer {version}, as measured")


def judge_triton(facts: TritonFacts) -> Finding:
    if not facts.is_installed:
        return warning(
            "there is no Triton server, so kestrel serve cannot start; the Python API works without",
            "Use the official container, or pip install 'kestrel-triton[triton]'.",
        )
    if facts.trouble:
        return fault(facts.trouble, "Mend that, or use the official container; kestrel serve needs it.")
    return ok(f"{facts.server}, and its Python stub starts")


def judge_numpy(version: str | None, triton: TritonFacts) -> Finding:
    if version is None:
        return fault("NumPy is not installed", "Install it: pip install 'numpy<2'.")
    if triton.is_installed and triton.from_wheel and int(version.partition(".")[0]) > 1:
        return fault(
            f"NumPy {version} kills the Python stub of the wheel's Triton", "Run pip install 'numpy<2'."
        )
    return ok(f"NumPy {version}")


def judge_shared_memory(free: int, total: int) -> Finding:
    found = f"{SHARED_MEMORY} has {free >> 20:,} MiB free of {total >> 20:,} MiB"
    advice = "Start the container with --shm-size=1g; pictures reach the model through shared memory."
    if free < NEEDED_BYTES:
        return fault(f"{found}; at least {NEEDED_BYTES >> 20} MiB are needed", advice)
    if free < WANTED_BYTES:
        return warning(f"{found}: large pictures may be refused", advice)
    return ok(found)


def judge_port(name: str, host: str, port: int, trouble: str) -> Finding:
    if trouble:
        return warning(trouble, f"End what listens there (maybe another server), or use another {name} port.")
    return ok(f"port {port} of {host} is free")


def judge_file_limit(soft: int, hard: int) -> Finding:
    found = f"{soft:,} open files (ulimit -n), at most {hard:,}"
    advice = f"Run ulimit -n {WANTED_FILES} or more before the start; each client takes one."
    if soft < 0:  # what the system calls no limit
        return ok("no limit of open files")
    if soft < NEEDED_FILES:
        return fault(found, advice)
    return ok(found) if soft >= WANTED_FILES else warning(found, advice)


def judge_disk(folder: Path, free: int, missing_bytes: int) -> Finding:
    found = f"{folder} has {gib(free)} free, and {gib(missing_bytes)} are to be downloaded"
    if missing_bytes == 0:
        return ok(f"{folder} has {gib(free)} free, and nothing has to be downloaded")
    if free < missing_bytes:
        return fault(found, "Free some space, or set HF_HOME to a folder on a larger disk.")
    return ok(found)
