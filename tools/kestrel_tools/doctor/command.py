"""`kestrel doctor`: the machine, then a model, each check a row; and the verdict over all of them.

torch and libvips are imported inside the checks, so that one that cannot be imported is a row like any other.
"""

import json
import platform
import resource
import sysconfig
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import find_model
from kestrel_core.protocol.errors import BadCheckpoint
from kestrel_core.triton.checks import SHARED_MEMORY
from kestrel_tools.bench.machine.versions import version_of
from kestrel_tools.doctor import facts, machine
from kestrel_tools.doctor.options import DoctorOptions
from kestrel_tools.doctor.report import Finding, Report, Verdict, ok, skipped

MACHINE, DISK = "machine", "disk"
REINSTALL = "Reinstall kestrel-triton and what it depends on."
SEE_GPU = "Look at nvidia-smi."
TRITON_ADVICE = "Use the official container, which has a server and its stub."


def doctor(
    options: DoctorOptions, config: RuntimeConfig, device_is_asked_for: bool, console: Console
) -> bool:
    """Print what was found. True when there is no fault. A GPU is used where there is one, unless asked for
    another device."""
    _refuse_impossible(config)
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
        config = examine_machine(report, options, config, device_is_asked_for)
        if not options.machine_only:
            _examine_model(report, config, progress)
    took_s = time.monotonic() - began
    if options.json:
        named = {"device": config.device, "model": config.model_path or config.model}
        print(json.dumps(report.document(took_s, **named), ensure_ascii=False, indent=1), flush=True)
    else:
        report.print(console)
        console.print(report.summary(took_s), highlight=False)
    return report.is_healthy


def _refuse_impossible(config: RuntimeConfig) -> None:
    if config.model_path is None:
        find_model(config.model)
    for path in (config.model_path, config.tokenizer_path):
        if path is not None and not Path(path).exists():
            raise BadCheckpoint(f"there is no {path}; name a checkpoint and its tokenizer.json")


def examine_machine(
    report: Report, options: DoctorOptions, config: RuntimeConfig, device_is_asked_for: bool
) -> RuntimeConfig:
    """Rows about the machine. Returns the configuration with the device that the model is to run on."""
    check = partial(report.check, MACHINE)
    is_shared = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
    check("Python", lambda: machine.judge_python(platform.python_version(), is_shared), REINSTALL)
    gpu = report.learn(
        MACHINE,
        "GPU",
        partial(facts.gpu_facts, config.device),
        lambda gpu: machine.judge_gpu(gpu, device_is_asked_for and config.device.startswith("cuda")),
        SEE_GPU,
    )
    has_gpu = gpu is not None and gpu.name is not None
    if not device_is_asked_for:
        config = replace(config, device="cuda" if has_gpu else "cpu")
    on_cuda = config.device.startswith("cuda")
    check("torch", lambda: machine.judge_torch(version_of("torch"), on_cuda), REINSTALL)
    if not options.machine_only:
        check("GPU memory", lambda: _look_at_gpu_memory(gpu, config), SEE_GPU)
    _try_device(report, config, on_cuda and has_gpu)
    triton = report.learn(MACHINE, "Triton server", facts.triton_facts, machine.judge_triton, TRITON_ADVICE)
    triton = triton or facts.TritonFacts(is_installed=False)
    check("NumPy", lambda: machine.judge_numpy(version_of("numpy"), triton), REINSTALL)
    advice = "Start the container with --shm-size=1g."
    check("shared memory", lambda: machine.judge_shared_memory(*facts.space_on(SHARED_MEMORY)), advice)
    for name, (host, port) in options.listeners.items():
        advice = "Choose another; `kestrel serve --help` names the options."
        check(f"{name} port", partial(_look_at_port, name, host, port), advice)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    check("open files", lambda: machine.judge_file_limit(*limits), "Check ulimit -n.")
    advice = "Run pip install --force-reinstall pyvips pyvips-binary."
    check("picture formats", lambda: _late("formats").try_formats(), advice)
    if not options.machine_only:
        check(DISK, lambda: _look_at_disk(config), "Check the disk that HF_HOME names.")
    return config


def _late(name: str) -> ModuleType:
    """A module of the doctor that imports torch or libvips."""
    return import_module(f"kestrel_tools.doctor.{name}")


def _look_at_gpu_memory(gpu: facts.GpuFacts | None, config: RuntimeConfig) -> Finding:
    if gpu is None or not config.device.startswith("cuda"):
        return skipped("the model is to run on the CPU")
    model = _late("model")
    weights = model.weights_bytes(config) + model.adapters_bytes(config)
    return machine.judge_gpu_memory(gpu, weights, model.work_bytes(config))


def _look_at_disk(config: RuntimeConfig) -> Finding:
    free, _ = facts.space_on(facts.HUB_CACHE)
    return machine.judge_disk(facts.HUB_CACHE, free, facts.missing_bytes(config))


def _look_at_port(name: str, host: str, port: int) -> Finding:
    return machine.judge_port(name, host, port, facts.port_trouble(name, host, port))


def _try_device(report: Report, config: RuntimeConfig, on_cuda: bool) -> None:
    """Compile and run what only a GPU runs."""
    check, version = partial(report.check, MACHINE), version_of("flashinfer-python")
    off = "Serve with --flashinfer off."
    check("FlashInfer", lambda: machine.judge_flashinfer(version, on_cuda), off)
    if not on_cuda:
        for name in ("FlashInfer's attention", "our kernels"):
            report.add(MACHINE, name, skipped("it needs a CUDA device"))
        return
    if version is None:
        report.add(MACHINE, "FlashInfer's attention", skipped("FlashInfer is not installed"))
    else:
        advice = "It needs nvcc and ninja to compile: install them, or serve with --flashinfer off."
        check("FlashInfer's attention", lambda: _late("device").try_flashinfer(config.device), advice)
    advice = "Install the triton that belongs to this torch, or serve with --compile off."
    check("our kernels", lambda: _late("device").try_kernels(config.device), advice)


def _examine_model(report: Report, config: RuntimeConfig, progress: Callable[[int, int], None]) -> None:
    if any(row.check == DISK and row.verdict is Verdict.FAULT for row in report.rows):
        report.add("files", "all", skipped("there is no room for the download"))
        return
    model = report.learn(
        MACHINE,
        "engine",
        partial(_late, "model"),
        lambda model: ok(f"torch and the engine are imported by {model.__name__}"),
        REINSTALL,
    )
    if model is not None:
        model.examine(report, config, progress)
