"""`kestrel doctor`: the machine, then a model, each check a row; and the verdict over all of them.

torch and libvips are imported inside the checks, so that one that cannot be imported is a row like any other.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.hub import MODELS
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest
from kestrel_tools.doctor import facts, machine
from kestrel_tools.doctor.report import Finding, Report, Verdict, ok, skipped

MACHINE, DISK = "machine", "disk"
BUNDLED = "moondream-tiny"
REINSTALL = "Reinstall kestrel-triton and what it depends on."
TRITON_ADVICE = "Use the official container, which has a server and its stub."


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    ports: Mapping[str, int]
    machine_only: bool = False
    device_is_asked_for: bool = False  # else a GPU is used where there is one
    as_json: bool = False


def doctor(options: DoctorOptions, config: RuntimeConfig, console: Console) -> bool:
    """Print what was found. True when there is no fault."""
    _refuse_impossible(options, config)
    began = time.monotonic()
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("", total=None)
        sections: list[str] = []

        def say(section: str, check: str) -> None:
            bars.update(bar, description=f"{section}: {check}", completed=0, total=None)
            if not console.is_terminal and section not in sections:  # a log has no bar
                console.print(f"checking: {section}", highlight=False)
            sections.append(section)

        def progress(done: int, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        report = Report(say)
        config = examine_machine(report, options, config)
        if not options.machine_only:
            _examine_model(report, config, progress)
    took_s = time.monotonic() - began
    if options.as_json:
        named = {"device": config.device, "model": config.model_path or config.model}
        print(json.dumps(report.document(took_s, **named), ensure_ascii=False, indent=1), flush=True)
    else:
        report.print(console)
        console.print(report.summary(took_s), highlight=False)
    return report.is_healthy


def _refuse_impossible(options: DoctorOptions, config: RuntimeConfig) -> None:
    known = (*MODELS, BUNDLED)
    if config.model_path is None and config.model not in known:
        raise BadCheckpoint(f'there is no model "{config.model}"; there are {", ".join(known)}')
    for path in (config.model_path, config.tokenizer_path):
        if path is not None and not Path(path).exists():
            raise BadCheckpoint(f"there is no {path}; name a checkpoint and its tokenizer.json")
    for name, port in options.ports.items():
        if not 0 <= port < 2**16:
            raise InvalidRequest(f"--{name}-port is {port}; a port is from 0 to 65535")


def examine_machine(report: Report, options: DoctorOptions, config: RuntimeConfig) -> RuntimeConfig:
    """Rows about the machine. Returns the configuration with the device that the model is to run on."""
    report.check(MACHINE, "Python", lambda: machine.judge_python(facts.python_facts()), REINSTALL)
    gpu = report.learn(MACHINE, "GPU", lambda: _look_at_gpu(options, config), "Look at nvidia-smi.")
    if not options.device_is_asked_for:
        config = replace(config, device="cuda" if gpu is not None and gpu.name is not None else "cpu")
    on_cuda = config.device.startswith("cuda")
    report.check(MACHINE, "torch", lambda: machine.judge_torch(facts.version_of("torch"), on_cuda), REINSTALL)
    if not options.machine_only:
        report.check(MACHINE, "GPU memory", lambda: _look_at_gpu_memory(gpu, config), "Look at nvidia-smi.")
    _try_device(report, config, on_cuda and gpu is not None and gpu.name is not None)
    triton = report.learn(MACHINE, "Triton server", _look_at_triton, TRITON_ADVICE)
    triton = triton or facts.TritonFacts(is_installed=False)
    report.check(MACHINE, "NumPy", lambda: machine.judge_numpy(facts.version_of("numpy"), triton), REINSTALL)
    report.check(
        MACHINE,
        "shared memory",
        lambda: machine.judge_shared_memory(facts.space_facts(facts.SHARED_MEMORY)),
        "Start the container with --shm-size=1g.",
    )
    for name, port in options.ports.items():
        advice = f"Choose another with --{name}-port."
        report.check(MACHINE, f"{name} port", partial(_look_at_port, name, port), advice)
    report.check(
        MACHINE, "open files", lambda: machine.judge_file_limit(facts.file_limit_facts()), "Check ulimit -n."
    )
    advice = "Run pip install --force-reinstall pyvips pyvips-binary."
    report.check(MACHINE, "picture formats", _look_at_formats, advice)
    if not options.machine_only:
        report.check(MACHINE, DISK, lambda: _look_at_disk(config), "Check the disk that HF_HOME names.")
    return config


def _look_at_gpu(options: DoctorOptions, config: RuntimeConfig) -> tuple[facts.GpuFacts, Finding]:
    found = facts.gpu_facts(config.device)
    asked = options.device_is_asked_for and config.device.startswith("cuda")
    return found, machine.judge_gpu(found, asked)


def _look_at_gpu_memory(gpu: facts.GpuFacts | None, config: RuntimeConfig) -> Finding:
    if gpu is None or not config.device.startswith("cuda"):
        return skipped("the model is to run on the CPU")
    from kestrel_tools.doctor.model import weights_bytes

    return machine.judge_gpu_memory(gpu, weights_bytes(config))


def _look_at_disk(config: RuntimeConfig) -> Finding:
    return machine.judge_disk(facts.space_facts(facts.HUB_CACHE), facts.missing_bytes(config))


def _look_at_formats() -> Finding:
    from kestrel_tools.doctor.formats import try_formats

    return try_formats()


def _examine_model(report: Report, config: RuntimeConfig, progress: Callable[[int, int], None]) -> None:
    if any(row.check == DISK and row.verdict is Verdict.FAULT for row in report.rows):
        report.add("files", "all", skipped("there is no room for the download"))
        return
    if not report.learn(MACHINE, "engine", _import_engine, REINSTALL):
        return
    from kestrel_tools.doctor.model import examine

    examine(report, config, progress)


def _import_engine() -> tuple[bool, Finding]:
    from kestrel_tools.doctor import model

    return True, ok(f"torch and the engine are imported by {model.__name__}")


def _look_at_port(name: str, port: int) -> Finding:
    return machine.judge_port(facts.port_facts(name, port))


def _look_at_triton() -> tuple[facts.TritonFacts, Finding]:
    found = facts.triton_facts()
    return found, machine.judge_triton(found)


def _try_device(report: Report, config: RuntimeConfig, on_cuda: bool) -> None:
    """Compile and run what only a GPU runs."""
    version = facts.version_of("flashinfer-python")
    report.check(
        MACHINE,
        "FlashInfer",
        lambda: machine.judge_flashinfer(version, on_cuda),
        "Serve with --flashinfer off.",
    )
    if not on_cuda:
        for name in ("FlashInfer's attention", "our kernels"):
            report.add(MACHINE, name, skipped("it needs a CUDA device"))
        return
    import torch

    from kestrel_tools.doctor.device import try_flashinfer, try_kernels

    device = torch.device(config.device)
    if version is None:
        report.add(MACHINE, "FlashInfer's attention", skipped("FlashInfer is not installed"))
    else:
        advice = "It needs nvcc and ninja to compile: install them, or serve with --flashinfer off."
        report.check(MACHINE, "FlashInfer's attention", lambda: try_flashinfer(device), advice)
    advice = "Install the triton that belongs to this torch, or serve with --compile off."
    report.check(MACHINE, "our kernels", lambda: try_kernels(device), advice)
