"""`kestrel serve`: checks what can be known to go wrong, then hands Triton and gateway to their supervisor.

Every mistake is told in one sentence before anything is started. The engine's options come from the command
line, then from `KESTREL_*` variables, then from the model's parameters in config.pbtxt; those of the command
line reach the model's process as variables.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from kestrel_core.config import RuntimeConfig, variable
from kestrel_core.intake.checksums import verify_weights
from kestrel_core.intake.hub import fetch_model
from kestrel_core.intake.models import DEMO, find_model
from kestrel_core.protocol.errors import BadCheckpoint, InvalidRequest
from kestrel_core.skills.registry import installed_skills
from kestrel_core.triton.banner import say
from kestrel_core.triton.checks import (
    check_adapters,
    check_device,
    check_gateway,
    check_ports,
    check_shared_memory,
    free_shared_memory,
)
from kestrel_core.triton.gateway import Gateway, gateway_environment, missing_packages
from kestrel_core.triton.installation import check_stub, find_triton
from kestrel_core.triton.options import ServeOptions
from kestrel_core.triton.ports import arranged, check_flags
from kestrel_core.triton.process import allow_open_files
from kestrel_core.triton.repository import read_repository
from kestrel_core.triton.restrictions import SECRET_VARIABLE, inference_secret
from kestrel_core.triton.runs import clear_left_over, open_run
from kestrel_core.triton.supervisor import Supervisor
from kestrel_core.triton.unheard import keep_on_unheard

_PACKAGE = Path(__file__).parents[1]
# In a wheel it lies in the package, in a checkout beside it.
REPOSITORY = next(
    (path for path in (_PACKAGE / "model_repository", _PACKAGE.parent / "model_repository") if path.is_dir()),
    _PACKAGE / "model_repository",
)
DEMO_OPTIONS = {
    "model": DEMO,
    "device": "cpu",
    "model_path": "none",
    "tokenizer_path": "none",
    "weights": "checkpoint",
}


def serve(options: ServeOptions, console: Console) -> int:
    """Serve until a signal. Returns 0 if all requests were answered, 1 if some were not; raises mistakes."""
    keep_on_unheard(console)
    check_flags(options.flags, options.expose_triton)
    options = arranged(check_gateway(options, missing_packages(), console), console)
    surroundings = dict(os.environ)
    is_gateways_alone = options.is_guarded or options.api_keys is not None
    secret = inference_secret(surroundings.pop(SECRET_VARIABLE, None), is_gateways_alone)
    environment = {**surroundings, **engine_variables(options)}
    configs = read_repository(options.repository).configs(environment)
    for config in configs:
        check_device(config.device)
    installed_skills(configs[0].skills)  # raises for skills that cannot be loaded
    check_adapters(configs[0].adapters, console)
    for line in [*clear_left_over(), *filter(None, [allow_open_files()])]:
        say(console, line)
    check_shared_memory(free_shared_memory(), console)
    check_ports(options.listeners)
    with open_run() as run:
        triton = find_triton(run.folder, environment | run.variables)
        check_stub(triton)
        weights = resolve_weights(configs[0], console)
        weights |= verified(configs[0], weights, console)
        triton = replace(triton, environment={**triton.environment, **weights})
        gateway = None
        if options.port:
            gateway = Gateway(
                options, gateway_environment(environment | run.gateway_variables, secret), console
            )
        return Supervisor(triton, options, configs[0], console, run, gateway, secret).run()


def engine_variables(options: ServeOptions) -> dict[str, str]:
    """The engine's options as variables. `--demo` sets some of them, which options may not contradict."""
    given = dict(options.engine)
    if options.demo:
        for name, text in given.items():
            if text != DEMO_OPTIONS.get(name, text):
                raise InvalidRequest(
                    f"--demo is {DEMO} on the CPU, and --{name.replace('_', '-')} is {text}; "
                    "leave one of them out"
                )
        given |= DEMO_OPTIONS
    return {variable(name): text for name, text in given.items()}


def resolve_weights(config: RuntimeConfig, console: Console) -> dict[str, str]:
    """Find the model's files, or fetch them. Returns the variables that name them to the server."""
    if config.model_path is not None:
        path = Path(config.model_path)
        found = [*path.glob("*.safetensors"), *path.glob("*.pt")] if path.is_dir() else [path]
        if not path.exists():
            raise BadCheckpoint(f"there is no {path}; {variable('model_path')} has to name a checkpoint")
        if not found and config.weights != "random":
            raise BadCheckpoint(f"{path} holds no checkpoint, neither *.safetensors nor *.pt")
        return {}
    if find_model(config.model).folder is not None or config.weights == "random":
        return {}
    with bar(console, f"fetching {config.model}") as update:
        files = fetch_model(config.model, update, config.revision)
    return {
        variable("model_path"): str(files.folder),
        variable("tokenizer_path"): config.tokenizer_path or str(files.tokenizer),
    }


def verified(config: RuntimeConfig, found: Mapping[str, str], console: Console) -> dict[str, str]:
    """Verify the weights, if that is asked for. Returns the variable that spares the server the same work."""
    if not config.verify_weights or config.weights == "random":
        return {}
    path = found.get(variable("model_path")) or config.model_path or find_model(config.model).folder
    assert path is not None, "what is not bundled was fetched"
    with bar(console, "verifying the weights") as update:
        verify_weights(Path(path), update)
    return {variable("verify_weights"): "false"}


@contextmanager
def bar(console: Console, text: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how far it is; what is given is told the bytes done and in all."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
